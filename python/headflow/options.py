"""What can be set, from the one table of keys."""

from __future__ import annotations

from . import _core
from .config import keys, keywords


class Options(dict[str, str]):
    """Keywords and what they are for."""

    def __repr__(self) -> str:
        width = max((len(name) for name in self), default=0)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in self.items())

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td style='text-align:left'><code>{name}</code></td><td style='text-align:left'>{text}</td></tr>"
                       for name, text in self.items())
        return f"<table>{rows}</table>"


def options(computation: str = "flow") -> Options:
    """The keywords of a computation, with what they are for and their defaults.

    >>> import headflow as hf
    >>> print(hf.options("flow")["rtol"])
    relative tolerance of an adaptive step [1e-06]
    """
    computation = str(computation).replace("_", "-")
    if computation in ("sweep", "verify"):
        wanted = ("verify",) if computation == "verify" else ("point", "run", "loss", "flow", "end", "sgd", "compare")
        short = {name: name for name, key in keys().items() if key.section in wanted}
    elif computation == "problem":
        short = {key.name: key.full_name for key in keys().values() if key.section == "problem"}
    else:
        known = keywords(computation)
        short = {}
        for name, full in known.items():
            if name != full or full.split(".", 1)[1] not in known:
                short.setdefault(name, full)
        short = {name: full for name, full in short.items() if not full.startswith("problem.")}
    default = _core.Config()
    out = Options()
    for name, full in short.items():
        value = default.get(full)
        shown = "" if value is None or value == "" else f" [{value}]"
        out[name] = keys()[full].help + shown
    return out
