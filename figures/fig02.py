"""Fig. 2: evolution of the heads for the flipping spike, softmax, L = 4, nu = 2, 2, eta = 1."""

import matplotlib.pyplot as plt
import numpy as np

from plane import draw_heads, same_limits
from style import HEADS, load

NUMBER_OF_HEADS = (2, 5, 8)


def draw(folder):
    datasets = [load(folder, f"plane_softmax_flipping_H{H}") for H in NUMBER_OF_HEADS]
    figure, panels = plt.subplots(2, 3, figsize=(8.8, 7.2), gridspec_kw={"height_ratios": [1.5, 1]})
    for axes, data, H in zip(panels[0], datasets, NUMBER_OF_HEADS):
        draw_heads(axes, data, f"$H = {H}$")
    same_limits(panels[0], datasets)
    for axes, data in zip(panels[1], datasets):
        positive = data.time.values > 0
        for h in range(data.sizes["head"]):
            color = HEADS[h % len(HEADS)]
            axes.plot(data.time[positive], data.m[positive, h, 0], color=color, linewidth=1.1, linestyle=":")
            axes.plot(data.time[positive], data.m[positive, h, 1], color=color, linewidth=1.4)
        axes.set_xscale("log")
        axes.set_xlabel(r"$\tau$")
        axes.set_ylabel(r"$m_{h1}$ (dotted), $m_{h2}$")
    reach = max(np.abs(d.m.values).max() for d in datasets) * 1.05
    for axes in panels[1]:
        axes.set_ylim(-reach, reach)
    figure.suptitle(r"Evolution of the heads, flipping spike: softmax, $L=4$, $\nu_1=\nu_2=2$, $\eta=1$")
    return figure
