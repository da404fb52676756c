"""The package, its stub included, as mypy sees it."""

import subprocess
import sys
from pathlib import Path

import headflow as hf

ROOT = Path(__file__).resolve().parents[2]


def test_mypy(tmp_path):
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--cache-dir", tmp_path,
                           "-p", "headflow"], cwd=Path(hf.__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
