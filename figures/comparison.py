"""SGD as dots over the flow as lines: loss, overlaps with the hidden directions, overlaps of heads."""

import math

from style import HEADS, LINES

NAMES = {"softmax": "softmax", "softmax-1": "softmax-1", "b-softmax": "Bayes-softmax"}


def draw_row(axes, data, title, run=0, note=True):
    """One run: four panels over a logarithmic time axis that starts at the first step. Theories after the first are dashed."""
    time, sgd = data.time.values[1:], data.isel(run=run)
    theories = [(str(name), sgd.sel(theory=name), look) for name, look in zip(data.theory.values, LINES)]
    dots = dict(linestyle="none", marker="o", markersize=3, markeredgewidth=0)
    heads, features = data.sizes["attention_head"], min(2, data.sizes["feature"])

    axes[0].fill_between(time, *(sgd.batch_loss.values[1:] + s * 2 * sgd.batch_loss_error.values[1:]
                                 for s in (-1, 1)), color="#bbbbbb", alpha=0.6, linewidth=0,
                         label=r"$\pm$ 2 standard errors")
    axes[0].plot(time, sgd.batch_loss.values[1:], color="#444444", label="SGD (a batch)", **dots)
    for name, theory, look in theories:
        axes[0].plot(time, theory.loss_theory.values[1:], linestyle=look, color="#D55E00", linewidth=1.4, label=name)
    axes[0].set_ylabel(r"loss $E$")
    axes[0].set_title(title, loc="left")
    axes[0].legend(fontsize=8)
    for f in range(features):
        for h in range(heads):
            color = HEADS[h % len(HEADS)]
            for _, theory, look in theories:
                axes[1 + f].plot(time, theory.m_theory.values[1:, h, f], linestyle=look, color=color, linewidth=1.2)
            axes[1 + f].plot(time, sgd.m.values[1:, h, f], color=color, label=f"$h = {h + 1}$", **dots)
        axes[1 + f].set_ylabel(f"$m_{{h{f + 1}}} = k_h\\cdot k^*_{f + 1}$")
    axes[1].legend(fontsize=8)
    axes[2].set_visible(features == 2)
    pairs = [(h, k) for h in range(heads) for k in range(h, heads)]
    for i, (h, k) in enumerate(pairs):
        color = HEADS[i % len(HEADS)]
        label = f"$q_{{{h + 1}{k + 1}}}$" if len(pairs) <= 4 else None
        for _, theory, look in theories:
            axes[3].plot(time, theory.q_theory.values[1:, h, k], linestyle=look, color=color, linewidth=1.2)
        axes[3].plot(time, sgd.q.values[1:, h, k], color=color, label=label, **dots)
    axes[3].set_ylabel(r"$q_{hh'} = k_h\cdot k_{h'}$")
    if len(pairs) <= 4:
        axes[3].legend(fontsize=8)
    for panel in axes:
        panel.set_xscale("log")
    if note:
        draw_note(axes[0], data)


def draw_note(axes, data):
    """How far SGD is from each theory, below the row."""
    runs = data.sizes["run"]
    def deviation(key, name):
        """An attribute until format version 3."""
        return float(data[key].sel(theory=name)) if key in data else data.attrs[f"{name}_{key}"]

    of = {name: [f"{deviation(key, name):.2g}" for key in ("rms_m", "largest_m", "rms_q", "largest_q")]
          for name in map(str, data.theory.values)}
    if len(of) == 1:
        said = [f"SGD − {name}:  $m$ rms {m}, largest {m2};  $q$ rms {q}, largest {q2}" for name, (m, m2, q, q2) in of.items()]
    else:
        said = [f"SGD − {name}:  $m$ rms {m}, $q$ rms {q}" for name, (m, _, q, _) in of.items()]
    text = ";   ".join([*said, f"$D^{{-1/2}}$ = {1 / math.sqrt(data.attrs['dim']):.2g}", f"{runs} run{'s' * (runs > 1)}"])
    # In the space that the last panel's label leaves: not part of the layout.
    note = axes.annotate(text, (0, 0), (0, -38), xycoords="axes fraction", textcoords="offset points",
                         fontsize=9, color="#444444", va="top", annotation_clip=False)
    note.set_in_layout(False)

