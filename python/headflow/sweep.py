"""Sweeps: anything over axes of any keys."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import xarray as xr

from . import _core
from .compute import flattened, watched
from .config import keys, set_key, to_value, unknown
from .errors import Error, OptionError
from .problem import Problem
from .results import writable, write

_SECTIONS = ("problem", "point", "run", "loss", "flow", "end", "sgd", "compare")


class Axis(NamedTuple):
    """An axis whose keys vary together, or that has a name or labels of its own.

    >>> import headflow as hf
    >>> hf.Axis(["problem.prior", "problem.nu"], [("flipping", 2), ("gaussian", 3)], name="law").name
    'law'
    """

    keys: str | Sequence[str]
    values: Iterable[Any]
    name: str | None = None
    labels: Sequence[str] = ()


def sweep(problem: Problem | str | os.PathLike[str], *,
          axes: Mapping[str, Iterable[Any]] | Sequence[Axis] | None = None, measure: str | Sequence[str] | None = None,
          output: str | os.PathLike[str] | None = None, progress: bool | None = None, **options: Any) -> xr.Dataset:
    """Measures over axes: the end of training, the Bayes risk, flows, SGD, phases, pruning, ...

    Args:
        problem: what the axes vary, or a configuration file (TOML) with a table [sweep].
        axes: by key, ``{"problem.nu[2]": np.geomspace(0.5, 8, 20), "seed": range(5)}``, or a list of :class:`Axis`.
        measure: one or more of "end", "bayes", "flow", "sgd", "phases", "pruning", "similarity", "attention".
        output: a file to write the result to; finished tasks are kept beside it, in ``output.tasks``, so that a
            sweep that was stopped goes on, and one that has grown computes what is new. Tasks of a problem with
            functions of Python are not kept.
        options: keys of all tasks.

    >>> import headflow as hf
    >>> ends = hf.sweep(hf.Problem(prior=hf.flipping(2)), axes={"nu[2]": [1, 2], "seed": range(1, 3)}, measure="end")
    >>> ends.loss.dims
    ('nu2', 'seed')
    """
    target = None if output is None else writable(output)
    folder = None if target is None else f"{target}.tasks"
    called = {_full(name): name for name, _ in _given(options)}
    if isinstance(problem, Problem):
        result = _of_problem(problem, axes, measure, options, called, folder, progress)
    elif axes is not None or measure is not None:
        raise TypeError("a configuration file says itself what varies and what is measured")
    else:
        path = os.fsdecode(problem)
        given = [(_full(name), to_value(keys()[_full(name)].kind, value, name)) for name, value in _given(options)]
        result = watched("sweep", progress, called, lambda told: _core.sweep_file(path, given, folder, told))
    if target is not None:
        write(result, target)
    return result


def _of_problem(problem: Problem, axes: Mapping[str, Iterable[Any]] | Sequence[Axis] | None,
                measure: str | Sequence[str] | None, options: Mapping[str, Any], called: dict[str, str], folder: str | None,
                progress: bool | None) -> xr.Dataset:
    if axes is None or measure is None:
        raise TypeError('give axes={"problem.heads": [2, 3]} and measure="end"')
    config = problem._config.copy()
    for name, value in _given(options):
        full = _full(name)
        if full.startswith("problem."):
            raise OptionError(f"{name} is set by the problem: problem.replace({name}=...)", full)
        set_key(config, full, value, name)
    wanted = [measure] if isinstance(measure, str) else list(measure)
    plan = [_axis(one) for one in _listed(axes)]
    # Kept tasks go by their configuration, which does not have functions of Python.
    kept = None if problem._own_names else folder
    return watched("sweep", progress, called, lambda told: _core.sweep(config, wanted, plan, list(called), kept, told), problem)


def _given(options: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Options without those that are None; each once."""
    out = [(name, value) for name, value in flattened(options) if value is not None]
    full = [_full(name) for name, _ in out]
    for name, (called, _) in zip(full, out, strict=True):
        if full.count(name) > 1:
            raise OptionError(f"{called} is given twice", name)
    return out


def _full(name: str, where: str = "sweep") -> str:
    """The full name of a key, of ``nu[2]`` too."""
    stem, bracket, rest = name.partition("[")
    known = [key for key in keys() if keys()[key].section in (*_SECTIONS, "program")]
    if stem in known:
        return name
    alike = [key for key in known if key.split(".", 1)[1] == stem]
    if len(alike) != 1:
        raise unknown(stem, [*known, *(key.split(".", 1)[1] for key in known)] if not alike else [*alike, stem], where)
    return alike[0] + bracket + rest


def _listed(axes: Mapping[str, Iterable[Any]] | Sequence[Axis]) -> list[Axis]:
    if isinstance(axes, Mapping):
        return [values._replace(keys=name) if isinstance(values, Axis) else Axis(name, values) for name, values in axes.items()]
    if not all(isinstance(axis, Axis) for axis in axes):
        raise TypeError("axes are a mapping from keys to values, or a list of headflow.Axis")
    return list(axes)


def _axis(axis: Axis) -> tuple[str | None, list[str], list[list[Any]], list[str]]:
    names = [axis.keys] if isinstance(axis.keys, str) else list(axis.keys)
    full = [_full(name, "an axis") for name in names]
    if isinstance(axis.values, (str, bytes)) or isinstance(axis.labels, str) or not isinstance(axis.values, Iterable):
        raise Error(f"the axis of {', '.join(names)}: values, and labels, are lists")
    points: list[list[Any]] = []
    for value in axis.values:
        together = [value] if len(full) == 1 else list(value)
        if len(together) != len(full):
            raise Error(f"the axis of {', '.join(names)}: {value!r} must be {len(full)} values, one a key")
        points.append([_value(name, one) for name, one in zip(full, together, strict=True)])
    return axis.name, full, points, [str(label) for label in axis.labels]


def _value(name: str, value: Any) -> Any:
    kind = keys()[_core.key_of_axis(name)].kind
    return to_value("number" if "[" in name else kind, value, name)
