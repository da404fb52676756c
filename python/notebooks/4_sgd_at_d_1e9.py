# %% [markdown]
# # SGD at $D = 10^9$
#
# A head has $D$ numbers; a batch of a thousand sequences of four tokens at $D = 10^9$ has $4 \cdot 10^{12}$. headflow draws none of
# them: the overlaps of the heads after a step depend on a few random numbers a sample, whose law is known exactly. A run at
# $D = 10^9$ costs what one at $D = 10^4$ costs.

# %%
import time

import headflow as hf

problem = hf.Problem(activation="softmax", prior=hf.flipping(2, 2), tokens=4, heads=2)
for dim in (10**4, 10**6, 10**9):
    begin = time.perf_counter()
    hf.sgd(problem, dim=dim, batch=1000, steps=500, progress=False)
    print(f"D = {dim:.0e}: {time.perf_counter() - begin:.2f} s")

# %% [markdown]
# Steps are long at a given batch if $D$ is large: time is $\tau = $ steps $\times$ rate. What changes with $D$ is the start, $m \sim
# D^{-1/2}$, and with it how long the heads take to part: longer by $\log D / (2 |\lambda|)$.

# %%
import matplotlib.pyplot as plt
import numpy as np

figure, axes = plt.subplots(figsize=(6, 3))
for dim in (10**3, 10**5, 10**7):
    run = hf.flow(problem, init="noise", init_noise=dim**-0.5, time=400, outputs=400, seed=1)
    axes.plot(run.time, np.abs(run.m.sel(feature=2)).max("attention_head"), label=f"noise of D = {dim:.0e}")
axes.set(xlabel="training time", ylabel="largest |m_h2|")
axes.legend();

# %% [markdown]
# Is it really the same law? `method="direct"` draws every token in $D$ dimensions. At $D = 200$ the two methods are compared over
# many runs: means of the overlaps agree within their standard errors.

# %%
reduced, direct = (hf.sgd(problem, dim=200, batch=100, steps=60, lr=0.1, runs=60, method=method, progress=False)
                   for method in ("reduced", "direct"))
last = [np.abs(runs.q.isel(time=-1, attention_head=0, other_head=0)) for runs in (reduced, direct)]
for name, q in zip(("reduced", "direct"), last):
    print(f"{name}: q_11 = {float(q.mean()):.4f} +- {float(q.std() / np.sqrt(q.size)):.4f}")
