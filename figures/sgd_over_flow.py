"""SGD as dots over the flow as lines: loss, overlaps with the hidden directions, overlaps of heads.

Each run is shown as it is, over the flow from its own start: the first one in full colours, the others
pale, with smaller dots and broken lines.
"""

import matplotlib.pyplot as plt
import numpy as np

import figure_table
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


class Run:
    """One run of SGD and the flow from its start, at their times after 0."""

    def __init__(self, data):
        data = data.isel(time=np.isfinite(data.tau.values))
        self.data, self.time = data, data.tau.values[1:]

    def __getitem__(self, name):
        return self.data[name].values[1:]

    def pair(self, name):
        """Flow and SGD."""
        return self[name], self["sgd_" + name]


def draw_entry(axes, run, number, entry, runs, color, marker):
    """One entry of one run: flow and sgd over time."""
    line, dots = looks(number)
    shown = some(run.time, number / runs)
    flow, sgd = entry
    axes.plot(run.time, flow, color=color, **line)
    axes.plot(run.time[shown], sgd[shown], color=color, marker=marker, markeredgewidth=1 if marker == "x" else 0, **dots)


def backwards(runs):
    """The first one is drawn last."""
    return reversed(list(enumerate(runs)))


def draw_loss(axes, runs):
    """A dot is the loss of one batch, its bar two standard errors."""
    for number, run in backwards(runs):
        line, dots = looks(number)
        shown = some(run.time, number / len(runs))
        flow, sgd = run.pair("loss_t")
        axes.plot(run.time, flow, color="black", **line)
        axes.errorbar(run.time[shown], sgd[shown], 2 * run["sgd_loss_t_error"][shown], color="#D55E00", marker="o", markeredgewidth=0,
                      elinewidth=0.8, **dots)
    axes.set_ylabel(r"loss $\mathcal{E}$")


def draw_overlaps(axes, runs, f):
    for number, run in backwards(runs):
        flow, sgd = run.pair("m_t")
        for h in range(flow.shape[1]):
            draw_entry(axes, run, number, (flow[:, h, f], sgd[:, h, f]), len(runs), *look(h))
    axes.set_ylabel(overlap(f + 1, definition=True))


def draw_pairs(axes, runs):
    """Norms of heads in the heads' colours; overlaps of two heads in grey, of the first run only."""
    for number, run in backwards(runs):
        flow, sgd = run.pair("q_t")
        heads = flow.shape[1]
        for h in range(heads):
            for k in range(h, heads if number == 0 else h + 1):
                color, marker = look(h) if h == k else (GREY, "x")
                draw_entry(axes, run, number, (flow[:, h, k], sgd[:, h, k]), len(runs), color, marker)
    axes.set_ylabel(r"$q_{hh'} = k_h\cdot k_{h'}$")


def note(runs, dim):
    """How far SGD is from its flow, in sizes of a fluctuation at this dimension."""
    parts = []
    for name in ("m", "q"):
        off = np.concatenate([(sgd - flow).ravel() for flow, sgd in (run.pair(f"{name}_t") for run in runs)])
        parts.append(f"${name}$: rms {np.sqrt(np.mean(off**2)):.2g}, largest {np.abs(off).max():.2g}")
    return "SGD − its flow\n" + "\n".join(parts) + f"\n$D^{{-1/2}} = {dim**-0.5:.2g}$"


def draw_column(panels, runs):
    draw_loss(panels[0], runs)
    draw_overlaps(panels[1], runs, 0)
    draw_overlaps(panels[2], runs, 1)
    draw_pairs(panels[3], runs)
    for axes in panels:
        axes.set_xscale("log")
        axes.set_xlim(runs[0].time[0], runs[0].time[-1] * 1.15)


def runs_of(data, longer):
    """Of one activation; a longer run takes the place of the shorter one with its seed."""
    more = set() if longer is None else set(longer.seed.values.tolist())
    return [Run((longer if seed in more else data).sel(seed=seed)) for seed in data.seed.values.tolist()]


def read(folder, name):
    """The file of a figure, and a second one with longer runs, if there is one."""
    files = [load(folder, part) for part in figure_table.parts(folder / "configs")[name]]
    return files[0], files[1] if len(files) > 1 else None


def draw(folder, name):
    data, longer = read(folder, name)
    sgd = configuration(data)["sgd"]
    below = None
    if "activation" in data.dims:  # a column each
        figure, panels = plt.subplots(4, data.sizes["activation"], figsize=(WIDTH, 10.5), sharex="col", sharey="row")
        for column, activation in zip(panels.T, data.activation.values):
            runs = runs_of(data.sel(activation=activation), longer.sel(activation=activation) if longer is not None else None)
            draw_column(column, runs)
            column[0].set_title(ACTIVATIONS[activation][0])
            column[-1].set_xlabel(r"training time $\tau$" + "\n\n" + note(runs, sgd["dim"]), fontsize=11)
        for axes in panels[:, 1:].flat:
            axes.set_ylabel("")
        first = panels[3, 0]
    else:
        figure, panels = plt.subplots(2, 2, figsize=(WIDTH, 6.6), sharex=True)
        runs = runs_of(data, longer)
        draw_column(panels.ravel(), runs)
        for axes in panels[1]:
            axes.set_xlabel(r"training time $\tau = \gamma\,\times$ steps")
        below = note(runs, sgd["dim"]).replace("\n", ";  ").replace("flow;", "flow:")
        first = panels[1, 1]
    first.text(0.04, 0.96, "$q_{hh}$: markers of heads\n" r"$q_{hh'}$, $h \neq h'$: grey $\times$, run 1", va="top",
               transform=first.transAxes, fontsize=10)
    figure.suptitle(f"{settings(data)}\n{data.sizes['seed']} runs of SGD (dots), each over the flow from its own start (lines; run 1 in full colours)\n"
                    f"$D = {power_of_ten(sgd['dim'])}$, $N_b = {power_of_ten(sgd['batch'])}$, $\\gamma = {sgd['lr']:g}$")
    legend(figure, data.sizes["attention_head"], below)
    return figure
