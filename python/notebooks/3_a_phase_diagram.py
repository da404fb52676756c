# %% [markdown]
# # A phase diagram
#
# Which heads does training leave, over the strengths of the two parts of the signal? A sweep measures where training ends at every
# point of a grid, side by side on all cores. Finished tasks are kept beside the output: a sweep that was stopped goes on.

# %%
import tempfile
from pathlib import Path

import numpy as np

import headflow as hf

problem = hf.Problem(activation="softmax", prior=hf.flipping(2, 2), tokens=4, heads=2)
output = Path(tempfile.mkdtemp()) / "phases.nc"
axes = {"problem.nu[1]": np.geomspace(0.25, 4, 7), "problem.nu[2]": np.geomspace(0.25, 4, 7)}
few = {**axes, "problem.nu[2]": axes["problem.nu[2]"][:3]}
ends = hf.sweep(problem, axes=few, measure=["end", "similarity"], tolerance=1e-5, output=output)
len(list(Path(f"{output}.tasks").glob("*.task")))

# %% [markdown]
# Those were the first three columns. The whole grid computes what is new and takes the rest from there.

# %%
ends = hf.sweep(problem, axes=axes, measure=["end", "similarity"], tolerance=1e-5, output=output)
ends.sizes

# %% [markdown]
# The cosine between the two heads: 1 where they are equal, less where they have parted. Where the constant part is strong they
# stay together, however strong the flipping one is.

# %%
cosine = ends.similarity.isel(attention_head=0, other_head=1)
cosine.plot(x="nu1", y="nu2", xscale="log", yscale="log", cmap="viridis", vmin=-1, vmax=1, figsize=(5, 4));

# %% [markdown]
# How far from the best there is? The Bayes risk over the same grid, and the excess of what training reaches.

# %%
bayes = hf.sweep(problem, axes=axes, measure="bayes", tolerance=1e-5)
excess = ends.loss - bayes.bayes
excess.plot(x="nu1", y="nu2", xscale="log", yscale="log", cmap="magma", figsize=(5, 4));

# %%
print(f"largest excess {float(excess.max()):.3f}, errors of the losses at most {float(ends.loss_error.max()):.0e}")
