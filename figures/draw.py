"""Draws the paper's figures from result files: draw.py RESULTS_FOLDER [NAME ...]"""

import importlib
import sys
from pathlib import Path

from style import save

FIGURES = ["1", "2", "9", "10", "15", "finite-rate"]


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__ + f"\nNAME: {', '.join(FIGURES)}; default: all that have results")
    folder = Path(sys.argv[1])
    wanted = sys.argv[2:] or FIGURES
    for name in wanted:
        if name not in FIGURES:
            sys.exit(f"figure {name}: must be one of {', '.join(FIGURES)}")
    out = folder / "figures"
    out.mkdir(parents=True, exist_ok=True)
    inputs = [*folder.glob("*.nc"), *Path(__file__).parent.glob("*.py")]
    newest = max(path.stat().st_mtime for path in inputs)
    for figure in wanted:
        name = f"fig{int(figure):02d}" if figure.isdigit() else figure.replace("-", "_")
        picture = out / (name + ".png")
        if picture.exists() and picture.stat().st_mtime > newest:
            print(f"{picture} is up to date")
            continue
        try:
            drawing = importlib.import_module(name).draw(folder)
        except FileNotFoundError as missing:
            print(f"skipped figure {figure}: {missing.filename} is missing "
                  f"(headflow paper --only {figure} --output {folder})")
            continue
        save(drawing, out / name)
        print(f"drew {picture}")


if __name__ == "__main__":
    main()
