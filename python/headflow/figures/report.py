"""One page with the figures and the statements that were measured: python -m headflow.figures.report RESULTS_FOLDER

Writes RESULTS_FOLDER/index.html, which needs nothing but itself: pictures, style and script are inside. Its links lead to the
files of the folder, to the pages of the documentation, which are copied to RESULTS_FOLDER/docs, and to the paper.
"""

import html
import itertools
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import quote

from . import statements
from .formulas import typeset
from .outcome import PAPER, Outcome

HERE = Path(__file__).parent
DOCS = {"commands.md": "commands", "theory.md": "statements, and how each is measured", "result_format.md": "result files",
        "performance.md": "performance"}
TEXTS = {"paper": "In the paper", "chosen": "Chosen here"}


def duration(seconds):
    if seconds is None:
        return ""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def shown(name):
    """The name of a file as text; what is not UTF-8 in it as question marks."""
    return html.escape(name.encode("utf-8", "replace").decode())


def address(path):
    """A path of the folder as a link: whatever stands in a name, it is the name of that file."""
    return html.escape(quote(path, errors="surrogateescape"))


def anchor(name):
    return html.escape(quote(name, safe="", errors="surrogateescape"))


def link(path, text):
    return f'<a href="{address(path)}">{text}</a>'


def prose(text):
    """Text with formulas; pages of the documentation are links."""
    out = []
    for i, piece in enumerate(re.split(rf"\bdocs/({'|'.join(map(re.escape, DOCS))})", text)):
        out.append(link(f"docs/{piece}", f"docs/{piece}") if i % 2 else typeset(piece))
    return "".join(out)


def paragraphs(text):
    """Paragraphs between blank lines, `code` between backticks; all else is text."""
    out = []
    for part in re.split(r"\n\s*\n", text):
        pieces = part.strip().split("`")
        out.append("".join(f"<code>{html.escape(piece)}</code>" if i % 2 else prose(piece) for i, piece in enumerate(pieces)))
    return "".join(f"<p>{part}</p>" for part in out)


def label(figure):
    return f"Figure {figure.number}" if figure.number else "Beyond the paper"


def work(figure, seconds):
    """Time and tasks, as far as they are known."""
    parts = [f"{duration(seconds)} of processor time"] if seconds is not None else []
    tasks, shared = figure.times.get("tasks"), figure.times.get("shared")
    if tasks is not None:
        parts.append(f"{tasks} task{'s' * (tasks != 1)}" + (f", {shared} of them shared with other figures" if shared else ""))
    return f"<p class=soft><small>{html.escape(' · '.join(parts))}</small></p>" if parts else ""


def picture(figure):
    """Never wider than the page; a tap on it shows it alone, as large as one likes."""
    source, inches = figure.picture
    alt = html.escape(f"{label(figure)}: ") + shown(figure.title)
    image = f'<img style="--width:{inches * 96:.0f}px" alt="{alt}" src="{source}">'  # 96 px an inch: what it was drawn for
    large = figure.files.get("SVG") or figure.files.get("PDF")
    return f'<div class=picture>{link(large, image) if large else image}</div>\n'


def section(figure, seconds):
    texts = figure.texts
    rows = "".join(f"<dt>{name}</dt><dd>{paragraphs(texts[key])}</dd>" for key, name in TEXTS.items() if key in texts)
    finding = f"<div class=finding><b>Finding</b>{paragraphs(texts['finding'])}</div>\n" if "finding" in texts else ""
    links = "".join(link(path, html.escape(name)) for name, path in figure.files.items())
    return (f'<section class=figure id="{anchor(figure.name)}">'
            f'<h3><a href="#{anchor(figure.name)}"><span class=number>{label(figure)}</span> {shown(figure.title)}</a></h3>'
            f"{work(figure, seconds)}{picture(figure)}"
            f"{'<div class=text>' + paragraphs(texts['caption']) + '</div>' if 'caption' in texts else ''}"
            f"{finding}{f'<dl>{rows}</dl>' if rows else ''}"
            f"<p class=links>{links}<code>headflow reproduce {shown(figure.name)}</code></p></section>\n")


def what_is_missing(figure):
    return "not drawn" if figure.data else "not computed"


def missing(figures):
    """Figures in a row that all lack the same: one line."""
    names = ", ".join(f'<span id="{anchor(figure.name)}">{figure.number}</span>' for figure in figures)
    command = " ".join(["headflow reproduce", *(figure.name for figure in figures)])
    return (f"<section class=missing><p>Figure{'s' * (len(figures) > 1)} {names}: {what_is_missing(figures[0])}: "
            f"<code>{command}</code></p></section>\n")


