"""The axes of a sweep: which one becomes x, which one lines, which one panels."""

import itertools
import tomllib

import numpy as np

from .style import literal

LETTERS = {"problem.heads": "heads $H$", "problem.tokens": "tokens $L$", "problem.features": "features $F$",
           "problem.nu": r"$\nu$", "problem.eta": r"$\eta$", "sgd.dim": "dimension $D$", "removed": "heads removed", "heads removed": "heads removed"}
MOST_LINES = 8
GRID = 4  # two axes of numbers, both this long or longer, make a map


def sweep_of(data):
    """{name: keys} of the axes, in their order: the configuration in the file spells them out."""
    axes = tomllib.loads(data.attrs["configuration"])["sweep"].get("axis", [])
    return {axis["name"]: axis["keys"] for axis in axes}


def axes_of(data):
    """(names of the axes without that of seeds, name of the axis of seeds or None); seeds alone are an axis as any other."""
    axes = sweep_of(data)
    seeds = [name for name, keys in axes.items() if keys == ["run.seed"]] if len(axes) > 1 else []
    return [name for name in axes if name not in seeds[:1]], seeds[0] if seeds else None


def inner(data, name):
    """Dimensions that a quantity has of its own, as head and time."""
    return [dimension for dimension in data[name].dims if dimension not in sweep_of(data)]


def is_number(data, name):
    return name not in data.coords or np.issubdtype(data[name].dtype, np.number)


def title_of(data, name):
    """A dimension as the label of an axis."""
    key = data[name].attrs.get("long_name", name) if name in data.coords else name
    return LETTERS.get(key, literal(name.replace("_", " ")))


def value_of(data, name, i):
    """The i-th value of a dimension, as text: with its name if it is a number."""
    value = data[name].values[i] if name in data.coords else i + 1
    return f"{title_of(data, name)} = {value:.3g}" if is_number(data, name) else literal(value)


def combinations(data, names):
    """({name: index}, text) of all combinations of values."""
    for places in itertools.product(*(range(data.sizes[name]) for name in names)):
        yield dict(zip(names, places)), ", ".join(value_of(data, name, i) for name, i in zip(names, places) if data.sizes[name] > 1)


def roles(data, names, x=None, lines=None):
    """(x, lines, panels): x is the longest axis of numbers, then the longest of labels; lines the next that is short enough."""
    rest = [name for name in names if data.sizes[name] > 1 or name in (x, lines)]
    if x is None and rest:
        candidates = [name for name in rest if name != lines]
        x = max(candidates, key=lambda name: (is_number(data, name), data.sizes[name]), default=None)
    rest = [name for name in rest if name != x]
    if lines is None:
        lines = next((name for name in rest if data.sizes[name] <= MOST_LINES), None)
    return x, lines, [name for name in rest if name != lines]


def map_axes(data, names):
    """Two long axes of numbers, for which a map says more than lines; else None."""
    long = [name for name in names if is_number(data, name) and data.sizes[name] >= GRID]
    return long[:2] if len(long) >= 2 else None


def wants_log(values):
    """Positive and spread over decades, or spaced by a factor."""
    if len(values) < 3 or min(values) <= 0:
        return False
    ratios = np.diff(np.log(np.sort(values)))
    return max(values) / min(values) >= 50 or (np.ptp(ratios) < 1e-6 and max(values) / min(values) > 5)
