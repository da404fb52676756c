"""SGD at learning rate 0.5, D = 2000, against gradient flow and the limits that keep its noise. Not in the paper."""

from .picture import subplots
from .style import load

DIMENSION, RATE = 2000, 0.5
LINES = {"": ("gradient flow", "#0072B2", "-"), "_kappa": (r"flow with $\kappa$", "#D55E00", "--"),
         "_map": ("one-step map", "#009E73", ":")}


def draw(folder, name):
    data = load(folder, name)
    figure, rows = subplots(data.sizes["batch"], 2, figsize=(10, 6.4), sharex=True)
    for axes, batch in zip(rows, data.batch.values):
        one = data.sel(batch=batch)
        time = one.tau.isel(seed=0)
        for panel, name, label in [(axes[0], "m_t", r"$m_{11}$"), (axes[1], "q_t", r"$q_{11}$")]:
            sgd = one["sgd_" + name][:, :, 0, 0]
            panel.errorbar(time, sgd.mean("seed"), sgd.std("seed"), fmt="o", color="#444444", markersize=3,
                           linewidth=0.8, label=f"SGD: mean and spread of {data.sizes['seed']} runs")
            for end, (text, color, style) in LINES.items():
                panel.plot(time, one[name + end][:, :, 0, 0].mean("seed"), style, color=color, linewidth=1.6,
                           label=text, zorder=4)
            panel.set_ylabel(label)
            panel.set_title(rf"$N_b = {int(batch)}$, $\kappa = {RATE * DIMENSION / batch:g}$", loc="left")
        axes[0].legend(fontsize=8)
    for panel in rows[-1]:
        panel.set_xlabel(r"training time $\tau = \gamma \times$ steps")
    figure.suptitle(rf"A finite learning rate: softmax, flipping spike, $D = {DIMENSION}$, $\gamma = {RATE}$, "
                    r"$L=4$, $H=F=2$, $\nu = 2, 1$")
    return figure
