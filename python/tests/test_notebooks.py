"""Notebooks run from the first cell to the last, and are what their scripts make."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("[0-9]*.py")))
def test_it_runs(name):
    done = subprocess.run([sys.executable, "-P", FOLDER / "make.py", "--check", name], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (FOLDER / f"{name}.ipynb").stat().st_size < 500_000
