"""Loss and gradient at points."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from . import _core
from .compute import configure, run
from .config import renamed, unknown
from .errors import OptionError
from .problem import Problem

Array = npt.NDArray[np.float64]


class PointValues:
    """Numbers for m, R and the blocks of an activation: a gradient, or its errors.

    Attributes have the blocks' names: ``grad.m``, ``grad.R``, ``grad.b``; ``vars(grad)`` has them all.
    """

    m: Array
    R: Array

    def __init__(self, **values: Array) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Array:
        raise AttributeError(f"there is no block {name}; there are {', '.join(self.__dict__)}")

    def __getitem__(self, name: str) -> Array:
        value: Array = self.__dict__[name]
        return value

    def norm(self) -> float:
        """Euclidean norm over all numbers."""
        return float(np.sqrt(sum(float(np.sum(np.square(x))) for x in self.__dict__.values())))

    def __repr__(self) -> str:
        inside = ",\n".join(f"  {name}={np.array2string(value, precision=6, separator=', ', prefix='    ' + name)}"
                            for name, value in self.__dict__.items())
        return f"PointValues(\n{inside})"


class Evaluation:
    """Loss and gradient at a point, each with its error.

    Attributes:
        loss, loss_error: the population loss.
        grad, grad_error: with respect to m, R and the blocks.
        error_kind: what the errors are.
        engine: how it was computed.
        dataset: all of it as an xarray.Dataset, as the program writes it (None of a ``Loss``).
    """

    def __init__(self, loss: float, loss_error: float | None, grad: PointValues, grad_error: PointValues | None,
                 error_kind: str, engine: str, dataset: xr.Dataset | None = None) -> None:
        self.loss, self.loss_error, self.grad, self.grad_error = loss, loss_error, grad, grad_error
        self.error_kind, self.engine, self.dataset = error_kind, engine, dataset

    @property
    def excess_risk(self) -> float:
        """E - E_Bayes, if ``excess`` points were asked for."""
        if self.dataset is None or "excess_risk" not in self.dataset:
            raise AttributeError("ask for it: headflow.loss(problem, excess=100_000, ...)")
        return float(self.dataset.excess_risk)

    def __repr__(self) -> str:
        error = "" if self.loss_error is None else f" +- {self.loss_error:.2g}"
        return f"Evaluation(loss={self.loss:.10g}{error} ({self.error_kind}), |grad|={self.grad.norm():.4g}, engine={self.engine!r})"

    def _repr_html_(self) -> str:
        rows = [("loss", f"{self.loss:.10g}" + ("" if self.loss_error is None else f" &plusmn; {self.loss_error:.2g}")),
                ("error", self.error_kind), ("engine", self.engine)]
        rows += [(f"grad.{name}", np.array2string(value, precision=5, separator=", ").replace("\n", "<br>"))
                 for name, value in vars(self.grad).items()]
        inside = "".join(f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{text}</td></tr>"
                         for name, text in rows)
        return f"<b>headflow.Evaluation</b><table>{inside}</table>"


def loss(problem: Problem, *, progress: bool | None = None, **options: Any) -> Evaluation:
    """Loss and gradient at a point, each number with its error: the same bits as ``headflow loss``.

    Args:
        problem: what is trained.
        options: the point (``m``, ``R``, ``b``, ``v``, ...; R is eta I if it is not given, m is 0), and keys of [run]
            and [loss]: ``tolerance``, ``engine``, ``samples``, ``excess``, ...

    >>> import headflow as hf
    >>> problem = hf.Problem(prior=hf.flipping(2, 2))
    >>> e = hf.loss(problem, m=[[1.0, 0.5], [1.0, -0.5]])
    >>> e.grad.m.shape
    (2, 2)
    """
    found = run("loss", problem, options, progress)
    names = [str(name)[5:] for name in found.data_vars if str(name).startswith("grad_") and not str(name).endswith("_error")]
    grad = PointValues(**{name: found[f"grad_{name}"].values for name in names})
    grad_error = PointValues(**{name: found[f"grad_{name}_error"].values for name in names})
    return Evaluation(float(found.loss), float(found.loss_error), grad, grad_error,
                      str(found.loss_error.attrs["error_kind"]), str(found.attrs["engine"]), found)


class Loss:
    """Loss and gradient at many points of one problem, with the nodes in place.

    ``headflow.loss`` plans its nodes at every call; this plans them for the first point, and again where a point
    has moved so far that they may not serve: a smooth function, and a cheap one. What it returns depends on the
    points before, within the errors. Calls from several threads take turns. Ctrl-C waits for the end of an evaluation.

    Args:
        problem: what is trained.
        options: as of :func:`loss`; a point says where the nodes are placed first, and is what a call without one
            takes.

    >>> import numpy as np
    >>> import headflow as hf
    >>> loss = hf.Loss(hf.Problem(prior=hf.flipping(2, 2)), tolerance=1e-9)
    >>> m = np.array([[1.0, 0.5], [1.0, -0.5]])
    >>> e, step = loss(m=m), 1e-4 * np.eye(2)
    >>> slope = (loss(m=m + step).loss - loss(m=m - step).loss) / 2e-4
    >>> bool(abs(slope - np.trace(e.grad.m)) < 1e-7)
    True
    """

    def __init__(self, problem: Problem, **options: Any) -> None:
        called: dict[str, str] = {}
        config = configure("loss", problem, options, called)
        try:
            self._core = _core.Evaluator(config, config)
        except OptionError as error:
            raise renamed(error, called) from None
        self.problem = problem
        heads, features = self._core.heads, self._core.features
        self._shapes: dict[str, tuple[slice, tuple[int, ...]]] = {
            "m": (slice(0, heads * features), (heads, features)),
            "R": (slice(heads * features, heads * (features + heads)), (heads, heads))}
        first = heads * (features + heads)
        for name, offset, size, shape in self._core.blocks:
            self._shapes[name] = (slice(first + offset, first + offset + size), shape)
        self._start: Array = np.asarray(self._core.start, dtype=np.float64)
        self._start = self.pack(**{name: options[name] for name in self._shapes if options.get(name) is not None})
        self.engine, self.error_kind = self._core.engine, self._core.error_kind

    @property
    def nodes(self) -> int:
        """Nodes, or samples, of an evaluation."""
        return int(self._core.samples)

    def pack(self, **point: npt.ArrayLike) -> Array:
        """A point as one vector: m, R and the blocks, rows first."""
        out = self._start.copy()
        for name, value in point.items():
            if name not in self._shapes:
                raise unknown(name, self._shapes, f"the point of {self.problem.activation}")
            where, shape = self._shapes[name]
            array = np.asarray(value)
            if array.dtype.kind not in "iuf" or np.ma.is_masked(value):
                raise OptionError(f"{name} must be numbers", f"point.{name}")
            size = where.stop - where.start
            if array.shape != shape and not (array.size == size and array.ndim <= 1 and len(shape) <= 1):
                raise OptionError(f"{name} has the shape {array.shape}, not {shape}", f"point.{name}")
            out[where] = array.reshape(-1)
        return out

    def unpack(self, packed: Array) -> PointValues:
        """And back."""
        return PointValues(**{name: packed[where].reshape(shape) for name, (where, shape) in self._shapes.items()})

    def __call__(self, *, errors: bool = True, **point: npt.ArrayLike) -> Evaluation:
        """The loss at a point; ``errors=False`` leaves out what costs extra."""
        value, error, grad, grad_error = self._core.evaluate(self.pack(**point), errors)
        return Evaluation(value, error, self.unpack(grad), None if grad_error is None else self.unpack(grad_error),
                          self.error_kind, self.engine)

    def flat(self, packed: npt.ArrayLike) -> tuple[float, Array]:
        """Loss and gradient of a packed point: what ``scipy.optimize.minimize(jac=True)`` takes."""
        given = np.asarray(packed)
        if given.dtype.kind not in "iuf" or given.ndim != 1 or np.ma.is_masked(packed):
            raise OptionError(f"the point must be one vector of {self._start.size} numbers", "point")
        array = np.ascontiguousarray(given, dtype=np.float64)
        value, _, grad, _ = self._core.evaluate(array, False)
        return value, grad

    def __repr__(self) -> str:
        return f"Loss({self.problem!r}, engine={self.engine!r}, {self.nodes} nodes)"
