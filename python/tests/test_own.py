"""Activations and priors of one's own."""

import numpy as np
import pytest

import headflow as hf


@hf.activation
def plain(chi):
    e = np.exp(chi - chi.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@plain.derivative
def _(chi, g, sigma):
    return sigma * (g - (sigma * g).sum(axis=1, keepdims=True))


@hf.activation(parameters={"b": ("head", 0.0), "v": ("number", 1.0)})
def sink(chi, b, v):
    top = np.maximum(chi.max(axis=1, keepdims=True), b)
    e = np.exp(chi - top)
    return v * e / (np.exp(b - top) + e.sum(axis=1, keepdims=True))


@sink.derivative
def _(chi, g, b, v):
    one = sink(chi, b, 1.0)
    pull = v * (g * one).sum(axis=1, keepdims=True)
    rest = 1 - one.sum(axis=1, keepdims=True)
    return one * (v * g - pull), -rest * pull, (g * one).sum(axis=1, keepdims=True)


def logistic(chi, c):
    return 1 / (1 + np.exp(-chi - c))


gate = hf.activation(parameters={"c": "head"})(logistic)  # differences


def problem(activation, **options):
    return hf.Problem(activation, options.pop("prior", hf.gaussian(3, 1)), **{"tokens": 4, "heads": 2, **options})


POINT = dict(m=[[1.0, 0.5], [0.3, -0.8]], R=[[0.7, 0.0], [0.1, 0.6]])


@pytest.mark.parametrize("engine", ["mc", "qmc"])
@pytest.mark.parametrize("prior", [hf.gaussian(3, 1), hf.flipping(2, 1)])
def test_softmax_and_softmax_1_are_those_of_headflow(engine, prior):
    """The same samples: to rounding."""
    more = dict(b=[0.2, -0.3], v=0.9)
    for mine, theirs, point in ((plain, "softmax", POINT), (sink, "softmax-1", {**POINT, **more})):
        a, b = (hf.loss(problem(one, prior=prior), engine=engine, samples=3001, seed=4, progress=False, **point)
                for one in (mine, theirs))
        assert abs(a.loss - b.loss) < 1e-12 and abs(a.loss_error - b.loss_error) < 1e-12
        for name in vars(b.grad):
            np.testing.assert_allclose(a.grad[name], b.grad[name], atol=1e-12)
            np.testing.assert_allclose(a.grad_error[name], b.grad_error[name], atol=1e-12)
    assert "of_python" not in b.dataset.attrs and a.dataset.attrs["of_python"] == "activation sink"


def test_differences_do_for_a_derivative():
    assert gate.differentiated in ("differences", "jax")
    a = hf.loss(problem(gate), engine="mc", samples=1000, c=[0.1, -0.4], progress=False, **POINT)
    b = hf.loss(problem("sigmoid"), engine="mc", samples=1000, b=[0.1, -0.4], v=1, progress=False, **POINT)
    assert abs(a.loss - b.loss) < 1e-12
    np.testing.assert_allclose(a.grad.m, b.grad.m, atol=1e-9)
    np.testing.assert_allclose(a.grad.c, b.grad.b, atol=1e-9)


def test_numbers_do_not_depend_on_threads():
    mine = problem(sink, tokens=5, heads=3)
    runs = [hf.loss(mine, engine="mc", samples=20000, threads=n, m=np.ones((3, 2)), progress=False) for n in (1, 2, 3)]
    assert len({run.loss for run in runs}) == 1
    for run in runs[1:]:
        np.testing.assert_array_equal(run.grad.b, runs[0].grad.b)
    loss = hf.Loss(mine, engine="mc", samples=20000)
    assert loss(m=np.ones((3, 2))).loss == runs[0].loss
    assert loss.unpack(loss._start).v == 1.0  # where training starts


@pytest.mark.parametrize("method", ["reduced", "direct"])
def test_sgd(method):
    """The same start and random numbers: to rounding (a batch that is one block of both; else reduced agrees in law)."""
    a, b = (hf.sgd(problem(one), method=method, dim=60, batch=200, lr=2.0, steps=30, seed=3, runs=2, progress=False)
            for one in (sink, "softmax-1"))
    np.testing.assert_allclose(a.m, b.m, atol=1e-9)
    np.testing.assert_allclose(a.b, b.b, atol=1e-9)
    np.testing.assert_allclose(a.batch_loss, b.batch_loss, atol=1e-9)


def test_training():
    options = dict(engine="mc", samples=500, seed=2, progress=False)
    for mine, theirs in ((plain, "softmax"), (sink, "softmax-1")):
        a, b = (hf.flow(problem(one), time=3, outputs=4, **options) for one in (mine, theirs))
        np.testing.assert_allclose(a.m, b.m, atol=1e-6)
        a, b = (hf.hessian(problem(one), at="point", **options, **POINT) for one in (mine, theirs))
        np.testing.assert_allclose(a.eigenvalue, b.eigenvalue, atol=1e-6)
    a, b = (hf.fixed_point(problem(one, heads=1, tokens=3), **options) for one in (plain, "softmax"))
    assert abs(float(a.loss) - float(b.loss)) < 1e-8


def test_starts_of_its_blocks():
    run = hf.flow(problem(gate), init_c=-0.5, time=0.1, outputs=1, engine="mc", samples=100, progress=False)
    np.testing.assert_array_equal(run.c[0], [-0.5, -0.5])
    run = hf.flow(problem(gate), c=[0.5, 1], time=0.1, outputs=1, engine="mc", samples=100, progress=False)
    np.testing.assert_array_equal(run.c[0], [0.5, 1])
    with pytest.raises(hf.OptionError, match="c = .*must be a list of 2 numbers"):
        hf.loss(problem(gate), c=[1, 2, 3], engine="mc", samples=100, progress=False)


def test_a_sweep_over_tokens(tmp_path):
    ends = [hf.sweep(problem(one), axes={"tokens": [2, 3, 5]}, measure="flow", flow={"time": 1, "outputs": 2}, engine="mc", samples=200,
                     output=tmp_path / f"{i}.nc", progress=False) for i, one in enumerate((plain, "softmax"))]
    np.testing.assert_allclose(ends[0].m_t, ends[1].m_t, atol=1e-6)
    assert ends[0].attrs["of_python"] == "activation plain"
    assert not (tmp_path / "0.nc.tasks").exists()  # kept tasks do not know the function
    both = hf.sweep(problem(plain), axes={"activation": ["plain", "softmax"]}, measure="flow", flow={"time": 1, "outputs": 2}, engine="mc",
                    samples=200, progress=False)
    np.testing.assert_allclose(both.m_t[0], both.m_t[1], atol=1e-6)


def test_a_wrong_derivative_is_refused():
    def right(chi, g, c):
        sigma = logistic(chi, c)
        slope = g * sigma * (1 - sigma)
        return slope, slope.sum(axis=1, keepdims=True)

    def fresh():
        return hf.activation(parameters={"c": "head"}, name="fresh")(logistic)

    assert fresh().derivative(right).differentiated == "function"
    for wrong, where in ((lambda chi, g, c: (1.0001 * right(chi, g, c)[0], right(chi, g, c)[1]), r"chi \(head . token .\) is"),
                         (lambda chi, g, c: (right(chi, g, c)[0], -right(chi, g, c)[1]), r"c, head . is -?[\d.]+")):
        with pytest.raises(hf.Error, match="differences give"):
            fresh().derivative(wrong)
    with pytest.raises(hf.Error, match="do not sum over samples"):
        fresh().derivative(lambda chi, g, c: (right(chi, g, c)[0], right(chi, g, c)[1].sum()))
    with pytest.raises(hf.Error, match="must return 2 arrays"):
        fresh().derivative(lambda chi, g, c: right(chi, g, c)[0])


def test_what_is_no_activation():
    for wrong, message in ((lambda chi: chi[0], "must return numbers of the shape of chi"),
                           (lambda chi: np.exp(chi) / np.exp(chi).sum(), "one by one"),
                           (lambda chi: np.cumsum(chi, axis=1), "all tokens alike"),
                           (lambda chi: chi * np.nan, "not finite")):
        with pytest.raises(hf.Error, match=message):
            hf.activation(wrong)
    with pytest.raises(hf.Error, match="is an activation of headflow"):
        hf.activation(name="softmax")(lambda chi: chi)
    with pytest.raises(hf.Error, match="give a name other than"):
        hf.activation(parameters={"m": "head"})(lambda chi, m: chi)
    with pytest.raises(hf.OptionError):
        hf.loss(problem(plain), engine="factorised", progress=False)


def test_what_a_function_raises_comes_out():
    calls = {"left": 1000}

    @hf.activation
    def tired(chi):
        calls["left"] -= 1
        if calls["left"] < 0:
            raise ZeroDivisionError("tired")
        return plain(chi)

    mine = problem(tired)
    for compute in (lambda: hf.loss(mine, engine="mc", samples=5000, threads=2, progress=False),
                    lambda: hf.Loss(mine, engine="qmc", samples=5000)(),
                    lambda: hf.flow(mine, time=1, integrator="implicit", engine="mc", samples=100, progress=False),
                    lambda: hf.sgd(mine, dim=100, batch=100, steps=10, progress=False),
                    lambda: hf.sweep(mine, axes={"tokens": [2, 3]}, measure="end", engine="mc", samples=100, progress=False)):
        calls["left"] = 0
        with pytest.raises(ZeroDivisionError, match="tired"):
            compute()
    calls["left"] = 10**9
    assert hf.loss(mine, engine="mc", samples=100, progress=False).loss > 0

    @hf.activation
    def overflows(chi):
        with np.errstate(all="ignore"):
            e = np.exp(100 * chi)
            return e / e.sum(axis=1, keepdims=True)

    with pytest.raises(hf.Error, match=r"the activation overflows .*nan.*head 1"):
        hf.loss(problem(overflows, heads=1), engine="mc", samples=1000, m=[[30.0, 0]], progress=False)


def test_a_sampler_against_the_same_points():
    points = np.array([[1.0, 0.5], [1.0, -0.5], [2.0, 0.0], [0.5, 0.5]])
    law = hf.prior(lambda u: points[(4 * u).astype(int)], name="four")
    a, b = (hf.loss(hf.Problem("softmax", prior, tokens=4), engine="mc", samples=4000, seed=6, progress=False, **POINT)
            for prior in (law, hf.discrete(points)))
    assert abs(a.loss - b.loss) < 1e-12  # the same samples
    np.testing.assert_allclose(a.grad.m, b.grad.m, atol=1e-12)
    a, b = (hf.loss(hf.Problem("softmax", prior, tokens=4, p=[[1, 0.3], [0.3, 1]]), engine="qmc", samples=2**14, seed=6,
                    progress=False, **POINT) for prior in (law, hf.discrete(points)))
    assert abs(a.loss - b.loss) < 5 * np.hypot(a.loss_error, b.loss_error)
    assert a.dataset.attrs["of_python"] == "prior four"
    for method in ("reduced", "direct"):
        a, b = (hf.sgd(hf.Problem(plain, prior, tokens=4), method=method, dim=50, batch=100, lr=1.0, steps=10, progress=False)
                for prior in (law, hf.discrete(points)))
        np.testing.assert_allclose(a.m, b.m, atol=1e-10)


def test_wrong_samplers():
    for wrong, options, message in ((lambda u: u, {}, "must return numbers of the shape"),
                                    (lambda u: np.log(u - 0.5)[:, None], {}, "not finite"),
                                    (lambda u: np.sort(u)[::-1, None], {}, "each uniform number alone"),
                                    (lambda u: u[:, None], {"largest": [0.5]}, "above largest"),
                                    (lambda u: u[:, None], {"mean": [0.5, 1]}, "gives 1 numbers")):
        with pytest.raises(hf.Error, match=message), np.errstate(all="ignore"):
            hf.prior(wrong, **options)
    with pytest.raises(hf.Error, match="not the mean"):
        hf.Problem(prior=hf.prior(lambda u: u[:, None], mean=[0.7], name="off"))


def test_problems_with_functions_are_values():
    mine = problem(plain)
    assert mine == problem(plain) and mine != problem("softmax") and mine.replace(heads=3).heads == 3
    assert "plain" in repr(mine) and mine.activation == "plain"
    other = hf.activation(name="plain")(lambda chi: plain(chi))
    assert mine != problem(other)


def test_jax():
    jax = pytest.importorskip("jax")

    def with_jax(chi, c):
        return jax.nn.sigmoid(chi + c)

    mine = hf.activation(parameters={"c": "head"})(with_jax)
    a, b = (hf.loss(problem(one), engine="mc", samples=1000, c=[0.1, -0.4], progress=False, **POINT) for one in (mine, gate))
    assert mine.differentiated == "jax"
    np.testing.assert_allclose(a.grad.c, b.grad.c, atol=1e-9)
