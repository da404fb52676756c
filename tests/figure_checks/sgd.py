"""Figs. 1, 9, 10: SGD is its own limit but for fluctuations, and gradient flow but for the learning rate.

At gamma = 0.02 and N_b = D the noise of batches moves the norms of heads, and with them m, by an amount of order
gamma: gradient flow is not the centre of SGD. The flow that keeps the noise and the finite steps to first order
in gamma (`first-order`) is what the mean of SGD is held against. How far gradient flow is off is measured, too.

Few runs, and all entries and times of one run are correlated: an F test with honest degrees of freedom
(one and runs - 1) could reject nothing. Instead the sign of each run's whole difference is flipped: if the
noise is symmetric about zero, every choice of signs is equally likely, whatever the correlations. Runs of
the same seed and number (sgd.first_run) have the same random numbers, whatever the activation (their differences
are correlated by up to 0.998), so they are flipped together.
"""

import numpy as np

LEVEL = 3e-4  # of each of three tests: 10^-3 false alarms for all figures together
FLIPS = 20000
LIMIT = "first-order"
TIMES = 6


class Runs:
    """Runs of one problem: times, SGD, gradient flow and the limit at them, m and q, of shape (run, time, entry)."""

    def __init__(self, label, data, dim, number):
        data = data.isel(time=np.isfinite(data.tau.values).all(axis=0))
        flat = lambda x: x.values.reshape(*x.shape[:2], -1)
        self.label, self.dim, self.time = label, dim, data.tau.values[0]
        self.seeds = tuple((int(seed), number) for seed in data.seed.values)
        self.sgd, self.flow = flat(data.sgd_m_t), flat(data.m_t)
        self.has_limit = f"m_t_{LIMIT}" in data
        self.limit = flat(data[f"m_t_{LIMIT}"]) if self.has_limit else None
        diagonal = lambda x: np.diagonal(x.values, axis1=2, axis2=3)
        self.norms, self.flow_norms = diagonal(data.sgd_q_t), diagonal(data.q_t)
        self.limit_norms = diagonal(data[f"q_t_{LIMIT}"]) if self.has_limit else None
        wanted = np.geomspace(self.time[-1] / 100, self.time[-1], TIMES)
        self.at = np.unique(np.abs(self.time[:, None] - wanted).argmin(axis=0))

    def differences(self):
        return (self.sgd - self.limit)[:, self.at]

    def norm_differences(self):
        """Of the sum of the heads' squared norms."""
        return (self.norms - self.limit_norms).sum(axis=-1, keepdims=True)[:, self.at]

    def flow_norm_differences(self):
        return (self.norms - self.flow_norms).sum(axis=-1, keepdims=True)[:, self.at]

    def lags(self, factor=1.0):
        """Differences from the limit at factor * tau along its motion, in d log tau: is SGD early or late?"""
        log = np.log(self.time[1:])
        speed = np.gradient(self.limit[:, 1:], log, axis=1)[:, self.at - 1]
        target = np.log(factor * self.time[self.at])
        moved = np.array([[np.interp(target, log, x) for x in run.T] for run in self.limit[:, 1:]]).transpose(0, 2, 1)
        lag = ((self.sgd[:, self.at] - moved) * speed).sum(axis=-1) / (speed**2).sum(axis=-1)
        return lag[..., None]


def all_runs(load):
    for name in ("fig01", "fig09", "fig10a"):
        data = load(name)
        if data is None:
            continue
        configuration = load.configuration(name)
        dim = configuration["sgd"]["dim"]
        numbers = first_runs(configuration)
        for activation in data.activation.values if "activation" in data.dims else [None]:
            part = data.sel(activation=activation) if activation else data
            yield Runs(f"{name} {activation}" if activation else name, part, dim, numbers[activation])


def first_runs(configuration):
    """sgd.first_run of each activation."""
    out = {None: configuration["sgd"].get("first_run")}  # a key of an axis is not there
    for axis in configuration["sweep"]["axis"]:
        if "problem.activation" in axis["keys"]:
            number = axis["keys"].index("sgd.first_run")
            out |= {value[axis["keys"].index("problem.activation")]: value[number] for value in axis["values"]}
    return out


def alignment(off):
    """Products of runs, scaled so that independent runs have the sum one; the mean over times."""
    products = np.einsum("rte,ste->trs", off, off)
    return (products / np.trace(products, axis1=1, axis2=2)[:, None, None]).mean(axis=0)


