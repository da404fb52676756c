"""What headflow computes, a function each: named and configured as in the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from . import _core
from .config import keywords, renamed, set_key, to_value, unknown
from .errors import Interrupted, OptionError
from .problem import Problem
from .progress import Progress
from .results import point_of, to_xarray

_SECTION_OF_START = {"sgd": "sgd", "compare": "sgd"}


def configure(computation: str, problem: Problem | None, options: Mapping[str, Any],
              called: dict[str, str] | None = None) -> _core.Config:
    """The configuration of a computation: a problem and keyword arguments.

    Keywords are short names (``time``), full names (``**{"flow.time": 1e3}``), or sections with a
    mapping (``flow={"time": 1e3}``). A point (``m``, ``R``, ``b``, ...) is where training starts.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"the first argument must be a headflow.Problem, not {type(problem).__name__}")
    config = problem._config.copy()
    known = keywords(computation)
    blocks: dict[str, Any] = {}  # of an activation of Python: those that are no keys
    flat: dict[str, tuple[str, Any]] = {}
    for name, value in flattened(options):
        if name not in known and _own_block(problem, name, known):
            blocks[name] = value
            continue
        if name not in known:
            raise unknown(name, known, computation)
        if known[name].startswith("problem."):
            raise OptionError(f"{name} is set by the problem: problem.replace({name}=...)", known[name])
        if known[name] in flat:
            raise OptionError(f"{name} is given twice", known[name])
        flat[known[name]] = (name, value)
    for key, (name, value) in flat.items():
        if value is not None:
            set_key(config, key, value, name)
        if called is not None:
            called[key] = name
    given = {key for key, (_, value) in flat.items() if value is not None}
    for name, value in blocks.items():
        initial = name.startswith("init_")
        values = np.atleast_2d(np.asarray(to_value("matrix", value, name), dtype=np.float64))
        config.set_block(name.removeprefix("init_"), initial, values)
        given.add(f"flow.{name}" if initial else f"point.{name}")
    _start_at_point(computation, config, given, known)
    return config


def flattened(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Options, those of sections (``flow={"rtol": 1e-3}``) by their full names."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", one) for inner, one in value.items())
        else:
            yield name, value


def _own_block(problem: Problem | None, name: str, known: Mapping[str, str]) -> bool:
    own = None if problem is None else problem._own_activation
    initial = "flow.init_noise" in known and name.startswith("init_")
    return own is not None and any(block == (name.removeprefix("init_") if initial else name) for block, _, _ in own.blocks)


def _start_at_point(computation: str, config: _core.Config, given: set[str], known: Mapping[str, str]) -> None:
    """Who gives a point wants to start there."""
    section = _SECTION_OF_START.get(computation, "flow")
    init = f"{section}.init"
    if any(name.startswith("point.") for name in given) and init in known and init not in given:
        config.set(init, "point")


def watched(label: str, progress: bool | None, called: Mapping[str, str],
            call: Callable[[Progress], tuple[dict[str, Any] | None, bool]],
            problem: Problem | None = None) -> xr.Dataset:
    """The result of a call of the compiled part, with a bar; raises Interrupted with what there is at Ctrl-C."""
    try:
        with Progress(label, progress) as told:
            found, interrupted = call(told)
    except OptionError as error:
        raise renamed(error, called) from None
    result = None if found is None else to_xarray(found)
    if interrupted:
        raise Interrupted(None if result is None else with_own_names(result, problem))
    assert result is not None
    return with_own_names(result, problem)


def with_own_names(result: xr.Dataset, problem: Problem | None) -> xr.Dataset:
    """Says which functions of Python made a result: its configuration has their names alone."""
    if problem is not None and problem._own_names:
        result.attrs["of_python"] = problem._own_names
    return result


def run(computation: str, problem: Problem | None, options: dict[str, Any], progress: bool | None = None) -> xr.Dataset:
    """One of the computations that the program has, too."""
    called: dict[str, str] = {}
    config = configure(computation, problem, options, called)
    return watched(computation, progress, called, lambda told: _core.compute(computation, config, told), problem)


def _with_start(options: dict[str, Any], init_from: xr.Dataset | None, init_time: float | str, init_run: int) -> dict[str, Any]:
    if init_from is None:
        return options
    if not isinstance(init_from, xr.Dataset):
        raise TypeError("init_from must be a result, as flow returns it or headflow.open reads it")
    given = {name.removeprefix("point.") for name, _ in flattened(options)}
    for name in point_of(init_from, init_time, init_run):
        if name in given:
            raise OptionError(f"{name} and init_from both give the start", f"point.{name}")
    return {**point_of(init_from, init_time, init_run), **options}


def flow(problem: Problem, *, init_from: xr.Dataset | None = None, init_time: float | str = "first", init_run: int = 1,
         progress: bool | None = None, **options: Any) -> xr.Dataset:
    """The flow of the order parameters, dm/dtau = -grad E, at its output times.

    Args:
        problem: what is trained.
        init_from: a result of ``flow``, ``sgd``, ``compare``, ``fixed_point`` or ``minima`` to start from, at
            ``init_time`` ("first", "last" or a time) of run ``init_run``.
        progress: a bar; None: if somebody watches.
        options: keys of [flow], [run] and [point] (:func:`headflow.options` lists them).

    >>> import headflow as hf
    >>> run = hf.flow(hf.Problem(prior=hf.flipping(2)), time=100, spacing="log", seed=1)
    >>> run.sizes["time"], run.attrs["outcome"]
    (201, 'reached_time')
    """
    return run("flow", problem, _with_start(options, init_from, init_time, init_run), progress)


