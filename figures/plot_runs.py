"""Pictures of one run: the flow, SGD, and SGD over the flow."""

import tomllib

import matplotlib.pyplot as plt
import numpy as np

from comparison import NAMES, draw_row
from heads import draw_plane
from style import HEADS, line_look, overlap, power_of_ten

MOST_RUNS = 5
MOST_FEATURES = 4


def headline(data):
    """The setting, from the configuration that every file carries."""
    problem = tomllib.loads(data.attrs["configuration"])["problem"]
    nu = problem.get("nu")
    parts = [NAMES.get(problem["activation"], problem["activation"]), f"{problem['prior']} prior",
             f"$L = {problem['tokens']}$", f"$H = {problem['heads']}$", f"$F = {problem['features']}$"]
    if nu is not None:
        parts.append(f"$\\nu = {', '.join(f'{x:g}' for x in np.atleast_1d(nu))}$")
    return ", ".join(parts)


def over_time(axes, data, values, label, look):
    """One line for each run: values over run and time."""
    time = data.time.values
    later = time > 0
    for run in range(min(values.shape[0], MOST_RUNS)):
        axes.plot(time[later], values[run][later], label=label if run == 0 else None, linewidth=1.3 if run == 0 else 0.7, **look)


def draw_loss(axes, data):
    """The band is the error; where it is too thin to be seen its size is in the title."""
    later = data.time.values > 0
    remarks = []
    for name, factor, text, look in (("batch_loss", 2, "a batch", {"color": "#444444", "linestyle": "-"}),
                                     ("loss", 1, "population", {"color": HEADS[1], "linestyle": "-"})):
        if name not in data:
            continue
        value, error = (data[v].values[0][later] for v in (name, name + "_error"))
        known = np.isfinite(error)
        axes.fill_between(data.time.values[later][known], (value - factor * error)[known], (value + factor * error)[known],
                          color=look["color"], alpha=0.25, linewidth=0)
        over_time(axes, data, data[name].values, text, look)
        kind = data[name + "_error"].attrs.get("error_kind", "error")
        largest = factor * error[known].max() if known.any() else np.inf
        remarks.append(f"± {'2 × ' if factor == 2 else ''}{kind}, at most {largest:.1g}")
    if len(remarks) > 1:
        axes.legend(fontsize=8)
    axes.set_title("\n".join(remarks), fontsize=8, loc="left", color="#444444")
    axes.set_ylabel("loss $E$")


def draw_per_head(axes, data, values, label):
    """values over run, time and head."""
    for h in range(values.shape[2]):
        over_time(axes, data, values[:, :, h], f"$h = {h + 1}$", line_look(h))
    axes.set_ylabel(label)


def draw_first_run(axes, data):
    """Its heads in the plane of the first two hidden directions."""
    draw_plane(axes, data.m.values[0])
    axes.set_aspect("equal", adjustable="datalim")  # the panel keeps its size


def parameters_of(data):
    """What the activation trains besides m and R, where it varies. Files of before format 3 have b and v always."""
    blocks = {name: data[name] for name in data.data_vars if data[name].attrs.get("role") == "parameter" or name in ("b", "v")}
    return {name: block for name, block in blocks.items() if np.ptp(block.values) > 0}


def panels_of(data):
    """Functions that draw everything that varies; data has the dimension run."""
    m = data.m.values
    yield draw_loss
    for f in range(min(data.sizes["feature"], MOST_FEATURES)):
        yield lambda axes, data, f=f: draw_per_head(axes, data, m[:, :, :, f], overlap(f + 1, definition=True))
    if data.sizes["feature"] >= 2:
        yield draw_first_run
    yield lambda axes, data: draw_per_head(axes, data, np.linalg.norm(data.R.values, axis=-1), r"$|R_h|$, orthogonal part")
    for name, block in parameters_of(data).items():
        if block.dims[2:] == ("attention_head",):
            label = f"{block.attrs.get('long_name', '')} ${name}_h$"
            yield lambda axes, data, block=block, label=label: draw_per_head(axes, data, block.values, label)
        elif block.dims[2:] == ():
            label = f"{block.attrs.get('long_name', '')} ${name}$"
            yield lambda axes, data, block=block, label=label: (over_time(axes, data, block.values, None, line_look(0)), axes.set_ylabel(label))
    if "gradient_norm" in data:
        yield lambda axes, data: (over_time(axes, data, data.gradient_norm.values, None, line_look(0)), axes.set_yscale("log"),
                                  axes.set_ylabel(r"$\|\nabla E\|$"))


def draw_panels(data, title):
    draws = list(panels_of(data))
    columns = min(4, (len(draws) + 1) // 2)
    rows = -(-len(draws) // columns)
    figure, panels = plt.subplots(rows, columns, figsize=(3.5 * columns, 0.6 + 2.9 * rows), squeeze=False)
    for axes, draw in zip(panels.flat, draws):
        draw(axes, data)
        if not axes.get_xlabel():  # all but the plane
            axes.set_xscale("log")
            axes.set_xlabel(r"training time $\tau$")
    for axes in panels.flat[len(draws):]:
        axes.set_visible(False)
    if data.sizes["attention_head"] <= 8:
        panels.flat[1].legend(fontsize=8)
    figure.suptitle(title)
    return figure


def draw_flow(data, only):
    return draw_panels(data.expand_dims("run"), f"Flow: {headline(data)}\n{data.attrs.get('outcome_message', '')}")


def draw_sgd(data, only):
    runs = data.sizes["run"]
    drawn = "1 run" if runs == 1 else f"{min(runs, MOST_RUNS)} of {runs} runs, the first thick"
    return draw_panels(data, f"SGD: {headline(data)}\n$D = {power_of_ten(data.attrs['dim'])}$, $N_b = {power_of_ten(data.attrs['batch'])}$, "
                             f"$\\gamma = {power_of_ten(data.attrs['lr'])}$, {drawn}")


def draw_comparison(data, only):
    runs = min(data.sizes["run"], 3)
    figure, rows = plt.subplots(runs, 4, figsize=(13, 0.8 + 3.2 * runs), squeeze=False)
    for run, axes in enumerate(rows):
        last = run == runs - 1
        draw_row(axes, data, f"run {run + 1} of {data.sizes['run']}", run, note=last)
        for panel in axes:
            panel.set_xlabel("training time $\\tau = \\gamma \\times$ steps" + "\n\n" * last)
    figure.suptitle(f"SGD over its limit: {headline(data)}, $D = {power_of_ten(data.attrs['dim'])}$, $N_b = {power_of_ten(data.attrs['batch'])}$, "
                    f"$\\gamma = {power_of_ten(data.attrs['lr'])}$")
    return figure
