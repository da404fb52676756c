"""Laws of the feature weights theta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


class Prior:
    """A law of theta: its name in configuration files, and its parameters.

    Made by :func:`flipping`, :func:`gaussian`, :func:`discrete` and :func:`mixture`.
    """

    def __init__(self, name: str, parameters: Mapping[str, Any], features: int | None = None) -> None:
        self.name = name
        self.parameters = {key: np.asarray(value, dtype=float) for key, value in parameters.items() if value is not None}
        self.features = features

    def __repr__(self) -> str:
        inside = ", ".join(f"{key}={np.array2string(value, separator=', ')}" for key, value in self.parameters.items())
        return f"headflow.{self.name}({inside})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Prior):
            return NotImplemented
        return (self.name, self.features) == (other.name, other.features) and self.parameters.keys() == other.parameters.keys() and all(
            np.array_equal(value, other.parameters[key]) for key, value in self.parameters.items())

    __hash__ = None  # type: ignore[assignment]


def _strengths(nu: tuple[float, ...]) -> npt.NDArray[np.float64]:
    if not nu:
        raise TypeError("give the signal strengths: flipping(2) or flipping(2, 1)")
    return np.asarray(nu, dtype=float)


def flipping(*nu: float) -> Prior:
    """The flipping spike: theta = (nu1, +-nu2, ...), each sign with probability one half.

    >>> import headflow as hf
    >>> hf.Problem(prior=hf.flipping(2, 1))
    Problem(activation='softmax', prior='flipping', tokens=4, heads=2, features=2, eta=1.0, nu=[2.0, 1.0])
    """
    return Prior("flipping", {"nu": _strengths(nu)})


def gaussian(*nu: float, mean: npt.ArrayLike | None = None, covariance: npt.ArrayLike | None = None) -> Prior:
    """A Gaussian law: with signal strengths, or with any mean and covariance.

    >>> import headflow as hf
    >>> hf.gaussian(mean=[1, 0], covariance=[[2, 0.5], [0.5, 1]]).features
    2
    """
    if covariance is None:
        return Prior("gaussian", {"nu": _strengths(nu), "mean": mean})
    if nu:
        raise TypeError("give signal strengths or a covariance, not both")
    return Prior("gaussian", {"mean": mean, "covariance": covariance}, np.atleast_2d(covariance).shape[-1])


def discrete(points: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Prior:
    """Finitely many points, one row each, equally likely or with these probabilities.

    >>> import headflow as hf
    >>> hf.discrete([[1, 1], [1, -1], [0, 2]]).features
    2
    """
    return Prior("discrete", {"points": points, "weights": weights}, np.atleast_2d(points).shape[-1])


def mixture(means: npt.ArrayLike, covariances: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Prior:
    """A mixture of Gaussians: means (K, F), covariances (K, F, F); a covariance of zeros is an atom.

    >>> import headflow as hf
    >>> hf.mixture([[1, 0], [0, 1]], [[[0, 0], [0, 0]], [[1, 0], [0, 1]]]).features
    2
    """
    stacked = np.asarray(covariances, dtype=float)
    if stacked.ndim == 3:
        stacked = stacked.reshape(-1, stacked.shape[-1])
    return Prior("mixture", {"means": means, "covariances": stacked, "weights": weights}, np.atleast_2d(means).shape[-1])
