"""Makes the notebooks from the scripts beside them, and runs them: python/notebooks/make.py [NAME ...] [--check]

A script has cells that begin with `# %%` (code) or `# %% [markdown]` (text in comments). Outputs are kept, and pictures
small. --check runs them, too, and writes nothing: what a test does.
"""

import argparse
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent


def cells_of(text):
    for part in ("\n" + text).split("\n# %%")[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            yield nbformat.v4.new_markdown_cell("\n".join(line[2:] for line in body.strip().split("\n")))
        else:
            yield nbformat.v4.new_code_cell(body.strip())


def notebook_of(script):
    book = nbformat.v4.new_notebook(cells=list(cells_of(script.read_text())))
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for number, cell in enumerate(book.cells):
        cell.id = f"{script.stem}-{number}"
    return book


def run(book):
    NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}).execute()
    for cell in book.cells:  # neither what changes from run to run, nor bars
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for script in sorted(FOLDER.glob("[0-9]*.py")):
        if options.names and script.stem not in options.names:
            continue
        book = notebook_of(script)
        run(book)
        if options.check:
            kept = nbformat.read(script.with_suffix(".ipynb"), 4)
            if [cell.source for cell in kept.cells] != [cell.source for cell in book.cells]:
                sys.exit(f"{script.stem}.ipynb is not made from {script.name}: run python/notebooks/make.py")
        else:
            nbformat.write(book, script.with_suffix(".ipynb"))
            print(f"{script.stem}.ipynb: {script.with_suffix('.ipynb').stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
