"""Heads in two planes of hidden directions, a column for each run."""

from .heads import draw_plane, legend, set_limits
from .picture import subplots
from .style import WIDTH, load, overlap, settings

PLANES = ((0, 1), (0, 2))


def draw(folder, name):
    data = load(folder, name)
    m = data.m_t.values
    figure, panels = subplots(len(PLANES), len(m), figsize=(WIDTH, 5.6), squeeze=False, sharex=True, sharey="row")
    for line, plane in zip(panels, PLANES):
        for axes, run in zip(line, m):
            draw_plane(axes, run, plane, named=False)
            axes.set_aspect("auto")  # direction 3 is learnt least: equal axes would flatten its plane
        set_limits(line, m, plane)
        line[0].set_ylabel(overlap(plane[1] + 1, definition=True))
    for axes, seed in zip(panels[0], data.seed.values):
        axes.set_title(f"run {seed:.0f}")
    for axes in panels[-1]:
        axes.set_xlabel(overlap(1))
    figure.suptitle(settings(data))
    legend(figure, data.sizes["attention_head"])
    return figure
