"""Wrong input is a Python exception with a clear message, never a crash."""

import numpy as np
import pytest

import headflow as hf


@pytest.mark.parametrize("options, says", [
    (dict(tme=3), "did you mean time"),
    (dict(time="long"), "time = "),
    (dict(time=float("nan")), "time = "),
    (dict(time=None, outputs=2.5), "outputs = 2.5: must be an integer"),
    (dict(m=[[1.0, 2.0]]), "m = "),
    (dict(m=[[1.0, 2.0], [3.0]]), "m = "),
    (dict(m=np.full((2, 2), np.nan)), "m = "),
    (dict(m=np.zeros((2, 2, 2))), "m = "),
    (dict(m=np.zeros((2, 2), dtype=complex)), "m = "),
    (dict(m="one"), "m = "),
    (dict(b=[0.0, 0.0]), ""),
    (dict(seed=2**70), "seed = "),
    (dict(spacing="logarithmic"), "must be one of"),
    (dict(heads=3), "problem.replace(heads=...)"),
    (dict(tolerance=0), "tolerance = 0"),
    (dict(engine=7), "engine = 7"),
    (dict(flow={"tme": 3}), "flow.tme"),
    (dict(rtol=[1, 2]), "rtol = "),
    (dict(time=10, **{"flow.time": 11}), "given twice"),
    (dict(rtol=1e-9, flow={"rtol": 1e-3}), "given twice"),
    (dict(m=np.ma.masked_array(np.eye(2), mask=np.eye(2))), "masked"),
    (dict(outputs=10**30), "64 bits"),
])
def test_option_errors_name_the_keyword(two_heads, options, says):
    if options == dict(b=[0.0, 0.0]):
        pytest.skip("a block that the activation does not have is a remark, as in the program")
    with pytest.raises(hf.OptionError) as raised:
        hf.flow(two_heads, progress=False, **options)
    assert says in str(raised.value)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("make, says", [
    (lambda: hf.Problem(activation="soft-max", prior=hf.flipping(2)), "did you mean"),
    (lambda: hf.Problem(prior=hf.flipping(2), heads=0), "heads = 0"),
    (lambda: hf.Problem(prior=hf.flipping(2), tokens=2.5), "tokens = 2.5"),
    (lambda: hf.Problem(prior=hf.flipping(2), hedas=3), "did you mean heads"),
    (lambda: hf.Problem(prior="flipping"), "nu"),
    (lambda: hf.Problem(prior=hf.gaussian(covariance=[[1, 2], [2, 1]])), "covariance"),
    (lambda: hf.Problem(prior=hf.discrete([[1, 2], [np.inf, 1]])), "points"),
])
def test_problems_are_checked(make, says):
    with pytest.raises(hf.OptionError, match=says.replace("(", "\\(")):
        make()


def test_types():
    with pytest.raises(TypeError, match="headflow.Problem"):
        hf.flow("softmax")
    with pytest.raises(TypeError):
        hf.flipping()
    with pytest.raises(hf.FileError, match="no such file"):
        hf.open("/nowhere.nc")
    with pytest.raises(hf.OptionError, match="no statement|is no|V.9"):
        hf.verify(only="V.9", progress=False)


def test_arrays_of_any_layout(two_heads):
    m = np.arange(8.0).reshape(2, 4)[:, ::2]  # neither contiguous nor owning
    expected = hf.loss(two_heads, m=m.tolist(), progress=False)
    for other in (m, np.asfortranarray(m), m.astype(np.float32), m.astype(int)):
        assert hf.loss(two_heads, m=other, progress=False).loss == expected.loss
    assert m.flags.c_contiguous is False


def test_evaluator_checks_its_points(two_heads):
    loss = hf.Loss(two_heads, tolerance=1e-6)
    for bad in (dict(m=[[1.0, 2.0]]), dict(m=[[np.nan, 0], [0, 0]]), dict(R="I"), dict(c=1.0)):
        with pytest.raises(hf.Error):
            loss(**bad)
    with pytest.raises((hf.Error, TypeError)):
        loss.flat(np.zeros(3))


def test_plot_and_animate_can_be_called_however_they_were_imported(two_heads):
    import headflow.animate
    import headflow.plot

    run = hf.flow(two_heads, time=1, outputs=3, progress=False)
    run.headflow.plot()
    assert callable(hf.plot) and callable(hf.animate)
    hf.plot(run)


def test_sweeps_look_at_their_output_first(two_heads, tmp_path):
    for output in ("", tmp_path, "/nowhere/at/all.nc"):
        with pytest.raises(hf.FileError):
            hf.sweep(two_heads, axes={"seed": [1]}, measure="end", output=output, progress=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text, says", [
    ("[sweep]\nmeasure = ['bayes']\nfoo = 2\n", "s.toml:5: unknown key \"foo\""), ("x = 3\n[sweep]\nmeasure = ['bayes']\n", "x"),
    ("[sweep]\nmeasure = ['bayes']\naxis = 3\n", "sweep.axis"),
    ("[sweep]\nmeasure = ['bayes']\n[[sweep.axis]]\nkey = 'run.seed'\nkeys = ['run.seed']\nvalues = [1]\n", "not both"),
    ("[sweep]\nmeasure = ['bayes']\n[[sweep.axis]]\nkey = 'problem.nu[1]'\nlogspace = [0, 1, 3]\n", "positive"),
    ("[sweep]\nmeasure = ['bayes']\n[[sweep.axis]]\nkey = 'run.seed'\nrange = [1]\n", "finite numbers"),
])
def test_files_are_read_strictly(tmp_path, text, says):
    file = tmp_path / "s.toml"
    file.write_text("[problem]\nnu = 2.0\n" + text if not text.startswith("x") else text)
    with pytest.raises(hf.Error, match=says):
        hf.sweep(file, progress=False)
