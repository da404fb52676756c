"""What is trained on what."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from .config import keys, set_key, unknown
from .own import OwnActivation, OwnPrior
from .priors import Prior


class Problem:
    """The model of a run: heads, tokens, features, the activation and the law of the signal.

    Args:
        activation: ``"softmax"``, ``"softmax-1"``, ``"b-softmax"``, ``"sigmoid"``, or a function (:func:`activation`).
        prior: a law made by :func:`flipping` and its like, or its name, or a sampler (:func:`prior`).
        tokens: L.
        heads: H.
        features: F, hidden directions; that of the prior if it has one, else 2.
        eta: initial norm of a head.
        options: the other keys of ``[problem]``: ``nu``, ``covariance``, ``train``, ``p``, ...

    >>> import headflow as hf
    >>> hf.Problem(activation="b-softmax", prior=hf.gaussian(8, 2), tokens=5, heads=4)
    Problem(activation='b-softmax', prior='gaussian', tokens=5, heads=4, features=2, eta=1.0, nu=[8.0, 2.0])
    """

    def __init__(self, activation: str | OwnActivation = "softmax", prior: Prior | str = "flipping", tokens: int = 4, heads: int = 2,
                 features: int | None = None, eta: float = 1.0, **options: Any) -> None:
        self._own_activation = activation if isinstance(activation, OwnActivation) else None
        self._own_prior = prior if isinstance(prior, OwnPrior) else None
        named = activation.name if isinstance(activation, OwnActivation) else activation
        given: dict[str, Any] = {"activation": named, "tokens": tokens, "heads": heads, "eta": eta}
        if isinstance(prior, Prior):
            for name in prior.parameters:
                if name in options:
                    raise TypeError(f"{name} is a parameter of {prior!r} already")
            given["prior"] = prior.name
            features = prior.features if features is None else features
            options = {**prior.parameters, **options}
        else:
            given["prior"] = prior
        given["features"] = 2 if features is None else features
        known = [key.name for key in keys().values() if key.section == "problem"]
        for name in options:
            if name not in known:
                raise unknown(name, known, "Problem")
        given.update({name: value for name, value in options.items() if value is not None})
        config = _core.Config()
        for name, value in given.items():
            set_key(config, f"problem.{name}", value, name)
        if self._own_activation is not None:
            self._kept = self._own_activation.set_on(config)
        if self._own_prior is not None:
            self._own_prior.set_on(config)
        self._config = config
        self.notes: list[str] = config.notes()  # checks it, too

    def _get(self, name: str) -> Any:
        return self._config.get(f"problem.{name}")

    @property
    def activation(self) -> str:
        """How attention is normalised."""
        return str(self._get("activation"))

    @property
    def prior(self) -> str:
        """The law of the feature weights, by name."""
        return str(self._get("prior"))

    @property
    def tokens(self) -> int:
        """L, tokens of a sequence."""
        return int(self._get("tokens"))

    @property
    def heads(self) -> int:
        """H, attention heads."""
        return int(self._get("heads"))

    @property
    def features(self) -> int:
        """F, hidden directions."""
        return int(self._get("features"))

    @property
    def eta(self) -> float:
        """Initial norm of a head."""
        return float(self._get("eta"))

    @property
    def options(self) -> dict[str, Any]:
        """Every option that is set, by name."""
        out = {key.name: self._get(key.name) for key in keys().values() if key.section == "problem"}
        out.update({name: own for name, own in self._own.items() if own is not None})
        return {name: value for name, value in out.items() if value is not None}

    @property
    def _own(self) -> dict[str, OwnActivation | OwnPrior | None]:
        return {"activation": self._own_activation, "prior": self._own_prior}

    @property
    def _own_names(self) -> str:
        """What a result says of functions of Python, which its configuration does not have."""
        return ", ".join(f"{kind} {own.name}" for kind, own in self._own.items() if own is not None)

    def replace(self, **changed: Any) -> Problem:
        """The same problem with other options.

        >>> import headflow as hf
        >>> hf.Problem(prior=hf.flipping(2), heads=2).replace(heads=4).heads
        4
        """
        if isinstance(changed.get("prior"), Prior):
            kept = {name: value for name, value in self.options.items()
                    if name in ("activation", "tokens", "heads", "features", "eta", "train", "p")}
            if "features" not in changed and changed["prior"].features is not None:
                kept.pop("features")
            return Problem(**{**kept, **changed})
        return Problem(**{**self.options, **changed})

    def toml(self) -> str:
        """The table [problem] of a configuration file."""
        return str(self._config.text(["problem"]))

    def __repr__(self) -> str:
        return f"Problem({', '.join(f'{name}={_short(value)}' for name, value in self._ordered())})"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{_short(value)}</td></tr>"
                       for name, value in self._ordered())
        return f"<b>headflow.Problem</b><table>{rows}</table>"

    def _ordered(self) -> list[tuple[str, Any]]:
        first = ["activation", "prior", "tokens", "heads", "features", "eta"]
        options = self.options
        return [(name, options[name]) for name in first] + [item for item in options.items() if item[0] not in first]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self.toml() == other.toml() and all(
            mine is other._own[kind] for kind, mine in self._own.items())

    def __hash__(self) -> int:
        return hash(self.toml())

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_options, (self.options,)


def _from_options(options: dict[str, Any]) -> Problem:
    return Problem(**options)


def _short(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return repr(value)
    array: npt.NDArray[np.float64] = value[0] if value.shape[0] == 1 else value
    return np.array2string(array, separator=", ", threshold=12, formatter={"float_kind": lambda x: repr(float(x))}).replace("\n", "")
