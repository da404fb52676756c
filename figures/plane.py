"""Heads in the plane of the hidden directions k*_1 (constant) and k*_2 (flipping sign)."""

import numpy as np

from style import HEADS


def draw_heads(axes, data, title):
    """Paths of all heads from their start to their end (a disc)."""
    draw_paths(axes, data.m.values, title)


def draw_paths(axes, m, title):
    """m over time, head and feature; heads that are NaN are left out."""
    for h in range(m.shape[1]):
        color = HEADS[h % len(HEADS)]
        x, y = m[:, h, 0], m[:, h, 1]
        axes.plot(x, y, color=color, linewidth=1.6, solid_capstyle="round", zorder=3)
        axes.plot(x[-1], y[-1], "o", color=color, markersize=7, markeredgecolor="white", markeredgewidth=0.8, zorder=5)
        axes.plot([0, x[-1]], [0, y[-1]], color=color, linewidth=0.7, alpha=0.35, zorder=2)
    axes.plot(0, 0, "+", color="#444444", markersize=8, zorder=4)
    axes.set_title(title)
    axes.set_xlabel(r"$m_{h1} = k_h\cdot k^*_1$")
    axes.set_ylabel(r"$m_{h2} = k_h\cdot k^*_2$")
    axes.set_aspect("equal")


def same_limits(panels, datasets, margin=0.15):
    """Equal axes for all panels, symmetric in the flipping direction."""
    m = np.concatenate([d.m.values.reshape(-1, d.sizes["feature"]) for d in datasets])
    low, high = min(0.0, m[:, 0].min()) - margin, m[:, 0].max() + margin
    reach = np.abs(m[:, 1]).max() + margin
    for axes in panels:
        axes.set_xlim(low, high)
        axes.set_ylim(-reach, reach)
