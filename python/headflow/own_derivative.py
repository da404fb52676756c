"""Derivatives of a function of Python: by JAX, or by differences. g stands for what multiplies its values."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Function = Callable[..., Any]
Sigma = Callable[[Array, Array], Array]


def double_precision() -> AbstractContextManager[Any]:
    """Where functions are called: JAX, if anybody uses it, would else compute in single precision."""
    jax: Any = sys.modules.get("jax")
    if jax is None:
        return nullcontext()
    if hasattr(jax, "enable_x64"):
        context: AbstractContextManager[Any] = jax.enable_x64(True)
        return context
    experimental = importlib.import_module("jax.experimental").enable_x64()
    assert isinstance(experimental, AbstractContextManager)
    return experimental


def with_jax(function: Function, chi: Array, g: Array, parameters: Sequence[Array]) -> tuple[Function, Function] | None:
    """The function, and d of sum(g * function(chi, *parameters)), both compiled; None without JAX, or if it cannot."""
    try:
        jax: Any = importlib.import_module("jax")
    except ImportError:
        return None
    compiled = jax.jit(lambda x, v, *p: jax.vjp(function, x, *p)[1](v))

    def derivative(chi: Array, g: Array, *parameters: Array) -> Any:
        samples = chi.shape[2]  # parameters of each sample have derivatives of each sample
        return compiled(chi, g, *(np.broadcast_to(one, (*one.shape[:2], samples)) for one in parameters))

    try:
        with double_precision():
            derivative(chi, g, *parameters)
    except Exception:  # noqa: BLE001: whatever keeps JAX from it, there are differences
        return None
    return jax.jit(function), derivative


def _slope(sigma: Sigma, g: Array, chi: Array, parameters: Array, step: float, place: tuple[int, int] | int) -> Array:
    """Of each sample, along one score or one parameter; the step is relative where that is large."""
    values = []
    for sign in (1, -1):
        x, p = chi.copy(), parameters.copy()
        if isinstance(place, tuple):
            x[place] += sign * step * np.maximum(1, np.abs(chi[place]))
            moved = x[place]
        else:
            p[place] += sign * step * max(1.0, abs(parameters[place]))
            moved = p[place]
        values.append((np.array(moved), sigma(x, p)))  # the function may write into x
    (up, above), (down, below) = values
    return np.asarray((g * (above - below)).sum(axis=(0, 1)) / (up - down), dtype=np.float64)


def differences(sigma: Sigma, chi: Array, g: Array, parameters: Array) -> tuple[Array, Array]:
    """Central differences, along every score and parameter: good to about 1e-10."""
    step = float(np.cbrt(np.finfo(float).eps))
    of_chi = np.empty_like(chi)
    for place in np.ndindex(*chi.shape[:2]):
        of_chi[place] = _slope(sigma, g, chi, parameters, step, (place[0], place[1]))
    rows = [_slope(sigma, g, chi, parameters, step, place) for place in range(parameters.size)]
    return of_chi, np.array(rows).reshape(len(rows), chi.shape[2])


def refined_differences(sigma: Sigma, chi: Array, g: Array, parameters: Array, pairs: Iterable[tuple[int, int]],
                        places: Iterable[int]) -> tuple[Array, Array, Array, Array]:
    """Some of the same from two larger steps, extrapolated, each with the difference of the two."""
    out = []
    for along in (list(pairs), [int(place) for place in places]):
        both = [np.array([_slope(sigma, g, chi, parameters, step, place) for place in along]).reshape(len(along), chi.shape[2])
                for step in (1e-3, 5e-4)]
        out += [(4 * both[1] - both[0]) / 3, np.abs(both[1] - both[0])]
    return out[0], out[1], out[2], out[3]
