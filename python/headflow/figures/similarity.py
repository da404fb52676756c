"""Cosine similarity of two heads over the signal strengths."""

import numpy as np
from matplotlib.collections import LineCollection

from .picture import subplots
from .style import WIDTH, load, settings

EDGE = "#222222"


def text(cosine):
    rounded = f"{cosine:.2f}"
    return "0.00" if rounded == "-0.00" else rounded.replace("-", "−")


def draw_zero(axes, cosine):
    """The border between acute and obtuse angles, along the cells' edges so that numbers stay free."""
    obtuse = cosine < 0
    upright = [((j + 0.5, i - 0.5), (j + 0.5, i + 0.5)) for i, j in np.argwhere(obtuse[:, 1:] != obtuse[:, :-1])]
    level = [((j - 0.5, i + 0.5), (j + 0.5, i + 0.5)) for i, j in np.argwhere(obtuse[1:] != obtuse[:-1])]
    for color, width in (("white", 5), (EDGE, 2.5)):  # the white rim shows it in grey
        axes.add_collection(LineCollection(upright + level, colors=color, linewidths=width, capstyle="projecting"))


def draw(folder, name):
    data = load(folder, name)
    cosine = data.similarity.isel(attention_head=0, other_head=1).transpose("nu2", "nu1").values
    nu1, nu2 = data.nu1.values, data.nu2.values
    figure, axes = subplots(figsize=(WIDTH, 6.6))
    # Centred at 0, a right angle. In grey the two halves look alike: the numbers and the border tell them apart.
    image = axes.imshow(cosine, origin="lower", cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    for i in range(len(nu2)):
        for j in range(len(nu1)):
            axes.text(j, i, text(cosine[i, j]), ha="center", va="center",
                      color="white" if abs(cosine[i, j]) > 0.6 else "black")
    draw_zero(axes, cosine)
    axes.set_xticks(range(len(nu1)), [f"{x:.2g}" for x in nu1])
    axes.set_yticks(range(len(nu2)), [f"{x:.2g}" for x in nu2])
    axes.set_xlabel(r"strength of the constant direction, $\nu_1$")
    axes.set_ylabel(r"strength of the flipping direction, $\nu_2$")
    axes.grid(False)
    bar = figure.colorbar(image, ax=axes, label=r"cosine of the angle between the heads, $k_1\cdot k_2\,/\,(|k_1||k_2|)$", ticks=[-1, -0.5, 0, 0.5, 1])
    bar.ax.axhline(0, color=EDGE, linewidth=2.5)
    figure.suptitle(settings(data))
    return figure
