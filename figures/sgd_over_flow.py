"""SGD as dots over the flow as lines: loss, overlaps with the hidden directions, overlaps of heads."""

import math

import matplotlib.pyplot as plt

from style import HEADS, load

NAMES = {"softmax": "softmax", "softmax-1": "softmax-1", "b-softmax": "Bayes-softmax"}


def draw_row(axes, data, title, run=0):
    """One activation: four panels over a logarithmic time axis that starts at the first step."""
    time, sgd, theory = data.time.values[1:], data.isel(run=run), data.isel(run=run, theory=0)
    dots = dict(linestyle="none", marker="o", markersize=3, markeredgewidth=0)
    heads = data.sizes["head"]

    axes[0].fill_between(time, *(sgd.batch_loss.values[1:] + s * 2 * sgd.batch_loss_error.values[1:]
                                 for s in (-1, 1)), color="#bbbbbb", alpha=0.6, linewidth=0,
                         label=r"$\pm$ 2 standard errors")
    axes[0].plot(time, sgd.batch_loss.values[1:], color="#444444", label="SGD (a batch)", **dots)
    axes[0].plot(time, theory.loss_theory.values[1:], color="#D55E00", linewidth=1.4, label="flow")
    axes[0].set_ylabel(r"loss $E$")
    axes[0].set_title(title, loc="left")
    axes[0].legend(fontsize=8)
    for f in (0, 1):
        for h in range(heads):
            color = HEADS[h % len(HEADS)]
            axes[1 + f].plot(time, theory.m_theory.values[1:, h, f], color=color, linewidth=1.2)
            axes[1 + f].plot(time, sgd.m.values[1:, h, f], color=color, label=f"$h = {h + 1}$", **dots)
        axes[1 + f].set_ylabel(f"$m_{{h{f + 1}}} = k_h\\cdot k^*_{f + 1}$")
    axes[1].legend(fontsize=8)
    pairs = [(h, k) for h in range(heads) for k in range(h, heads)]
    for i, (h, k) in enumerate(pairs):
        color = HEADS[i % len(HEADS)]
        label = f"$q_{{{h + 1}{k + 1}}}$" if len(pairs) <= 4 else None
        axes[3].plot(time, theory.q_theory.values[1:, h, k], color=color, linewidth=1.2)
        axes[3].plot(time, sgd.q.values[1:, h, k], color=color, label=label, **dots)
    axes[3].set_ylabel(r"$q_{hh'} = k_h\cdot k_{h'}$")
    if len(pairs) <= 4:
        axes[3].legend(fontsize=8)
    for panel in axes:
        panel.set_xscale("log")
    runs = data.sizes["run"]
    text = (f"SGD − flow, {runs} run{'s' * (runs > 1)}:  "
            f"$m$ rms {data.attrs['flow_rms_m']:.2g}, largest {data.attrs['flow_largest_m']:.2g};  "
            f"$q$ rms {data.attrs['flow_rms_q']:.2g}, largest {data.attrs['flow_largest_q']:.2g};  "
            f"$D^{{-1/2}}$ = {1 / math.sqrt(data.attrs['dim']):.2g}")
    # Below the row, in the space that the last panel's label leaves: not part of the layout.
    note = axes[0].annotate(text, (0, 0), (0, -38), xycoords="axes fraction",
                            textcoords="offset points", fontsize=9, color="#444444", va="top",
                            annotation_clip=False)
    note.set_in_layout(False)


def draw_rows(folder, names, headline):
    datasets = [load(folder, name) for name in names]
    figure, rows = plt.subplots(len(datasets), 4, figsize=(13, 0.5 + 3.2 * len(datasets)),
                                squeeze=False)
    for axes, name, data in zip(rows, names, datasets):
        draw_row(axes, data, NAMES[name.split("_", 2)[2]])
        for panel in axes:
            panel.set_xlabel("training time $\\tau = \\gamma \\times$ steps\n\n")
    figure.suptitle(headline)
    return figure
