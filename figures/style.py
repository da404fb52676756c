"""One look for all figures: light, legible, the paper's letters."""

import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import xarray

# Okabe and Ito's colours: distinct for every kind of colour vision, and in grey.
HEADS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31"]
# With these, lines can be told apart in black and white, too.
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
LINES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 2)), (0, (3, 1, 1, 1))]

plt.rcParams.update(
    {
        "figure.constrained_layout.use": True,
        "figure.constrained_layout.w_pad": 0.07,
        "figure.dpi": 110,
        "savefig.dpi": 200,
        "font.size": 10,
        "axes.titlesize": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#e6e6e6",
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "legend.frameon": False,
        # Letters of an SVG stay letters. The fonts "cm" have an encoding of their own, which shows wrong
        # signs where they are not installed; these do not.
        "mathtext.fontset": "dejavuserif",
        "svg.fonttype": "none",
        "svg.hashsalt": "headflow",
    }
)

FORMAT_VERSION = 1

# A file does not say when it was made: the same numbers give the same bytes.
NO_DATE = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def line_look(i):
    """Colour and dashes of the i-th line."""
    return {"color": HEADS[i % len(HEADS)], "linestyle": LINES[i % len(LINES)]}


def load(folder, name):
    """A result file, after a look at its format."""
    with xarray.open_dataset(folder / f"{name}.nc") as data:
        if data.attrs.get("format_version") != FORMAT_VERSION:
            raise SystemExit(f"{folder / name}.nc: format version {data.attrs.get('format_version')}, "
                             f"expected {FORMAT_VERSION}; run `headflow paper` again")
        return data.load()


def with_error(value, error):
    """A number with as many digits as its error leaves, at most six, and the error."""
    places = min(max(2, 1 - math.floor(math.log10(error))), 6) if error > 0 else 6
    if error >= 0.5 * 10**-places:
        return f"{value:.{places}f} \\pm {error:.{places}f}"
    exponent = math.ceil(math.log10(error)) if error > 0 else -15
    return f"{value:.{places}f}\\;(\\pm 10^{{{exponent}}})"


def save(figure, path, formats=("png", "svg", "pdf")):
    """Writes path.png, path.svg and path.pdf; `path` has no suffix."""
    for suffix in formats:
        figure.savefig(Path(f"{path}.{suffix}"), metadata=NO_DATE[suffix])
    plt.close(figure)
