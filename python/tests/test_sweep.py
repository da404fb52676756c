"""Sweeps: as the program's, resumed, wrong, interrupted."""

import os
import signal
import threading

import numpy as np
import pytest
from test_same_as_program import assert_same

import headflow as hf

FILE = """
[problem]
tokens = 4
heads = 2
features = 2
nu = [2.0, 1.0]
[run]
tolerance = 1e-4
[flow]
rtol = 1e-4
atol = 1e-6
[end]
gradient = 1e-5
[sweep]
measure = ["end", "bayes"]
[[sweep.axis]]
key = "problem.nu[2]"
logspace = [0.5, 4.0, 4]
[[sweep.axis]]
name = "activation"
keys = ["problem.activation", "run.tolerance"]
values = [["softmax", 1e-4], ["softmax-1", 1e-5]]
labels = ["SM", "SM1"]
"""
SMALL = dict(tolerance=1e-4, gradient=1e-5, progress=False, flow=dict(rtol=1e-4, atol=1e-6))


def small(**more):
    return {**SMALL, **more}


def test_same_as_the_program(run_program, tmp_path):
    theirs = run_program("sweep", FILE)
    file = tmp_path / "sweep.toml"
    file.write_text(FILE)
    assert_same(hf.sweep(file, progress=False), theirs)
    problem = hf.Problem(prior=hf.flipping(2, 1))
    axes = [hf.Axis("nu[2]", [0.5, 1.0, 2.0, 4.0]), hf.Axis(["activation", "tolerance"], [("softmax", 1e-4), ("softmax-1", 1e-5)],
                                                   "activation", ["SM", "SM1"])]
    assert_same(hf.sweep(problem, axes=axes, measure=["end", "bayes"], **small(tolerance=None)), theirs)


def test_numpy_axes_and_threads(two_heads):
    axes = {"problem.nu[2]": np.geomspace(0.5, 2, 3), "seed": range(1, 3)}
    one, two = (hf.sweep(two_heads, axes=axes, measure="end", threads=n, **small()) for n in (1, 2))
    assert one.loss.shape == (3, 2)
    np.testing.assert_array_equal(one.m, two.m)
    np.testing.assert_allclose(one.nu2, [0.5, 1, 2])


def test_resumed(two_heads, tmp_path):
    output = tmp_path / "s.nc"
    first = hf.sweep(two_heads, axes={"seed": [1, 2]}, measure="end", output=output, **small())
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "s.nc.tasks").glob("*.task")}
    assert len(kept) == 2
    more = hf.sweep(two_heads, axes={"seed": [1, 2, 3]}, measure="end", output=output, **small())
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "s.nc.tasks").glob("*.task")}.items() >= kept.items()
    np.testing.assert_array_equal(more.loss[:2], first.loss)
    np.testing.assert_array_equal(hf.open(output).loss, more.loss)


def test_interrupted_keeps_what_is_done(two_heads):
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(hf.Interrupted) as raised:
        hf.sweep(two_heads, axes={"seed": range(1, 2000)}, measure="end", **small(tolerance=1e-6))
    found = raised.value.result
    done = int(np.isfinite(found.loss).sum()) if "loss" in found else 0
    assert found.attrs["outcome"] == "interrupted" and found.attrs["done"] == done < 1999


@pytest.mark.parametrize("axes, measure, says", [
    ({"sed": [1]}, "end", "did you mean seed"),
    ({"rtol": [1e-3]}, "end", "flow.rtol"),
    ({"seed": []}, "end", "has no values"),
    ({"seed": [1, 2]}, "ends", "did you mean"),
    ({"heads": [0]}, "end", "heads = 0"),
    ({"problem.heads[2]": [1]}, "end", "no list"),
    ({"seed": ["one"]}, "end", "seed"),
    ({"sgd.dim": [10]}, "end", "changes nothing"),
    ([("seed", [1])], "end", "headflow.Axis"),
])
def test_wrong_axes(two_heads, axes, measure, says):
    with pytest.raises((hf.Error, TypeError), match=says.replace(".", r"\.")):
        hf.sweep(two_heads, axes=axes, measure=measure, progress=False)
