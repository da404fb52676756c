"""SGD as dots over the flow as lines, each run over the flow from its own start."""

import numpy as np

from . import figure_table
from .comparison import PAIRS, Run, draw_runs
from .heads import legend
from .picture import subplots
from .style import ACTIVATIONS, WIDTH, configuration, load, settings, steps

QUANTITIES = ("loss", "m", "q")


def run_of(data):
    """One run of a sweep: the variables of SGD have a prefix, those of the flow do not."""
    data = data.isel(time=np.isfinite(data.tau.values)).isel(time=slice(1, None))
    sgd = {name: data[f"sgd_{name}_t"].values for name in QUANTITIES}
    return Run(data.tau.values, {**sgd, "loss_error": data.sgd_loss_t_error.values},
               {"flow": {name: data[f"{name}_t"].values for name in QUANTITIES}})


def note(runs, dim):
    """How far SGD is from its flow, in sizes of a fluctuation at this dimension."""
    parts = []
    for name in ("m", "q"):
        off = np.concatenate([(run.sgd[name] - run.limits["flow"][name]).ravel() for run in runs])
        parts.append(f"${name}$: rms {np.sqrt(np.mean(off**2)):.2g}, largest {np.abs(off).max():.2g}")
    return "SGD − its flow\n" + "\n".join(parts) + f"\n$D^{{-1/2}} = {dim**-0.5:.2g}$"


def runs_of(data, longer):
    """Of one activation; a longer run takes the place of the shorter one with its seed."""
    more = set() if longer is None else set(longer.seed.values.tolist())
    return [run_of((longer if seed in more else data).sel(seed=seed)) for seed in data.seed.values.tolist()]


def read(folder, name):
    """The file of a figure, and a second one with longer runs, if there is one."""
    files = [load(folder, part) for part in figure_table.parts(folder / "configs")[name]]
    return files[0], files[1] if len(files) > 1 else None


def draw(folder, name):
    data, longer = read(folder, name)
    sgd = configuration(data)["sgd"]
    below = None
    if "activation" in data.dims:  # a column each
        figure, panels = subplots(4, data.sizes["activation"], figsize=(WIDTH, 10.5), sharex="col", sharey="row")
        for column, activation in zip(panels.T, data.activation.values):
            runs = runs_of(data.sel(activation=activation), longer.sel(activation=activation) if longer is not None else None)
            draw_runs(column, runs)
            column[0].set_title(ACTIVATIONS[activation][0])
            column[-1].set_xlabel(r"training time $\tau$" + "\n\n" + note(runs, sgd["dim"]), fontsize=11)
        for axes in panels[:, 1:].flat:
            axes.set_ylabel("")
        first = panels[3, 0]
    else:
        figure, panels = subplots(2, 2, figsize=(WIDTH, 6.6), sharex=True)
        runs = runs_of(data, longer)
        draw_runs(panels.ravel(), runs)
        for axes in panels[1]:
            axes.set_xlabel(r"training time $\tau = \gamma\,\times$ steps")
        below = note(runs, sgd["dim"]).replace("\n", ";  ").replace("flow;", "flow:")
        first = panels[1, 1]
    first.text(0.04, 0.96, "\n".join(PAIRS) + ", run 1", va="top", transform=first.transAxes, fontsize=10)
    figure.suptitle(f"{settings(data)}\n{data.sizes['seed']} runs of SGD (dots), each over the flow from its own start (lines; run 1 in full colours)\n"
                    + steps(sgd))
    legend(figure, data.sizes["attention_head"], below)
    return figure
