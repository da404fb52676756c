"""SGD at learning rate 0.5, D = 2000, against gradient flow and the limits that keep its noise."""

import matplotlib.pyplot as plt

from style import load

CASES = [("finite_rate_N2000", r"$N_b = D$, $\kappa = 0.5$"),
         ("finite_rate_N200", r"$N_b = D/10$, $\kappa = 5$")]
LINES = {"flow": ("gradient flow", "#0072B2", "-"), "kappa": (r"flow with $\kappa$", "#D55E00", "--"),
         "map": ("one-step map", "#009E73", ":")}


def draw(folder, _name):
    figure, rows = plt.subplots(2, 2, figsize=(10, 6.4), sharex=True)
    for axes, (name, title) in zip(rows, CASES):
        data = load(folder, name)
        for panel, sgd, theory, label in [
                (axes[0], data.m[:, :, 0, 0], data.m_theory[:, :, :, 0, 0], r"$m_{11}$"),
                (axes[1], data.q[:, :, 0, 0], data.q_theory[:, :, :, 0, 0], r"$q_{11}$")]:
            panel.errorbar(data.time, sgd.mean("run"), sgd.std("run"), fmt="o", color="#444444",
                           markersize=3, linewidth=0.8, label="SGD: mean and spread of "
                                                              f"{data.sizes['run']} runs")
            for key, (text, color, style) in LINES.items():
                panel.plot(data.time, theory.sel(theory=key).mean("run"), style, color=color, linewidth=1.6,
                           label=text, zorder=4)
            panel.set_ylabel(label)
            panel.set_title(title, loc="left")
        axes[0].legend(fontsize=8)
    for panel in rows[1]:
        panel.set_xlabel(r"training time $\tau = \gamma \times$ steps")
    figure.suptitle(r"A finite learning rate: softmax, flipping spike, $D = 2000$, $\gamma = 0.5$, "
                    r"$L=4$, $H=F=2$, $\nu = 2, 1$")
    return figure
