#!/usr/bin/env python3
"""Measures headflow against this machine's limits and against PyTorch.

    bench/run.py <headflow_bench binary>

Runs the pieces in alternating rounds, pinned to one core, because a shared machine drifts;
takes medians over the rounds; prints tables and writes them into docs/performance.md.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEER = ROOT / "bench" / "peers" / "torch_loss_gradient.py"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"

CASES = [(2, 2, 10), (4, 2, 5), (8, 3, 5), (8, 4, 5)]  # (H, F, L), as in cases.h
ACTIVATIONS = ["softmax", "softmax-1", "b-softmax"]
WAYS = ["autograd", "hand", "tuned"]
QUANTITIES = ["loss", "m00", "R01"]
GOALS = {"autograd": 30.0, "hand": 15.0, "roofline": 0.40, "threads": 1.8}


def case_name(case):
    return "H{}F{}L{}".format(*case)


def run(command, core):
    """Standard output of a command, on one core if one is given."""
    pin = None if core is None else lambda: os.sched_setaffinity(0, {core})
    done = subprocess.run(
        [str(c) for c in command], preexec_fn=pin, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )
    if done.returncode != 0:
        sys.exit(f"{Path(str(command[0])).name} failed:\n{done.stderr}")
    return done.stdout


class Measurements:
    """Every number of every round, by name."""

    def __init__(self):
        self.values = {}
        self.context = {}
        self.peer = {}

    def add(self, name, value):
        self.values.setdefault(name, []).append(value)

    def median(self, *name):
        return statistics.median(self.values["/".join(name)])

    def mean(self, *name):
        return statistics.fmean(self.values["/".join(name)])

    def benchmark(self, binary, pattern, core, min_time, prefix=""):
        output = json.loads(run(
            [binary, f"--benchmark_filter={pattern}", f"--benchmark_min_time={min_time}",
             "--benchmark_format=json"], core))
        self.context = output["context"]
        to_ms = {"ns": 1e-6, "us": 1e-3, "ms": 1.0}
        for result in output["benchmarks"]:
            name = prefix + result["name"].split("/real_time")[0].split("/iterations")[0]
            self.add(f"{name}/ms", result["real_time"] * to_ms[result["time_unit"]])
            for key, value in result.items():
                if isinstance(value, float):
                    self.add(f"{name}/{key}", value)

    def torch(self, core, repetitions, seed):
        output = json.loads(run(
            ["/usr/bin/python3", PEER, f"--repetitions={repetitions}", f"--seed={seed}"], core))
        self.peer = {key: output[key] for key in ("torch", "blas")}
        for result in output["results"]:
            name = f"torch/{case_name(result['case'])}/{result['activation']}"
            for way, ms in result["ms"].items():
                self.add(f"{name}/{way}", ms)
            for quantity, numbers in result["statistics"].items():
                for key, value in numbers.items():
                    self.add(f"{name}/{quantity}_{key}", value)


def measure(binary, rounds, core, min_time, repetitions):
    data = Measurements()
    for r in range(rounds):
        print(f"round {r + 1} of {rounds}", file=sys.stderr, flush=True)
        data.benchmark(binary, "-standard_error|2_thread", core, min_time)
        data.torch(core, repetitions, seed=r + 1)
        data.benchmark(binary, "float64/._thread|fma_peak", None, min_time, prefix="free/")
    data.benchmark(binary, "standard_error", core, min_time)
    return data


def roofline(data, case, activation, precision="float64"):
    """Fraction of the time that the tighter limit alone would take, and which one it is."""
    name = f"loss_gradient/{case_name(case)}/{activation}/{precision}/1_thread"
    peak = data.median("fma_peak/1_thread/flops_per_second")
    bandwidth = data.median(f"read_bandwidth/{case_name(case)}/{precision}/bytes_per_second")
    limits = {
        "flops": 1e3 * data.median(name, "flops_per_evaluation") / peak,
        "bytes": 1e3 * data.median(name, "bytes_per_evaluation") / bandwidth,
    }
    which = max(limits, key=limits.get)
    return limits[which] / data.median(name, "ms"), which


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def each_case():
    return [(case, activation) for case in CASES for activation in ACTIVATIONS]


def label(case):
    return "({}, {}, {})".format(*case)


def time_table(data):
    rows = []
    for case, activation in each_case():
        name = f"loss_gradient/{case_name(case)}/{activation}/float64/1_thread"
        own = data.median(name, "ms")
        torch = {w: data.median("torch", case_name(case), activation, w) for w in WAYS}
        fraction, which = roofline(data, case, activation)
        rows.append(
            [label(case), activation, f"{own:.2f}"]
            + [f"{torch[w]:.1f}" for w in WAYS]
            + [f"{torch[w] / own:.0f}" for w in WAYS]
            + [f"{100 * fraction:.0f} % {which}"])
    return table(
        ["(H, F, L)", "activation", "headflow ms"]
        + [f"torch {w} ms" for w in WAYS] + [f"× {w}" for w in WAYS] + ["of roofline"], rows)


def error_ratios(data, case, activation):
    """Standard error of headflow over that of independent samples, at equal N."""
    ratios = {}
    for q in QUANTITIES:
        own = data.mean("standard_error", case_name(case), activation, f"{q}_error")
        ratios[q] = own / data.mean("torch", case_name(case), activation, f"{q}_error")
    return ratios


def error_table(data):
    rows = []
    for case, activation in each_case():
        ratios = error_ratios(data, case, activation)
        own = data.median("loss_gradient", case_name(case), activation, "float64/1_thread/ms")
        error = data.mean("standard_error", case_name(case), activation, "loss_error")
        row = [label(case), activation, f"{error:.1e}"] + [f"{ratios[q]:.2f}" for q in QUANTITIES]
        worst = max(ratios.values())
        for way in WAYS:
            speed = data.median("torch", case_name(case), activation, way) / own
            row.append(f"{speed / ratios['loss'] ** 2:.0f} … {speed / worst ** 2:.0f}")
        rows.append(row)
    return table(
        ["(H, F, L)", "activation", "loss error"]
        + [f"ratio {q}" for q in ("loss", "∂m₀₀", "∂R₀₁")] + [f"× {w}, equal error" for w in WAYS],
        rows)


def other_table(data):
    rows = []
    for case in CASES:
        row = [label(case)]
        for activation in ACTIVATIONS:
            name = f"free/loss_gradient/{case_name(case)}/{activation}/float64"
            pairs = zip(data.values[f"{name}/1_thread/ms"], data.values[f"{name}/2_thread/ms"])
            row.append(f"{statistics.median(one / two for one, two in pairs):.2f}")
        for activation in ACTIVATIONS:
            name = f"loss_gradient/{case_name(case)}/{activation}"
            ratio = data.median(name, "float64/1_thread/ms") / data.median(
                name, "float32/1_thread/ms")
            row.append(f"{ratio:.2f}")
        row.append(f"{data.median('refresh', case_name(case), 'ms'):.1f}")
        rows.append(row)
    return table(
        ["(H, F, L)"] + [f"2 threads, {a}" for a in ACTIVATIONS]
        + [f"float32, {a}" for a in ACTIVATIONS] + ["new samples ms"], rows)


def goals_table(data):
    """Goals next to the range measured over all cases; nothing is asserted."""
    speed = {w: [] for w in WAYS}
    fractions, threads = [], []
    for case, activation in each_case():
        own = data.median("loss_gradient", case_name(case), activation, "float64/1_thread/ms")
        for way in WAYS:
            speed[way].append(data.median("torch", case_name(case), activation, way) / own)
        fractions.append(roofline(data, case, activation)[0])
        name = f"free/loss_gradient/{case_name(case)}/{activation}/float64"
        pairs = zip(data.values[f"{name}/1_thread/ms"], data.values[f"{name}/2_thread/ms"])
        threads.append(statistics.median(one / two for one, two in pairs))
    rows = []
    for what, goal, values, scale, form, unit in [
        ("speed over torch autograd", GOALS["autograd"], speed["autograd"], 1, ".0f", " ×"),
        ("speed over torch by hand", GOALS["hand"], speed["hand"], 1, ".0f", " ×"),
        ("speed over torch tuned", None, speed["tuned"], 1, ".0f", " ×"),
        ("fraction of the roofline", GOALS["roofline"], fractions, 100, ".0f", " %"),
        ("speed-up on 2 threads", GOALS["threads"], threads, 1, ".2f", " ×"),
    ]:
        numbers = [f"{scale * f(values):{form}}{unit}" for f in (min, statistics.median, max)]
        reached = "" if goal is None else f"{sum(v >= goal for v in values)} of {len(values)}"
        rows.append([what, "–" if goal is None else f"≥ {scale * goal:g}{unit}"] + numbers
                    + [reached])
    return table(["", "goal", "lowest", "median", "highest", "reached"], rows)


def largest_deviation(data):
    """Largest |difference| / error between headflow's and torch's values, all quantities."""
    worst = 0.0
    for case, activation in each_case():
        for q in QUANTITIES:
            own = ("standard_error", case_name(case), activation)
            peer = ("torch", case_name(case), activation)
            rounds = len(data.values["/".join([*peer, f"{q}_value"])])
            difference = data.mean(*own, f"{q}_value") - data.mean(*peer, f"{q}_value")
            variance = (data.mean(*own, f"{q}_value_error") ** 2
                        + data.mean(*peer, f"{q}_error") ** 2 / rounds)
            worst = max(worst, abs(difference) / variance ** 0.5)
    return worst


def machine(data):
    info = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        info.setdefault(key.strip(), value.strip())
    cpu = f"{info.get('model name', platform.machine())}"
    if "cpu family" in info:
        cpu += f" (family {info['cpu family']}, model {info['model']})"
    return (
        f"{cpu}, {os.cpu_count()} cores, {data.context['instruction_set']}; "
        f"GCC {data.context['compiler']}; torch {data.peer['torch']} with {data.peer['blas']}; "
        f"{datetime.date.today().isoformat()}.")


def report(data, rounds):
    giga = 1e-9
    peak = giga * data.median("fma_peak/1_thread/flops_per_second")
    both = giga * data.median("free/fma_peak/2_thread/flops_per_second")
    memory = giga * data.median("read_bandwidth/memory/bytes_per_second")
    cached = [giga * data.median(f"read_bandwidth/{case_name(c)}/float64/bytes_per_second")
              for c in CASES]
    return f"""\
{machine(data)} Medians of {rounds} rounds.

