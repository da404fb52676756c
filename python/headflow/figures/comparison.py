"""SGD as dots over its limits as lines: loss, overlaps with the hidden directions, overlaps of heads.

Of several runs in one panel the first one has full colours, the others are pale, with smaller dots and broken lines; of
several limits of a run the first one is whole and the others are broken.
"""

from dataclasses import dataclass

import numpy as np

from .heads import look
from .style import overlap

DOTS = 26  # of the many times, so that dots stay apart
GREY = "#555555"
PAIRS = ("$q_{hh}$: markers of heads", r"$q_{hh'}$, $h \neq h'$: grey $\times$")
DASHES = ["-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5))]


@dataclass
class Run:
    """One run of SGD and its limits from the same start. Values of loss, m and q, and of SGD's loss_error, at the times after 0."""

    time: np.ndarray
    sgd: dict
    limits: dict  # {name: values}


def some(times, shift):
    """Indices of about DOTS times, equally spaced in the logarithm; each run has others."""
    step = np.log(times[-1] / times[0]) / (DOTS - 1)
    wanted = np.exp(np.log(times[0]) + step * (np.arange(DOTS) + shift))
    return np.unique(np.abs(np.log(times[:, None] / wanted)).argmin(axis=0))


def line_of(run, limit=0):
    """The first run stands out."""
    first = run == 0
    return {"linestyle": DASHES[(min(run, 2) + limit) % len(DASHES)], "linewidth": 1.4 if first else 0.9, "alpha": 1 if first else 0.55,
            "zorder": 3}


def dots_of(run):
    first = run == 0
    return {"linestyle": "none", "markersize": 4.2 if first else 2.6, "alpha": 1 if first else 0.55, "zorder": 5 if first else 4}


def backwards(runs):
    """The first one is drawn last."""
    return reversed(list(enumerate(runs)))


def draw_loss(axes, runs):
    """A dot is the loss of one batch, its bar two standard errors."""
    for number, run in backwards(runs):
        shown = some(run.time, number / len(runs))
        for i, (name, limit) in enumerate(run.limits.items()):
            axes.plot(run.time, limit["loss"], color="black", label=name, **line_of(number, i))
        axes.errorbar(run.time[shown], run.sgd["loss"][shown], 2 * run.sgd["loss_error"][shown], color="#D55E00", marker="o",
                      markeredgewidth=0, elinewidth=0.8, label="SGD (a batch)", **dots_of(number))
    axes.set_ylabel(r"loss $\mathcal{E}$")


def draw_entry(axes, number, runs, name, i, j, color, marker):
    """One entry of m or q of one run over time."""
    run = runs[number]
    for k, limit in enumerate(run.limits.values()):
        axes.plot(run.time, limit[name][:, i, j], color=color, **line_of(number, k))
    shown = some(run.time, number / len(runs))
    axes.plot(run.time[shown], run.sgd[name][shown, i, j], color=color, marker=marker, markeredgewidth=1 if marker == "x" else 0,
              **dots_of(number))


def draw_overlaps(axes, runs, f):
    for number, run in backwards(runs):
        for h in range(run.sgd["m"].shape[1]):
            draw_entry(axes, number, runs, "m", h, f, *look(h))
    axes.set_ylabel(overlap(f + 1, definition=True))


def draw_pairs(axes, runs):
    """Norms of heads in the heads' colours; overlaps of two heads in grey, of the first run only."""
    for number, run in backwards(runs):
        heads = run.sgd["q"].shape[1]
        for h in range(heads):
            for k in range(h, heads if number == 0 else h + 1):
                draw_entry(axes, number, runs, "q", h, k, *(look(h) if h == k else (GREY, "x")))
    axes.set_ylabel(r"$q_{hh'} = k_h\cdot k_{h'}$")


def draw_runs(panels, runs):
    """Four panels: loss, overlaps with the first two directions, overlaps of heads. With one direction the third is empty."""
    draw_loss(panels[0], runs)
    features = runs[0].sgd["m"].shape[2]
    for f in range(min(2, features)):
        draw_overlaps(panels[1 + f], runs, f)
    panels[2].set_visible(features > 1)
    draw_pairs(panels[3], runs)
    for axes in panels:
        axes.set_xscale("log")
        axes.set_xlim(runs[0].time[0], runs[0].time[-1] * 1.15)
