"""Loss after removing heads one by one: mean and spread over starts."""

from .picture import subplots
from .style import ACTIVATIONS, PRIORS, WIDTH, below, configuration, load, settings


def draw(folder, name):
    data = load(folder, name)
    problem = configuration(data)["problem"]
    spare = problem["heads"] - problem["features"]
    figure, panels = subplots(1, data.sizes["prior"], figsize=(WIDTH, 4.4), squeeze=False, sharey=True)
    for axes, prior in zip(panels[0], data.prior.values):
        axes.axvspan(-0.3, spare, color="#f2f2f2", linewidth=0, zorder=0)
        axes.axvline(spare, color="#666666", linewidth=1, linestyle="--")
        axes.text(spare - 0.1, 0.93, "$H - F$", transform=axes.get_xaxis_transform(), ha="right", color="#444444")
        for i, activation in enumerate(data.activation.values):
            label, color, marker, line = ACTIVATIONS[activation]
            loss = data.pruned_loss.sel(prior=prior, activation=activation)
            aside = 0.06 * (i - 1)  # bars beside each other
            axes.errorbar(data.removed + aside, loss.mean("seed"), loss.std("seed", ddof=1), color=color, marker=marker,
                          linestyle=line, markersize=6, linewidth=1.5, capsize=3, label=label)
        axes.set_title(PRIORS[prior])
        axes.set_xlim(-0.3, problem["heads"] - 0.7)
        axes.set_xlabel(r"removed heads $\tilde H$")
    panels[0, 0].set_ylim(0)
    panels[0, 0].set_ylabel(r"loss $\mathcal{E}$ after pruning")
    figure.suptitle(f"{settings(data)}, {data.sizes['seed']} starts")
    below(figure, panels[0, 0].get_legend_handles_labels()[0])
    return figure
