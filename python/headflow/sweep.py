"""Sweeps: anything over axes of any keys."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from . import _core
from .compute import flattened, watched
from .config import keys, set_key, to_value, unknown
from .errors import Error, FileError, OptionError
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
    called: dict[str, str] = {}
    config = _core.Config()
    target = None if output is None else writable(output)
    if not isinstance(problem, Problem):
        if axes is not None or measure is not None:
            raise TypeError("a configuration file says itself what varies and what is measured")
        axes, measure = _read(os.fspath(problem), config)
    else:
        config = problem._config.copy()
    if axes is None or measure is None:
        raise TypeError('give axes={"problem.heads": [2, 3]} and measure="end"')
    given = [_set(config, name, value, called, isinstance(problem, Problem)) for name, value in _given(options)]
    wanted = [measure] if isinstance(measure, str) else list(measure)
    plan = [_axis(one) for one in _listed(axes)]
    # Kept tasks go by their configuration, which does not have functions of Python.
    of_python = isinstance(problem, Problem) and problem._own_names != ""
    folder = None if target is None or of_python else f"{target}.tasks"
    result = watched("sweep", progress, called, lambda told: _core.sweep(config, wanted, plan, given, folder, told),
                     problem if isinstance(problem, Problem) else None)
    if target is not None:
        write(result, target)
    return result


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


def _set(config: _core.Config, name: str, value: Any, called: dict[str, str], has_problem: bool) -> str:
    full = _full(name)
    if has_problem and full.startswith("problem."):
        raise OptionError(f"{name} is set by the problem: problem.replace({name}=...)", full)
    called[full] = name
    set_key(config, full, value, name)
    return full


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


def _read(path: str, config: _core.Config) -> tuple[list[Axis], list[str]]:
    """A configuration file: its values into `config`; its axes and measures."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with open(path, "rb") as file:
            document = tomllib.load(file)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Error(f"{path}: {error}") from None
    plan = document.pop("sweep", None)
    document.pop("figure", None)
    if not isinstance(plan, dict):
        raise Error(f"{path}: has no table [sweep], which says what to vary and to measure")
    _only(path, plan, ("measure", "axis"), "[sweep]")
    for section, table in document.items():
        if not isinstance(table, dict):
            raise unknown(section, keys(), path)
        for name, value in table.items():
            if f"{section}.{name}" not in keys():
                raise unknown(f"{section}.{name}", keys(), path)
            set_key(config, f"{section}.{name}", value)
    try:
        return [_axis_of(path, one) for one in plan.get("axis", [])], list(plan.get("measure", []))
    except (TypeError, ValueError, IndexError, ArithmeticError, AttributeError) as error:
        raise Error(f"{path}: [sweep] is not as docs/commands.md has it: {error}") from None


def _only(path: str, table: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    for name in table:
        if name not in known:
            raise unknown(name, known, f"{path}: {what}")


def _axis_of(path: str, table: dict[str, Any]) -> Axis:
    _only(path, table, ("name", "key", "keys", "values", "range", "linspace", "logspace", "labels"), "an axis")
    if "key" in table and "keys" in table:
        raise Error(f"{path}: an axis has key = \"...\" or keys = [...], not both")
    names = table.get("keys", table.get("key"))
    ways = [way for way in ("values", "range", "linspace", "logspace") if way in table]
    if names is None or len(ways) != 1:
        raise Error(f"{path}: an axis needs a key, and one of values, range, linspace, logspace")
    given = table[ways[0]]
    if ways[0] == "range":
        first, last = given
        given = range(int(first), int(last) + 1)
    elif ways[0] != "values":
        given = _spaced(given, ways[0] == "logspace")
    return Axis(names, given, table.get("name"), table.get("labels", ()))


def _spaced(given: Sequence[float], log: bool) -> list[float]:
    """[first, last, count] as the program spaces them: where a grid meets a short number, that number."""
    first, last, n = given[0], given[1], int(given[2])
    if log and not (first > 0 and last > 0):
        raise ValueError("both ends of logspace must be positive")
    out = []
    for i in range(n):
        part = i / (n - 1) if n > 1 else 0.0
        x = last if n > 1 and i == n - 1 else first * (last / first) ** part if log else first + (last - first) * part
        short = float(f"{x:.12g}")
        out.append(short if abs(x - short) <= 8 * np.finfo(float).eps * abs(x) else x)
    return out
