"""Fig. 11: heads are more alike with a stronger constant and less with a stronger flipping direction."""

import numpy as np

STRONG = 2.0
TOLERANCE = 1e-3  # ends of training are known better: gradients below 1e-5


def largest_fall(cosine, axis):
    """By how much neighbours along a grid line go down, at most, and how many do."""
    falls = -np.diff(cosine, axis=axis)
    return max(falls.max(), 0), int((falls > TOLERANCE).sum()), falls.size


def run(load, verdicts):
    data = load("fig11")
    if data is None:
        return
    cosine = data.similarity.isel(attention_head=0, other_head=1).transpose("nu1", "nu2").values
    worst, wrong, pairs = largest_fall(cosine, 0)
    verdicts.check("fig11", "similarity rises with nu_1", worst <= TOLERANCE,
                   f"{wrong} of {pairs} neighbours the other way, by at most {worst:.4f}", f"{TOLERANCE:g}")
    worst, _, _ = largest_fall(cosine.T, 0)
    verdicts.control("fig11", "similarity rises with nu_1, axes exchanged", worst <= TOLERANCE, f"by {worst:.4f}")
    # Between neighbours it may rise where nu_1 is large, by little: that is measured, and told below.
    weak = data.nu1.values < STRONG
    worst, wrong, pairs = largest_fall(-cosine[weak], 1)
    verdicts.check("fig11", f"similarity falls with nu_2 for nu_1 < {STRONG:g}", worst <= TOLERANCE,
                   f"{wrong} of {pairs} neighbours the other way, by at most {worst:.4f}", f"{TOLERANCE:g}")
    for name, values, judge in (("falls", cosine, verdicts.check), ("falls, axes exchanged", cosine.T, verdicts.control)):
        fall = (values[:, 0] - values[:, -1]).min()
        measured = f"from the weakest to the strongest by {fall:.4f} or more"
        against = (f"{TOLERANCE:g}",) if judge == verdicts.check else ()
        judge("fig11", f"similarity {name} with nu_2 in all at every nu_1", fall > TOLERANCE, measured, *against)
    for nu1, row in zip(data.nu1.values, cosine):
        if row.argmin() < len(row) - 1:
            verdicts.finding("fig11", f"nu_1 = {nu1:.3g}: lowest similarity {row.min():.4f} at nu_2 = "
                             f"{data.nu2.values[row.argmin()]:.3g}, {row[-1]:.4f} at the largest nu_2")
