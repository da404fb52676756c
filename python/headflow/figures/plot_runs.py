"""Pictures of runs: the flow, and SGD."""

import numpy as np

from .heads import draw_over_time, draw_plane, handles
from .picture import figure_of
from .style import HEADS, overlap, settings, steps

MOST_RUNS = 5
MOST_FEATURES = 4


def over_time(axes, data, values, color=HEADS[0], label=None):
    """One line for each run, the first one thick: values over run and time."""
    later = data.time.values > 0
    for run, line in enumerate(values[:MOST_RUNS]):
        axes.plot(data.time.values[later], line[later], color=color, label=None if run else label, linewidth=0.7 if run else 1.3)


def draw_loss(axes, data):
    """The band is the error; where it is too thin to be seen its size is in the title."""
    later = data.time.values > 0
    remarks = []
    for name, factor, text, color in (("batch_loss", 2, "a batch", "#444444"), ("loss", 1, "population", HEADS[1])):
        if name not in data:
            continue
        value, error = (data[v].values[0][later] for v in (name, name + "_error"))
        known = np.isfinite(error)
        axes.fill_between(data.time.values[later][known], (value - factor * error)[known], (value + factor * error)[known],
                          color=color, alpha=0.25, linewidth=0)
        over_time(axes, data, data[name].values, color, text)
        kind = data[name + "_error"].attrs.get("error_kind", "error")
        largest = factor * error[known].max() if known.any() else np.inf
        remarks.append(f"± {'2 × ' if factor == 2 else ''}{kind}, at most {largest:.1g}")
    if len(remarks) > 1:
        axes.legend(fontsize=8)
    axes.set_title("\n".join(remarks), fontsize=8, loc="left", color="#444444")
    axes.set_ylabel("loss $E$")


def draw_per_head(axes, data, values, label):
    """values over run, time and head."""
    for run in reversed(range(min(values.shape[0], MOST_RUNS))):
        draw_over_time(axes, data.time.values, values[run], **({"linewidth": 0.7, "markersize": 2.5} if run else {"linewidth": 1.3}))
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
            yield lambda axes, data, block=block, label=label: (over_time(axes, data, block.values), axes.set_ylabel(label))
    if "gradient_norm" in data:
        yield lambda axes, data: (over_time(axes, data, data.gradient_norm.values), axes.set_yscale("log"),
                                  axes.set_ylabel(r"$\|\nabla E\|$"))


def draw_panels(data, title, figure):
    draws = list(panels_of(data))
    columns = min(4, (len(draws) + 1) // 2)
    rows = -(-len(draws) // columns)
    figure = figure_of(figure, (3.5 * columns, 0.6 + 2.9 * rows))
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes, draw in zip(panels.flat, draws):
        draw(axes, data)
        if not axes.get_xlabel():  # all but the plane
            axes.set_xscale("log")
            axes.set_xlabel(r"training time $\tau$")
    for axes in panels.flat[len(draws):]:
        axes.set_visible(False)
    if data.sizes["attention_head"] <= 8:
        panels.flat[1].legend(handles=handles(data.sizes["attention_head"], "$h = {}$"), fontsize=8)
    figure.suptitle(title)
    return figure


def draw_flow(data, only=(), figure=None):
    return draw_panels(data.expand_dims("run"), f"Flow: {settings(data)}\n{data.attrs.get('outcome_message', '')}", figure)


def draw_sgd(data, only=(), figure=None):
    runs = data.sizes["run"]
    drawn = "1 run" if runs == 1 else f"{min(runs, MOST_RUNS)} of {runs} runs, the first thick"
    return draw_panels(data, f"SGD: {settings(data)}\n{steps(data.attrs)}, {drawn}", figure)
