"""Draws the paper's figures from result files: draw.py RESULTS_FOLDER [NUMBER ...]"""

import importlib
import sys
from pathlib import Path

FIGURES = [2, 15]


def main():
    folder = Path(sys.argv[1])
    wanted = [int(number) for number in sys.argv[2:]] or FIGURES
    out = folder / "figures"
    out.mkdir(parents=True, exist_ok=True)
    for number in wanted:
        name = f"fig{number:02d}"
        figure = importlib.import_module(name).draw(folder)
        for suffix in (".png", ".pdf"):
            figure.savefig(out / (name + suffix))
        print(f"drew {out / (name + '.png')}")


if __name__ == "__main__":
    main()
