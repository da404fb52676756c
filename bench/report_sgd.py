"""The tables on SGD, from the measurements of run.py (medians over rounds)."""

import statistics

from report import ACTIVATIONS, table

SMALL, LARGE = "H2F2L10", "H8F4L5"
GOALS = {"direct": 200.0, "torch": 1500.0, "direct_torch": 5.0, "flat": 1.2, "kernel": 3.0}


def sample_ns(data, method, case, activation, dimension=10_000):
    return data.values[f"sgd/{method}/{case}/{activation}/D{dimension}/ns_per_sample"]


def ratio(over, under):
    return statistics.median(a / b for a, b in zip(over, under))


def kernel_ns(data, activation, fresh):
    """Time of a sample in the flow's Monte-Carlo kernel; with the drawing of samples if fresh."""
    times = data.values[f"loss_gradient/{LARGE}/{activation}/float64/1_thread/ms"]
    if fresh:
        times = [a + b for a, b in zip(times, data.values[f"refresh/{LARGE}/ms"])]
    return [10.0 * t for t in times]  # ms for 100,000 samples


def number(x):
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def all_ratios(data):
    out = {key: [] for key in
           ("direct", "torch", "torch32", "direct_torch", "direct_torch32", "flat", "kernel",
            "fresh")}
    for a in ACTIVATIONS:
        reduced, direct = (sample_ns(data, m, SMALL, a) for m in ("reduced", "direct"))
        torch, torch32 = (data.values[f"torch_sgd/{a}/{t}"] for t in ("float64", "float32"))
        large = sample_ns(data, "reduced", LARGE, a)
        out["direct"].append(ratio(direct, reduced))
        out["torch"].append(ratio(torch, reduced))
        out["torch32"].append(ratio(torch32, reduced))
        out["direct_torch"].append(ratio(torch, direct))
        out["direct_torch32"].append(ratio(torch32, direct))
        for case in (SMALL, LARGE):
            out["flat"].append(ratio(sample_ns(data, "reduced", case, a, 1_000_000_000),
                                     sample_ns(data, "reduced", case, a)))
        out["kernel"].append(ratio(large, kernel_ns(data, a, fresh=False)))
        out["fresh"].append(ratio(large, kernel_ns(data, a, fresh=True)))
    return out


def report_sgd(data):
    ratios = all_ratios(data)
    rows = []
    for what, key, goal, best in [
            ("direct over reduced, time of a step at D = N = 10⁴", "direct", "at least 200", min),
            ("PyTorch (float64) over reduced", "torch", "at least 1500", min),
            ("PyTorch (float32) over reduced", "torch32", "", min),
            ("PyTorch (float64) over direct", "direct_torch", "at least 5", min),
            ("PyTorch (float32) over direct", "direct_torch32", "", min),
            ("reduced, D = 10⁹ over D = 10⁴", "flat", "at most 1.2", max),
            ("reduced over the Monte-Carlo kernel of a flow, (8, 4, 5)", "kernel", "at most 3", max),
            ("the same, if that draws its samples, too", "fresh", "", max)]:
        values = ratios[key]
        holds = ""
        if goal:
            holds = "yes" if (best(values) >= GOALS[key]) == (best is min) else "no"
        rows.append([what, goal, f"{number(min(values))} … {number(max(values))}", holds])
    times = []
    for a in ACTIVATIONS:
        normals = data.median(f"sgd/direct/{SMALL}/{a}/D10000", "normals_per_second")
        bare = data.median("sgd/generator/normals_per_second")
        times.append([
            a, *(f"{statistics.median(sample_ns(data, 'reduced', case, a)):.0f}"
                 for case in (SMALL, LARGE)),
            f"{statistics.median(sample_ns(data, 'direct', SMALL, a)) / 1e3:.0f}",
            *(f"{statistics.median(data.values[f'torch_sgd/{a}/{t}']) / 1e3:.0f}"
              for t in ("float64", "float32")),
            f"{normals:.2g} ({100 * normals / bare:.0f} %)"])
    return "\n\n".join([
        "### SGD",
        table(["ratio (over the three activations)", "goal", "measured", "holds"], rows),
        table(["activation", "reduced (2, 2, 10), ns", "reduced (8, 4, 5), ns", "direct, µs",
               "PyTorch float64, µs", "PyTorch float32, µs",
               "direct: normals a second (of a bare generator)"], times),
        "Times of one sample at D = 10⁴, one core. `reduced` and `direct` draw from the same law by\n"
        "different algorithms: `direct`, as PyTorch, draws every token in D dimensions, `reduced`\n"
        "only what the overlaps depend on. The ratios between them are gains of the algorithm, the\n"
        "ones between `direct` and PyTorch of the implementation."])
