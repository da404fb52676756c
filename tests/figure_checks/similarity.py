"""Fig. 11: heads are more alike with a stronger constant and less with a stronger flipping direction."""

import numpy as np

TOLERANCE = 1e-3  # ends of training are known better: gradients below 1e-5


def largest_fall(cosine, axis):
    """By how much neighbours along a grid line go down, at most, and how many do."""
    falls = -np.diff(cosine, axis=axis)
    return max(falls.max(), 0), int((falls > TOLERANCE).sum()), falls.size


def run(load, verdicts):
    data = load("fig11")
    if data is None:
        return
    cosine = data.similarity.isel(head=0, head2=1).transpose("nu1", "nu2").values
    for statement, values, axis in (("rises with nu_1", cosine, 0), ("falls with nu_2", -cosine, 1)):
        worst, wrong, pairs = largest_fall(values, axis)
        verdicts.check("fig11", f"similarity {statement}", worst <= TOLERANCE,
                       f"{wrong} of {pairs} neighbours the other way, by at most {worst:.4f}", f"{TOLERANCE:g}")
        worst, wrong, pairs = largest_fall(values.T, axis)
        verdicts.control("fig11", f"similarity {statement}, axes exchanged", worst <= TOLERANCE, f"by {worst:.4f}")
    for nu1, row in zip(data.nu1.values, cosine):
        if row.argmin() < len(row) - 1:
            verdicts.finding("fig11", f"nu_1 = {nu1:.3g}: lowest similarity {row.min():.4f} at nu_2 = "
                             f"{data.nu2.values[row.argmin()]:.3g}, {row[-1]:.4f} at the largest nu_2")
