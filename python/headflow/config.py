"""Keyword arguments, by the one table of keys that files and flags go by, too."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from . import _core
from .errors import OptionError


class Key(NamedTuple):
    """A key of the configuration: ``flow.time``."""

    full_name: str
    help: str
    kind: str
    choices: list[str]

    @property
    def section(self) -> str:
        return self.full_name.split(".", 1)[0]

    @property
    def name(self) -> str:
        return self.full_name.split(".", 1)[1]


@cache
def keys() -> dict[str, Key]:
    """All keys, by full name."""
    return {key[0]: Key(*key) for key in _core.keys()}


# What is not a keyword of a computation in Python: files, and what Python passes on otherwise.
_NOT_HERE = {"flow.init_from", "flow.init_run", "flow.init_time"}
_PROGRAM = ["program.threads", "program.memory"]


@cache
def keywords(computation: str) -> dict[str, str]:
    """The keywords of a computation: short names where only one key has them, and full names."""
    names = [name for name in [*_core.keys_of(computation), *_PROGRAM] if name not in _NOT_HERE]
    short: dict[str, list[str]] = {}
    for name in names:
        short.setdefault(name.split(".", 1)[1], []).append(name)
    out = {name: name for name in names}
    out.update({name: full[0] for name, full in short.items() if len(full) == 1})
    return out


def unknown(keyword: str, known: Iterable[str], where: str) -> OptionError:
    """The error for a keyword that there is not, with the one that may have been meant."""
    known = list(known)
    alike = [name for name in known if name.split(".", 1)[-1] == keyword and name != keyword]
    if len(alike) > 1:
        hint = " or ".join(f"**{{{name!r}: ...}}" for name in alike)
        return OptionError(f"{keyword} of {where} may be {hint}: give its full name", keyword)
    close = difflib.get_close_matches(keyword, known, n=1, cutoff=0.6)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return OptionError(f"{where} has no option {keyword}{hint}", keyword)


def set_key(config: _core.Config, name: str, value: Any, called: str | None = None) -> None:
    """Sets a key by its full name; ``called`` is what the caller calls it."""
    called = called or name
    try:
        config.set(name, to_value(keys()[name].kind, value, called))
    except OptionError as error:
        raise renamed(error, {name: called}) from None


def renamed(error: OptionError, called: Mapping[str, str]) -> OptionError:
    """The error, naming the keyword that was given instead of the key."""
    name = called.get(error.key, error.key)
    # The keyword `time` instead of `flow.time`, in front and wherever else the message has it.
    text = str(error)
    if text.startswith(error.key) and error.key:
        text = name + text[len(error.key):]
    return OptionError(text, error.key, error.value, error.rule)


def to_value(kind: str, value: Any, called: str) -> Any:
    """A value as the compiled part takes it: bool, int, float, str, list of str, or a matrix."""
    if isinstance(value, (str, bool, np.bool_)):
        return value.split(",") if kind == "names" and isinstance(value, str) else _plain(value)
    if kind == "names":
        names = list(value) if isinstance(value, Iterable) else [value]
        if all(isinstance(one, str) for one in names):
            return names
        raise OptionError(f"{called} = {_brief(value)}: must be names", called, _brief(value), "must be names")
    if isinstance(value, int) and not -(2**63) <= value < 2**63 and kind != "integer":
        value = float(value) if abs(value) < 10**300 else np.inf
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OptionError(f"{called} = {_brief(value)}: must be an integer of 64 bits", called, _brief(value))
    if np.ma.is_masked(value):
        raise OptionError(f"{called}: some of its numbers are masked", called)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        array = np.array(None)
    if array.dtype.kind not in "iuf" or array.ndim > 2 or array.size == 0:
        rule = {"matrix": "must be numbers: one, a list, or a list of lists of equal length",
                "integer": "must be an integer", "number": "must be a number"}.get(kind, "must be text")
        raise OptionError(f"{called} = {_brief(value)}: {rule}", called, _brief(value), rule)
    if array.ndim == 0:
        one = array.item()
        if isinstance(one, int) and not -(2**63) <= one < 2**63:
            rule = "must be an integer of 64 bits"
            raise OptionError(f"{called} = {one}: {rule}", called, str(one), rule)
        return one
    return np.ascontiguousarray(np.atleast_2d(array), dtype=np.float64)


def _plain(value: Any) -> Any:
    return bool(value) if isinstance(value, np.bool_) else value


def _brief(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