def sign_flips(found, differences):
    """Mean alignment of the runs of a problem, and the probability that signs by chance give as much."""
    generator = np.random.default_rng(1)
    signs = {seed: generator.choice([-1.0, 1.0], FLIPS) for seed in sorted({s for runs in found for s in runs.seeds})}
    measured, flipped = 0.0, np.zeros(FLIPS)
    for runs in found:
        m = alignment(differences(runs)) / len(found)
        chosen = np.stack([signs[seed] for seed in runs.seeds], axis=1)
        measured += m.sum()
        flipped += np.einsum("nr,rs,ns->n", chosen, m, chosen)
    chance = (1 + np.count_nonzero(flipped >= measured - 1e-12)) / (1 + FLIPS)
    return chance > LEVEL, (f"alignment of runs {measured:.2f} (1 if independent, {len(found[0].seeds)} if equal), by chance with "
                            f"probability {chance:.2g}")


def choices(found):
    """How many choices of signs differ: one sign in each set of seeds does not matter."""
    sets = {runs.seeds for runs in found}
    return 2.0 ** (len({seed for one in sets for seed in one}) - len(sets)) if sets else 0


def check_nearest(verdicts, runs):
    """Each run belongs to its own flow. Starts differ by D^(-1/2), and that difference grows as heads part."""
    n = len(runs.sgd)
    distance = np.sqrt(((runs.sgd[:, None] - runs.flow[None]) ** 2).mean(axis=(2, 3)))
    own, other = (np.sqrt((distance[mask] ** 2).mean()) for mask in (np.eye(n, dtype=bool), ~np.eye(n, dtype=bool)))
    nearest = lambda shift: sum(distance[r].argmin() == (r + shift) % n for r in range(n))
    verdicts.check(runs.label, "each run of SGD is nearest to its own flow", nearest(0) == n,
                   f"{nearest(0)} of {n}; rms {own:.2g} from its own, {other:.2g} from others", "all runs")
    verdicts.control(runs.label, "SGD against the flow of the next run", nearest(1) == n, f"{nearest(1)} of {n}")


def describe(verdicts, runs):
    off = runs.sgd - runs.flow
    worst = np.unravel_index(np.abs(off).argmax(), off.shape)
    said = (f"SGD - flow of m, {len(off)} runs: rms {np.sqrt((off**2).mean()):.2g}, largest {np.abs(off).max():.2g} at tau = "
            f"{runs.time[worst[1]]:.3g} in run {worst[0] + 1}; D^(-1/2) = {runs.dim**-0.5:.2g}")
    if runs.has_limit:
        tr = {"flow": runs.flow_norm_differences(), "limit of first order": runs.norm_differences()}
        said += "; at tau = " + " ".join(f"{t:.3g}" for t in runs.time[runs.at])
        for name, x in tr.items():
            mean, error = x[..., 0].mean(axis=0), x[..., 0].std(axis=0, ddof=1) / np.sqrt(len(x))
            said += f": mean of tr q - that of the {name} " + " ".join(f"{a:.4f}+-{b:.4f}" for a, b in zip(mean, error))
    verdicts.finding(runs.label, said)


def run(load, verdicts):
    found = list(all_runs(load))
    for runs in found:
        describe(verdicts, runs)
        check_nearest(verdicts, runs)
    names = " ".join(sorted({runs.label.split()[0] for runs in found}))
    if choices(found) < 4 / LEVEL or not all(runs.has_limit for runs in found):
        verdicts.finding(names or "fig01 fig09 fig10", "too few independent runs (or none of their limit) to test the mean of SGD - limit: "
                         f"{choices(found):g} choices of signs, {4 / LEVEL:g} are needed (six seeds, others in each figure, would do)")
        return
    against = f"{LEVEL:g}, the false-alarm rate"
    shifted = lambda runs: runs.differences() + runs.dim**-0.5
    verdicts.check(names, "SGD - limit of first order in gamma has mean zero, m", *sign_flips(found, Runs.differences), against)
    verdicts.control(names, "SGD shifted by D^(-1/2)", *sign_flips(found, shifted))
    verdicts.check(names, "and tr q", *sign_flips(found, Runs.norm_differences), against)
    verdicts.control(names, "tr q of gradient flow instead, which lacks the noise of batches", *sign_flips(found, Runs.flow_norm_differences))
    verdicts.check(names, "SGD is neither early nor late", *sign_flips(found, Runs.lags), against)
    verdicts.control(names, "SGD against its limit at 1.1 tau", *sign_flips(found, lambda runs: runs.lags(1.1)))
