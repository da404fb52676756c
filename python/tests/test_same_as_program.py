"""Every function against the program at the same configuration: equal bits, dimensions, attributes."""

import numpy as np
import pytest

import headflow as hf

PROBLEM = '[problem]\nactivation = "{}"\nprior = "{}"\ntokens = 4\nheads = 3\nfeatures = 2\nnu = [2.0, 1.0]\n'
NOT_THE_SAME = {"date", "command", "seconds"}

CASES = {
    "loss": ("[point]\nm = [[1.0, 0.5], [0.5, -0.5], [0.2, 0.1]]\n", dict(m=[[1.0, 0.5], [0.5, -0.5], [0.2, 0.1]])),
    "bayes": ("", {}),
    "flow": ("[flow]\ntime = 20.0\noutputs = 10\n", dict(time=20, outputs=10)),
    "sgd": ("[sgd]\ndim = 500\nbatch = 100\nsteps = 40\nruns = 2\noutputs = 8\n",
            dict(dim=500, batch=100, steps=40, runs=2, outputs=8)),
    "compare": ("[sgd]\ndim = 500\nbatch = 100\nsteps = 40\noutputs = 8\n", dict(dim=500, batch=100, steps=40, outputs=8)),
    "hessian": ('[hessian]\nat = "origin"\n', dict(at="origin")),
    "fixed-point": ("[end]\ngradient = 1e-7\n", dict(gradient=1e-7)),
    "minima": ("[minima]\nstarts = 6\n", dict(starts=6)),
    "phases": ("[flow]\ntime = 60.0\noutputs = 30\n", dict(time=60, outputs=30)),
    "prune": ("[end]\ngradient = 1e-7\n", dict(gradient=1e-7)),
    "similarity": ("[end]\ngradient = 1e-7\n", dict(gradient=1e-7)),
    "attention": ("[end]\ngradient = 1e-7\n", dict(gradient=1e-7)),
}


def assert_same(ours, theirs):
    assert set(ours.variables) == set(theirs.variables)  # in a file they are in alphabetical order
    assert ours.sizes == theirs.sizes and set(ours.coords) == set(theirs.coords)
    for name in ours.variables:
        a, b = ours.variables[name], theirs.variables[name]
        assert a.dims == b.dims, name
        assert a.attrs == b.attrs, name
        if a.dtype.kind == "U":  # older versions of xarray read texts as objects
            assert (a.values == b.values.astype(str)).all(), name
        else:
            assert a.dtype == b.dtype, name
            np.testing.assert_array_equal(a.values, b.values, err_msg=name)  # bits, and NaN where NaN
    kept = ours.attrs.keys() - NOT_THE_SAME
    assert kept == theirs.attrs.keys() - NOT_THE_SAME
    for name in kept:
        assert ours.attrs[name] == theirs.attrs[name], name


@pytest.mark.parametrize("activation", ["softmax", "softmax-1", "b-softmax"])
@pytest.mark.parametrize("command", CASES)
def test_same_bits(command, activation, run_program):
    if activation == "b-softmax" and command in ("minima", "prune", "similarity", "attention"):
        activation, prior = "sigmoid", "gaussian"
    else:
        prior = "flipping"
    text, options = CASES[command]
    problem = hf.Problem(activation, hf.flipping(2, 1) if prior == "flipping" else hf.gaussian(2, 1), tokens=4, heads=3)
    theirs = run_program(command, PROBLEM.format(activation, prior) + "[run]\ntolerance = 1e-5\n" + text)
    function = getattr(hf, command.replace("-", "_"))
    ours = function(problem, tolerance=1e-5, progress=False, **options)
    assert_same(ours.dataset if command == "loss" else ours, theirs)


def test_one_thread_or_two(two_heads):
    one, two = (hf.sgd(two_heads, dim=300, batch=200, steps=30, threads=n, progress=False) for n in (1, 2))
    np.testing.assert_array_equal(one.m, two.m)


def test_files_go_round(two_heads, tmp_path):
    run = hf.flow(two_heads, time=5, outputs=4, progress=False)
    run.to_netcdf(tmp_path / "run.nc")
    again = hf.open(tmp_path / "run.nc")
    assert_same(run, again)
