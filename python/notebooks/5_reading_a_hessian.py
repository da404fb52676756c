# %% [markdown]
# # Reading a Hessian
#
# Training rests at points where the gradient vanishes. Whether it stays there, and for how long, is in the Hessian: directions of
# negative curvature, zero modes of symmetries, and the rest.

# %%
import numpy as np

import headflow as hf

problem = hf.Problem(activation="softmax", prior=hf.flipping(2, 2), tokens=4, heads=3)
saddle = hf.hessian(problem, at="saddle")
print("at the saddle:", saddle.eigenvalues.values.round(4))
print("negative:", int((saddle.eigenvalues < -1e-6).sum()))

# %% [markdown]
# That is where the flow of equal heads ends. There are $H - 1 = 2$ negative eigenvalues, equal ones: the ways in which three heads differ along the flipping
# direction, their sum staying as it is. To second order the loss does not see eight directions: two ways in which heads
# differ along the constant direction, and six of $R$. The first eigenvector, as a change of $m$:

# %%
first = saddle.eigenvectors.isel(eigenvector=0).values[: 3 * 2].reshape(3, 2)
first.round(3)

# %% [markdown]
# Where training ends nothing is negative, and here nothing is zero: a minimum. (Where $R$ does not vanish there are zeros as
# well: $R \to R O$ with a rotation $O$ changes no overlap. `end.symmetries` counts them.)

# %%
end = hf.fixed_point(problem)
print("index", int(end.index), " loss", float(end.loss))
spectrum = hf.hessian(problem, **end.headflow.point())
print(spectrum.eigenvalues.values.round(4))

# %% [markdown]
# The curvature by hand: a second difference of the loss along the first direction, at the saddle.

# %%
point = saddle.headflow.point()
loss = hf.Loss(problem, tolerance=1e-11, **point)
at, direction, step = loss.pack(**point), saddle.eigenvectors.isel(eigenvector=0).values, 1e-3
second = (loss.flat(at + step * direction)[0] - 2 * loss.flat(at)[0] + loss.flat(at - step * direction)[0]) / step**2
print(second, "against", float(saddle.eigenvalues[0]))