Limits measured in the same run: {peak:.0f} GFlop/s of double-precision multiply-adds on one
core ({both:.0f} on both at once); reading {memory:.0f} GB/s from memory and
{min(cached):.0f} to {max(cached):.0f} GB/s from a buffer of the size of the samples, which
fits in L3.

Over all twelve cases:

{goals_table(data)}

Loss and gradient, 100 000 samples, float64, one thread. `×`: torch's time over headflow's.

{time_table(data)}

Standard errors at 100 000 samples: `ratio` is headflow's (samples of a draw share noise) over
torch's (independent samples). `equal error`: speed-up at equal standard error, of the loss …
of the worst of the three quantities.

{error_table(data)}

Speed-up of two threads over one (no pinning), of samples stored as float32 over float64 (one
thread), and the time to draw 100 000 new samples.

{other_table(data)}

Largest difference between headflow's and torch's loss, ∂m₀₀ and ∂R₀₁ over all cases:
{largest_deviation(data):.1f} standard errors."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=Path, help="headflow_bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--min-time", type=float, default=0.15, help="seconds a benchmark")
    parser.add_argument("--repetitions", type=int, default=7, help="of torch in a round")
    parser.add_argument("--doc", type=Path, default=ROOT / "docs" / "performance.md")
    options = parser.parse_args()

    data = measure(options.binary.resolve(), options.rounds, options.core, options.min_time,
                   options.repetitions)
    text = report(data, options.rounds)
    print(text)
    page = options.doc.read_text()
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{options.doc.name}: no {BEGIN} … {END} to write between")
    options.doc.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}")


if __name__ == "__main__":
    main()
