"""What the paper's figures would cost by direct SGD and Euler's method in PyTorch: paper_estimate.py OUT

Counts the steps of size 0.02 in the result files of `headflow reproduce` and multiplies them by what a step costs in
PyTorch on one core, as measured in docs/performance.md; prints a table for that file.
"""

import json
import sys
import tomllib
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from headflow.figures import figure_table, result_file  # noqa: E402

STEP = 0.02
# Milliseconds of loss and gradient with 10^5 samples for each head and token: 0.7 by chunked tensors with the gradient
# by hand, 1.5 to 3.8 (here 2) by autograd. All cases measured are within a quarter of that for the former.
TUNED, AUTOGRAD = 0.7e-3, 2e-3
SGD_TOKEN = 4.5e-5  # seconds of a token in 10^4 dimensions, float32


def training_time(data):
    """tau of every task, however it was recorded."""
    if "end_time" in data:
        return data.end_time
    return data.tau.max("time")


def heads_and_tokens(data, problem):
    """H of every task, and L."""
    count = data.m if "m" in data else data.m_t.isel(time=0)
    heads = count.isel(feature=0).notnull().sum("attention_head")
    return heads, problem["tokens"]


def main():
    folder = Path(sys.argv[1])
    times = json.loads((folder / "times.json").read_text())
    rows = {}
    for path in sorted((folder / "configs").glob("fig*.toml")):
        problem = tomllib.loads(path.read_text())["problem"]
        data = result_file.read(folder / f"{path.stem}.nc")
        heads, tokens = heads_and_tokens(data, problem)
        steps = training_time(data) / STEP
        row = rows.setdefault(figure_table.read(path).get("part_of", path.stem), [0.0, 0.0, 0.0])
        if "sgd_m_t" in data:
            row[0] += float(steps.sum())
            for i in (1, 2):
                row[i] += float(steps.sum()) * 10_000 * tokens * SGD_TOKEN
        else:
            work = (steps * heads * tokens).sum()
            row[0] += float(steps.sum())
            row[1] += float(work) * TUNED
            row[2] += float(work) * AUTOGRAD
    print("| figure | steps | PyTorch, tuned, hours | PyTorch, autograd, hours | headflow, seconds |\n|---|---|---|---|---|")
    for name, (steps, tuned, autograd) in rows.items():
        mine = times.get(name, {}).get("core_seconds", np.nan)
        print(f"| {int(name[3:])} | {steps:.2g} | {tuned / 3600:.2g} | {autograd / 3600:.2g} | {mine:.2g} |")
    total = np.sum([row for row in rows.values()], axis=0)
    mine = sum(times[name]["core_seconds"] for name in rows if name in times)
    print(f"| all | {total[0]:.2g} | {total[1] / 3600:.0f} | {total[2] / 3600:.0f} | {mine:.0f} |")


if __name__ == "__main__":
    main()
