"""headflow: how the heads of attention specialise, in a solvable model.

>>> import headflow as hf
>>> problem = hf.Problem(activation="softmax", prior=hf.flipping(2, 2), tokens=4, heads=2)
>>> run = hf.flow(problem, time=1e3, spacing="log", seed=1)  # an xarray.Dataset
>>> float(run.loss[-1]) < float(run.loss[0])
True

Names are those of the program ``headflow`` everywhere. Without the compiled part (in a source tree) there
are only ``headflow.figures`` and ``headflow.plot``, which draw.
"""

from __future__ import annotations

import importlib
from typing import Any

_why: ImportError | None = None
try:
    from . import _core
except ImportError as _error:
    if "_core" not in str(_error):
        raise
    _why = _error
    __version__ = "unknown"
else:
    from .compute import (attention, bayes, compare, fixed_point, flow, hessian, minima, phases, prune, sgd, similarity,
                          verify)
    from .errors import Error, FileError, Interrupted, OptionError
    from .loss import Evaluation, Loss, PointValues, loss
    from .options import options
    from .own import activation, prior
    from .priors import Prior, discrete, flipping, gaussian, mixture
    from .problem import Problem
    from .progress import HeadflowWarning
    from .results import open  # noqa: A004
    from .sweep import Axis, sweep

    __version__ = _core.version
    __all__ = ["Axis", "Error", "Evaluation", "FileError", "HeadflowWarning", "Interrupted", "Loss", "OptionError",
               "PointValues", "Prior", "Problem", "activation", "attention", "bayes", "compare", "discrete", "fixed_point",
               "flipping", "flow", "gaussian", "hessian", "loss", "minima", "mixture", "open", "options", "phases", "prior",
               "prune", "sgd", "similarity", "sweep", "verify"]


def __getattr__(name: str) -> Any:
    """What draws is imported when it is wanted; what computes may not be here."""
    if name in ("plot", "animate"):
        return importlib.import_module(f".{name}", __name__)  # the module can be called
    if _why is None or name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise ImportError(f"headflow.{name} needs the compiled part of the package, which is not here: pip install .") from _why
