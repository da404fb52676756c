"""One page with the figures and the statements that were measured: report.py RESULTS_FOLDER

Writes RESULTS_FOLDER/index.html, which needs nothing but itself: pictures are inside.
"""

import base64
import html
import json
import sys
from pathlib import Path

STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #0a7d4f; --mend: #9a6a00; --bad: #b3261e; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { line-height: 1.2; } figure { margin: 1.5rem 0; } img { max-width: 100%; height: auto; background: #fff; border-radius: 4px; }
figcaption { color: #777; } table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
td, th { border-bottom: 1px solid var(--line); padding: 0.35rem 0.5rem; text-align: left; vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; } td.number small { white-space: normal; } .holds { color: var(--good); } .corrected { color: var(--mend); }
.fails { color: var(--bad); } small { color: #777; }
@media (max-width: 40rem) {
  thead { display: none; } tr { display: block; border-bottom: 1px solid var(--line); padding: 0.5rem 0; }
  td { display: block; border: 0; padding: 0 0 0.1rem; } td[data-label]::before { content: attr(data-label) ": "; color: #777; }
}
"""

TITLES = {
    "fig01": "Figure 1: SGD and the flow, softmax",
    "fig02": "Figure 2: heads in the plane of the hidden directions",
    "fig09": "Figure 9: SGD and the flow, flipping spike, three activations",
    "fig10": "Figure 10: SGD and the flow, Gaussian signal, three activations",
    "fig15": "Figure 15: two to eight heads on the flipping spike",
    "finite_rate": "SGD at a finite learning rate: the flow and the one-step map",
}


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


def verify_table(data):
    lines = []
    for rows in statements(data["rows"]):
        worst = max(rows, key=lambda row: (row["verdict"] != row["expected"], row["verdict"] == "fails", strain(row)))
        verdict = worst["verdict"]
        kind = {"holds": "holds", "holds as corrected": "corrected"}.get(verdict, "fails")
        predicted = f"{worst['relation']} {number(worst['predicted'])}"
        if worst["relation"] == "=" and worst["slack"] > worst["error"]:
            predicted += f"<br><small>slack {worst['slack']:.2g}</small>"
        if "printed" in worst:
            predicted += f"<br><small>printed: {worst['printed_relation']} {number(worst['printed'])}</small>"
        where = html.escape(worst["setting"]) + (f" (the worst of {len(rows)} settings)" if len(rows) > 1 else "")
        lines.append(
            f"<tr><td><b>{html.escape(worst['id'])}</b></td>"
            f"<td>{html.escape(worst['statement'])}<br><small>{where}</small></td>"
            f"<td class=number data-label=predicted>{predicted}</td>"
            f"<td class=number data-label=measured>{number(worst['measured'])} ± {worst['error']:.1e}"
            f"<br><small>{html.escape(worst['error_kind'])}</small></td>"
            f"<td class={kind} data-label=verdict>{verdict}"
            f"{'' if verdict == worst['expected'] else ' (not as expected)'}</td></tr>")
    summary = (f"{len(data['rows'])} measurements: {data['holds']} hold, {data['holds_as_corrected']} hold as corrected, "
               f"{data['fails']} fail; {data['not_as_expected']} are not as expected.")
    head = "<thead><tr><th>where</th><th>statement</th><th>predicted</th><th>measured</th><th>verdict</th></tr></thead>"
    return (f"<p>{summary} An equality holds within four errors (and a slack, where the statement is asymptotic); an "
            f"inequality if it is true by four errors. The setting shown is the one closest to failing; "
            f"<a href=verify.json>verify.json</a> has all.</p><table id=verify>{head}<tbody>{''.join(lines)}</tbody></table>")


def picture(path):
    data = base64.b64encode(path.read_bytes()).decode()
    title = TITLES.get(path.stem, path.stem)
    return (f"<figure id={path.stem}><img alt=\"{html.escape(title)}\" src=\"data:image/png;base64,{data}\">"
            f"<figcaption>{html.escape(title)}. <a href=\"figures/{path.stem}.pdf\">PDF</a></figcaption></figure>")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    parts = ["<h1>How attention heads specialise: the paper, measured</h1>"]
    pictures = sorted((folder / "figures").glob("*.png"))
    if pictures:
        parts += ["<h2>Figures</h2>", *map(picture, pictures)]
    if (folder / "verify.json").exists():
        parts += ["<h2>Statements</h2>", verify_table(json.loads((folder / "verify.json").read_text()))]
    if len(parts) == 1:
        sys.exit(f"{folder}: neither figures nor verify.json; run make paper first")
    page = ("<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width,initial-scale=1'>"
            f"<title>headflow: the paper, measured</title><style>{STYLE}</style><body>{''.join(parts)}</body></html>\n")
    (folder / "index.html").write_text(page)
    print(f"wrote {folder / 'index.html'}")


if __name__ == "__main__":
    main()
