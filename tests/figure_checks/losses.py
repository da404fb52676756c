"""Fig. 5: losses after training are ordered, and reach or miss the Bayes risk."""

import numpy as np

from .verdicts import numbers

ERRORS = 4  # a false alarm in 3e4 comparisons of Gaussian errors


def mean_and_error(data, activation):
    """Over starts. Errors of the engine may be common to all starts: they are not divided by their number."""
    loss = data.loss.sel(activation=activation)
    error = data.loss_error.sel(activation=activation).mean("seed").values
    return loss.mean("seed").values, np.hypot(loss.std("seed", ddof=1).values / np.sqrt(loss.sizes["seed"]), error)


def parts(load):
    """Prior, axis and data of each panel, and its sizes."""
    for letter in "abc":
        name = f"fig05{letter}"
        data = load(name)
        if data is None:
            continue
        x = "heads" if "heads" in data.loss.dims else "nu"
        problem = load.configuration(name)["problem"]
        for prior in data.prior.values if "prior" in data.dims else [problem["prior"]]:
            yield f"{name} {prior}", prior, x, data.sel(prior=prior) if "prior" in data.dims else data, problem


def ordered(above, below):
    """Excess of the lower one in errors, at its worst."""
    worst = ((below[0] - above[0]) / np.hypot(above[1], below[1])).max()
    return worst < ERRORS, f"the lower one is at most {worst:.2g} errors above"


def check_order(verdicts, label, x, data):
    values = {a: mean_and_error(data, a) for a in data.activation.values}
    bayes = data.bayes.mean(("activation", "seed")).values, data.bayes_error.max(("activation", "seed")).values
    against = f"{ERRORS} errors at each of {data.sizes[x]} values of {x}"
    # One head of Bayes-softmax is one head of softmax: normalised over tokens, its bias without effect.
    several = data[x].values > 1 if x == "heads" else np.full(data.sizes[x], True)
    verdicts.check(label, "softmax >= softmax-1", *ordered(values["softmax"], values["softmax-1"]), against)
    pick = lambda v: (v[0][several], v[1][several])
    verdicts.check(label, "softmax-1 >= Bayes-softmax" + ("" if several.all() else " for H >= 2"),
                   *ordered(pick(values["softmax-1"]), pick(values["b-softmax"])), against)
    verdicts.check(label, "Bayes-softmax >= Bayes risk", *ordered(values["b-softmax"], bayes), against)
    verdicts.control(label, "Bayes-softmax >= softmax", *ordered(pick(values["b-softmax"]), pick(values["softmax"])))
    if not several.all():
        one = [values[a][0][~several][0] for a in ("softmax", "b-softmax")]
        error = np.hypot(*(values[a][1][~several][0] for a in ("softmax", "b-softmax")))
        verdicts.check(label, "one head: Bayes-softmax is softmax", abs(one[1] - one[0]) < ERRORS * error,
                       f"{one[1]:.5f} and {one[0]:.5f}", f"{ERRORS} errors of {error:.2g}")


def check_bayes(verdicts, label, data, points, tolerance=1e-3):
    """Bayes-softmax with a head for each point of the discrete prior is Bayes-optimal."""
    risk = data.bayes.mean(("activation", "seed"))
    off = (data.loss.mean("seed") - risk).where(data.heads >= points, drop=True)
    gap = off.sel(activation="b-softmax").values
    verdicts.check(label, f"Bayes-softmax has the Bayes risk for H >= {points}", np.abs(gap).max() < tolerance,
                   f"excess {numbers(gap)}", f"{tolerance:g}")
    gap = off.sel(activation="softmax-1").values
    verdicts.control(label, "softmax-1 has the Bayes risk", np.abs(gap).max() < tolerance, f"excess {numbers(gap)}")


def check_spread(verdicts, label, x, data, visible=2e-3):
    """Starts of Bayes-softmax end at one loss: the paper calls the spread not visible."""
    loss = data.loss.sel(activation="b-softmax")
    spread = (loss.max("seed") - loss.min("seed")).values
    verdicts.check(label, "starts of Bayes-softmax end at one loss", spread.max() < visible,
                   f"spread {numbers(spread, '.1e')}", f"{visible:g} at each {x}")
    if x == "heads":  # had one start been stopped on the plateau of one head less
        missed = -loss.mean("seed").diff("heads").values.min()
        verdicts.control(label, "the same, one start having stopped with a head less", missed < visible, f"{missed:.2g}")
    index = data["index"].values
    verdicts.check(label, "every end is a minimum", bool(np.all(index == 0)),
                   f"{int(np.sum(index == 0))} of {index.size} with index 0", "all")
    verdicts.control(label, "the same, one index being unknown", bool(np.all(np.append(index, np.nan) == 0)), "not counted as 0")


def drop_per_doubling(data, activation):
    """Relative, over the last two strengths, for a factor of two."""
    loss = data.loss.sel(activation=activation).mean("seed").values
    return 1 - (loss[-1] / loss[-2]) ** (1 / np.log2(data.nu.values[-1] / data.nu.values[-2]))


def check_plateau(verdicts, label, data, tokens, small=0.05, times=3):
    """Softmax stops to improve, above its bound; softmax-1 does not."""
    softmax, other = (drop_per_doubling(data, a) for a in ("softmax", "softmax-1"))
    measured = (f"softmax loses {softmax:.1%}, softmax-1 {other:.1%} for a factor of two at the largest signal, "
                f"nu = {data.nu.values[-1]:g}")
    verdicts.check(label, "softmax levels off with the signal", softmax < small, measured, f"{small:.0%}")
    verdicts.check(label, "softmax-1 goes on", other > times * softmax, measured, f"{times} times that of softmax")
    verdicts.control(label, "the same with the two exchanged", other < small or softmax > times * other, measured)
    bound = tokens / (4 * (tokens - 1))
    lowest = data.loss.sel(activation="softmax").min().item()
    verdicts.check(label, "softmax stays above L / (4 (L - 1))", lowest > bound, f"{lowest:.4f}", f"{bound:.4f}")
    lowest = data.loss.sel(activation="softmax-1").min().item()
    verdicts.control(label, "softmax-1 stays above it", lowest > bound, f"{lowest:.4f}")
    loss = data.loss.sel(activation="softmax").mean("seed").values[-3:]
    limit = loss[2] - (loss[2] - loss[1]) ** 2 / (loss[2] - 2 * loss[1] + loss[0])
    verdicts.finding(label, f"loss of softmax at the last signals: {numbers(loss, '.4f')}; as a geometric series it "
                     f"goes to {limit:.3f}")


def run(load, verdicts):
    for label, prior, x, data, problem in parts(load):
        check_order(verdicts, label, x, data)
        check_spread(verdicts, label, x, data)
        if x == "heads" and prior == "flipping" and problem["features"] > 2:
            check_bayes(verdicts, label, data, problem["features"])
        if x == "nu" and prior == "gaussian":
            check_plateau(verdicts, label, data, problem["tokens"])
