"""A film of the heads along a flow: their motion in a plane, with tails, and the loss beside it."""

import os
import re
import sys
import types
from pathlib import Path

from matplotlib.animation import FuncAnimation, PillowWriter

from .figures import picture, result_file
from .figures.film import DPI, Scene
from .figures.style import our_look
from .plot import read

KINDS = ("headflow-flow", "headflow-sgd")
ICONS = {"minus": "−", "plus": "+", "fast-backward": "❘◀◀", "step-backward": "❘◀", "play": "▶", '<i class="fa fa-play fa-flip-horizontal"></i>': "◀",
         "pause": "❚❚", "step-forward": "▶❘", "fast-forward": "▶▶❘"}


class Film(FuncAnimation):
    """An animation of matplotlib that a notebook shows, and that is saved as .gif or .html."""

    def __init__(self, figure, show, frames, fps):
        self.fps = fps
        super().__init__(figure, show, frames=frames, interval=1000 / fps, cache_frame_data=False)

    def to_jshtml(self, fps=None, **more):
        """As matplotlib's, whose buttons ask the network for their icons; these ask for nothing."""
        page = re.sub(r"<link[^>]*>", "", super().to_jshtml(fps=fps or self.fps, **more))
        return re.sub(r'<i class="fa fa-([\w-]+)(?: fa-[\w-]+)*"></i>', lambda icon: ICONS.get(icon[0], ICONS.get(icon[1], icon[1])), page)

    def _repr_html_(self):
        return self.to_jshtml()

    def save(self, filename, writer=None, **more):
        """As matplotlib's; without a writer by the suffix: .gif takes Pillow alone, .html nothing."""
        path = Path(filename)
        suffix = path.suffix.lower()
        if writer is None and suffix in (".html", ".htm"):
            with picture.whole(path) as part:
                part.write_text(f"<!doctype html><meta charset=utf-8><title>headflow</title>\n{self._repr_html_()}", encoding="utf-8")
        elif writer is None and suffix == ".gif":
            with picture.whole(path) as part:
                super().save(part, **{"writer": PillowWriter(fps=self.fps), "dpi": DPI, **more})
        else:
            super().save(filename, **{"writer": writer, "fps": None if writer else self.fps, "dpi": DPI, **more})


def animate(run, path=None, fps=20, frames=100, plane=None):
    """A film of the heads along a flow, or along the first of several runs of SGD: an xarray.Dataset, or the path of a file.

    path: where it is saved, too: .gif or .html (any other suffix is for matplotlib and what it finds, as ffmpeg).
    plane: a pair of directions, as (1, 3), or "principal", the two directions in which the heads go furthest; without it the first two
    directions, or the principal ones of more than two. With one direction the other axis is the orthogonal part.

    Returns matplotlib's FuncAnimation, which a notebook shows as it is. Heads have the colours and markers of `plot`; half of the frames go
    with the logarithm of time, half with the way that the heads go.
    """
    data = read(run) if isinstance(run, (str, os.PathLike)) else run
    if data.attrs.get("format") not in KINDS or not result_file.is_known(data):
        raise ValueError(f"its format is {data.attrs.get('format', 'not given')}; a film is of a result of headflow flow or sgd")
    if frames < 2 or fps <= 0:
        raise ValueError(f"frames = {frames}, fps = {fps}: at least two frames, and some in a second")
    data = result_file.modern(data)
    with our_look():
        scene = Scene(data.isel(run=0) if "run" in data.dims else data, plane, int(frames))
        film = Film(scene.figure, scene.show, int(frames), fps)
        if path is not None:
            film.save(path)
    return film


class _Callable(types.ModuleType):
    """headflow.animate is this module and its function, whichever is imported first."""

    def __call__(self, *args, **options):
        return animate(*args, **options)


sys.modules[__name__].__class__ = _Callable
