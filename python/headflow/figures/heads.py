"""Heads as paths in a plane of two hidden directions, and as lines over time."""

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from .style import HEADS, MARKERS, below, overlap, present

STAGES = 8  # of a path
BETWEEN = 0.11  # two markers of a line, in diagonals of the panel


def look(h):
    return HEADS[h % len(HEADS)], MARKERS[h % len(MARKERS)]


def end_size(h):
    """Later heads are smaller: where several end at one place, all are seen."""
    by_shape = {"P": 1.15, "X": 1.15, "D": 0.75}  # the same size, as the eye has it
    return (9.5 - 0.4 * (h % len(HEADS))) * by_shape.get(look(h)[1], 1)


def stage_look(h, k):
    """Of the k-th stage of a path, from thin and pale to thick."""
    done = (k + 1) / STAGES
    return {"color": look(h)[0], "linewidth": 0.6 + 1.4 * done, "alpha": 0.3 + 0.7 * done, "solid_capstyle": "butt", "zorder": 3}


def end_look(h):
    color, marker = look(h)
    return {"color": color, "marker": marker, "linestyle": "none", "markersize": end_size(h), "markeredgecolor": "white",
            "markeredgewidth": 0.5, "zorder": 5 + 0.1 * h}


def way(x, y):
    """How far a path has come at each of its points, and its length: from 0 to 1 along it."""
    lengths = np.concatenate([[0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    return lengths / max(lengths[-1], 1e-12), lengths[-1]


def stages(x, y):
    """A path in STAGES pieces of one length: a few lines rather than one a step, so that files stay small."""
    done, _ = way(x, y)
    for k in range(STAGES):
        inside = done[(done > k / STAGES) & (done < (k + 1) / STAGES)]
        at = np.concatenate([[k / STAGES], inside, [(k + 1) / STAGES]])
        yield np.interp(at, done, x), np.interp(at, done, y)


def draw_arrow(axes, x, y, h):
    """Halfway, between two places on the path, so that it does not depend on the steps in time."""
    done, length = way(x, y)
    if length > 0.3:  # a shorter path has no room for it
        tail, tip = (np.array([np.interp(s, done, x), np.interp(s, done, y)]) for s in (0.58, 0.62))
        axes.annotate("", tip, tail, zorder=4, arrowprops={"arrowstyle": "-|>", "color": look(h)[0], "lw": 0,
                                                           "mutation_scale": 15, "shrinkA": 0, "shrinkB": 0})


def draw_path(axes, x, y, h):
    """One head from its start to its end, a marker; an arrow halfway. An end alone is at the end of a ray."""
    if len(x) == 1:
        x, y = np.append(0, x), np.append(0, y)
    for k, piece in enumerate(stages(x, y)):
        axes.plot(*piece, **stage_look(h, k))
    draw_arrow(axes, x, y, h)
    axes.plot(x[-1], y[-1], **end_look(h))


def draw_origin(axes):
    axes.plot(0, 0, "+", color="#444444", markersize=8, zorder=4)
    axes.set_aspect("equal")


def draw_plane(axes, m, features=(0, 1), named=True):
    """All heads of one run, m of shape (time, head, feature), or their ends alone, (head, feature). Panels that share their axes
    are named by who lays them out."""
    m = m if m.ndim == 3 else m[None]
    m = m[np.isfinite(m).any(axis=(1, 2))]
    for h in range(present(m)):
        draw_path(axes, m[:, h, features[0]], m[:, h, features[1]], h)
    draw_origin(axes)
    if named:
        axes.set_xlabel(overlap(features[0] + 1, definition=True))
        axes.set_ylabel(overlap(features[1] + 1, definition=True))


def limits(m, f, margin=0.12):
    """A symmetric range; a direction along which heads only grow starts a little below zero."""
    there = m[..., f][np.isfinite(m[..., f])]
    reach = np.abs(there).max(initial=0) or 1.0
    low = -reach if there.min(initial=0) < -0.1 * reach else -0.08 * reach
    return low - margin * reach, reach * (1 + margin)


def ranges(m, features=(0, 1), least=0.0):
    """Of both axes of a plane; neither is shorter than `least` of the other."""
    both = [limits(m, f) for f in features]
    wide = max(high - low for low, high in both)
    more = [max(0.0, least * wide - (high - low)) / 2 for low, high in both]
    return [(low - extra, high + extra) for (low, high), extra in zip(both, more)]


def shape(m, features=(0, 1), least=0.0):
    """Height of a plane over its width."""
    across, up = (high - low for low, high in ranges(m, features, least))
    return up / across


def set_limits(panels, m, features=(0, 1), least=0.0):
    """The same range for all panels that show a part of m."""
    for axes in np.ravel(panels):
        for side, set_range, ends in zip((axes.xaxis, axes.yaxis), (axes.set_xlim, axes.set_ylim), ranges(m, features, least)):
            set_range(ends)
            if ends[1] > 1:
                side.set_major_locator(MultipleLocator(1))


def draw_over_time(axes, tau, values, **more):
    """A line for each head, values of shape (time, head); markers are staggered, so that lines that coincide are told apart."""
    shown = np.isfinite(tau) & (tau > 0)
    for h in range(values.shape[1]):
        color, marker = look(h)
        axes.plot(tau[shown], values[shown, h], **{"color": color, "linewidth": 1.4, "marker": marker, "markersize": 4.5, "markeredgewidth": 0,
                                                   "markevery": ((h + 0.5) / values.shape[1] * BETWEEN, BETWEEN), **more})
    axes.set_xscale("log")


def draw_overlaps(axes, tau, m, f):
    """Overlaps with direction f over time."""
    draw_over_time(axes, tau, m[:, :present(m), f])
    axes.set_ylabel(overlap(f + 1))


def handles(number, name="{}"):
    """Which colour and marker is which head, for a legend."""
    return [Line2D([], [], color=look(h)[0], marker=look(h)[1], markersize=7, markeredgecolor="white", label=name.format(h + 1))
            for h in range(number)]


def legend(figure, number, note=None):
    """Of heads, in one row below the panels."""
    below(figure, [Line2D([], [], linestyle="none", label="head $h$:"), *handles(number)], note)
