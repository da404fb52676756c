"""Overlaps of the heads over training time: a row for each run, a column for each direction."""

import numpy as np

from .heads import draw_overlaps, legend, limits
from .picture import subplots
from .style import ACTIVATIONS, WIDTH, load, settings


def label(name, value):
    return ACTIVATIONS[value][0] if name == "activation" else f"run {value:.0f}"


def draw(folder, name):
    data = load(folder, name)
    axis = data.m_t.dims[0]
    m, tau, learnt = data.m_t.values, data.tau.values, data.tau_s.values
    runs, features = m.shape[0], m.shape[-1]
    figure, panels = subplots(runs, features, figsize=(WIDTH, 1.9 * runs + 1.1), squeeze=False, sharex="row")
    for r, line in enumerate(panels):
        for f, axes in enumerate(line):
            draw_overlaps(axes, tau[r], m[r], f)
            axes.set_ylim(limits(m if axis == "seed" else m[r], f))
            axes.axvline(learnt[r, f], color="#666666", linewidth=1, linestyle=":")
            axes.set_xticks([10.0**k for k in range(-1, 6, 2)])
            axes.set_xlim(0.1, np.nanmax(tau[r]) * 1.1)
            if r < runs - 1 and axis == "seed":
                axes.tick_params(labelbottom=False)
            if r == runs - 1:
                axes.set_xlabel(r"training time $\tau$")
        line[0].set_title(label(axis, data[axis].values[r]), loc="left")
    figure.suptitle(settings(data) + r"; dotted: $\tau_s$")
    legend(figure, data.sizes["attention_head"])
    return figure
