"""The picture that moves: heads in a plane with their tails, and the loss beside it, at any time of a run."""

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from PIL import Image

from . import heads
from .picture import Picture
from .style import HEADS, overlap, settings

DPI = 80
WIDTH, HEIGHT = 8.6, 4.8  # inches
LEAST = 0.5  # of one side of the plane over the other


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


class Moving(Picture):
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
        self.figure = Moving(figsize=(WIDTH, HEIGHT), dpi=DPI)
        width = np.clip(1 / heads.shape(self.places, least=LEAST), 0.6, 1.25)  # a plane is as wide as it needs to be
        self.plane, self.curve = self.figure.subplots(1, 2, gridspec_kw={"width_ratios": [width, 1]})
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
        heads.set_limits(self.plane, self.places, least=LEAST)
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
