"""One look for all figures, and the words that they have in common."""

import contextlib
import math
import tomllib

import matplotlib
import numpy as np

from . import result_file

# Okabe and Ito's colours are distinct for every kind of colour vision. Their greys are not, so
# nothing is told by colour alone: each head and each activation has a marker of its own as well.
HEADS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "p"]
LINES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 2)), (0, (3, 1, 1, 1))]
ACTIVATIONS = {  # name in a file: name in a figure, colour, marker, line
    "softmax": ("softmax", "#0072B2", "o", "-"),
    "softmax-1": ("softmax-1", "#D55E00", "s", (0, (5, 1.5))),
    "b-softmax": ("Bayes-softmax", "#009E73", "^", (0, (4, 1.5, 1, 1.5))),
}
PRIORS = {"flipping": "flipping spike", "gaussian": "Gaussian signal"}
WIDTH = 8.0  # inches, of every figure: 12 points are then 8 pixels on a phone of 390 pixels

LOOK = {
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.07,
    "savefig.dpi": 200,
    "font.size": 12,
    "axes.titlesize": 12,
    "figure.titlesize": 12,
    "legend.fontsize": 11,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "mathtext.fontset": "dejavuserif",
    "svg.fonttype": "path",  # as text, calligraphic letters would need fonts that few have
    "svg.hashsalt": "headflow",
}


NO_LOOK = {"backend", "backend_fallback", "date", "docstring", "interactive", "keymap", "macosx", "timezone", "tk", "toolbar", "webagg"}


@contextlib.contextmanager
def our_look():
    """What is drawn inside has our look, whatever the caller's is, which is back afterwards. Windows and backends are the caller's."""
    plain = {key: value for key, value in matplotlib.rcParamsDefault.items() if key.split(".")[0] not in NO_LOOK}
    with matplotlib.rc_context({**plain, **LOOK}):
        yield


def line_look(i):
    """Colour and dashes of the i-th line."""
    return {"color": HEADS[i % len(HEADS)], "linestyle": LINES[i % len(LINES)]}


def load(folder, name):
    """A result file, after a look at its format."""
    path = folder / f"{name}.nc"
    data = result_file.read(path)
    if not result_file.is_known(data):
        raise ValueError(f"{path}: format version {data.attrs.get('format_version')}, "
                         f"expected up to {result_file.FORMAT_VERSION}; compute it again")
    return data


def literal(text):
    """A text of the user's: its dollar signs are no formulas."""
    return str(text).replace("$", r"\$")


def number(x):
    """2 rather than 2.0; three digits of what is not whole."""
    return f"{x:.0f}" if x == round(x) and abs(x) < 1e5 else f"{x:.3g}"


def power_of_ten(n):
    """10^5 rather than 100000, for mathtext."""
    exponent = math.log10(n)
    if exponent == round(exponent):
        return f"10^{{{exponent:.0f}}}"
    digits, _, power = f"{n:g}".partition("e")
    return f"{digits} \\cdot 10^{{{int(power)}}}" if power else digits


def configuration(data):
    return tomllib.loads(data.attrs["configuration"])


def axis_keys(data):
    """Keys of the configuration that vary over the file: those of a sweep's axes."""
    return {key for axis in configuration(data).get("sweep", {}).get("axis", []) for key in axis["keys"]}


def signal(nu):
    """The strengths in the paper's letters."""
    if not isinstance(nu, list):
        return rf"$\nu = {number(nu)}$"
    if len(set(nu)) == 1:
        return "$" + " = ".join(rf"\nu_{i + 1}" for i in range(len(nu))) + f" = {number(nu[0])}$"
    return ", ".join(rf"$\nu_{i + 1} = {number(x)}$" for i, x in enumerate(nu))


def settings(data):
    """The problem, without what varies over the file, from its configuration."""
    problem = configuration(data)["problem"]
    vary = {key.split(".")[1].split("[")[0] for key in axis_keys(data)}
    words = {
        "activation": lambda x: ACTIVATIONS.get(x, (literal(x),))[0],
        "prior": lambda x: PRIORS.get(x, literal(x)),
        "tokens": lambda x: f"$L = {x}$",
        "heads": lambda x: f"$H = {x}$",
        "features": lambda x: f"$F = {x}$",
        "nu": signal,
        "eta": lambda x: rf"$\eta = {number(x)}$",
    }
    return ", ".join(say(problem[key]) for key, say in words.items() if key in problem and key not in vary)


def steps(sgd):
    """Dimension, batch and rate of SGD."""
    return ", ".join(f"${letter} = {power_of_ten(sgd[key])}$" for letter, key in (("D", "dim"), ("N_b", "batch"), (r"\gamma", "lr")))


def overlap(f, definition=False):
    """The name of an axis: the overlap of head h with hidden direction f."""
    name = f"m_{{h{f}}}"
    return rf"${name} = k_h\cdot k^*_{f}$" if definition else f"${name}$"


def present(values):
    """How many heads are not padding: values of shape (..., head, feature)."""
    return int(np.isfinite(values).any(axis=tuple(range(values.ndim - 2)) + (-1,)).sum())


def below(figure, handles, note=None):
    """A legend in one row below all panels, and a note above it."""
    line = 0.36 / figure.get_size_inches()[1]
    space = line * (2 if note else 1)  # the layout leaves it free
    figure.get_layout_engine().set(rect=(0, space, 1, 1 - space))
    figure.legend(handles=handles, loc="lower center", ncol=len(handles), columnspacing=1.0, borderaxespad=0.1,
                  handlelength=1.6, handletextpad=0.4)
    if note:
        figure.text(0.5, 1.5 * line, note, ha="center", va="center", fontsize=11)
