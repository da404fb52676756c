"""Heads as paths in a plane of two hidden directions, and as lines over time."""

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from style import HEADS, MARKERS, below, overlap, present

STAGES = 8  # of a path, from thin and pale to thick


def look(h):
    return HEADS[h % len(HEADS)], MARKERS[h % len(MARKERS)]


def end_size(h):
    """Later heads are smaller: where several end at one place, all are seen."""
    by_shape = {"P": 1.15, "X": 1.15, "D": 0.75}  # the same size, as the eye has it
    return (9.5 - 0.4 * (h % len(HEADS))) * by_shape.get(look(h)[1], 1)


def draw_path(axes, x, y, h):
    """One head from its start, thin and pale, to its end, a marker; an arrow halfway. An end alone is at the end of a ray."""
    color, marker = look(h)
    if len(x) == 1:
        x, y = np.append(0, x), np.append(0, y)
    lengths = np.concatenate([[0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    done = lengths / max(lengths[-1], 1e-12)
    for k in range(STAGES):  # a few lines rather than one a step: files stay small
        inside = done[(done > k / STAGES) & (done < (k + 1) / STAGES)]
        at = np.concatenate([[k / STAGES], inside, [(k + 1) / STAGES]])
        axes.plot(np.interp(at, done, x), np.interp(at, done, y), color=color, linewidth=0.6 + 1.4 * (k + 1) / STAGES,
                  alpha=0.3 + 0.7 * (k + 1) / STAGES, solid_capstyle="butt", zorder=3)
    if lengths[-1] > 0.3:  # a shorter path has no room for it
        # Between two places on the path, so that the arrow does not depend on the steps in time.
        tail, tip = (np.array([np.interp(s, done, x), np.interp(s, done, y)]) for s in (0.58, 0.62))
        axes.annotate("", tip, tail, zorder=4, arrowprops={"arrowstyle": "-|>", "color": color, "lw": 0,
                                                           "mutation_scale": 15, "shrinkA": 0, "shrinkB": 0})
    axes.plot(x[-1], y[-1], marker, color=color, markersize=end_size(h), markeredgecolor="white",
              markeredgewidth=0.5, zorder=5 + 0.1 * h)


def draw_plane(axes, m, features=(0, 1), named=True):
    """All heads of one run, m of shape (time, head, feature), or their ends alone, (head, feature). Panels that share their axes
    are named by who lays them out."""
    m = m if m.ndim == 3 else m[None]
    m = m[np.isfinite(m).any(axis=(1, 2))]
    for h in range(present(m)):
        draw_path(axes, m[:, h, features[0]], m[:, h, features[1]], h)
    axes.plot(0, 0, "+", color="#444444", markersize=8, zorder=4)
    axes.set_aspect("equal")
    if named:
        axes.set_xlabel(overlap(features[0] + 1, definition=True))
        axes.set_ylabel(overlap(features[1] + 1, definition=True))


def limits(m, f, margin=0.12):
    """A symmetric range; a direction along which heads only grow starts a little below zero."""
    reach = np.nanmax(np.abs(m[..., f]))
    low = -reach if np.nanmin(m[..., f]) < -0.1 * reach else -0.08 * reach
    return low - margin * reach, reach * (1 + margin)


def set_limits(panels, m, features=(0, 1)):
    """The same range for all panels that show a part of m."""
    for axes in np.ravel(panels):
        for side, set_range, f in zip((axes.xaxis, axes.yaxis), (axes.set_xlim, axes.set_ylim), features):
            set_range(limits(m, f))
            if limits(m, f)[1] > 1:
                side.set_major_locator(MultipleLocator(1))


def draw_overlaps(axes, tau, m, f):
    """Overlaps with direction f over time; markers of heads are staggered along the lines."""
    shown = np.isfinite(tau) & (tau > 0)
    for h in range(present(m)):
        color, marker = look(h)
        axes.plot(tau[shown], m[shown, h, f], color=color, linewidth=1.4, marker=marker, markersize=4.5,
                  markeredgewidth=0, markevery=(3 + 2 * (h % 8), 18))
    axes.set_xscale("log")
    axes.set_ylabel(overlap(f + 1))


def legend(figure, number, note=None):
    """Which colour and marker is which head, in one row below the panels."""
    handles = [Line2D([], [], color=look(h)[0], marker=look(h)[1], markersize=7, markeredgecolor="white",
                      label=str(h + 1)) for h in range(number)]
    below(figure, [Line2D([], [], linestyle="none", label="head $h$:"), *handles], note)
