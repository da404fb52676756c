# %% [markdown]
# # The model in ten minutes
#
# A sequence has $L$ tokens of $D$ Gaussian numbers. One of them, nobody says which, carries a signal: $\sum_f \theta_f k^*_f$ is
# added to it, with $F$ hidden directions $k^*_f$ and random weights $\theta$. Attention with $H$ heads $k_h$ is to find the token.
# For large $D$ nothing of the heads matters but a few numbers: their overlaps with the directions, $m_{hf} = k_h \cdot k^*_f$,
# and with each other. The loss is a function of these, and training a flow of them. headflow computes both.

# %%
import headflow as hf

problem = hf.Problem(activation="softmax", prior=hf.flipping(2, 2), tokens=4, heads=2)
problem

# %% [markdown]
# The *flipping spike*: $\theta = (\sqrt{\nu_1}, \pm\sqrt{\nu_2})$. One part of the signal is always the same, the other one flips its
# sign. A head can learn the first part alone; for the second part it takes two heads, one a sign.
#
# ## How heads part

# %%
run = hf.flow(problem, time=1e3, spacing="log", seed=1)
run.headflow.plot()

# %% [markdown]
# Both heads learn the constant direction together (until $\tau \approx 30$), rest there, and part along the flipping one at
# $\tau \approx 100$. `run` is an `xarray.Dataset`, with the error of each loss.

# %%
print(f"loss {float(run.loss[-1]):.6f} +- {float(run.loss_error[-1]):.0e}")
run.m.sel(feature=2).plot.line(x="time", xscale="log", figsize=(6, 3));

# %% [markdown]
# ## Why
#
# Where the heads are equal the loss has a negative curvature along the direction in which they differ. `hessian` takes it where the
# flow of equal heads ends.

# %%
saddle = hf.hessian(problem, at="saddle")
print("eigenvalues at the saddle:", saddle.eigenvalues.values.round(4))

# %% [markdown]
# The rate at which they part is that eigenvalue: with a start of size $10^{-2}$ it takes $\log(100) / |\lambda|$.
#
# ## When
#
# `phases` measures the time $\tau_s$ at which heads part. It grows where the flipping part is weak.

# %%
import numpy as np

times = hf.sweep(problem, axes={"nu[2]": np.geomspace(0.5, 4, 6)}, measure="phases", flow=dict(time=2e3, outputs=400))
times.tau_s.isel(direction=0).plot(x="nu2", marker="o", xscale="log", yscale="log", figsize=(5, 3));

# %% [markdown]
# ## How good is it?
#
# The Bayes risk is the least loss of any attention, and `compare` shows that SGD at $D = 1000$ follows the flow.

# %%
print("at the end:", float(run.loss[-1]), " Bayes:", float(hf.bayes(problem).risk))
both = hf.compare(problem, dim=1000, batch=1000, tau=40, lr=0.05, seed=3)
both.headflow.plot()
