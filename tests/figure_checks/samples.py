"""Fig. 8: redrawn samples instead of fixed ones change the overlaps by the Monte-Carlo error alone.

All entries and times of a run are correlated. So a run counts as one number, the mean square of its
differences, and at worst it is a chi-square with one degree of freedom: F quantiles with one degree a run. With the 64
runs of the figure the wrong spread of each control passes with a probability below 0.006 (32 runs: 0.3).
"""

import numpy as np

from .verdicts import f_quantile, t_quantile

LEVEL = 1e-3  # false alarms, for all checks of this figure together


def square(x):
    return float((x**2).mean())


def check_mean(off, spread, level, shift=0.0):
    """Each head and feature: differences in predicted spreads, averaged over times; Student's t over runs."""
    runs = off.shape[1]
    score = (off / spread[:, None] + shift).mean(axis=2)
    t = score.mean(axis=1) / (score.std(axis=1, ddof=1) / np.sqrt(runs))
    limit = t_quantile(runs - 1, level / t.size)
    return np.abs(t).max() < limit, f"largest |t| of {t.size} is {np.abs(t).max():.2f}", f"{limit:.2f}"


def check_scaling(off, samples, power, level):
    """Mean squares at the first and last number of samples."""
    ratio = square(off[0]) / square(off[-1])
    expected = (samples[-1] / samples[0]) ** power
    wide = np.sqrt(f_quantile(off.shape[1], off.shape[1], level / 2))
    ok = expected / wide**2 < ratio < expected * wide**2
    return ok, f"rms ratio {np.sqrt(ratio):.2f}", f"{np.sqrt(expected):.2f} within a factor {wide:.2f}"


def check_prediction(off, fixed, level):
    """Differences of the first half of the runs against the spread of fixed samples in the second half."""
    half = off.shape[0] // 2
    spread = fixed[half:].var(axis=0, ddof=1).mean()
    rest = fixed.shape[0] - half
    ratio = square(off[:half]) / spread
    high, low = f_quantile(half, rest - 1, level / 2), 1 / f_quantile(rest - 1, half, level / 2)
    return low < ratio < high, f"rms over predicted spread {np.sqrt(ratio):.2f}", f"{np.sqrt(low):.2f} to {np.sqrt(high):.2f}"


def run(load, verdicts):
    data = load("fig08")
    if data is None:
        return
    samples = data.samples.values
    m = data.m_t.transpose("sampling", "samples", "seed", "time", "attention_head", "feature")
    fixed, redrawn = (m.sel(sampling=s).values[:, :, 1:] for s in ("fixed", "redrawn"))
    off, spread = redrawn - fixed, fixed.std(axis=1, ddof=1)
    level = LEVEL / (2 + len(samples))

    ok, measured, against = check_mean(off, spread, level)
    verdicts.check("fig08", "redrawn - fixed has mean zero", ok, measured, f"{against}, false-alarm rate {level:.2g}")
    ok, measured, _ = check_mean(off, spread, level, shift=2.0)
    verdicts.control("fig08", "differences shifted by two predicted spreads", ok, measured)

    ok, measured, against = check_scaling(off, samples, 1, level)
    verdicts.check("fig08", f"the difference goes as N^(-1/2), {off.shape[1]} runs", ok, measured,
                   f"{against}, false-alarm rate {level:.2g}")
    ok, measured, against = check_scaling(np.stack([off[0], off[0]]), samples[[0, -1]], 1, level)
    verdicts.control("fig08", "a difference that does not depend on N", ok, f"{measured} against {against}")

    for i, n in enumerate(samples):
        ok, measured, against = check_prediction(off[i], fixed[i], level)
        verdicts.check(f"fig08 N = {n:g}", "the difference has the spread of fixed samples", ok, measured,
                       f"{against}, false-alarm rate {level:.2g}")
        other = fixed[-1 - i] if len(samples) > 1 else fixed[i] * 4
        ok, measured, against = check_prediction(off[i], other, level)
        verdicts.control(f"fig08 N = {n:g}", "the spread of another number of samples", ok, f"{measured} against {against}")
        sizes = [square(off[i]), square(spread[i]), redrawn[i].var(axis=0, ddof=1).mean()]
        verdicts.finding(f"fig08 N = {n:g}", "rms of redrawn - fixed {:.3g}, spread of fixed runs {:.3g}, of redrawn runs "
                         "{:.3g}".format(*np.sqrt(sizes)))
