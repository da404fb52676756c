"""A thousand random calls, right and wrong: a result or an exception of Python, never a crash."""

import random
import warnings

import numpy as np
import pytest

import headflow as hf

CALLS = 1000
WRONG = [None, "", "x", b"m", -1, 0, 1e300, float("nan"), float("inf"), 2**80, [], [[]], {}, (), object(), np.array("a"),
         np.zeros((0, 3)), np.full((2, 2), np.inf), [[1, 2], [3]], np.datetime64("2020-01-01"), True, 1j, lambda: 0, hf]
KINDS = ["loss", "Loss", "bayes", "flow", "sgd", "compare", "hessian", "minima", "problem", "sweep", "prior", "options"]


def point(rng, heads, features):
    return dict(m=np.array([[rng.gauss(0, 1) for _ in range(features)] for _ in range(heads)]))


def right(rng, kind, heads, features):
    quick = dict(tolerance=rng.choice([1e-2, 1e-3]), threads=rng.choice([1, 2]))
    return {
        "loss": {**quick, **point(rng, heads, features)}, "Loss": quick, "bayes": quick,
        "flow": {**quick, "time": rng.uniform(0.1, 2), "outputs": rng.randint(1, 5)},
        "sgd": dict(dim=rng.randint(2 * heads + features, 500), batch=rng.randint(1, 50), steps=rng.randint(1, 5)),
        "compare": {**quick, "dim": 100, "batch": 10, "steps": 3, "outputs": 2},
        "hessian": {**quick, **point(rng, heads, features)}, "minima": {**quick, "starts": 1},
    }.get(kind, {})


def call(rng, kind):
    heads, features = rng.randint(1, 3), rng.randint(2, 3)
    wrong = rng.random() < 0.5
    # Second derivatives of B-softmax take seconds.
    activation = rng.choice(["softmax", "softmax-1", "sigmoid"] + ["b-softmax"] * (kind not in ("hessian", "minima")))
    law = rng.choice([hf.flipping(2, 1), hf.gaussian(2, 1), hf.discrete(np.eye(features)[:2])])
    arguments = dict(activation=activation, prior=law, tokens=rng.randint(1, 6), heads=heads)
    if law.features is None:
        arguments["features"] = features
    if kind == "prior":
        return rng.choice([hf.flipping, hf.gaussian, hf.discrete, hf.mixture])(*rng.sample(WRONG, rng.randint(0, 2)))
    if kind == "options":
        return hf.options(rng.choice(["flow", "problem", rng.choice(WRONG)]))
    if kind == "problem" and wrong:
        arguments[rng.choice([*arguments, "nu", "train", "p", "nonsense"])] = rng.choice(WRONG)
    problem = hf.Problem(**arguments)
    if kind == "problem":
        return repr(problem), problem._repr_html_()
    if kind == "sweep":
        axes = {rng.choice(["seed", "heads", "nu[2]", "activation"]): rng.choice([[1, 2], ["softmax"], rng.choice(WRONG)])}
        measure = rng.choice(["bayes", "sgd", rng.choice(WRONG)])
        few = dict(sgd=dict(dim=50, batch=5, steps=2, outputs=1)) if measure == "sgd" else {}
        return hf.sweep(problem, axes=axes, measure=measure, tolerance=1e-2, progress=False, **few)
    options = right(rng, kind, heads, problem.features)
    if wrong:
        options[rng.choice([*options, "m", "R", "b", "engine", "samples", "seed", "nonsense"])] = rng.choice(WRONG)
    if rng.random() < 0.1:
        problem = rng.choice(WRONG)
    if kind == "Loss":
        loss = hf.Loss(problem, **options)
        rng.random() < 0.3 and loss.flat(rng.choice(WRONG))
        return loss(**point(rng, heads, problem.features), errors=rng.random() < 0.5), loss(m=rng.choice(WRONG))
    return getattr(hf, kind)(problem, progress=False, **options)


@pytest.mark.parametrize("seed", range(4))
def test_random_calls(seed):
    rng = random.Random(seed)
    answered = refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(CALLS // 4):
            kind = rng.choice(KINDS)
            try:
                call(rng, kind)
                answered += 1
            except (hf.Error, TypeError, ValueError, OverflowError, AttributeError) as error:
                assert str(error), kind
                refused += 1
    assert answered > refused / 4 and refused > answered / 10
