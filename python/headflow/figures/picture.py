"""Pictures: figures of matplotlib of which pyplot knows nothing, in our look whoever draws them; and how they are written."""

import contextlib
import errno
import io
import os
from pathlib import Path

from matplotlib.figure import Figure

from .style import our_look

# A file does not say when it was made: the same numbers give the same bytes.
NO_DATE = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


class Picture(Figure):
    """A figure that keeps our look after the drawing is done: ticks are made when they are first needed."""

    def draw(self, renderer):
        with our_look():
            super().draw(renderer)

    def savefig(self, *args, **kwargs):
        with our_look():
            super().savefig(*args, **kwargs)

    def _repr_png_(self):
        """A notebook shows it, whether it has pyplot or not."""
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=100)
        return out.getvalue()


def figure_of(figure, inches):
    """The caller's figure, or a part of it, as it is; if there is none, a picture of this size."""
    return Picture(figsize=inches) if figure is None else figure


def subplots(rows=1, columns=1, figsize=None, **more):
    """A picture and its panels, as of pyplot."""
    figure = Picture(figsize=figsize)
    return figure, figure.subplots(rows, columns, **more)


def settle(figure):
    """A figure of someone else's keeps our look as well: its first ticks are made now, and all others are copies of them."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            axis.get_major_ticks(1)
            axis.get_minor_ticks(1)
    for part in figure.subfigs:
        settle(part)


@contextlib.contextmanager
def whole(path):
    """A name for what becomes `path`, whole or not at all. A symbolic link stays, what it names is replaced; a pipe or device is refused."""
    target = path.resolve() if path.is_symlink() else path
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "is not a regular file")
    part = target.with_name(f".{os.getpid()}.{target.name}")
    try:
        yield part
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def write(figure, path):
    with whole(path) as part:
        figure.savefig(part, format=path.suffix[1:], metadata=NO_DATE[path.suffix[1:]])


def save(figure, path, formats=("png", "svg", "pdf")):
    """Writes path.png, path.svg and path.pdf; `path` has no suffix."""
    # The layout is found once: it takes longer than the writing.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for suffix in formats:
        write(figure, Path(f"{path}.{suffix}"))
