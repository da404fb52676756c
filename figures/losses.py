"""Loss at the end of training against the number of heads and the signal, with the Bayes risk."""

import matplotlib.pyplot as plt
import numpy as np

from style import ACTIVATIONS, PRIORS, WIDTH, axis_keys, below, configuration, load, number, signal

PARTS = {"a": "heads", "b": "nu"}  # one file each: what varies
NAMES = {"heads": r"number of heads $H$", "nu": r"signal strength $\nu$"}


def draw_lines(axes, data, prior, x):
    """Mean over starts; bars join the spread over starts and the error of the loss."""
    chosen = data.sel(prior=prior)
    for activation in data.activation.values:
        label, color, marker, line = ACTIVATIONS[activation]
        loss = chosen.loss.sel(activation=activation)
        error = np.hypot(loss.std("seed", ddof=1), chosen.loss_error.sel(activation=activation).mean("seed"))
        axes.errorbar(data[x], loss.mean("seed"), error, color=color, marker=marker, linestyle=line, markersize=6,
                      linewidth=1.5, capsize=3, label=label)
    # The risk does not depend on activation and start: the file repeats it.
    axes.plot(data[x], chosen.bayes.mean(("activation", "seed")), color="black", linestyle=":", linewidth=2, label="Bayes risk")


def caption(data):
    problem = configuration(data)["problem"]
    parts = [f"$F = {problem['features']}$"]
    if "problem.heads" not in axis_keys(data):
        parts.append(f"$H = {problem['heads']}$")
    if "problem.nu" not in axis_keys(data):
        parts.append(signal(problem["nu"]))
    return ", ".join(parts)


def draw(folder, name):
    parts = {x: load(folder, name + letter) for letter, x in PARTS.items()
             if (folder / f"{name}{letter}.nc").exists()}
    first = next(iter(parts.values()))
    priors = first.prior.values
    figure, panels = plt.subplots(len(priors), len(parts), figsize=(WIDTH, 3.1 * len(priors) + 0.6), squeeze=False,
                                  sharex="col")
    for column, (x, data) in zip(panels.T, parts.items()):
        for axes, prior in zip(column, priors):
            draw_lines(axes, data, prior, x)
            axes.set_ylim(0)
            axes.set_title(f"{PRIORS[prior]}, {caption(data)}")
            if x == "nu":
                axes.set_xscale("log", base=2)
                axes.set_xticks(data[x].values, map(number, data[x].values))
        column[-1].set_xlabel(NAMES[x])
    for axes in panels[:, 0]:
        axes.set_ylabel(r"loss after training, $\mathcal{E}^\infty_\sigma$")
    problem = configuration(first)["problem"]
    figure.suptitle(rf"$L = {problem['tokens']}$, $\eta = {number(problem['eta'])}$, "
                    f"{first.sizes['seed']} starts")
    below(figure, panels[0, 0].get_legend_handles_labels()[0])
    return figure
