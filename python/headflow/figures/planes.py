"""Heads in the plane of two hidden directions: one panel for each run of a file."""

import re


from .heads import draw_plane, legend, set_limits, shape
from .picture import subplots
from .style import WIDTH, load, number, overlap, settings, signal


def label(name, value):
    """A value of an axis of the file, in the paper's letters."""
    if name == "heads":
        return f"$H = {value:.0f}$"
    if name == "nu":
        return signal(list(map(float, str(value).strip("[]").split(","))))
    if name in ("nu1", "nu2"):
        return rf"$\nu_{name[-1]} = {number(value)}$"
    # A label of several words, as "H = 8, nu = 8, 2, run 1": the strengths go below.
    text = re.sub(r"H = (\d+)", r"$H = \1$", str(value))
    strengths = re.search(r",? ?nu = ([\d., ]*\d)", text)
    if not strengths:
        return text
    return text.replace(strengths[0], "") + "\n" + rf"$\nu = ({strengths[1]})$"


def grid(data):
    """Axes of the file as columns and rows. nu_1 goes across, as the direction it belongs to."""
    names = data.m_t.dims[:-3]
    if len(names) == 1:
        return names[0], None
    return names if names == ("nu1", "nu2") else (names[1], names[0])


def panels_for(m, columns, rows):
    """Panels of a size that fits equal axes, one range for all."""
    width = (WIDTH - 1.0 - 0.15 * columns) / columns
    return subplots(rows, columns, figsize=(WIDTH, rows * (width * shape(m) + 0.15) + 1.6), squeeze=False,
                        sharex=True, sharey=True)


def draw(folder, name):
    data = load(folder, name)
    column, row = grid(data)
    m = data.m_t.transpose(*((row, column) if row else (column,)), ...).values
    if row is None:
        m = m[None]
    elif column == "nu1":
        m = m[::-1]  # strengths grow upwards
    figure, panels = panels_for(m, m.shape[1], m.shape[0])
    for axes, run in zip(panels.flat, m.reshape(-1, *m.shape[2:])):
        draw_plane(axes, run, named=False)
    set_limits(panels, m)
    for axes, value in zip(panels[0], data[column].values):
        axes.set_title(label(column, value))
    for axes in panels[-1]:
        axes.set_xlabel(overlap(1, definition=m.shape[1] < 4))
    for axes in panels[:, 0]:
        axes.set_ylabel(overlap(2, definition=m.shape[0] < 3))
    if row is not None:
        values = data[row].values[::-1] if column == "nu1" else data[row].values
        for axes, value in zip(panels[:, -1], values):
            axes.annotate(label(row, value), (1, 0.5), (8, 0), xycoords="axes fraction", textcoords="offset points",
                          rotation=-90, va="center")
    figure.suptitle(settings(data))
    legend(figure, data.sizes["attention_head"])
    return figure
