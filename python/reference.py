"""Writes docs/python.md, the reference of the package, from its docstrings: python/reference.py [--check]."""

import inspect
import sys
from pathlib import Path

import headflow as hf

PAGE = Path(__file__).resolve().parents[1] / "docs/python.md"

GROUPS = {
    "What is trained": ["Problem", "Prior", "flipping", "gaussian", "discrete", "mixture", "activation", "prior"],
    "At a point": ["loss", "Loss", "Evaluation", "PointValues", "bayes", "hessian"],
    "Training": ["flow", "sgd", "compare", "fixed_point", "minima"],
    "What training leaves": ["phases", "prune", "similarity", "attention"],
    "Sweeps": ["sweep", "Axis"],
    "The paper": ["verify"],
    "Results": ["open", "plot", "animate"],
    "Options and errors": ["options", "Error", "OptionError", "FileError", "Interrupted", "HeadflowWarning"],
}

INTRODUCTION = """# headflow from Python

`pip install ".[plot,files]"` in a clone builds the package (without the brackets it draws nothing, and neither reads nor writes files): it needs the Debian packages of `scripts/install-packages build`, and Python 3.10 or
later. Names of functions and keywords are those of the program: `headflow flow --rtol 1e-8` is `hf.flow(problem, rtol=1e-8)`, and
`hf.options("flow")` lists them. A keyword that two tables have goes by its full name, `hf.sweep(..., **{"sgd.init": "point"})`, or by
its table, `flow={"rtol": 1e-8}`. Results are `xarray.Dataset`s with the variables and attributes of the
program's files ([result_format.md](result_format.md)), to the bit.

Ctrl-C stops a computation within a second: it raises `headflow.Interrupted`, whose `result` is what there was. A
bar of tqdm shows where a long one is, if somebody watches (`progress=True`, `progress=False`); remarks are
`HeadflowWarning`s. Calls may come from several threads, and run beside them.

This page is made of the docstrings (`python/reference.py`); every example is run by the tests.
"""


def signature(thing) -> str:
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return ""
    for long in ("headflow.problem.", "headflow.priors.", "headflow.loss.", "xr.", "npt.", "'"):
        text = text.replace(long, "")
    return text.replace("xarray.core.dataset.", "").replace("self, ", "")


def entry(name: str, thing) -> str:
    out = f"### `{name}`\n\n"
    if inspect.ismodule(thing):  # plot and animate, which can be called
        thing = getattr(thing, name)
    if inspect.isfunction(thing):
        out += f"```python\n{name}{signature(thing)}\n```\n\n"
    out += text(inspect.getdoc(thing) or "")
    if inspect.isclass(thing):
        for inner, method in vars(thing).items():
            if inner.startswith("_") and inner != "__call__" or not inspect.isfunction(method):
                continue
            call = f"{name.lower()}(...)" if inner == "__call__" else f"{name.lower()}.{inner}"
            out += f"\n**`{call}{signature(method)}`** {text(inspect.getdoc(method) or '')}"
    return out


def text(doc: str) -> str:
    """A docstring as Markdown: examples are code, lists of arguments are lists."""
    out, code = [], False
    for line in doc.split("\n"):
        example = line.startswith((">>>", "...")) or (code and line.strip() != "")
        if example != code:
            out.append("```python" if example else "```")
        code = example
        line = line.replace("``", "`") if not code else line
        if not code and line.startswith("    ") and ":" in line and not line.startswith("     "):
            line = "- " + line.strip()
        for role in (":func:", ":class:"):
            line = line.replace(role, "")
        if not code and line in ("Args:", "Attributes:"):
            line = ""
        out.append(line)
    if code:
        out.append("```")
    return "\n".join(out).strip() + "\n"


def page() -> str:
    missing = {*hf.__all__, "plot", "animate"} - {name for names in GROUPS.values() for name in names}
    assert not missing, f"in no group: {missing}"
    out = INTRODUCTION
    for title, names in GROUPS.items():
        out += f"\n## {title}\n\n" + "\n".join(entry(name, getattr(hf, name)) for name in names)
    return out


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text() == page() else f"{PAGE.name} is not what python/reference.py writes")
    PAGE.write_text(page())
