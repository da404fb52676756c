"""One page with the figures and the statements that were measured: report.py RESULTS_FOLDER

Writes RESULTS_FOLDER/index.html, which needs nothing but itself: pictures are inside.
"""

import html
import itertools
import re
import sys
from pathlib import Path

import statements
from outcome import PAPER, Outcome

HERE = Path(__file__).parent
TEXTS = {"paper": "In the paper", "chosen": "Chosen here"}


def duration(seconds):
    if seconds is None:
        return ""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


LETTERS = {"tau": "τ", "nu": "ν", "theta": "θ", "gamma": "γ", "eta": "η", "kappa": "κ"}


def typeset(text):
    """tau_s, 10^5, 6e4 and >= as they are written by hand; the text is escaped."""
    text = text.replace("&gt;=", "≥").replace("&lt;=", "≤")
    text = re.sub(r"(?<![\w.])-(?=theta\b)", "−", text)
    text = re.sub(rf"\b({'|'.join(LETTERS)})(?=\b|_)", lambda m: LETTERS[m[1]], text)
    text = re.sub(r"\b(\d+(?:\.\d+)?)e(-?)(\d+)\b", lambda m: f"{m[1]}·10^{m[2]}{m[3]}", text)
    text = re.sub(r"(?<![\d.])1·10\^", "10^", text)
    text = re.sub(r"\^(-?)(\d+)", lambda m: f"<sup>{'−' if m[1] else ''}{m[2]}</sup>", text)
    return re.sub(r"(?<=[A-Za-zτνθ*])_(\w)\b", r"<sub>\1</sub>", text)


def paragraphs(text):
    """Paragraphs between blank lines, `code` between backticks; all else is text."""
    out = []
    for part in re.split(r"\n\s*\n", text):
        pieces = html.escape(part.strip()).split("`")
        out.append("".join(f"<code>{piece}</code>" if i % 2 else typeset(piece) for i, piece in enumerate(pieces)))
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
    source, inches = figure.picture
    # 96 px an inch is the size it was drawn for; 68 px is where its letters can still be read.
    size = f"--width:{inches * 96:.0f}px;--legible:{inches * 68:.0f}px"
    alt = html.escape(f"{label(figure)}: {figure.title}".rstrip(": "))
    return f'<div class=scroll tabindex=0 role=group aria-label="{alt}"><img style="{size}" alt="{alt}" src="{source}"></div>\n'


def section(figure, seconds):
    texts = figure.texts
    rows = "".join(f"<dt>{name}</dt><dd>{paragraphs(texts[key])}</dd>" for key, name in TEXTS.items() if key in texts)
    finding = f"<div class=finding><b>Finding</b>{paragraphs(texts['finding'])}</div>\n" if "finding" in texts else ""
    links = "".join(f'<a href="{html.escape(path)}">{name}</a>' for name, path in figure.files.items())
    return (f"<section class=figure id={figure.name}>"
            f"<h3><a href=#{figure.name}><span class=number>{label(figure)}</span> {html.escape(figure.title)}</a></h3>"
            f"{work(figure, seconds)}{picture(figure)}"
            f"{'<div class=text>' + paragraphs(texts['caption']) + '</div>' if 'caption' in texts else ''}"
            f"{finding}{f'<dl>{rows}</dl>' if rows else ''}"
            f"<p class=links>{links}<code>headflow reproduce {figure.name}</code></p></section>\n")


def what_is_missing(figure):
    return "not drawn" if figure.data else "not computed"


def missing(figures):
    """Figures in a row that all lack the same: one line."""
    names = ", ".join(f"<span id={figure.name}>{figure.number}</span>" for figure in figures)
    command = " ".join(["headflow reproduce", *(figure.name for figure in figures)])
    return (f"<section class=missing><p>Figure{'s' * (len(figures) > 1)} {names}: {what_is_missing(figures[0])}: "
            f"<code>{command}</code></p></section>\n")


def contents(outcome):
    lines = []
    for figure in outcome.figures:
        time = duration(outcome.seconds(figure.name)) if figure.picture else what_is_missing(figure)
        title = html.escape(figure.title) or label(figure)
        lines.append(f"<li><span class=number>{figure.number or '+'}</span><span class=title><a href=#{figure.name}>{title}</a></span>"
                     f"<span class=time>{time}</span></li>")
    if outcome.verify:
        lines.append(f"<li><span class=number>✓</span><span class=title><a href=#statements>Statements of the paper, measured</a></span>"
                     f"<span class=time>{duration(outcome.seconds('verify'))}</span></li>")
    return f"<nav aria-label=Contents><ol>{''.join(lines)}</ol></nav>\n"


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
        return statements.table(outcome.verify)
    except (AttributeError, KeyError, TypeError):  # not what `headflow verify` writes today
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
        on = f" on {cores} core{'s' * (cores != 1)}" if cores else ""
        parts.append(f"The last run took {duration(compute)} to compute{on}" + (f" and {duration(draw)} to draw" if draw else "")
                     + "; times of figures are processor time.")
    if verify:
        parts.append(f"Measuring the statements took {duration(verify)}.")
    return f"<footer><p>{' '.join(parts)}</p></footer>\n"


def page(outcome):
    style = (HERE / "report.css").read_text()
    introduction = (HERE / "report_introduction.html").read_text()
    return ("<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width,initial-scale=1'>\n"
            f"<title>headflow: the paper, measured</title>\n<style>\n{style}</style></head>\n<body>\n"
            f"<h1>How attention heads specialise: the paper, measured</h1>\n<div class=text>{introduction}</div>\n"
            f"<h2>Contents</h2>\n{contents(outcome)}"
            f"<h2>Figures</h2>\n{''.join(figures(outcome))}"
            f"<h2 id=statements>Statements</h2>\n{verified(outcome)}{footer(outcome)}</body></html>\n")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    outcome = Outcome(sys.argv[1])
    if outcome.is_empty():
        sys.exit(f"{outcome.folder}: neither figures nor verify.json; run headflow reproduce all --output {outcome.folder} first")
    target = outcome.folder / "index.html"
    target.write_text(page(outcome))
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
