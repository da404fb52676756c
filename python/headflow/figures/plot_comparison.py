"""The picture of a comparison: SGD over its limits, a row for each run."""

import math

from .comparison import PAIRS, Run, draw_runs
from .heads import handles
from .picture import figure_of
from .style import settings, steps

MOST_ROWS = 3


def run_of(data):
    """One run of a comparison."""
    data = data.isel(time=slice(1, None))
    sgd = {"loss": data.batch_loss.values, "loss_error": data.batch_loss_error.values, "m": data.m.values, "q": data.q.values}
    limits = {str(name): {key: data[f"{key}_theory"].sel(theory=name).values for key in ("loss", "m", "q")} for name in data.theory.values}
    return Run(data.time.values, sgd, limits)


def deviations(data):
    """How far SGD is from each of its limits, over all runs, in sizes of a fluctuation at this dimension."""
    def of(key, name):
        """An attribute until format version 3."""
        return float(data[key].sel(theory=name)) if key in data else data.attrs[f"{name}_{key}"]

    said = [f"SGD − {name}:  " + ";  ".join(f"${x}$: rms {of(f'rms_{x}', name):.2g}, largest {of(f'largest_{x}', name):.2g}" for x in "mq")
            for name in map(str, data.theory.values)]
    return "\n".join([*said, f"$D^{{-1/2}} = {1 / math.sqrt(data.attrs['dim']):.2g}$, {data.sizes['run']} run{'s' * (data.sizes['run'] > 1)}"])


def draw_comparison(data, only=(), figure=None):
    runs = min(data.sizes["run"], MOST_ROWS)
    note = deviations(data)
    figure = figure_of(figure, (13, 0.8 + 3.2 * runs + 0.2 * note.count("\n")))
    rows = figure.subplots(runs, 4, squeeze=False)
    for run, panels in enumerate(rows):
        draw_runs(panels, [run_of(data.isel(run=run))])
        panels[0].set_title(f"run {run + 1} of {data.sizes['run']}", loc="left")
    for axes in rows[-1]:
        axes.set_xlabel(r"training time $\tau = \gamma \times$ steps")
    rows[0, 0].legend(fontsize=8)
    if data.sizes["attention_head"] <= 8:
        rows[0, 1].legend(handles=handles(data.sizes["attention_head"], "$h = {}$"), fontsize=8)
    rows[0, 3].set_title("\n".join(PAIRS), fontsize=9, loc="left")
    figure.suptitle(f"SGD over its limit: {settings(data)}, {steps(data.attrs)}")
    figure.supxlabel(note, fontsize=9, color="#444444", x=0.01, ha="left")
    return figure
