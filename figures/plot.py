"""Draws any result file of headflow flow, sgd, compare or sweep: plot.py FILE.nc [PICTURE] [--only NAME,...] [--quiet]

PICTURE ends with .png, .svg or .pdf; without it, FILE.png beside the file.
--only: quantities of a sweep to draw, as loss,attention; without it, all that have a picture of their own.
"""

import argparse
import sys
import warnings
from pathlib import Path

import plot_runs
import plot_sweep
import result_file
import style

DRAW = {"headflow-flow": plot_runs.draw_flow, "headflow-sgd": plot_runs.draw_sgd,
        "headflow-comparison": plot_runs.draw_comparison, "headflow-sweep": plot_sweep.draw_sweep}


# NaN stands for what a task of a sweep does not have; means and limits over nothing are no news.
warnings.filterwarnings("ignore", category=RuntimeWarning)
warnings.filterwarnings("ignore", "Warning: converting a masked element")


def stop(message):
    print(message, file=sys.stderr)
    sys.exit(2)


def read(path):
    if not path.is_file():
        stop(f"{path}: there is no such file")
    try:
        data = result_file.read(path)
    except MemoryError:
        stop(f"{path}: its dimensions are too large for the memory there is")
    except (OSError, ValueError, RuntimeError):
        stop(f"{path}: not a netCDF file, or not whole; draw a result of headflow flow, sgd, compare or sweep")
    kind, version = data.attrs.get("format"), data.attrs.get("format_version")
    if kind not in DRAW:
        stop(f"{path}: its format is {kind or 'not given'}; draw a result of headflow flow, sgd, compare or sweep")
    if not result_file.is_known(data):
        stop(f"{path}: format version {version}, expected up to {result_file.FORMAT_VERSION}; take plot.py of the program that wrote it")
    return data, kind


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("picture", type=Path, nargs="?")
    parser.add_argument("--only", default="")
    parser.add_argument("--quiet", action="store_true")
    asked = parser.parse_args()
    # An empty PICTURE is as none: it is easier for those who call this from a script.
    picture = asked.picture if asked.picture and asked.picture.name else asked.file.with_suffix(".png")
    if picture.suffix[1:] not in style.NO_DATE:
        stop(f"{picture}: a picture ends with .png, .svg or .pdf")
    if not picture.parent.is_dir():
        stop(f"{picture}: the folder {picture.parent} does not exist")
    only = [name for name in asked.only.split(",") if name]
    data, kind = read(asked.file)
    if only and kind != "headflow-sweep":
        stop(f"--only {asked.only}: chooses among the quantities of a sweep, and {asked.file} is no sweep")
    try:
        figure = DRAW[kind](data, only)
    except plot_sweep.NothingToDraw as nothing:
        stop(f"{asked.file}: {nothing}")
    except (AttributeError, IndexError, KeyError, ValueError) as missing:
        stop(f"{asked.file}: not a whole result ({missing}); make it again: {data.attrs.get('command', 'its command is not in it')}")
    try:
        style.save(figure, picture.with_suffix(""), [picture.suffix[1:]])
    except OSError as problem:
        stop(f"{picture}: {problem.strerror}")
    if not asked.quiet:
        print(f"drew {picture}")


if __name__ == "__main__":
    main()
