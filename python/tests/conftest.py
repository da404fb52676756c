"""What the tests have in common: small problems, and the program to compare with."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import headflow as hf

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def two_heads() -> hf.Problem:
    return hf.Problem(activation="softmax", prior=hf.flipping(2, 1), tokens=4, heads=2)


@pytest.fixture(scope="session")
def program() -> str:
    """The program headflow; HEADFLOW names it, else it is looked for."""
    for place in (os.environ.get("HEADFLOW"), ROOT / "build-test/headflow", ROOT / "build/headflow", shutil.which("headflow")):
        if place and Path(place).exists():
            return str(place)
    pytest.skip("no program headflow to compare with: set HEADFLOW")


@pytest.fixture
def run_program(program, tmp_path):
    """Runs a command on a configuration, and reads its result."""

    def run(command: str, configuration: str, *flags: str):
        file, output = tmp_path / "c.toml", tmp_path / "out.nc"
        file.write_text(configuration)
        subprocess.run([program, command, file, "--output", output, "--quiet", *flags], check=True, capture_output=True)
        return hf.open(output)

    return run
