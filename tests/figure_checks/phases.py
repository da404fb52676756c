"""Figs. 3, 4, 16-20: features are learnt in the order of their variances; which heads end where."""

import itertools

import numpy as np


def runs_of(load, name):
    """Label, variances, tau_s (direction), signs (head, direction) and last overlaps of each run of a file."""
    data = load(name)
    if data is None:
        return
    configuration = load.configuration(name)
    axes = configuration["sweep"]["axis"]
    shape = [len(axis["values"]) for axis in axes]
    for place in itertools.product(*map(range, shape)):
        problem = dict(configuration["problem"])
        for axis, i in zip(axes, place):
            value = axis["values"][i]
            for key, x in zip(axis["keys"], value if len(axis["keys"]) > 1 else [value]):
                problem[key.split(".")[1]] = x
        one = data.isel({axis["name"]: i for axis, i in zip(axes, place)})
        label = ", ".join(str(data[axis["name"]].values[i]) for axis, i in zip(axes, place))
        m = one.m_t.values[np.isfinite(one.tau.values)][-1]
        variances = np.linspace(*problem["nu"], problem["features"])
        yield f"{name} ({label})", problem, variances, one.tau_s.values, one.signs.values, m[: problem["heads"]]


def in_order(tau_s):
    """Learnt ones increase, and none is learnt after one that is not."""
    learnt = np.isfinite(tau_s)
    return bool(np.all(np.diff(tau_s[learnt]) > 0)) and not np.any(learnt[1:] & ~learnt[:-1])


def check_order(load, verdicts):
    for name in ("fig03", "fig04", "fig16", "fig17", "fig18", "fig19", "fig20"):
        times = [(label, tau_s) for label, _, variances, tau_s, _, _ in runs_of(load, name) if len(set(variances)) > 1]
        if not times:
            continue
        good = sum(in_order(tau_s) for _, tau_s in times)
        shown = "; ".join(" < ".join(f"{t:.0f}" if np.isfinite(t) else "never" for t in tau_s) for _, tau_s in times)
        verdicts.check(name, "features are learnt in the order of their variances", good == len(times),
                       f"{good} of {len(times)} runs, tau_s {shown}", "all runs with different variances")
        verdicts.control(name, "the same, the weakest first", all(in_order(tau_s[::-1]) for _, tau_s in times),
                         f"{sum(in_order(tau_s[::-1]) for _, tau_s in times)} of {len(times)} runs")


EQUAL, UNEQUAL = 1.3, 2.0  # ratios of tau_s


def check_equal(load, verdicts):
    """Figs. 3 right and 16 top: features of equal strength are learnt at the same time. From noise of 0.01 the later may lag a little."""
    for name in ("fig03", "fig16"):
        ratios = {True: {}, False: {}}
        for label, _, variances, tau_s, _, _ in runs_of(load, name):
            ratios[len(set(variances)) == 1][label] = np.max(tau_s) / np.min(tau_s)  # NaN if one is never learnt
        if not ratios[True]:
            continue
        equal, unequal = (np.array(list(ratios[same].values())) for same in (True, False))
        shown = lambda values: " ".join("never" if np.isnan(x) else f"{x:.2f}" for x in values)
        verdicts.check(name, "features of equal strength are learnt at the same time", np.all(equal < EQUAL),
                       f"later over earlier tau_s {shown(equal)}", f"{EQUAL:g}")
        verdicts.control(name, "features of different strengths are", np.any(unequal < UNEQUAL), shown(unequal))


def all_patterns(signs):
    return np.all(signs != 0) and len({tuple(s) for s in signs}) == len(signs) == 2 ** signs.shape[1]


def check_patterns(load, verdicts):
    generator = np.random.default_rng(1)
    for name in ("fig19", "fig20"):
        signs = [s for _, problem, _, _, s, _ in runs_of(load, name) if problem["heads"] == 2 ** problem["features"]]
        if not signs:
            continue
        count = sum(map(all_patterns, signs))
        verdicts.check(name, "softmax ends with a head on each sign pattern", 2 * count > len(signs),
                       f"{count} of {len(signs)} runs", "most runs (by chance: 0.24 % of runs with signs by coin, 12 % with even splits)")
        coins = sum(all_patterns(generator.choice([-1, 1], s.shape)) for s in signs)
        verdicts.control(name, "signs by coin", 2 * coins > len(signs), f"{coins} of {len(signs)} runs")


def opposite_pairs(m, close=0.95, long=0.5):
    """Disjoint pairs of heads that point in opposite directions, longest first, and heads too short to count."""
    size = np.linalg.norm(m, axis=1)
    active = [h for h in np.argsort(-size) if size[h] > long * size.max()]
    unit = m / size[:, None]
    pairs, free = [], list(active)
    while free:
        h = free.pop(0)
        partner = min(free, key=lambda k: unit[h] @ unit[k], default=None)
        if partner is not None and unit[h] @ unit[partner] < -close:
            free.remove(partner)
            pairs.append((h, partner))
    return pairs, active, unit


def along(direction, unit, pairs, close=0.95):
    return sum(min(abs(unit[h, direction]), abs(unit[k, direction])) > close for h, k in pairs)


def in_pairs(m):
    """A pair of opposite heads along every direction."""
    pairs, _, unit = opposite_pairs(m)
    return all(along(f, unit, pairs) >= 1 for f in range(m.shape[1]))


def check_pairs(load, verdicts):
    for name in ("fig18", "fig04"):
        for label, problem, variances, tau_s, _, m in runs_of(load, name):
            if problem["activation"] != "b-softmax":
                continue
            pairs, active, unit = opposite_pairs(m)
            counts = [along(f, unit, pairs) for f in range(m.shape[1])]
            measured = (f"{len(pairs)} opposite pairs among {len(active)} long heads of {len(m)}; along the hidden directions "
                        + " ".join(map(str, counts)))
            if len(set(variances)) == 1:
                verdicts.finding(label, measured + " (no direction is preferred)")
                continue
            if len(m) > 2 * m.shape[1] + 1:  # more than pairs and one head that is left
                verdicts.check(label, "Bayes-softmax with so many heads does NOT end in pairs along the directions, a finding",
                               not in_pairs(m), measured, "one direction without a pair")
                made = np.resize(np.concatenate([np.eye(m.shape[1]), -np.eye(m.shape[1])]), m.shape)
                verdicts.control(label, "heads made up in pairs along all of them", not in_pairs(made), f"{len(made)} heads")
                continue
            learnt = np.isfinite(tau_s)
            verdicts.check(label, "Bayes-softmax has a pair of opposite heads along each direction that is learnt",
                           all(c >= 1 for c, l in zip(counts, learnt) if l), measured, f"{learnt.sum()} directions")
            turned = m @ rotation(m.shape[1])
            pairs, _, unit = opposite_pairs(turned)
            counts = [along(f, unit, pairs) for f in range(m.shape[1])]
            verdicts.control(label, "heads turned by 45 degrees", all(c >= 1 for c, l in zip(counts, learnt) if l),
                             " ".join(map(str, counts)))


def rotation(size):
    """45 degrees in the plane of the first two directions."""
    turn = np.eye(size)
    turn[:2, :2] = np.array([[1, 1], [-1, 1]]) / np.sqrt(2)
    return turn


def run(load, verdicts):
    check_order(load, verdicts)
    check_equal(load, verdicts)
    check_patterns(load, verdicts)
    check_pairs(load, verdicts)
