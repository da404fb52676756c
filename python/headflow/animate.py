"""A film of the heads along a flow: their motion in a plane, with tails, and the loss beside it."""

import os
from pathlib import Path

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.backends.backend_agg import RendererAgg
from PIL import Image

from .figures import heads, picture, result_file
from .figures.style import HEADS, our_look, overlap, settings
from .plot import read

KINDS = ("headflow-flow", "headflow-sgd")
DPI = 80
HEIGHT = 4.4  # inches


def principal(m):
    """The two directions in which the heads have gone furthest, as rows; the largest entry of each is positive."""
    _, _, rows = np.linalg.svd(m.reshape(-1, m.shape[-1]), full_matrices=False)
    return [row * np.sign(row[np.abs(row).argmax()]) for row in rows[:2]]


def plane_of(data, plane):
    """Positions of the heads, (time, head, 2), and what the two axes are."""
    m = data.m.values
    features = m.shape[-1]
    if features == 1:  # what a head has of the only direction, and of all others
        return np.stack([m[..., 0], np.linalg.norm(data.R.values, axis=-1)], -1), (overlap(1, definition=True), r"$|R_h|$, orthogonal part")
    if plane is None:
        plane = (1, 2) if features == 2 else "principal"
    if isinstance(plane, str):
        if plane != "principal":
            raise ValueError(f'plane = "{plane}": a pair of directions, as (1, 2), or "principal"')
        return np.stack([m @ row for row in principal(m)], -1), ("principal direction 1 of the heads", "principal direction 2")
    first, second = plane
    if not {first, second} <= set(range(1, features + 1)):
        raise ValueError(f"plane = {tuple(plane)}: directions are 1 to {features}")
    return m[..., [first - 1, second - 1]], (overlap(first, definition=True), overlap(second, definition=True))


def moments(time, places, frames):
    """log tau of each frame: half of the film goes with the logarithm of time, half with the way of the heads."""
    log = np.log(time)
    gone = np.append(0, np.cumsum(np.linalg.norm(np.diff(places, axis=0), axis=-1).sum(axis=-1)))
    parts = [x / x[-1] for x in (log - log[0], gone) if x[-1] > 0]
    return np.interp(np.linspace(0, 1, frames), np.mean(parts, axis=0), log)


class Moving(picture.Picture):
    """A picture of which frames are taken: in a third of the time of matplotlib's way, which draws twice and reads formulas each time,
    and PNGs in a third of the size."""

    renderer = None

    def savefig(self, fname, *, format=None, dpi=None, **more):
        if format not in ("png", "rgba") or dpi not in (None, self.dpi):
            super().savefig(fname, format=format, dpi=dpi, **more)
            return
        self.renderer = self.renderer or RendererAgg(*self.get_size_inches() * self.dpi, self.dpi)
        self.renderer.clear()
        self.draw(self.renderer)
        pixels = np.asarray(self.renderer.buffer_rgba())
        if format == "rgba":
            fname.write(pixels.tobytes())
        else:
            Image.fromarray(pixels[..., :3]).quantize(64, dither=Image.Dither.NONE).save(fname, "png")


class Film(FuncAnimation):
    """An animation of matplotlib that a notebook shows, and that is saved as .gif or .html."""

    def __init__(self, figure, show, frames, fps):
        self.fps = fps
        super().__init__(figure, show, frames=frames, interval=1000 / fps, cache_frame_data=False)

    def _repr_html_(self):
        return self.to_jshtml(fps=self.fps)

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


class Scene:
    """The picture that moves. `show(i)` is its i-th frame."""

    def __init__(self, data, plane, frames):
        later = data.time.values > 0
        if np.count_nonzero(later) < 2:
            raise ValueError("a film takes two times after 0 or more: give the flow more outputs")
        places, names = plane_of(data, plane)
        loss = data["loss" if "loss" in data else "batch_loss"].values
        self.time, self.places, self.loss = data.time.values[later], places[later], loss[later]
        self.frames = moments(self.time, self.places, frames)
        self.figure = Moving(figsize=(8.6, HEIGHT), dpi=DPI)
        self.plane, self.curve = self.figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.25, 1]})
        self.lay_out(names)
        self.figure.suptitle(settings(data))
        heads.legend(self.figure, self.places.shape[1])
        self.show(frames - 1)
        self.figure.draw_without_rendering()
        self.figure.set_layout_engine("none")  # found once: nothing trembles, and frames take half the time

    def lay_out(self, names):
        """All that will move, at its start."""
        count = range(self.places.shape[1])
        self.tails = [[self.plane.plot([], [], **heads.stage_look(h, k))[0] for k in range(heads.STAGES)] for h in count]
        self.ends = [self.plane.plot([], [], **heads.end_look(h))[0] for h in count]
        heads.draw_origin(self.plane)
        heads.set_limits(self.plane, self.places, least=0.5)
        self.plane.set_xlabel(names[0])
        self.plane.set_ylabel(names[1])
        self.curve.plot(self.time, self.loss, color="#bbbbbb", linewidth=1.2)
        self.so_far = self.curve.plot([], [], color=HEADS[1], linewidth=1.8)[0]
        self.now = self.curve.plot([], [], "o", color=HEADS[1], markersize=6)[0]
        self.curve.set_xscale("log")
        self.curve.set_xlabel(r"training time $\tau$")
        self.curve.set_ylabel("loss $E$")

    def until(self, values, log):
        """values up to this moment, which itself lies between two times."""
        logs = np.log(self.time)
        before = np.searchsorted(logs, log)
        flat = values.reshape(len(values), -1)
        last = [np.interp(log, logs, column) for column in flat.T]
        return np.concatenate([flat[:before], [last]]).reshape(-1, *values.shape[1:])

    def show(self, i):
        log = self.frames[i]
        places, loss, time = (self.until(values, log) for values in (self.places, self.loss, self.time))
        for h, (tail, end) in enumerate(zip(self.tails, self.ends)):
            for line, piece in zip(tail, heads.stages(*places[:, h].T)):
                line.set_data(*piece)
            end.set_data(places[-1:, h, 0], places[-1:, h, 1])
        time[-1] = np.exp(log)
        self.so_far.set_data(time, loss)
        self.now.set_data(time[-1:], loss[-1:])
        self.plane.set_title(f"τ = {time[-1]:.0f}" if time[-1] >= 100 else f"τ = {time[-1]:.3g}")
        self.curve.set_title(f"loss {loss[-1]:.4f}")
        return [line for tail in self.tails for line in tail] + self.ends + [self.so_far, self.now]


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
