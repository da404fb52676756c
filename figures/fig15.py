"""Fig. 15: heads in the plane for H = 2, 4, 5, 8, softmax, flipping spike, L = 4, nu = 2, 2."""

import matplotlib.pyplot as plt

from plane import draw_heads, same_limits
from style import load, with_error

NUMBER_OF_HEADS = (2, 4, 5, 8)


def draw(folder):
    datasets = [load(folder, f"plane_softmax_flipping_H{H}") for H in NUMBER_OF_HEADS]
    figure, panels = plt.subplots(1, 4, figsize=(10.5, 5), sharey=True)
    for axes, data, H in zip(panels, datasets, NUMBER_OF_HEADS):
        loss, error = float(data.loss[-1]), float(data.loss_error[-1])
        draw_heads(axes, data, f"$H = {H}$\n$E = {with_error(loss, error)}$")
        axes.label_outer()
    same_limits(panels, datasets)
    figure.suptitle(r"Heads in the plane: softmax, flipping spike, $L=4$, $\nu_1=\nu_2=2$, $\eta=1$")
    return figure
