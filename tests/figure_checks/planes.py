"""Figs. 2, 12-15: two heads or more with the flipping spike, feature 1 constant and feature 2 flipping."""

import itertools

import numpy as np

from .verdicts import numbers

LITTLE = 0.1
EXACT = 0.01  # of m = theta^h: training stops at tau = 6000


def runs_of(load, name):
    """Label, strengths, times, overlaps (time, head, feature), tau_u and tau_s of the flipping direction of each run."""
    data = load(name)
    if data is None:
        return
    problem = load.configuration(name)["problem"]
    axes = [axis for axis in ("nu1", "nu2", "heads") if axis in data.m_t.dims]
    for place in itertools.product(*(range(data.sizes[axis]) for axis in axes)):
        one = data.isel(dict(zip(axes, place)))
        at = {axis: float(data[axis].values[i]) for axis, i in zip(axes, place)}
        nu = np.array([at.get(f"nu{f + 1}", np.ravel(problem.get("nu", [np.nan] * 2))[f]) for f in range(2)], float)
        kept = np.isfinite(one.tau.values)
        heads = int(at.get("heads", problem.get("heads", 0)))
        label = f"{name} (" + ", ".join(f"{axis} = {x:g}" for axis, x in at.items()) + ")"
        yield label, at, nu, one.tau.values[kept], one.m_t.values[kept][:, :heads], one.tau_u.item(), one.tau_s.values[0]


def parted_when_aligned(m):
    """How far heads are apart along the flipping direction, over how far they get, when the mean of m_h1 is half of its largest."""
    along, apart = m[..., 0].mean(axis=1), np.ptp(m[..., 1], axis=1)
    return apart[np.argmax(along >= 0.5 * along.max())] / apart.max()


def check_two_phases(load, verdicts, name):
    """First all heads along the constant direction; those that part do so later."""
    found = list(runs_of(load, name))
    if not found:
        return
    parted = [(u, s) for _, _, _, _, _, u, s in found if np.isfinite(s)]
    early = [u < s for u, s in parted]
    shown = "; ".join(f"{u:.3g} < {s:.3g}" for u, s in parted)
    verdicts.check(name, "heads align with the constant direction before they part", parted and all(early),
                   f"tau_u < tau_s in {sum(early)} of {len(parted)} runs that part: {shown}", "all of them")
    verdicts.control(name, "the two times exchanged", parted and not any(early), f"{len(early) - sum(early)} of {len(early)}")
    # Where the flipping direction is the stronger one the phases overlap.
    ratio = [parted_when_aligned(m) for _, _, nu, _, m, _, _ in found if nu[1] <= nu[0]]
    verdicts.check(name, "half-way along it they have hardly parted (nu_2 <= nu_1)", max(ratio) < LITTLE,
                   f"at most {max(ratio):.2g} of the way, {len(ratio)} runs", f"{LITTLE:g}")
    swapped = [parted_when_aligned(m[..., ::-1] * np.sign(m[-1, 0, 1])) for _, _, nu, _, m, _, _ in found if nu[1] <= nu[0]]
    verdicts.control(name, "the directions exchanged", max(swapped) < LITTLE, f"{max(swapped):.2g}")


def check_sides(load, verdicts, name):
    """As many heads on either side of the flipping direction, and the outermost goes further the more heads there are."""
    sizes, ends = [], []
    for label, at, _, _, m, _, _ in runs_of(load, name):
        side = m[-1, :, 1]
        sizes.append(int(at["heads"]))
        ends.append(np.abs(side).max())
        uneven = abs(int((side > 0).sum()) - int((side < 0).sum()))
        verdicts.check(label, "heads are on either side of the flipping direction in equal numbers", uneven <= sizes[-1] % 2,
                       f"m_h2 = {numbers(np.sort(side))}", "a difference of one head if H is odd")
    if not ends:
        return
    grows = lambda x: np.all(np.diff(x) > 0.1)
    verdicts.check(name, "the outermost head goes further the more heads there are", grows(ends),
                   f"largest |m_h2| {numbers(ends)} at H = {' '.join(map(str, sizes))}", "by 0.1 each time")
    verdicts.control(name, "the same in the opposite order", grows(ends[::-1]), numbers(ends[::-1]))


