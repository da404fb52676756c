"""Activations and priors of one's own, written with numpy."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from .config import keys
from .errors import Error
from .own_derivative import differences, double_precision, refined_differences, with_jax
from .priors import Prior

Array = npt.NDArray[np.float64]
_CHECKED = 8  # samples on which functions are tried
_CLOSE = 1e-6  # of the largest number: what differences are good for, and a mistake is not


class OwnActivation:
    """An activation that is a function of Python: made by :func:`activation`."""

    def __init__(self, function: Callable[..., Any], parameters: Mapping[str, Any], name: str | None, smooth: bool) -> None:
        self.name = name or _name_of(function, "own_activation")
        self.blocks = [_block(self.name, block, meaning) for block, meaning in parameters.items()]
        self.smooth = smooth
        self._function = function
        self._derivative: Callable[..., Any] | None = None
        self._automatic: tuple[Callable[..., Any], Callable[..., Any]] | None = None  # it, and its derivative
        self._wants_sigma = False
        self._checked: set[tuple[int, int]] = set()
        if self.name in keys()["problem.activation"].choices:
            raise Error(f"{self.name} is an activation of headflow: give another name")
        self.check(2, 3, derivative=False)

    def derivative(self, function: Callable[..., Any]) -> OwnActivation:
        """Takes ``(chi, g, *parameters) -> (d_chi, *d_parameters)``, the derivatives of sum(g * sigma); refuses wrong ones.

        Those with respect to parameters keep the axis of samples, the last: (head, 1, sample) of a parameter "head",
        (1, 1, sample) of a "number"; other axes are summed here if they are longer. A keyword ``sigma`` of the
        function is given the weights that the activation has returned.
        """
        self._wants_sigma = "sigma" in inspect.signature(function).parameters
        self._derivative, self._automatic = function, None
        self._checked.clear()
        self.check(2, 3)
        return self

    def __call__(self, chi: npt.ArrayLike, *parameters: npt.ArrayLike) -> Any:
        return self._function(chi, *parameters)

    def __repr__(self) -> str:
        return f"<activation {self.name} of Python>"

    @property
    def differentiated(self) -> str:
        """Where the derivative comes from: "function", "jax" or "differences"."""
        return "function" if self._derivative else "jax" if self._automatic else "differences"

    def sigma(self, chi: Array, parameters: Array) -> Array:
        """Its weights, checked; parameters one after the other."""
        function = self._automatic[0] if self._automatic else self._function
        with double_precision():
            found = np.asarray(function(chi, *self._split(parameters, chi.shape[0])))
        if found.shape != chi.shape or found.dtype.kind not in "iuf":
            raise Error(f"the activation {self.name} must return numbers of the shape of chi, {chi.shape} (head, token, "
                        f"sample), not {found.dtype} of {found.shape}")
        return np.ascontiguousarray(found, dtype=np.float64)

    def pull(self, chi: Array, g: Array, parameters: Array, sigma: Array | None = None) -> tuple[Array, Array]:
        """Derivatives of sum(g * sigma): with respect to chi, and to each parameter for each sample."""
        given = self._derivative or (self._automatic[1] if self._automatic else None)
        if given is None:
            return differences(self.sigma, chi, g, parameters)
        more = {"sigma": self.sigma(chi.copy(), parameters) if sigma is None else sigma} if self._wants_sigma else {}
        with double_precision():
            found = given(chi, g, *self._split(parameters, chi.shape[0]), **more)
        parts = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(parts) != 1 + len(self.blocks):
            raise Error(f"the derivative of {self.name} must return {1 + len(self.blocks)} arrays: that of chi, then one a "
                        f"parameter; it returns {len(parts)}")
        of_chi = np.asarray(parts[0])
        if of_chi.shape != chi.shape:
            raise Error(f"the derivative of {self.name} with respect to chi must have the shape of chi, {chi.shape}, not "
                        f"{of_chi.shape}")
        rows = [self._summed(block, per_head, np.asarray(part), chi)
                for (block, per_head, _), part in zip(self.blocks, parts[1:], strict=True)]
        of_parameters = np.concatenate(rows) if rows else np.empty((0, chi.shape[2]))
        return np.ascontiguousarray(of_chi, dtype=np.float64), np.ascontiguousarray(of_parameters, dtype=np.float64)

    def _split(self, parameters: Array, heads: int) -> list[Array]:
        out, at = [], 0
        for _, per_head, _ in self.blocks:
            size = heads if per_head else 1
            out.append(parameters[at:at + size].reshape(size, 1, 1))
            at += size
        return out

    def _summed(self, block: str, per_head: bool, part: npt.NDArray[Any], chi: Array) -> npt.NDArray[Any]:
        heads, tokens, samples = chi.shape
        rows = heads if per_head else 1
        if part.shape == (rows, samples):
            return part
        if part.ndim != 3 or part.shape[2] != samples or part.shape[1] not in (1, tokens) or part.shape[0] not in (rows, heads):
            raise Error(f"the derivative of {self.name} with respect to {block} has the shape {part.shape}, not "
                        f"{(rows, 1, samples)} (head, 1, sample): do not sum over samples")
        out: npt.NDArray[Any] = part.sum(axis=1) if per_head else part.sum(axis=(0, 1))[np.newaxis]
        return out

    def check(self, heads: int, tokens: int, derivative: bool = True) -> None:
        """Tries the functions at random points of these sizes; raises Error for what is wrong."""
        if derivative and (heads, tokens) in self._checked:
            return
        rng = np.random.default_rng(1)
        shape = (heads, tokens, _CHECKED)
        chi, g = 2 * rng.normal(size=shape), rng.normal(size=shape)
        start = [np.full(heads if per_head else 1, initial) for _, per_head, initial in self.blocks]
        parameters = np.concatenate([np.empty(0), *start])
        parameters = parameters + 0.3 * rng.normal(size=parameters.size)
        sigma = self.sigma(chi.copy(), parameters)
        if not np.isfinite(sigma).all():
            raise Error(f"the activation {self.name} is not finite at scores of order one")
        if not np.allclose(self.sigma(chi[:, :, :3].copy(), parameters), sigma[:, :, :3], rtol=1e-9, atol=1e-12):
            raise Error(f"the activation {self.name} must treat samples, the last axis, one by one: the weights of the first "
                        f"three change if the others are left out")
        turned = self.sigma(np.ascontiguousarray(chi[:, ::-1]), parameters)[:, ::-1]
        if not np.allclose(turned, sigma, rtol=1e-9, atol=1e-12):
            raise Error(f"the activation {self.name} must treat all tokens alike: with chi in the opposite order of tokens, the "
                        f"weights are not those in the opposite order")
        if not derivative:
            return
        if self._derivative is None and self._automatic is None:
            self._automatic = with_jax(self._function, chi, g, self._split(parameters, heads))
        self._compare(chi, g, parameters, rng)
        self._checked.add((heads, tokens))

    def _compare(self, chi: Array, g: Array, parameters: Array, rng: np.random.Generator) -> None:
        """Holds the derivative against differences with two steps, whose own difference is what they are good for."""
        heads, tokens, _ = chi.shape
        pairs = [(h, t) for h in range(heads) for t in range(tokens)]
        if len(pairs) > 32:
            pairs = [pairs[i] for i in rng.choice(len(pairs), 32, replace=False)]
        places = rng.choice(parameters.size, 16, replace=False) if parameters.size > 16 else np.arange(parameters.size)
        true_chi, off_chi, true_p, off_p = refined_differences(self.sigma, chi, g, parameters, pairs, places)
        of_chi, of_parameters = self.pull(chi.copy(), g.copy(), parameters)
        where = tuple(np.array(pairs).T)
        self._refuse("chi", [f"head {h + 1}, token {t + 1}" for h, t in pairs], of_chi[where], true_chi, off_chi)
        names = [f"{block}, head {i + 1}" if per_head else block
                 for block, per_head, _ in self.blocks for i in range(heads if per_head else 1)]
        self._refuse("parameters", [names[i] for i in places], of_parameters[places], true_p, off_p)

    def _refuse(self, of: str, names: Sequence[str], given: Array, true: Array, off: Array) -> None:
        if given.size == 0:
            return
        allowed = _CLOSE * max(1e-3, float(np.abs(true).max())) + 3 * off
        excess = np.where(np.isfinite(given), np.abs(given - true) / allowed, np.inf)
        if excess.max() <= 1:
            return
        row, sample = (int(i) for i in np.unravel_index(int(excess.argmax()), excess.shape))
        how = {"function": "derivative", "jax": "derivative by JAX"}.get(self.differentiated, "difference with a small step")
        raise Error(f"the {how} of {self.name} with respect to {of} ({names[row]}) is {given[row, sample]:.9g}, and "
                    f"differences give {true[row, sample]:.9g}")

    def set_on(self, config: _core.Config) -> object:
        """Makes it the activation of a configuration, tried at its sizes, if these are no larger than a trial takes.

        What is returned must be kept as long as the configuration is used.
        """
        heads, tokens = (int(str(config.get(f"problem.{name}"))) for name in ("heads", "tokens"))
        self.check(min(max(heads, 1), 16), min(max(tokens, 1), 64))
        calls = copy.copy(self)  # a derivative that it is given later does not reach the problem
        config.set_own_activation(self.name, self.blocks, self.smooth, self._wants_sigma, calls)
        return calls


def _name_of(function: Any, otherwise: str) -> str:
    name = getattr(function, "__name__", otherwise)
    return str(name) if name.isidentifier() else otherwise


def _block(owner: str, name: str, meaning: Any) -> tuple[str, bool, float]:
    axes, initial = (meaning, 0.0) if isinstance(meaning, str) else meaning
    if axes not in ("head", "number") or not name.isidentifier() or name in ("m", "R"):
        raise Error(f"the parameter {name!r} of {owner}: give a name other than m and R, and \"head\" (one number a head) or "
                    f"\"number\", with an initial value if it is not 0: {{\"b\": (\"head\", 0.5)}}")
    return name, axes == "head", float(initial)


def activation(function: Callable[..., Any] | None = None, *, parameters: Mapping[str, Any] | None = None,
               name: str | None = None, smooth: bool = True) -> Any:
    """Makes a function of numpy arrays an activation: a decorator.

    The function takes the scores chi (head, token, sample) of many samples and returns the weights sigma, of the same
    shape. Parameters that are trained besides m and R follow, each of the shape (head, 1, 1) or (1, 1, 1).

    Its derivative is a second function, ``@shifted.derivative``; else JAX's, where that is installed and the
    function goes with its arrays (``import jax.numpy as np``); else differences, which take 2 H L calls. A derivative
    that differences contradict is refused. Engines are "mc" and "qmc". Results name the activation and do not record it.

    Args:
        parameters: names, each with "head" (one number a head) or "number", or with an initial value, ("head", 0.5).
        name: instead of the function's.
        smooth: False if it has kinks: then second derivatives are refused.

    >>> import headflow as hf
    >>> import numpy as np
    >>> @hf.activation(parameters={"b": "head"})
    ... def shifted(chi, b):
    ...     return 1 / (1 + np.exp(-chi - b))
    >>> @shifted.derivative
    ... def shifted(chi, g, b):
    ...     sigma = 1 / (1 + np.exp(-chi - b))
    ...     slope = g * sigma * (1 - sigma)
    ...     return slope, slope.sum(axis=1, keepdims=True)
    >>> problem = hf.Problem(activation=shifted, prior=hf.flipping(2, 2))
    >>> hf.loss(problem, engine="mc", samples=1000, b=[0.1, 0.2]).grad.b.shape
    (2,)
    """
    def make(given: Callable[..., Any]) -> OwnActivation:
        return OwnActivation(given, parameters or {}, name, smooth)

    return make if function is None else make(function)


class OwnPrior(Prior):
    """A law that is a function of Python: made by :func:`prior`."""

    def __init__(self, sampler: Callable[[Array], Any], mean: npt.ArrayLike | None, covariance: npt.ArrayLike | None,
                 largest: npt.ArrayLike | None, name: str | None) -> None:
        self._sampler = sampler
        self.name = name or _name_of(sampler, "own_law")
        self.parameters = {}
        self._largest: Array | None = None
        if self.name in keys()["problem.prior"].choices or not self.name.isidentifier():
            raise Error(f"{self.name} cannot be the name of a law: give it another one, name=\"mine\"")
        points = (np.arange(2**17) + 0.5) / 2**17
        theta = self.sample(points)
        self.features = theta.shape[1]
        if not np.allclose(self.sample(points[7:12].copy()), theta[7:12], rtol=1e-12, atol=1e-14):
            raise Error(f"the sampler {self.name} must be a function of each uniform number alone: its rows change if others "
                        f"are left out")
        ends = self.sample(np.array([2.0**-53, 1 - 2.0**-53]))
        bound = np.abs(np.concatenate([theta, ends])).max(axis=0) * (1 + 1e-9)
        self.mean = self._given(theta.mean(axis=0) if mean is None else mean, 1)
        self.covariance = np.atleast_2d(np.cov(theta.T, bias=True)) if covariance is None else self._given(covariance, 2)
        self.largest = bound if largest is None else self._given(largest, 1)
        self._largest = self.largest
        self.sample(points)

    def _given(self, value: npt.ArrayLike, dimensions: int) -> Array:
        out = np.array(value, dtype=np.float64, ndmin=dimensions)
        if out.shape != (self.features,) * dimensions:
            raise Error(f"the sampler {self.name} gives {self.features} numbers: its mean and largest have as many, its "
                        f"covariance {self.features} x {self.features}, not {out.shape}")
        return out

    def sample(self, uniforms: Array) -> Array:
        """Theta of uniform numbers, checked."""
        found = np.asarray(self._sampler(uniforms))
        shape = (uniforms.size, self.features) if self._largest is not None else (uniforms.size, found.shape[-1] if found.ndim else 0)
        if found.ndim != 2 or found.shape != shape or found.dtype.kind not in "iuf" or found.shape[1] == 0:
            wanted = f"({uniforms.size}, {shape[1] if self._largest is not None else 'F'})"
            raise Error(f"the sampler {self.name} must return numbers of the shape {wanted} for {uniforms.size} uniform "
                        f"numbers, not {found.dtype} of {found.shape}")
        theta = np.ascontiguousarray(found, dtype=np.float64)
        if not np.isfinite(theta).all():
            raise Error(f"the sampler {self.name} gives numbers that are not finite: a law must be bounded")
        if self._largest is not None and (np.abs(theta) > self._largest * (1 + 1e-9)).any():
            raise Error(f"the sampler {self.name} gives |theta| = {np.abs(theta).max(axis=0)}, above largest = {self._largest}")
        return theta

    def __repr__(self) -> str:
        return f"headflow.prior({self.name})"

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None

    def set_on(self, config: _core.Config) -> None:
        """Makes it the prior of a configuration, which must not outlive it."""
        config.set_own_prior(self.name, np.atleast_2d(self.mean), np.ascontiguousarray(self.covariance),
                             np.atleast_2d(self.largest), self)


def prior(sampler: Callable[[Array], Any], *, mean: npt.ArrayLike | None = None, covariance: npt.ArrayLike | None = None,
          largest: npt.ArrayLike | None = None, name: str | None = None) -> Prior:
    """A bounded law of theta by its sampler: from n uniform numbers in (0, 1) to an array (n, F), row by row.

    Nothing is tabulated: every number goes through the sampler, many in a call. Mean, covariance and the largest
    |theta| are measured on 131072 numbers where they are not given; what is given and contradicts the sampler is
    refused. What needs a mixture (the engine "factorised", the excess risk) is not there for it. Where the law is one of
    :func:`discrete`, :func:`mixture` and :func:`gaussian`, those are better.

    >>> import headflow as hf
    >>> import numpy as np
    >>> law = hf.prior(lambda u: np.stack([1 + u, np.cos(2 * np.pi * u)], axis=1), name="arc")
    >>> problem = hf.Problem(prior=law)
    >>> hf.loss(problem, engine="qmc", samples=1000, m=[[1, 0], [0, 1]]).loss < 1
    True
    """
    return OwnPrior(sampler, mean, covariance, largest, name)
