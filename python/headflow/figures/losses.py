"""Loss at the end of training against the number of heads and the signal, with the Bayes risk.

A file varies the number of heads or the signal, for one prior or several: a panel for each.
"""

import numpy as np

from . import figure_table
from .picture import subplots
from .style import ACTIVATIONS, PRIORS, WIDTH, axis_keys, below, configuration, load, number, signal

NAMES = {"heads": r"number of heads $H$", "nu": r"signal strength $\nu$"}


def panels_of(folder, name):
    """Pairs of prior and axis, and their data."""
    found = {}
    for part in figure_table.parts(folder / "configs")[name]:
        if not (folder / f"{part}.nc").exists():
            continue
        data = load(folder, part)
        x = next(axis for axis in NAMES if axis in data.loss.dims)
        if "prior" in data.dims:
            found.update({(prior, x): data.sel(prior=prior) for prior in data.prior.values})
        else:
            found[configuration(data)["problem"]["prior"], x] = data
    return found


def draw_lines(axes, data, x):
    """Mean over starts; bars join the spread over starts and the error of the loss."""
    for activation in data.activation.values:
        label, color, marker, line = ACTIVATIONS[activation]
        loss = data.loss.sel(activation=activation)
        error = np.hypot(loss.std("seed", ddof=1), data.loss_error.sel(activation=activation).mean("seed"))
        axes.errorbar(data[x], loss.mean("seed"), error, color=color, marker=marker, linestyle=line, markersize=6,
                      linewidth=1.5, capsize=3, label=label)
    # The risk does not depend on activation and start: the file repeats it.
    axes.plot(data[x], data.bayes.mean(("activation", "seed")), color="black", linestyle=":", linewidth=2,
              label="Bayes risk", zorder=5)
    if x == "nu":
        axes.set_xscale("log")
        axes.set_xticks(data[x].values, map(number, data[x].values))
        axes.set_xticks([], minor=True)
    else:
        axes.set_xticks(data[x].values)
    axes.set_ylim(0)


def title(data, prior):
    problem, vary = configuration(data)["problem"], axis_keys(data)
    parts = [PRIORS[prior], f"$F = {problem['features']}$"]
    if "problem.heads" not in vary:
        parts.append(f"$H = {problem['heads']}$")
    if "problem.nu" not in vary:
        parts.append(signal(problem["nu"]))
    return ", ".join(parts)


def draw(folder, name):
    found = panels_of(folder, name)
    rows = sorted({prior for prior, _ in found}, key=list(PRIORS).index)
    columns = sorted({x for _, x in found}, key=list(NAMES).index)
    figure, panels = subplots(len(rows), len(columns), figsize=(WIDTH, 3.2 * len(rows) + 0.6), squeeze=False)
    for i, prior in enumerate(rows):
        for j, x in enumerate(columns):
            if (prior, x) not in found:
                panels[i, j].set_visible(False)
                continue
            draw_lines(panels[i, j], found[prior, x], x)
            panels[i, j].set_title(title(found[prior, x], prior))
            panels[i, j].set_xlabel(NAMES[x])
        panels[i, 0].set_ylabel(r"loss after training, $\mathcal{E}^\infty_\sigma$")
    first = next(iter(found.values()))
    problem = configuration(first)["problem"]
    figure.suptitle(rf"$L = {problem['tokens']}$, $\eta = {number(problem['eta'])}$, {first.sizes['seed']} starts")
    below(figure, next(axes for axes in panels.flat if axes.lines).get_legend_handles_labels()[0])
    return figure
