"""The table of statements that `headflow verify` measured, as HTML."""

import html


def number(x):
    return f"{x:.3e}" if x != 0 and (abs(x) < 1e-3 or abs(x) >= 1e5) else f"{x:.6g}"


def strain(row):
    """How close a row is to failing; the closest one stands for its statement."""
    reach = 4 * row["error"]
    off = row["measured"] - row["predicted"]
    if row["relation"] == "=":
        return abs(off) / max(row["slack"] + reach, 1e-300)
    return (reach + 1e-300) / max(abs(off), 1e-300)


def statements(rows):
    """Rows of one statement together, in order of appearance."""
    groups = {}
    for row in rows:
        groups.setdefault((row["id"], row["statement"]), []).append(row)
    return groups.values()


def line(rows):
    worst = max(rows, key=lambda row: (row["verdict"] != row["expected"], row["verdict"] == "fails", strain(row)))
    verdict = worst["verdict"]
    kind = {"holds": "holds", "holds as corrected": "corrected"}.get(verdict, "fails")
    relation = html.escape(worst["relation"])
    predicted = f"<b>{relation} {number(worst['predicted'])}</b>"
    if worst["relation"] == "=" and worst["slack"] > worst["error"]:
        predicted += f"<br><small>slack {worst['slack']:.2g}</small>"
    if "printed" in worst:
        predicted += f"<br><small>printed: {html.escape(worst['printed_relation'])} {number(worst['printed'])}</small>"
    where = html.escape(worst["setting"]) + (f" (the worst of {len(rows)} settings)" if len(rows) > 1 else "")
    return (f"<tr><td><b>{html.escape(worst['id'])}</b></td>"
            f"<td>{html.escape(worst['statement'])}<br><small>{where}</small></td>"
            f"<td class=number data-label=predicted>{predicted}</td>"
            f"<td class=number data-label=measured><b>{number(worst['measured'])} ± {worst['error']:.2g}</b>"
            f"<br><small>{html.escape(worst['error_kind'])}</small></td>"
            f"<td class='verdict {kind}' data-label=verdict>{html.escape(verdict)}"
            f"{'' if verdict == worst['expected'] else ' (not as expected)'}</td></tr>\n")


def table(data):
    summary = (f"{len(data['rows'])} measurements: {data['holds']} hold, {data['holds_as_corrected']} hold as corrected, "
               f"{data['fails']} fail; {data['not_as_expected']} are not as expected.")
    head = "<thead><tr><th>where</th><th>statement</th><th>predicted</th><th>measured</th><th>verdict</th></tr></thead>"
    return (f"<p class=text>{summary} An equality holds within four errors (and a slack, where the statement is asymptotic); an "
            f"inequality if it is true by four errors. The setting shown is the one closest to failing; "
            f"<a href=verify.json>verify.json</a> has all.</p>\n"
            f"<table id=verify>{head}<tbody>\n{''.join(map(line, statements(data['rows'])))}</tbody></table>\n")
