"""The tables of docs/performance.md, from the measurements of run.py (medians over rounds)."""

import datetime
import os
import platform
import statistics
from pathlib import Path

CASES = [(2, 2, 10), (4, 2, 5), (8, 3, 5), (8, 4, 5)]  # (H, F, L), as in cases.h
ACTIVATIONS = ["softmax", "softmax-1", "b-softmax"]
WAYS = ["autograd", "hand", "tuned"]  # of torch
QUANTITIES = ["loss", "m00", "R01"]
GOALS = {"autograd": 30.0, "hand": 15.0, "roofline": 0.40, "threads": 1.8}


def case_name(case):
    return "H{}F{}L{}".format(*case)


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


def thread_speed_up(data, case, activation):
    name = f"free/loss_gradient/{case_name(case)}/{activation}/float64"
    pairs = zip(data.values[f"{name}/1_thread/ms"], data.values[f"{name}/2_thread/ms"])
    return statistics.median(one / two for one, two in pairs)


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
            row.append(f"{thread_speed_up(data, case, activation):.2f}")
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
        threads.append(thread_speed_up(data, case, activation))
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
    cpu = info.get("model name", platform.machine())
    if "cpu family" in info:
        cpu += f" (family {info['cpu family']}, model {info['model']})"
    vectors = data.context["instruction_set"].replace("AVX3", "AVX-512")  # Highway's name for it
    return (
        f"{cpu}, {os.cpu_count()} cores, {vectors}; "
        f"{data.context['compiler']}; torch {data.peer['torch']} with {data.peer['blas']}; "
        f"{datetime.date.today().isoformat()}.")


def report(data, rounds):
    giga = 1e-9
    peak = giga * data.median("fma_peak/1_thread/flops_per_second")
    both = giga * data.median("free/fma_peak/2_thread/flops_per_second")
    memory = giga * data.median("read_bandwidth/memory/bytes_per_second")
    cached = [giga * data.median(f"read_bandwidth/{case_name(c)}/float64/bytes_per_second")
              for c in CASES]
    busy = "" if both > 1.8 * peak else (
        " **The other core was busy: the figures for two threads mean nothing.**")
    return f"""\
{machine(data)} Medians of {rounds} rounds.{busy}

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
