"""SGD as dots over the flow as lines: loss, overlaps with the hidden directions, overlaps of heads.

Each run has a start and a flow of its own. The lines are the flow of the first run; the dots add to it
the mean over runs of SGD minus its own flow, and the bars are the spread of that difference.
"""

import matplotlib.pyplot as plt
import numpy as np

from heads import legend, look
from style import ACTIVATIONS, WIDTH, configuration, load, overlap, power_of_ten, settings

DOTS = 26  # of the many times, so that bars stay apart
GREY = "#555555"


def some(times):
    """Indices of about DOTS times, equally spaced in the logarithm."""
    wanted = np.geomspace(times[0], times[-1], DOTS)
    return np.unique(np.abs(np.log(times[:, None] / wanted)).argmin(axis=0))


def dots(axes, time, flow, sgd, color, marker):
    """One entry: flow and sgd of shape (run, time)."""
    shown = some(time)
    off = (sgd - flow)[:, shown]
    bars = off.std(axis=0, ddof=1) if len(off) > 1 else None
    axes.errorbar(time[shown], flow[0, shown] + off.mean(axis=0), bars, color=color, marker=marker, linestyle="none",
                  markersize=4, markeredgewidth=1 if marker == "x" else 0, elinewidth=1, capsize=1.5, zorder=4)


def draw_loss(axes, time, data):
    """Batches have a noise that is known: the band about the flow is two standard errors of their mean."""
    flow, sgd, error = (v.values[:, 1:] for v in (data.loss_t, data.sgd_loss_t, data.sgd_loss_t_error))
    line, band = flow[0], 2 * np.sqrt((error**2).sum(axis=0)) / len(error)
    axes.fill_between(time, line - band, line + band, color="#bbbbbb", linewidth=0, zorder=2)
    axes.plot(time, line, color="black", linewidth=1.3, zorder=3)
    shown = some(time)
    axes.plot(time[shown], (line + (sgd - flow).mean(axis=0))[shown], "o", color="#D55E00", markersize=4,
              markeredgewidth=0, zorder=4)
    axes.set_ylabel(r"loss $\mathcal{E}$")


def draw_overlaps(axes, time, data, f):
    flow, sgd = data.m_t.values[:, 1:, :, f], data.sgd_m_t.values[:, 1:, :, f]
    for h in range(flow.shape[-1]):
        color, marker = look(h)
        axes.plot(time, flow[0, :, h], color=color, linewidth=1.3, zorder=3)
        dots(axes, time, flow[..., h], sgd[..., h], color, marker)
    axes.set_ylabel(overlap(f + 1, definition=True))


def draw_pairs(axes, time, data):
    """Norms of heads in the heads' colours; overlaps of two heads in grey, dashed."""
    flow, sgd = data.q_t.values[:, 1:], data.sgd_q_t.values[:, 1:]
    for h in range(flow.shape[-1]):
        for k in range(h, flow.shape[-1]):
            color, marker = look(h) if h == k else (GREY, "x")
            axes.plot(time, flow[0, :, h, k], color=color, linewidth=1.3, linestyle="-" if h == k else "--", zorder=3)
            dots(axes, time, flow[..., h, k], sgd[..., h, k], color, marker)
    axes.set_ylabel(r"$q_{hh'} = k_h\cdot k_{h'}$")


def note(data, dim):
    """How far SGD is from its flow, in sizes of a fluctuation at this dimension."""
    parts = []
    for name, sgd, flow in (("m", data.sgd_m_t, data.m_t), ("q", data.sgd_q_t, data.q_t)):
        off = (sgd - flow).values
        parts.append(f"${name}$: rms {np.sqrt(np.nanmean(off**2)):.2g}, largest {np.nanmax(np.abs(off)):.2g}")
    return "SGD − flow\n" + "\n".join(parts) + f"\n$D^{{-1/2}} = {dim**-0.5:.2g}$"


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
    first.text(0.04, 0.96, "$q_{hh}$: markers of heads\n" r"$q_{hh'}$, $h \neq h'$: dashed, $\times$", va="top",
               transform=first.transAxes, fontsize=10)
    figure.suptitle(f"{settings(data)}\nlines: flow; dots: SGD, mean and spread over {data.sizes['seed']} runs, "
                    f"$D = {power_of_ten(sgd['dim'])}$, $N_b = {power_of_ten(sgd['batch'])}$, $\\gamma = {sgd['lr']:g}$")
    legend(figure, data.sizes["attention_head"], below)
    return figure
