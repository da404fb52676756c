"""The picture of any result of flow, sgd, compare or sweep: of a file, python -m headflow.plot FILE.nc [PICTURE] [--only NAME,...] [--quiet]

PICTURE ends with .png, .svg or .pdf; without it, FILE.png beside the file.
--only: quantities of a sweep to draw, as loss,attention; without it, all that have a picture of their own.
"""

import argparse
import contextlib
import os
import sys
import types
import warnings
from pathlib import Path

from .figures import picture, plot_comparison, plot_runs, plot_sweep, result_file
from .figures.style import our_look

DRAW = {"headflow-flow": plot_runs.draw_flow, "headflow-sgd": plot_runs.draw_sgd,
        "headflow-comparison": plot_comparison.draw_comparison, "headflow-sweep": plot_sweep.draw_sweep}
WHAT = "draw a result of headflow flow, sgd, compare or sweep"


@contextlib.contextmanager
def no_news():
    """NaN stands for what a task of a sweep does not have; means and limits over nothing are no news."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        warnings.filterwarnings("ignore", "Warning: converting a masked element")
        yield


def read(path):
    """The result in a file; OSError or ValueError say what is wrong with it."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    try:
        return result_file.read(path)
    except MemoryError:
        raise ValueError(f"{path}: its dimensions are too large for the memory there is") from None
    except (OSError, ValueError, RuntimeError):
        raise ValueError(f"{path}: not a netCDF file, or not whole; {WHAT}") from None


def draw(data, only, figure):
    kind, version = data.attrs.get("format"), data.attrs.get("format_version")
    if kind not in DRAW:
        raise ValueError(f"its format is {kind or 'not given'}; {WHAT}")
    if not result_file.is_known(data):
        raise ValueError(f"format version {version}, expected up to {result_file.FORMAT_VERSION}; take the headflow that wrote it")
    if only and kind != "headflow-sweep":
        raise ValueError(f"only {', '.join(only)}: this chooses among the quantities of a sweep, and it is none")
    try:
        with our_look(), no_news():
            out = DRAW[kind](result_file.modern(data), only, figure)
            if figure is not None:
                picture.settle(figure)
            return out
    except plot_sweep.NothingToDraw:
        raise
    except (AttributeError, IndexError, KeyError, ValueError) as missing:
        raise ValueError(f"not a whole result ({missing}); make it again: {data.attrs.get('command', 'its command is not in it')}") from missing


def plot(result, only=None, figure=None):
    """The picture of a result of flow, sgd, compare or sweep: an xarray.Dataset, or the path of a file.

    only: names of the quantities of a sweep to draw; without it, all that have a picture of their own.
    figure: a matplotlib Figure or SubFigure that is drawn into, in its size; without it, a new one of the size that it takes.

    Returns the figure, the very picture of `headflow plot`. Neither pyplot nor matplotlib's settings are touched; ValueError says what
    cannot be drawn.
    """
    data = read(result) if isinstance(result, (str, os.PathLike)) else result
    return draw(data, [only] if isinstance(only, str) else list(only or ()), figure)


def main():
    parser = argparse.ArgumentParser(prog="headflow.plot", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("picture", type=Path, nargs="?")
    parser.add_argument("--only", default="")
    parser.add_argument("--quiet", action="store_true")
    asked = parser.parse_args()
    # An empty PICTURE is as none: it is easier for those who call this from a script.
    target = asked.picture if asked.picture and asked.picture.name else asked.file.with_suffix(".png")
    if target.suffix[1:] not in picture.NO_DATE:
        stop(f"{target}: a picture ends with .png, .svg or .pdf")
    if not target.parent.is_dir():
        stop(f"{target}: the folder {target.parent} does not exist")
    try:
        data = read(asked.file)
    except (OSError, ValueError) as problem:
        stop(problem)
    try:
        with no_news():
            drawn = draw(data, [name for name in asked.only.split(",") if name], None)
            picture.save(drawn, target.with_suffix(""), [target.suffix[1:]])
    except ValueError as problem:
        stop(f"{asked.file}: {problem}")
    except OSError as problem:
        stop(f"{target}: {problem.strerror}")
    if not asked.quiet:
        print(f"drew {target}")


def stop(message):
    print(message, file=sys.stderr)
    sys.exit(2)


class _Callable(types.ModuleType):
    """headflow.plot is this module and its function, whichever is imported first."""

    def __call__(self, *args, **options):
        return plot(*args, **options)


sys.modules[__name__].__class__ = _Callable


if __name__ == "__main__":
    main()
