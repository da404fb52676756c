"""What can go wrong."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Misuse of headflow, or something that it cannot compute: the message says what to do."""


class OptionError(Error, ValueError):
    """An option has a value that breaks a rule.

    Attributes:
        key: the full name of the option, ``"problem.tokens"``.
        value: what was given, as text; empty if nothing was.
        rule: the rule that it breaks.
    """

    def __init__(self, message: str, key: str = "", value: str = "", rule: str = "") -> None:
        super().__init__(message)
        self.key, self.value, self.rule = key, value, rule


class FileError(Error, OSError):
    """A file cannot be read or written."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C has stopped a computation; ``result`` is what there was by then.

    After an interrupted cell of a notebook, ``sys.last_value.result`` has it.
    """

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted; what there is stands in .result of this exception (sys.last_value.result)")
        self.result = result
