"""Results as xarray.Datasets: the variables and attributes of the program's result files."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import numpy as np
import xarray as xr

from .errors import FileError


def to_xarray(found: dict[str, Any]) -> xr.Dataset:
    """From what the compiled part returns."""
    variables = {}
    for name, dimensions, values, attributes in found["variables"]:
        if isinstance(values, list):  # texts
            values = np.array(values, dtype=str).reshape(found["shapes"][name])
        variables[name] = xr.Variable(dimensions, values, attributes)
    coordinates = {name: one for name, one in variables.items() if one.dims == (name,)}
    data = {name: one for name, one in variables.items() if name not in coordinates}
    return xr.Dataset(data, coordinates, found["attributes"])


def open(path: str | os.PathLike[str]) -> xr.Dataset:  # noqa: A001: hf.open reads as it should
    """A result file, of the program or of ``Dataset.to_netcdf``, as a Dataset in memory.

    >>> import tempfile
    >>> import headflow as hf
    >>> with tempfile.NamedTemporaryFile(suffix=".nc") as file:
    ...     hf.flow(hf.Problem(prior=hf.flipping(2)), time=1).to_netcdf(file.name)
    ...     again = hf.open(file.name)
    >>> again.attrs["format"]
    'headflow-flow'
    """
    if not os.path.exists(path):
        raise FileError(f"{os.fspath(path)}: there is no such file")
    try:
        with xr.open_dataset(path) as opened:
            return opened.load()
    except (ValueError, OSError) as error:
        raise FileError(f"{os.fspath(path)}: cannot be read as a result: {error}") from None


def writable(path: str | os.PathLike[str]) -> str:
    """The name of a file that a result can be written to; looked at before anything is computed."""
    name = os.fsdecode(path)
    if name == "" or os.path.isdir(name):
        raise FileError(f"{name or repr(name)}: is no name of a file")
    if not os.access(os.path.dirname(os.path.abspath(name)), os.W_OK):
        raise FileError(f"{name}: its folder is not there, or cannot be written to")
    if not any(importlib.util.find_spec(module) for module in ("netCDF4", "h5netcdf", "scipy")):
        raise FileError(f'{name}: writing it needs netCDF4: pip install "headflow[files]"')
    return name


def write(result: xr.Dataset, name: str) -> None:
    """Under another name first: a result is never half a file."""
    part = f"{name}.{os.getpid()}.part"
    try:
        result.to_netcdf(part)
        os.replace(part, name)
    except OSError as error:
        raise FileError(f"{name}: cannot be written: {error}") from None
    finally:
        if os.path.exists(part):
            os.remove(part)


@xr.register_dataset_accessor("headflow")
class HeadflowAccessor:
    """``run.headflow``: what headflow can do with a result."""

    def __init__(self, result: xr.Dataset) -> None:
        self._result = result

    def plot(self, **options: Any) -> Any:
        """The picture that ``headflow plot`` draws, as a matplotlib Figure."""
        from .plot import plot

        return plot(self._result, **options)

    def animate(self, *args: Any, **options: Any) -> Any:
        """The heads' motion, as HTML in a notebook, or as a file."""
        from .animate import animate

        return animate(self._result, *args, **options)

    @property
    def configuration(self) -> str:
        """The configuration file (TOML) that reproduces the result."""
        return str(self._result.attrs.get("configuration", ""))

    def point(self, time: float | str = "last", run: int = 1) -> dict[str, np.ndarray]:
        """m, R and the blocks of the activation at a time: what ``loss`` or ``flow`` take as a start.

        >>> import headflow as hf
        >>> problem = hf.Problem(prior=hf.flipping(2))
        >>> run = hf.flow(problem, time=10)
        >>> end = run.headflow.point()
        >>> abs(hf.loss(problem, **end).loss - float(run.loss[-1])) < 1e-6
        True
        """
        return point_of(self._result, time, run)


def point_of(result: xr.Dataset, time: float | str = "last", run: int = 1) -> dict[str, np.ndarray]:
    """m, R and blocks of a result at a time."""
    if "m" not in result:
        raise ValueError("the result has no point: it has no variable m")
    at: dict[str, Any] = {}
    for name in ("run", "minimum"):
        if name in result.m.dims:
            if not 1 <= run <= result.sizes[name]:
                raise ValueError(f"the result has {name}s 1 to {result.sizes[name]}, not {run}")
            at[name] = run - 1
    if "time" in result.m.dims:
        times = result["time"].values
        if time == "last":
            at["time"] = len(times) - 1
        elif time == "first":
            at["time"] = 0
        elif isinstance(time, str):
            raise ValueError(f'time is "first", "last" or a number, not {time!r}')
        elif not times[0] <= time <= times[-1]:
            raise ValueError(f"the result has times {times[0]:g} to {times[-1]:g}, not {time}")
        else:
            at["time"] = int(np.abs(times - time).argmin())
    names = ["m", "R"] + [str(name) for name, one in result.data_vars.items() if one.attrs.get("role") == "parameter"]
    return {name: result[name].isel({d: i for d, i in at.items() if d in result[name].dims}).values
            for name in names if name in result}
