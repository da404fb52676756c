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
    inputs = [*folder.glob("*.nc"), *Path(__file__).parent.glob("*.py")]
    newest = max(path.stat().st_mtime for path in inputs)
    for number in wanted:
        name = f"fig{number:02d}"
        picture = out / (name + ".png")
        if picture.exists() and picture.stat().st_mtime > newest:
            print(f"{picture} is up to date")
            continue
        figure = importlib.import_module(name).draw(folder)
        figure.savefig(picture.with_suffix(".pdf"))
        figure.savefig(picture)
        print(f"drew {picture}")


if __name__ == "__main__":
    main()
