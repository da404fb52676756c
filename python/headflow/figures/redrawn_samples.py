"""Overlaps with redrawn minus overlaps with fixed samples, against what fixed samples alone predict.

A flow with redrawn samples averages their noise over its steps, and that with fixed ones keeps it. So the
difference should have the spread of fixed runs among each other. For a run it is taken from the other
fixed runs: the ratio then has the law of Student's t, with two degrees of freedom fewer than runs.
"""

import math

import numpy as np
from matplotlib.lines import Line2D

from .picture import subplots
from .style import HEADS, MARKERS, WIDTH, below, load, power_of_ten, settings

LINES = ["-", "--"]


def differences(data):
    """Redrawn minus fixed, (samples, seed, time, head, feature), without the common start."""
    m = data.m_t.transpose("sampling", "samples", "seed", "time", "attention_head", "feature").sel(sampling=["redrawn", "fixed"]).values
    return (m[0] - m[1])[:, :, 1:]


def predicted(data):
    """For each run the spread of the other runs with fixed samples, entry by entry."""
    fixed = data.m_t.sel(sampling="fixed").transpose("samples", "seed", "time", "attention_head", "feature").values[:, :, 1:]
    return np.stack([np.delete(fixed, r, axis=1).std(axis=1, ddof=1) for r in range(fixed.shape[1])], axis=1)


def student(x, freedom):
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    return scale * (1 + x**2 / freedom) ** (-(freedom + 1) / 2)


def rms(x):
    return np.sqrt((x**2).mean(axis=tuple(range(1, x.ndim))))


def mixture(x, spread):
    """Pooled over entries and times: Gaussians of their predicted spreads, which differ widely."""
    s = np.sqrt((spread**2).mean(axis=0)).ravel()
    return np.mean(np.exp(-0.5 * (x[:, None] / s) ** 2) / (s * math.sqrt(2 * math.pi)), axis=1)


def draw_differences(axes, off, spread):
    reach = 3 * rms(off).max()
    bins, x = np.linspace(-reach, reach, 51), np.linspace(-reach, reach, 301)
    for i in range(len(off)):
        axes.hist(off[i].ravel(), bins, density=True, histtype="stepfilled", facecolor=HEADS[i], alpha=(0.3, 0.5)[i % 2])
        axes.plot(x, mixture(x, spread[i]), color=HEADS[i], linewidth=2, linestyle=LINES[i % 2])
    axes.set_yscale("log")
    axes.set_ylim(0.5 / (off[0].size * (bins[1] - bins[0])))  # half a count
    axes.set_xlabel(r"$m_{hf}$: redrawn $-$ fixed")
    axes.set_ylabel("density")


def draw_ratios(axes, ratio):
    bins, x = np.linspace(-5.5, 5.5, 34), np.linspace(-5.5, 5.5, 301)
    for i in range(len(ratio)):
        axes.hist(ratio[i].ravel(), bins, density=True, histtype="step", color=HEADS[i], linewidth=1.8, linestyle=LINES[i % 2])
    axes.plot(x, student(x, ratio.shape[1] - 2), color="black", linewidth=2, linestyle=":")
    axes.set_xlabel("difference / predicted")


def draw_sizes(axes, off, spread, samples):
    """Bars: the standard error over runs."""
    size, by_run = rms(off), np.sqrt((off**2).mean(axis=(2, 3, 4)))
    axes.errorbar(samples, size, by_run.std(axis=1, ddof=1) / math.sqrt(off.shape[1]), color=HEADS[1], marker=MARKERS[1],
                  linestyle="none", markersize=7, capsize=4, label="measured")
    axes.plot(samples, rms(spread), color=HEADS[0], marker="o", fillstyle="none", linestyle="none", markersize=12,
              markeredgewidth=1.5, label="predicted")
    wide = np.array([samples[0] / 2, samples[-1] * 2])
    axes.plot(wide, size[0] * np.sqrt(samples[0] / wide), color="black", linewidth=1.3, linestyle="--", label="$N^{-1/2}$")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_yticks([0.005, 0.01, 0.02, 0.05, 0.1], ["0.005", "0.01", "0.02", "0.05", "0.1"])
    axes.set_yticks([], minor=True)
    axes.set_ylim(size.min() * 0.6, size.max() * 1.8)
    axes.set_xlabel("samples $N$")
    axes.set_ylabel("rms difference")
    axes.legend(fontsize=10, handlelength=1.5, borderaxespad=0, handletextpad=0.5)


def draw(folder, name):
    data = load(folder, name)
    samples = data.samples.values
    off, spread = differences(data), predicted(data)
    figure, panels = subplots(1, 3, figsize=(WIDTH, 4.1), gridspec_kw={"width_ratios": [1.2, 1.2, 1]})
    draw_differences(panels[0], off, spread)
    draw_ratios(panels[1], off / spread)
    draw_sizes(panels[2], off, spread, samples)
    figure.suptitle(f"{settings(data)}, {off.shape[1]} runs")
    lines = [Line2D([], [], color=HEADS[i], linewidth=2, linestyle=LINES[i % 2], label=f"$N = {power_of_ten(n)}$")
             for i, n in enumerate(samples)]
    below(figure, [*lines, Line2D([], [], color="black", linewidth=2, linestyle=":",
                                  label=f"Student's $t$, {off.shape[1] - 2} degrees of freedom")])
    return figure