def contents(outcome):
    """Beside the page where there is room; else a bar above it that opens."""
    lines = []
    for figure in outcome.figures:
        time = duration(outcome.seconds(figure.name)) if figure.picture else what_is_missing(figure)
        lines.append(f'<li><span class=number>{figure.number or "+"}</span><a class=title href="#{anchor(figure.name)}">'
                     f"{shown(figure.title) or label(figure)}</a><span class=time>{time}</span></li>")
    lines.append(f"<li><span class=number>✓</span><a class=title href=#statements>Statements of the paper, measured</a>"
                 f"<span class=time>{duration(outcome.seconds('verify')) if outcome.verify else 'not measured'}</span></li>")
    return f"<nav aria-label=Contents><details><summary>Contents</summary><ol>{''.join(lines)}</ol></details></nav>\n"


def documentation(folder):
    pages = [link(f"docs/{page}", name) for page, name in DOCS.items() if (folder / "docs" / page).is_file()]
    return f"<p class=links>Documentation: {''.join(pages)}</p>\n" if pages else ""


def figures(outcome):
    groups = itertools.groupby(outcome.figures, key=lambda f: "" if f.picture else what_is_missing(f))
    for state, group in groups:
        if state:
            yield missing(list(group))
        else:
            yield from (section(figure, outcome.seconds(figure.name)) for figure in group)


def verified(outcome):
    if outcome.verify is None:
        return "<section class=missing><p>Statements: not measured: <code>headflow verify</code></p></section>\n"
    try:
        return statements.table(outcome.verify, (outcome.folder / "docs/theory.md").is_file())
    except (AttributeError, KeyError, TypeError, ValueError):  # not what `headflow verify` writes today
        return ("<section class=missing><p>Statements: verify.json cannot be read: "
                "<code>headflow verify --output verify.json</code></p></section>\n")


def footer(outcome):
    programs = outcome.programs()
    drawn = sum(figure.picture is not None for figure in outcome.figures if figure.name in PAPER)
    parts = [f"{drawn} of {len(PAPER)} figures of the paper."]
    if programs:
        parts.append(f"Computed by headflow {html.escape('; '.join(programs))}.")
    compute, draw, verify = map(outcome.seconds, ("compute", "draw", "verify"))
    if compute:
        cores = (outcome.times.get("compute") or {}).get("cores")
        on = f" on {cores} core{'s' * (cores != 1)}" if isinstance(cores, int) else ""
        parts.append(f"The last run took {duration(compute)} to compute{on}" + (f" and {duration(draw)} to draw" if draw else "")
                     + "; times of figures are processor time.")
    if verify:
        parts.append(f"Measuring the statements took {duration(verify)}.")
    return f"<footer><p>{' '.join(parts)}</p></footer>\n"


def page(outcome):
    style, script, introduction = ((HERE / f"report{name}").read_text() for name in (".css", ".js", "_introduction.html"))
    return ("<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width,initial-scale=1'>\n"
            f"<title>headflow: the paper, measured</title>\n<style>\n{style}</style></head>\n<body>\n{contents(outcome)}<main>\n"
            f"<h1>How attention heads specialise: the paper, measured</h1>\n<div class=text>{introduction}</div>\n"
            f"{documentation(outcome.folder)}"
            f"<h2>Figures</h2>\n{''.join(figures(outcome))}"
            f"<h2 id=statements>Statements of version 1 of the paper</h2>\n{verified(outcome)}{footer(outcome)}</main>\n<script>\n{script}</script></body></html>\n")


def copy_documentation(folder):
    """So that a folder that is sent elsewhere is whole."""
    for page in DOCS:
        source = HERE.parents[2] / "docs" / page  # of the source, or of what was installed
        if source.is_file():
            (folder / "docs").mkdir(exist_ok=True)
            shutil.copyfile(source, folder / "docs" / page)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    outcome = Outcome(sys.argv[1])
    if outcome.is_empty():
        sys.exit(f"{outcome.folder}: neither figures nor verify.json; run headflow reproduce all --output {outcome.folder} first")
    target = outcome.folder / "index.html"
    copy_documentation(outcome.folder)
    target.write_text(page(outcome), encoding="utf-8", errors="replace")
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
