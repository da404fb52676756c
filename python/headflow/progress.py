"""What a long computation shows while it runs: a bar of tqdm, and remarks as warnings."""

from __future__ import annotations

import math
import sys
import time
import warnings
from types import TracebackType
from typing import Any

_PATIENCE = 0.5  # seconds without a bar


class HeadflowWarning(UserWarning):
    """Something that one should know of a computation, and that is no error."""


class Progress:
    """Called by the compiled part with a remark, or with where a computation is.

    Args:
        label: what is computed.
        shown: True, False, or None for a bar if somebody watches (a terminal or a notebook).
    """

    def __init__(self, label: str, shown: bool | None = None) -> None:
        self._label = label
        self._shown = _somebody_watches() if shown is None else shown
        self._begin = time.monotonic()
        self._bar: Any = None
        self._remarks: list[str] = []

    def __call__(self, kind: str, told: Any) -> None:
        if kind == "status":
            self._status(told)
        elif told not in self._remarks:
            self._remarks.append(told)

    def _status(self, now: dict[str, Any]) -> None:
        if not self._shown or time.monotonic() - self._begin < _PATIENCE:
            return
        fraction = now["fraction"]
        if math.isnan(fraction) and now["total"] > 0:
            fraction = now["count"] / now["total"]
        if self._bar is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # without ipywidgets there is a bar of text
                from tqdm.auto import tqdm

            self._bar = tqdm(total=1.0, desc=self._label, leave=False,
                             bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}<{postfix}", delay=0)
        if not math.isnan(fraction):
            self._bar.n = min(max(fraction, 0.0), 1.0)
        self._bar.set_postfix_str(self._words(now, fraction), refresh=False)
        self._bar.refresh()

    def _words(self, now: dict[str, Any], fraction: float) -> str:
        left = now["seconds_left"]
        if math.isnan(left) and 0 < fraction <= 1:
            left = (time.monotonic() - self._begin) * (1 - fraction) / fraction
        words = ["?" if math.isnan(left) else _clock(left)]
        if not math.isnan(now["time"]):
            words.append(f"tau {now['time']:.4g}")
        if not math.isnan(now["loss"]):
            words.append(f"loss {now['loss']:.6g}")
        if now["total"] > 0:
            words.append(f"{now['count']:g} of {now['total']:g} {now['unit']}")
        if now["what"]:
            words.append(now["what"])
        return ", ".join(words)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()
        for text in self._remarks:
            warnings.warn(text, HeadflowWarning, stacklevel=4)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def _somebody_watches() -> bool:
    if "ipykernel" in sys.modules:
        return True
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False
