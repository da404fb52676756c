"""Evaluations and evaluators."""

import numpy as np
import pytest

import headflow as hf


@pytest.mark.parametrize("activation", ["softmax", "softmax-1", "b-softmax", "sigmoid"])
def test_evaluator_agrees_with_loss(activation):
    problem = hf.Problem(activation, hf.gaussian(3, 1), tokens=5, heads=3, p=[[1, 0.3], [0.3, 1]])
    rng = np.random.default_rng(1)
    loss = hf.Loss(problem, tolerance=1e-7)
    for _ in range(3):
        point = dict(m=rng.normal(size=(3, 2)), R=rng.normal(size=(3, 3)) / 2)
        a, b = loss(**point), hf.loss(problem, tolerance=1e-7, progress=False, **point)
        assert abs(a.loss - b.loss) < 2e-7
        for name in vars(b.grad):
            assert a.grad[name].shape == b.grad[name].shape, name
            np.testing.assert_allclose(a.grad[name], b.grad[name], atol=5e-7)
        assert a.loss_error <= 1e-7


def test_gradient_is_that_of_the_loss():
    problem = hf.Problem("softmax-1", hf.flipping(2, 1), heads=2)
    loss = hf.Loss(problem, tolerance=1e-9)
    rng = np.random.default_rng(2)
    at = loss.pack(m=rng.normal(size=(2, 2)), R=np.eye(2), b=[0.1, -0.2], v=0.9)
    value, grad = loss.flat(at)
    for k in range(at.size):
        step = np.zeros_like(at)
        step[k] = 1e-5
        slope = (loss.flat(at + step)[0] - loss.flat(at - step)[0]) / 2e-5
        assert abs(slope - grad[k]) < 1e-7
    wrong = grad.copy()
    wrong[0] += 1e-4  # the check sees an error of that size
    assert abs(wrong[0] - grad[0]) > 1e-7
    packed = loss.unpack(grad)
    assert packed.v.shape == () and packed.b.shape == (2,)


def test_words(two_heads):
    e = hf.loss(two_heads, m=[[1.0, 0.5], [1.0, -0.5]], progress=False)
    assert "loss=" in repr(e) and "grad.m" in e._repr_html_()
    assert "m=" in repr(e.grad)
    assert "flipping" in repr(two_heads) and "<table>" in two_heads._repr_html_()
    with pytest.raises(AttributeError, match="there are m, R"):
        _ = e.grad.c
    with pytest.raises(AttributeError, match="excess"):
        _ = e.excess_risk
    assert hf.loss(two_heads, m=[[1.0, 0.5], [1.0, -0.5]], excess=1000, progress=False).excess_risk > 0


def test_problems_are_values(two_heads):
    import pickle

    assert pickle.loads(pickle.dumps(two_heads)) == two_heads
    assert two_heads.replace(heads=3) != two_heads
    assert two_heads.replace(prior=hf.gaussian(1)).prior == "gaussian"
    assert len({two_heads, hf.Problem(**two_heads.options)}) == 1


def test_a_start_from_a_result(two_heads):
    first = hf.flow(two_heads, time=5, outputs=5, progress=False)
    on = hf.flow(two_heads, init_from=first, init_time="last", time=5, outputs=5, progress=False)
    np.testing.assert_array_equal(on.m[0], first.m[-1])
    with pytest.raises(hf.OptionError, match="both give the start"):
        hf.flow(two_heads, init_from=first, m=np.eye(2))
