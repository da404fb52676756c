"""Draws the paper's figures from result files: draw.py RESULTS_FOLDER [fig01 fig02 ...]

Pictures (png, svg, pdf) go to RESULTS_FOLDER/figures. Without names: all figures that have results.
"""

import importlib
import sys
from multiprocessing import Pool
from pathlib import Path

SCRIPTS = {  # each has draw(folder, name), which returns the figure
    "fig01": "sgd_over_flow",
    "fig02": "planes_over_time",
    "fig03": "planes",
    "fig04": "overlaps",
    "fig05": "losses",
    "fig06": "attention_maps",
    "fig07": "pruning",
    "fig08": "redrawn_samples",
    "fig09": "sgd_over_flow",
    "fig10": "sgd_over_flow",
    "fig11": "similarity",
    "fig12": "planes",
    "fig13": "planes",
    "fig14": "planes",
    "fig15": "planes",
    "fig16": "planes",
    "fig17": "planes",
    "fig18": "planes",
    "fig19": "directions",
    "fig20": "overlaps",
    "finite_rate": "finite_rate",
}


def draw(task):
    """Draws one figure in a process of its own; returns its name and what went wrong."""
    folder, name = task
    try:
        from style import save  # here: the first import takes seconds, and may not be needed

        save(importlib.import_module(SCRIPTS[name]).draw(folder, name), folder / "figures" / name)
    except Exception as trouble:  # the others are drawn nevertheless
        return name, f"{type(trouble).__name__}: {trouble}".splitlines()[0]
    return name, None


def up_to_date(picture, inputs):
    return all(p.exists() for p in map(picture.with_suffix, (".png", ".svg", ".pdf"))) and \
        picture.stat().st_mtime > max(path.stat().st_mtime for path in inputs)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder, names = Path(sys.argv[1]), sys.argv[2:] or list(SCRIPTS)
    for name in names:
        if name not in SCRIPTS:
            sys.exit(f"{name}: no such figure; there are {', '.join(SCRIPTS)}")
    tasks = []
    for name in names:
        picture, data = folder / "figures" / f"{name}.png", list(folder.glob(f"{name}*.nc"))
        if not data:
            print(f"{name}: no results in {folder}")
        elif up_to_date(picture, [*data, *Path(__file__).parent.glob("*.py")]):
            print(f"{picture} is up to date")
        else:
            tasks.append((folder, name))
    (folder / "figures").mkdir(exist_ok=True, parents=True)
    failed = False
    with Pool(min(2, max(1, len(tasks)))) as pool:
        for name, trouble in pool.imap_unordered(draw, tasks):
            failed = failed or trouble is not None
            print(f"{name}: not drawn: {trouble}" if trouble else f"drew {folder / 'figures' / name}.png", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
