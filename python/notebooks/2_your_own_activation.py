# %% [markdown]
# # Your own activation
#
# How attention is normalised decides what heads can learn. Here is a gate of our own, five lines of numpy: each head may open for
# as many tokens as it likes, $\sigma = v\,\mathrm{sigmoid}(\chi + b)$, and a scale $v$ for all. It is to beat softmax-1.

# %%
import numpy as np

import headflow as hf


@hf.activation(parameters={"b": "head", "v": "number"})
def gate(chi, b, v):
    return v / (1 + np.exp(-chi - b))  # arrays (head, token, sample); b (head, 1, 1)


# %% [markdown]
# Without a derivative it is taken by differences (or by JAX where that is installed), which is slow. With one the loss takes a few
# times as long as with a built-in activation. A wrong one is refused, with the number that differs.

# %%
@gate.derivative
def gate_derivative(chi, g, b, v):
    open_ = 1 / (1 + np.exp(-chi - b))
    slope = g * v * open_ * (1 - open_)
    return slope, slope.sum(axis=1, keepdims=True), (g * open_).sum(axis=(0, 1), keepdims=True)


problem = hf.Problem(activation=gate, prior=hf.flipping(3, 3), tokens=5, heads=2)
point = dict(m=[[1.0, 0.5], [1.0, -0.5]], b=[-1.6, -1.6], v=1.0)
ours = hf.loss(problem, engine="mc", samples=20_000, **point)
ours

# %% [markdown]
# This gate is among the built-in ones, as `sigmoid`: the same samples give the same number, up to rounding.

# %%
built_in = hf.loss(hf.Problem("sigmoid", hf.flipping(3, 3), tokens=5, heads=2), engine="mc", samples=20_000, **point)
print(f"{ours.loss:.12f}, ours\n{built_in.loss:.12f}, built in")

# %% [markdown]
# Training, on fixed samples. Everything works that works with samples: `flow`, `sgd`, `hessian`, `fixed_point`, `sweep`.

# %%
run = hf.flow(problem, engine="mc", samples=20_000, time=2000, spacing="log", outputs=60, rtol=1e-3, atol=1e-5, seed=1)
run.m.sel(feature=2).plot.line(x="time", xscale="log", figsize=(5, 3));

# %% [markdown]
# Against the others, trained to their ends without samples, and the Bayes limit: how much of the way from softmax does each go?

# %%
ends = {name: float(hf.fixed_point(hf.Problem(name, hf.flipping(3, 3), tokens=5, heads=2), tolerance=1e-5).loss)
        for name in ("softmax", "softmax-1", "sigmoid", "b-softmax")}
ends["the gate, by samples"] = float(run.loss[-1])
ends["Bayes"] = float(hf.bayes(problem).risk)
for name, loss in ends.items():
    print(f"{name:>22}: {loss:.4f}")

# %% [markdown]
# It lies between softmax and softmax-1. Bayes-softmax, whose heads share one denominator, is at the limit here.
