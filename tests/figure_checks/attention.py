"""Fig. 6: attention that goes to irrelevant tokens: most with softmax, less with softmax-1, least with Bayes-softmax."""

import numpy as np

from .verdicts import numbers

FACTOR = 1.2  # by which the mean must differ


def astray(data):
    """Attention on irrelevant tokens, mean over heads, by activation and sequence."""
    maps = data.attention.transpose("activation", "sequence", ..., "token").values
    relevant = data.relevant.transpose("activation", "sequence").values.astype(int) - 1
    others = np.ones(maps.shape[:2] + maps.shape[3:], bool)
    np.put_along_axis(others, relevant[..., None], False, axis=-1)
    return (maps.mean(axis=2) * others).sum(axis=-1)


def run(load, verdicts):
    data = load("fig06")
    if data is None:
        return
    off = dict(zip(data.activation.values, astray(data)))
    sums = data.attention.sel(activation="softmax").sum("token").values
    verdicts.check("fig06", "every head of softmax spends all of its attention", np.abs(sums - 1).max() < 1e-9,
                   f"sums of rows within {np.abs(sums - 1).max():.1e} of 1", "1e-9")
    sums = data.attention.sel(activation="softmax-1").sum("token").values
    verdicts.control("fig06", "every head of softmax-1 does", np.abs(sums - 1).max() < 1e-9, f"{sums.min():.3g} to {sums.max():.3g}")
    less = lambda a, b: off[a].mean() > FACTOR * off[b].mean() and np.all(off[a] > off[b])
    for a, b in (("softmax", "softmax-1"), ("softmax-1", "b-softmax")):
        measured = f"on irrelevant tokens {off[a].mean():.3f} and {off[b].mean():.3f}; by sequence {numbers(off[a])} and {numbers(off[b])}"
        verdicts.check("fig06", f"{b} strays less than {a}, in each of {len(off[a])} sequences", less(a, b), measured,
                       f"a factor {FACTOR:g} of the means (by chance, signs alike in all: {0.5 ** (len(off[a]) - 1):.2g})")
        verdicts.control("fig06", f"{a} less than {b}", less(b, a), measured)
