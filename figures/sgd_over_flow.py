"""SGD as dots over the flow as lines: loss, overlaps with the hidden directions, overlaps of heads.

Each run is shown as it is, over the flow from its own start: the first one in full colours, the others
pale, with smaller dots and broken lines.
"""

import matplotlib.pyplot as plt
import numpy as np

from heads import legend, look
from style import ACTIVATIONS, WIDTH, configuration, load, overlap, power_of_ten, settings

DOTS = 26  # of the many times, so that dots stay apart
GREY = "#555555"
DASHES = ["-", (0, (5, 1.5)), (0, (1, 1.2))]  # of the first, second and later runs


def some(times, shift):
    """Indices of about DOTS times, equally spaced in the logarithm; each run has others."""
    step = np.log(times[-1] / times[0]) / (DOTS - 1)
    wanted = np.exp(np.log(times[0]) + step * (np.arange(DOTS) + shift))
    return np.unique(np.abs(np.log(times[:, None] / wanted)).argmin(axis=0))


def looks(run):
    """Of lines and dots of a run: the first one stands out."""
    first = run == 0
    line = dict(linestyle=DASHES[min(run, 2)], linewidth=1.4 if first else 0.9, alpha=1 if first else 0.55, zorder=3)
    dots = dict(linestyle="none", markersize=4.2 if first else 2.6, alpha=1 if first else 0.55, zorder=5 if first else 4)
    return line, dots


def draw_run(axes, time, flow, sgd, run, runs, color, marker):
    """One entry of one run: flow and sgd over time."""
    line, dots = looks(run)
    shown = some(time, run / runs)
    axes.plot(time, flow, color=color, **line)
    axes.plot(time[shown], sgd[shown], color=color, marker=marker, markeredgewidth=1 if marker == "x" else 0, **dots)


def draw_loss(axes, time, data):
    """A dot is the loss of one batch, its bar two standard errors."""
    flow, sgd, error = (v.values[:, 1:] for v in (data.loss_t, data.sgd_loss_t, data.sgd_loss_t_error))
    for run in reversed(range(len(flow))):
        line, dots = looks(run)
        shown = some(time, run / len(flow))
        axes.plot(time, flow[run], color="black", **line)
        axes.errorbar(time[shown], sgd[run, shown], 2 * error[run, shown], color="#D55E00", marker="o", markeredgewidth=0, elinewidth=0.8, **dots)
    axes.set_ylabel(r"loss $\mathcal{E}$")


def draw_overlaps(axes, time, data, f):
    flow, sgd = data.m_t.values[:, 1:, :, f], data.sgd_m_t.values[:, 1:, :, f]
    for run in reversed(range(len(flow))):
        for h in range(flow.shape[-1]):
            draw_run(axes, time, flow[run, :, h], sgd[run, :, h], run, len(flow), *look(h))
    axes.set_ylabel(overlap(f + 1, definition=True))


def draw_pairs(axes, time, data):
    """Norms of heads in the heads' colours; overlaps of two heads in grey, of the first run only."""
    flow, sgd = data.q_t.values[:, 1:], data.sgd_q_t.values[:, 1:]
    heads = flow.shape[-1]
    for run in reversed(range(len(flow))):
        for h in range(heads):
            for k in range(h, heads if run == 0 else h + 1):
                color, marker = look(h) if h == k else (GREY, "x")
                draw_run(axes, time, flow[run, :, h, k], sgd[run, :, h, k], run, len(flow), color, marker)
    axes.set_ylabel(r"$q_{hh'} = k_h\cdot k_{h'}$")


def note(data, dim):
    """How far SGD is from its flow, in sizes of a fluctuation at this dimension."""
    parts = []
    for name, sgd, flow in (("m", data.sgd_m_t, data.m_t), ("q", data.sgd_q_t, data.q_t)):
        off = (sgd - flow).values
        parts.append(f"${name}$: rms {np.sqrt(np.nanmean(off**2)):.2g}, largest {np.nanmax(np.abs(off)):.2g}")
    return "SGD − its flow\n" + "\n".join(parts) + f"\n$D^{{-1/2}} = {dim**-0.5:.2g}$"


def draw_column(panels, data):
    data = data.isel(time=np.isfinite(data.tau.values).all(axis=0))
    time = data.tau.values[0, 1:]  # without 0: the axis is logarithmic
    draw_loss(panels[0], time, data)
    draw_overlaps(panels[1], time, data, 0)
    draw_overlaps(panels[2], time, data, 1)
    draw_pairs(panels[3], time, data)
    for axes in panels:
        axes.set_xscale("log")
        axes.set_xlim(time[0], time[-1] * 1.15)


def draw(folder, name):
    data = load(folder, name)
    sgd = configuration(data)["sgd"]
    below = None
    if "activation" in data.dims:  # a column each
        figure, panels = plt.subplots(4, data.sizes["activation"], figsize=(WIDTH, 10.5), sharex="col", sharey="row")
        for column, activation in zip(panels.T, data.activation.values):
            part = data.sel(activation=activation)
            draw_column(column, part)
            column[0].set_title(ACTIVATIONS[activation][0])
            column[-1].set_xlabel(r"training time $\tau$" + "\n\n" + note(part, sgd["dim"]), fontsize=11)
        for axes in panels[:, 1:].flat:
            axes.set_ylabel("")
        first = panels[3, 0]
    else:
        figure, panels = plt.subplots(2, 2, figsize=(WIDTH, 6.6), sharex=True)
        draw_column(panels.ravel(), data)
        for axes in panels[1]:
            axes.set_xlabel(r"training time $\tau = \gamma\,\times$ steps")
        below = note(data, sgd["dim"]).replace("\n", ";  ").replace("flow;", "flow:")
        first = panels[1, 1]
    first.text(0.04, 0.96, "$q_{hh}$: markers of heads\n" r"$q_{hh'}$, $h \neq h'$: grey $\times$, run 1", va="top",
               transform=first.transAxes, fontsize=10)
    figure.suptitle(f"{settings(data)}\n{data.sizes['seed']} runs of SGD (dots), each over the flow from its own start (lines; run 1 in full colours)\n"
                    f"$D = {power_of_ten(sgd['dim'])}$, $N_b = {power_of_ten(sgd['batch'])}$, $\\gamma = {sgd['lr']:g}$")
    legend(figure, data.sizes["attention_head"], below)
    return figure