def off_the_points(m, nu):
    """Largest distance of a head from (sqrt(nu_1), +-sqrt(nu_2)), over the length of that; heads take different signs."""
    theta = np.sqrt(nu) * np.array([[1, 1], [1, -1]])
    return min(np.linalg.norm(m - theta[list(order)], axis=1).max() for order in ((0, 1), (1, 0))) / np.linalg.norm(theta[0])


def check_points(load, verdicts):
    """Fig. 14: Bayes-softmax is aligned with the hidden spikes at all strengths; softmax (fig. 12) is not."""
    for name, judge in (("fig14", "check"), ("fig12", "control"), ("fig13", "control")):
        off = [off_the_points(m[-1], nu) for _, _, nu, _, m, _, _ in runs_of(load, name)]
        if not off:
            continue
        measured = f"largest distance of a head from theta^h {max(off):.2%} of its length, smallest {min(off):.2%}, {len(off)} strengths"
        if judge == "check":
            verdicts.check(name, "each head of Bayes-softmax ends at a point theta^h of the prior", max(off) < EXACT, measured, f"{EXACT:.0%}")
        else:
            verdicts.control(name, "its heads end there, too", max(off) < EXACT, measured)


def parted_share(load, name):
    """|m_h2| / sqrt(nu_2), mean over heads, by strengths."""
    return {(at["nu1"], at["nu2"]): np.abs(m[-1, :, 1]).mean() / np.sqrt(nu[1]) for _, at, nu, _, m, _, _ in runs_of(load, name)}


def check_similar(load, verdicts):
    """Appendix C.2 in version 1: softmax-1 "exhibits behavior similar to softmax". Its heads part up to twice as far."""
    softmax, other = (parted_share(load, name) for name in ("fig12", "fig13"))
    if not softmax or not other:
        return
    apart = lambda a, b: max(a[at] / b[at] for at in a) > 1.5
    ratio = [other[at] / softmax[at] for at in softmax]
    measured = (f"|m_h2| / sqrt(nu_2) at (2, 2): {other[2, 2]:.3f} and {softmax[2, 2]:.3f}; ratio {min(ratio):.2f} to {max(ratio):.2f} over "
                f"{len(ratio)} strengths, beyond 1.2 at {sum(r > 1.2 for r in ratio)}")
    verdicts.check("fig13", "softmax-1 is NOT similar to softmax (fig. 12), a finding: its heads part further", apart(other, softmax), measured,
                   "a factor 1.5 somewhere")
    verdicts.control("fig13", "softmax against itself", apart(softmax, softmax), "ratio 1")


def check_average(load, verdicts):
    """C.2: heads of softmax are impacted by the average direction: the stronger it is, the less they part."""
    softmax = parted_share(load, "fig12")
    if not softmax:
        return
    strengths = sorted({at[0] for at in softmax})
    grid = np.array([[softmax[a, b] for b in strengths] for a in strengths])
    falls = lambda x: bool(np.all(np.diff(x, axis=0) < 1e-3))
    verdicts.check("fig12", "the stronger the constant direction, the less heads of softmax part", falls(grid),
                   f"|m_h2| / sqrt(nu_2) over nu_1 at nu_2 = {strengths[-1]:g}: {numbers(grid[:, -1])}", "falls at every nu_2")
    verdicts.control("fig12", "the opposite", falls(grid[::-1]), numbers(grid[::-1, -1]))


def run(load, verdicts):
    for name in ("fig02", "fig12", "fig13", "fig14", "fig15"):
        check_two_phases(load, verdicts, name)
    for name in ("fig02", "fig15"):
        check_sides(load, verdicts, name)
    check_points(load, verdicts)
    check_similar(load, verdicts)
    check_average(load, verdicts)
