"""Heads in the plane of the hidden directions, and below their overlaps over time."""

from .heads import draw_overlaps, draw_plane, legend, limits, set_limits, shape
from .picture import subplots
from .style import WIDTH, load, settings


def draw(folder, name):
    data = load(folder, name)
    m, tau = data.m_t.values, data.tau.values
    columns = len(m)
    plane = (WIDTH - 1.2) / columns * shape(m)
    figure, panels = subplots(3, columns, figsize=(WIDTH, plane + 5.2),
                                  gridspec_kw={"height_ratios": [plane, 1.5, 1.5]})
    for j in range(columns):
        draw_plane(panels[0, j], m[j])
        panels[0, j].set_title(f"$H = {data.heads.values[j]:.0f}$")
        if j > 0:
            panels[0, j].set_ylabel("")
        for f in (0, 1):
            axes = panels[1 + f, j]
            draw_overlaps(axes, tau[j], m[j], f)
            axes.set_ylim(limits(m, f))
            axes.set_xticks([0.1, 10, 1000])
            if f == 1:
                axes.set_xlabel(r"training time $\tau$")
            else:
                axes.set_xticklabels([])
            if j > 0:
                axes.set_ylabel("")
    set_limits(panels[0], m)
    for axes in panels[:, 1:].flat:
        axes.set_yticklabels([])
    figure.suptitle(settings(data))
    legend(figure, data.sizes["attention_head"])
    return figure
