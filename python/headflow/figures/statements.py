"""The table of statements that `headflow verify` measured, as HTML."""

import html
import math
import re

from .formulas import typeset

VERDICTS = {"holds": "holds", "holds as corrected": "corrected"}  # and its class; all else fails
RELATIONS = {"<=": "≤", ">=": "≥"}


def value(row, key):
    """NaN if it is not known: JSON has null for what is not finite."""
    return math.nan if row.get(key) is None else float(row[key])


def number(x, digits=6):
    if not math.isfinite(x):
        return "not known"
    small = x != 0 and (abs(x) < 1e-3 or abs(x) >= 1e5)
    return typeset(re.sub(r"\.?0*e", "e", f"{x:.{min(digits, 4) - 1}e}") if small else f"{x:.{digits}g}")


def strain(row):
    """How close a row is to failing; the closest one stands for its statement."""
    reach = 4 * value(row, "error")
    off = value(row, "measured") - value(row, "predicted")
    out = abs(off) / max(value(row, "slack") + reach, 1e-300) if row["relation"] == "=" else (reach + 1e-300) / max(abs(off), 1e-300)
    return math.inf if math.isnan(out) else out


def as_expected(row):
    """A row that would not notice a wrong value is none that one may rely on."""
    return row["verdict"] == row["expected"] and row.get("rejects_wrong", True)


def statements(rows):
    """Rows of one statement together, in order of appearance."""
    groups = {}
    for row in rows:
        groups.setdefault((row["id"], row["statement"]), []).append(row)
    return groups.values()


def relation(text):
    return html.escape(RELATIONS.get(text, text))


def prediction(row):
    out = f"<b>{relation(row['relation'])} {number(value(row, 'predicted'))}</b>"
    if row["relation"] == "=" and value(row, "slack") > value(row, "error"):
        out += f"<br><small>slack {number(value(row, 'slack'), 2)}</small>"
    if row.get("printed") is not None:
        out += f"<br><small>printed: {relation(row['printed_relation'])} {number(value(row, 'printed'))}</small>"
    if row.get("smallest_wrong") is not None:
        out += f"<br><small>{'rejects' if row.get('rejects_wrong', True) else 'does not reject'} {number(value(row, 'smallest_wrong'), 3)}</small>"
    return out


def line(rows):
    worst = max(rows, key=lambda row: (not as_expected(row), row["verdict"] == "fails", strain(row)))
    verdict = worst["verdict"]
    where = typeset(worst["setting"]) + (f" (the worst of {len(rows)} settings)" if len(rows) > 1 else "")
    remark = "" if as_expected(worst) else " (not as expected)"
    return (f"<tr data-verdict=\"{html.escape(verdict)}{',not as expected' * bool(remark)}\"><td><b>{html.escape(worst['id'])}</b></td>"
            f"<td>{typeset(worst['statement'])}<br><small>{where}</small></td>"
            f"<td class=number data-label=predicted>{prediction(worst)}</td>"
            f"<td class=number data-label=measured><b>{number(value(worst, 'measured'))} ± {number(value(worst, 'error'), 2)}</b>"
            f"<br><small>{html.escape(worst['error_kind'])}</small></td>"
            f"<td class='verdict {VERDICTS.get(verdict, 'fails')}' data-label=verdict>{html.escape(verdict)}{remark}</td></tr>\n")


def filter_form():
    """Works with the script of the page, which shows it."""
    choices = "".join(f"<option>{name}</option>" for name in ("holds", "holds as corrected", "fails", "not as expected"))
    return ("<form id=filter role=search hidden><label>Words <input type=search name=words placeholder='softmax-1 Lemma'></label>"
            f"<label>Verdict <select name=verdict><option value=''>any</option>{choices}</select></label><output></output></form>\n")


def table(data, documented=True):
    counts = [int(data[key]) for key in ("holds", "holds_as_corrected", "fails", "not_as_expected")]
    summary = "{} measurements: {} hold, {} hold as corrected, {} fail; {} are not as expected.".format(len(data["rows"]), *counts)
    how = "; <a href=docs/theory.md>docs/theory.md</a> says how each is measured" if documented else ""
    head = "<thead><tr><th>where</th><th>statement</th><th>predicted</th><th>measured</th><th>verdict</th></tr></thead>"
    return (f"<p class=text>{summary} An equality holds within four errors (and a slack, where the statement is asymptotic); an "
            f"inequality if it is true by four errors. The setting shown is the one closest to failing; "
            f"<a href=verify.json>verify.json</a> has all{how}.</p>\n{filter_form()}"
            f"<table id=verify>{head}<tbody>\n{''.join(map(line, statements(data['rows'])))}</tbody></table>\n")
