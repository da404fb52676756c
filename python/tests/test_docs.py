"""Examples in docstrings are run; the reference is what they say."""

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import headflow as hf

MODULES = [name for _, name, _ in pkgutil.iter_modules(hf.__path__) if name not in ("_core", "figures")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(f"headflow.{name}")
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0


def test_the_package_says_what_it_is():
    assert doctest.testmod(hf).failed == 0
    assert hf.__version__.count(".") == 2


def test_every_function_has_an_example():
    without = [name for name in hf.__all__ if callable(getattr(hf, name)) and not isinstance(getattr(hf, name), type)
               and ">>>" not in (getattr(hf, name).__doc__ or "")]
    assert not without


def test_the_reference_is_current():
    script = Path(__file__).resolve().parents[1] / "reference.py"
    subprocess.run([sys.executable, "-P", script, "--check"], check=True)
