"""Fig. 7: spare heads cost little; beyond them, softmax-1 and Bayes-softmax lose more than softmax."""

import numpy as np

LITTLE = 0.1  # the paper does not say what little is
ERRORS = 4
# Measured, and against the paper's words: there more than F heads are at work.
COSTLY = {("flipping", "softmax-1"), ("gaussian", "softmax-1"), ("gaussian", "b-softmax")}


def over_starts(values):
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values))


def run(load, verdicts):
    data = load("fig07")
    if data is None:
        return
    problem = load.configuration("fig07")["problem"]
    spare, last = problem["heads"] - problem["features"], problem["heads"] - 1
    for prior in data.prior.values:
        slopes = {}
        for activation in data.activation.values:
            label = f"fig07 {prior} {activation}"
            loss = data.pruned_loss.sel(prior=prior, activation=activation).transpose("seed", "removed").values
            rise, error = over_starts(loss[:, spare] / loss[:, 0] - 1)
            slopes[activation] = over_starts((loss[:, last] - loss[:, spare]) / (last - spare))
            measured = f"the loss rises by {rise:.1%} +- {error:.1%}, from {loss[:, 0].mean():.4f} to {loss[:, spare].mean():.4f}"
            if (prior, activation) in COSTLY:
                verdicts.check(label, f"{spare} heads cost MORE than little, a finding", rise - ERRORS * error > LITTLE, measured,
                               f"{LITTLE:.0%} by {ERRORS} errors")
            else:
                verdicts.check(label, f"{spare} heads cost little", rise < LITTLE, measured, f"{LITTLE:.0%}")
            rise, error = over_starts(loss[:, spare + 1] / loss[:, 0] - 1)
            if activation == "b-softmax":
                verdicts.control(label, f"{spare + 1} heads cost little", rise < LITTLE, f"{rise:.1%} +- {error:.1%}")
        for activation in ("softmax-1", "b-softmax"):
            (high, e1), (low, e2) = slopes[activation], slopes["softmax"]
            steeper = lambda a, b: a - b > ERRORS * np.hypot(e1, e2)
            measured = f"{high:.3f} +- {e1:.3f} against {low:.3f} +- {e2:.3f} a head over the last {last - spare}"
            verdicts.check(f"fig07 {prior}", f"{activation} rises more steeply than softmax", steeper(high, low), measured,
                           f"{ERRORS} errors")
            verdicts.control(f"fig07 {prior}", f"softmax more steeply than {activation}", steeper(low, high), measured)