def bayes(problem: Problem, *, progress: bool | None = None, **options: Any) -> xr.Dataset:
    """The Bayes risk: the least loss of any attention.

    >>> import headflow as hf
    >>> float(hf.bayes(hf.Problem(prior=hf.flipping(2))).risk) < 0.5
    True
    """
    return run("bayes", problem, options, progress)


def sgd(problem: Problem, *, progress: bool | None = None, **options: Any) -> xr.Dataset:
    """SGD at finite D, exact in law without D-dimensional vectors.

    >>> import headflow as hf
    >>> runs = hf.sgd(hf.Problem(prior=hf.flipping(2)), dim=10**9, batch=100, steps=50, runs=2)
    >>> runs.sizes["run"]
    2
    """
    return run("sgd", problem, options, progress)


def compare(problem: Problem, *, progress: bool | None = None, **options: Any) -> xr.Dataset:
    """SGD and its limits from the same starts.

    >>> import headflow as hf
    >>> both = hf.compare(hf.Problem(prior=hf.flipping(2)), dim=1000, batch=100, steps=50)
    >>> float(abs(both.m - both.m_theory).max()) < 0.2
    True
    """
    return run("compare", problem, options, progress)


def hessian(problem: Problem, *, progress: bool | None = None, **options: Any) -> xr.Dataset:
    """The Hessian of the loss and its spectrum: at a point, at the origin, or at the saddle of equal heads.

    >>> import headflow as hf
    >>> float(hf.hessian(hf.Problem(prior=hf.flipping(2)), at="origin").eigenvalue.min()) < 0
    True
    """
    return run("hessian", problem, options, progress)


def fixed_point(problem: Problem, *, init_from: xr.Dataset | None = None, init_time: float | str = "first",
                init_run: int = 1, progress: bool | None = None, **options: Any) -> xr.Dataset:
    """Where training ends, and whether that is a minimum.

    >>> import headflow as hf
    >>> end = hf.fixed_point(hf.Problem(prior=hf.flipping(2)))
    >>> int(end.index)
    0
    """
    return run("fixed-point", problem, _with_start(options, init_from, init_time, init_run), progress)


def minima(problem: Problem, *, progress: bool | None = None, **options: Any) -> xr.Dataset:
    """The distinct ends of training from many starts.

    >>> import headflow as hf
    >>> found = hf.minima(hf.Problem(prior=hf.flipping(2)), starts=10)
    >>> found.sizes["minimum"] >= 1
    True
    """
    return run("minima", problem, options, progress)


def phases(problem: Problem, *, init_from: xr.Dataset | None = None, init_time: float | str = "first", init_run: int = 1,
           progress: bool | None = None, **options: Any) -> xr.Dataset:
    """When heads learn which direction, along a flow.

    >>> import headflow as hf
    >>> found = hf.phases(hf.Problem(prior=hf.flipping(2)), time=100)
    >>> "tau_s" in found
    True
    """
    return run("phases", problem, _with_start(options, init_from, init_time, init_run), progress)


def prune(problem: Problem, *, progress: bool | None = None, **options: Any) -> xr.Dataset:
    """The loss after removing trained heads, one by one, each time the one that is missed least.

    >>> import headflow as hf
    >>> left = hf.prune(hf.Problem(prior=hf.flipping(2), heads=3))
    >>> float(left.pruned_loss[0]) <= float(left.pruned_loss[-1])
    True
    """
    return run("prune", problem, options, progress)


def similarity(problem: Problem, *, progress: bool | None = None, **options: Any) -> xr.Dataset:
    """Cosines between trained heads.

    >>> import headflow as hf
    >>> hf.similarity(hf.Problem(prior=hf.flipping(2))).similarity.shape
    (2, 2)
    """
    return run("similarity", problem, options, progress)


def attention(problem: Problem, *, progress: bool | None = None, **options: Any) -> xr.Dataset:
    """Attention maps of trained heads, on five sequences.

    >>> import headflow as hf
    >>> hf.attention(hf.Problem(prior=hf.flipping(2))).sizes["sequence"]
    5
    """
    return run("attention", problem, options, progress)


def verify(only: str | list[str] | None = None, *, effort: str = "full", threads: int = 0,
           progress: bool | None = None) -> xr.Dataset:
    """The statements of the paper, measured: all, or those whose name has these words.

    >>> import headflow as hf
    >>> rows = hf.verify(only="Remark 2", effort="quick")
    >>> set(rows.verdict.values) <= {"holds", "holds as corrected", "fails"}
    True
    """
    config = _core.Config()
    set_key(config, "verify.effort", effort, "effort")
    set_key(config, "program.threads", threads, "threads")
    if only is not None:
        set_key(config, "verify.only", only, "only")
    return watched("verify", progress, {"verify.only": "only", "verify.effort": "effort"},
                   lambda told: _core.verify(config, told))
