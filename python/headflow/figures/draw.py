"""Draws the paper's figures from result files: python -m headflow.figures.draw RESULTS_FOLDER [fig01 fig02 ...]

Pictures (png, svg, pdf) go to RESULTS_FOLDER/figures. Without names: all figures that have results.
"""

import importlib
import sys
from multiprocessing import Pool
from pathlib import Path

from . import figure_table


def drawings():
    """Names of the drawings: scripts beside this one with a function draw(folder, name)."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if "\ndef draw(folder, name" in path.read_text())


def draw(task):
    """Draws one figure in a process of its own; returns its name and what went wrong."""
    folder, name, script = task
    try:
        from .picture import save  # here: the first import takes seconds, and may not be needed
        from .style import our_look

        with our_look():
            save(importlib.import_module(f".{script}", __package__).draw(folder, name), folder / "figures" / name)
    except Exception as trouble:  # the others are drawn nevertheless
        return name, f"{type(trouble).__name__}: {trouble}".splitlines()[0]
    return name, None


def up_to_date(picture, inputs):
    return all(p.exists() for p in map(picture.with_suffix, (".png", ".svg", ".pdf"))) and \
        picture.stat().st_mtime > max(path.stat().st_mtime for path in inputs)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    parts = figure_table.parts(folder / "configs")
    # Of several configurations the first names the script.
    scripts = {name: figure_table.read(folder / "configs" / f"{stems[0]}.toml").get("drawing", name) for name, stems in parts.items()}
    names = sys.argv[2:] or list(scripts)
    for name in names:
        if name not in scripts:
            sys.exit(f"{name}: no configuration in {folder / 'configs'}; headflow reproduce {name} --output {folder}")
        if scripts[name] not in drawings():  # nothing else is imported, whatever a configuration says
            sys.exit(f"{name}: figure.drawing = {scripts[name]!r} is none of {', '.join(drawings())}")
    tasks = []
    for name in names:
        picture, data = folder / "figures" / f"{name}.png", [path for stem in parts[name] if (path := folder / f"{stem}.nc").exists()]
        if not data:
            print(f"{name}: no results in {folder}")
        elif up_to_date(picture, [*data, *Path(__file__).parent.glob("*.py")]):
            print(f"{picture} is up to date")
        else:
            tasks.append((folder, name, scripts[name]))
    (folder / "figures").mkdir(exist_ok=True, parents=True)
    failed = False
    with Pool(min(2, max(1, len(tasks)))) as pool:
        for name, trouble in pool.imap_unordered(draw, tasks):
            failed = failed or trouble is not None
            print(f"{name}: not drawn: {trouble}" if trouble else f"drew {folder / 'figures' / name}.png", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
