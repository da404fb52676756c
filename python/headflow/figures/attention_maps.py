"""Attention of each head on the tokens of a few sequences, the relevant token framed."""

from matplotlib.colors import PowerNorm
from matplotlib.patches import Rectangle

from .picture import subplots
from .style import ACTIVATIONS, WIDTH, load, settings

FRAME = "#D55E00"


def draw(folder, name):
    data = load(folder, name)
    weights = data.attention.transpose("activation", "sequence", "attention_head", "token").values
    relevant = data.relevant.transpose("activation", "sequence").values
    heads, tokens = weights.shape[2:]
    # Weights of softmax-1 reach v, those of Bayes-softmax H. The root keeps small ones visible on one scale.
    norm = PowerNorm(0.5, 0, max(heads, weights.max()))
    figure, panels = subplots(*weights.shape[:2], figsize=(WIDTH, 1.55 * len(weights) + 1.1), squeeze=False,
                                  sharex=True, sharey=True)
    for a, line in enumerate(panels):
        for s, axes in enumerate(line):
            image = axes.imshow(weights[a, s], cmap="Greys", norm=norm, aspect="equal",
                                extent=(0.5, tokens + 0.5, heads + 0.5, 0.5))
            axes.add_patch(Rectangle((relevant[a, s] - 0.5, 0.5), 1, heads, fill=False, edgecolor=FRAME, linewidth=2.5,
                                     clip_on=False, zorder=4))
            axes.set_xticks(range(1, tokens + 1))
            axes.set_yticks(range(1, heads + 1))
            axes.tick_params(length=0)
            axes.grid(False)
            axes.spines[:].set_visible(True)
        line[0].set_ylabel(f"{ACTIVATIONS[data.activation.values[a]][0]}\nhead $h$")
    for s, axes in enumerate(panels[0]):
        axes.set_title(f"sequence {s + 1}")
    for axes in panels[-1]:
        axes.set_xlabel(r"token $\ell$")
    bar = figure.colorbar(image, ax=panels, location="bottom", aspect=45, shrink=0.8, pad=0.03,
                          label=r"attention of head $h$ to token $\ell$, $\sigma(\chi, b, v; h)_\ell$ (square-root scale);" "\n"
                                "at most 1 with softmax, $v$ with softmax-1 and $H$ with Bayes-softmax")
    ticks = [0, 0.1, 0.5, *range(1, int(norm.vmax) + 1)]
    bar.set_ticks(ticks, labels=map(str, ticks))
    figure.suptitle(settings(data) + "; framed: the relevant token")
    return figure
