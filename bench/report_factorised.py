"""The tables on the factorised engine, from the measurements of run.py (medians over rounds)."""

import statistics

from report import CASES, case_name, label, table

SETTINGS = [  # activation, R of cases.h times this
    ("softmax", 1), ("softmax-1", 1), ("softmax", 0.1), ("softmax-1", 0.1), ("b-softmax", 0)]
TOLERANCES = ["0.0001", "1e-06"]  # as C++ prints them
SHOWN = {"0.0001": "1e-4", "1e-06": "1e-6"}
GOALS = {"0.0001": 0.1, "1e-06": 1.0, "length": 1.5}


def each_setting():
    return [(case, activation, size) for case in CASES for activation, size in SETTINGS]


def setting_name(case, activation, size):
    return f"{case_name(case)}/{activation}/R{size:g}"


def ratio(data, over, under):
    """Median over rounds of the ratio of two times."""
    return statistics.median(
        a / b for a, b in zip(data.values[f"{over}/ms"], data.values[f"{under}/ms"]))


def of_monte_carlo(data, setting, tolerance):
    name = f"factorised/{setting_name(*setting)}"
    return ratio(data, f"{name}/{tolerance}/evaluate", f"{name}/mc")


def per_evaluation(data, setting, tolerance, what):
    name = f"factorised/{setting_name(*setting)}/{tolerance}"
    return ratio(data, f"{name}/{what}", f"{name}/evaluate")


def length_ratio(data, setting):
    name = f"length/{setting_name(*setting)}"
    return ratio(data, f"{name}/L1000000", f"{name}/L10")


def has_length(setting):
    return f"length/{setting_name(*setting)}/L10/ms"


def first_columns(setting):
    case, activation, size = setting
    return [label(case), activation, {1: "≈ 1", 0.1: "≈ 0.1", 0: "0"}[size]]


def milliseconds(x):
    return f"{x:.2g}" if x < 10 else f"{x:.0f}"


def goals_table(data):
    settings = each_setting()
    lengths = [length_ratio(data, s) for s in settings if has_length(s) in data.values]
    rows = []
    for what, goal, values in [
        *((f"time over Monte Carlo's, tolerance {SHOWN[t]}", GOALS[t],
           [of_monte_carlo(data, s, t) for s in settings]) for t in TOLERANCES),
        ("time at L = 10⁶ over L = 10", GOALS["length"], lengths),
        ("Hessian times vector over gradient", None,
         [per_evaluation(data, s, "1e-06", "hessian") for s in settings]),
    ]:
        numbers = [f"{f(values):.2g}" for f in (min, statistics.median, max)]
        reached = "" if goal is None else f"{sum(v <= goal for v in values)} of {len(values)}"
        rows.append([what, "–" if goal is None else f"≤ {goal:g}"] + numbers + [reached])
    return table(["", "goal", "lowest", "median", "highest", "reached"], rows)


def time_table(data):
    rows = []
    for setting in each_setting():
        name = setting_name(*setting)
        row = first_columns(setting) + [milliseconds(data.median("factorised", name, "mc/ms"))]
        for t in TOLERANCES:
            row += [
                milliseconds(data.median("factorised", name, t, "evaluate/ms")),
                f"{of_monte_carlo(data, setting, t):.2g}",
                f"{data.mean('accuracy', name, f'{t}_error'):.0e}",
                f"{data.mean('accuracy', name, f'{t}_reported'):.0e}"]
        rows.append(row)
    return table(
        ["(H, F, L)", "activation", "R", "Monte Carlo ms"]
        + [f"{SHOWN[t]}: {what}" for t in TOLERANCES
           for what in ("ms", "of Monte Carlo", "error", "reported")], rows)


def other_table(data):
    rows = []
    for setting in each_setting():
        name = setting_name(*setting)
        row = first_columns(setting)
        for t in TOLERANCES:
            row += [milliseconds(data.median("factorised", name, t, "adapt/ms")),
                    f"{per_evaluation(data, setting, t, 'evaluate_with_error'):.1f}",
                    f"{per_evaluation(data, setting, t, 'hessian'):.1f}"]
        row.append(f"{length_ratio(data, setting):.2f}" if has_length(setting) in data.values else "")
        rows.append(row)
    return table(
        ["(H, F, L)", "activation", "R"]
        + [f"{SHOWN[t]}: {what}" for t in TOLERANCES
           for what in ("place nodes, ms", "with error ×", "Hessian ×")]
        + ["L = 10⁶ over 10"], rows)


def report_factorised(data):
    reference = max(data.mean("accuracy", setting_name(*s), "reference_reported")
                    for s in each_setting())
    return f"""\
### The factorised engine

One thread. Monte Carlo is this program's, with 100 000 samples, in the same process.

{goals_table(data)}

Loss and gradient with nodes in place, at two tolerances. `error` is the largest error of an entry
of the gradient, measured against the same engine at tolerance 1e-10 (whose own reported error is
at most {reference:.0e}); `reported` is what the engine says of it.

{time_table(data)}

What else there is to pay: placing the nodes for a new region, once, with its check against a finer
rule; an evaluation with error over one without; the product of the Hessian with a vector over a
gradient; and, at tolerance 1e-6, the time with a million tokens over that with ten.

{other_table(data)}

![Error of the gradient against time](images/work_precision.png)

Work and precision, R ≈ 1: `mc` and `qmc` with 2¹⁰ to 2²⁰ samples or points, PyTorch with 2¹⁰ to 2¹⁸
samples, `factorised` with tolerances 1e-3 to 1e-9. For samples the error is the root mean square
over independent sets (8, PyTorch 6) of the largest error of an entry of the gradient, against the
factorised engine at tolerance 1e-10. Times are for samples and nodes in place."""
