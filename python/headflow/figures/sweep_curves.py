"""Numbers of a sweep: curves with error bars, maps, and losses over training time."""

import numpy as np
from matplotlib.ticker import MaxNLocator

from .style import HEADS, MARKERS, line_look, literal, number
from .sweep_axes import combinations, inner, is_number, roles, title_of, value_of, wants_log
from .sweep_block import Block, label_of


class Curves(Block):
    """Numbers with error bars: mean and spread over seeds, else the error that was computed."""

    def __init__(self, data, name, x=None, lines=None):
        super().__init__(data, name)
        axes = self.names + inner(data, name)
        self.x, self.lines, rest = roles(data, [d for d in axes if d in data[name].dims], x, lines)
        self.layout(list(combinations(data, rest)))
        if self.seed in data[name].dims:
            missing = data[name].isnull()
            some = bool((missing.any(self.seed) & ~missing.all(self.seed)).any())
            self.title += f"; mean and standard deviation over {'those of ' * some}{data.sizes[self.seed]} seeds{' that have it' * some}"
        elif f"{name}_error" in data:
            self.title += "; bars: its error"
        bad = int((data.converged == 0).sum()) if name == "loss" and "converged" in data else 0
        if bad:
            self.title += f"; {bad} of {data.converged.size} tasks did not converge"

    def mean_and_bar(self, name, place):
        values = self.data[name].isel({k: i for k, i in place.items() if k in self.data[name].dims})
        if self.seed in values.dims:
            several = values.notnull().sum(self.seed) > 1  # one value has no spread
            return values.mean(self.seed).values.squeeze(), values.std(self.seed).where(several).values.squeeze()
        error = f"{name}_error"
        bar = self.data[error].isel({k: i for k, i in place.items() if k in self.data[error].dims}) if error in self.data else None
        return values.values.squeeze(), None if bar is None else bar.values.squeeze()

    def positions(self):
        if self.x is None:
            return np.zeros(1)
        return self.data[self.x].values if self.x in self.data.coords and is_number(self.data, self.x) else np.arange(self.data.sizes[self.x])

    def draw_panel(self, axes, place, text, first):
        x = self.positions()
        count = self.data.sizes[self.lines] if self.lines else 1
        for i in range(count):
            here = {**place, **({self.lines: i} if self.lines else {})}
            mean, bar = self.mean_and_bar(self.name, here)
            look = line_look(i)
            if self.x and not is_number(self.data, self.x):
                look["linestyle"] = "none"  # nothing lies between two labels
            axes.errorbar(x, np.atleast_1d(mean), None if bar is None else np.atleast_1d(bar), marker=MARKERS[i % len(MARKERS)],
                          markersize=4.5, linewidth=1.3, capsize=2.5, label=value_of(self.data, self.lines, i) if self.lines else None,
                          **look)
        if self.name == "loss" and "bayes" in self.data:
            self.draw_bayes(axes, x, place, count)
        axes.set_title(text, fontsize=9)
        axes.set_ylabel(label_of(self.name))
        self.dress_x(axes, x)
        if first and axes.get_legend_handles_labels()[0]:
            self.legend(axes)

    def draw_bayes(self, axes, x, place, count):
        """One line if the risk is the same for all lines, else one for each."""
        risks = [np.broadcast_to(self.mean_and_bar("bayes", {**place, **({self.lines: i} if self.lines else {})})[0], x.shape)
                 for i in range(count)]
        same = all(np.allclose(risk, risks[0], rtol=0, atol=1e-6, equal_nan=True) for risk in risks)
        for i, risk in enumerate(risks[:1] if same else risks):
            axes.plot(x, risk, color="#000000" if same else HEADS[i % len(HEADS)], linestyle=(0, (1, 1)), linewidth=2,
                      marker="_" if len(x) == 1 else None, label="Bayes risk" if i == 0 else None, zorder=1)

    def dress_x(self, axes, x):
        if self.x is None:
            axes.set_xticks([])
            return
        axes.set_xlabel(title_of(self.data, self.x))
        if not is_number(self.data, self.x):
            axes.set_xticks(x, [literal(value) for value in self.data[self.x].values], rotation=20 if len(x) > 3 else 0)
            axes.set_xlim(-0.4, len(x) - 0.6)
        elif wants_log(x):
            axes.set_xscale("log")
            if len(x) <= 8:  # the values themselves, not powers of ten
                axes.set_xticks(x, [number(value) for value in x])
                axes.minorticks_off()
        elif np.all(x == np.round(x)):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))


class Map(Block):
    """A number over two axes of numbers, as colours."""

    share = False

    def __init__(self, data, name, pair):
        super().__init__(data, name)
        self.pair = pair
        rest = [d for d in self.names + inner(data, name) if d in data[name].dims and d not in pair]
        self.layout(list(combinations(data, rest)))
        values = data[name].mean(self.seed) if self.seed in data[name].dims else data[name]
        if self.seed in data[name].dims:
            self.title += f"; mean over {data.sizes[self.seed]} seeds"
        self.values = values
        self.range = {"vmin": float(values.min()), "vmax": float(values.max())}

    def draw_panel(self, axes, place, text, first):
        x, y = self.pair
        grid = self.values.isel(place).transpose(y, x).values
        image = axes.imshow(grid, origin="lower", aspect="auto", cmap="viridis", **self.range)
        for name, axis, set_ticks in ((x, axes.xaxis, axes.set_xticks), (y, axes.yaxis, axes.set_yticks)):
            step = -(-self.data.sizes[name] // 8)
            set_ticks(np.arange(self.data.sizes[name])[::step], [number(value) for value in self.data[name].values[::step]])
            axis.set_label_text(title_of(self.data, name))
        axes.grid(False)
        axes.set_title(text, fontsize=9)
        self.image = image

    def finish(self, part, axes):
        part.colorbar(self.image, ax=axes, label=label_of(self.name), aspect=30)


class Flows(Block):
    """A loss over training time: a panel and line as for numbers, a thin line for each seed."""

    def __init__(self, data, name):
        super().__init__(data, name)
        _, self.lines, rest = roles(data, self.names, x="time")
        self.layout(list(combinations(data, rest)))
        if self.seed:
            self.title += f"; a line for each of {data.sizes[self.seed]} seeds"

    def draw_panel(self, axes, place, text, first):
        for i in range(self.data.sizes[self.lines] if self.lines else 1):
            here = self.data[[self.name, "tau"]].isel({**place, **({self.lines: i} if self.lines else {})})
            for s in range(self.data.sizes[self.seed]) if self.seed else [0]:
                one = here.isel({self.seed: s}) if self.seed else here
                time, values = one.tau.values, one[self.name].values
                axes.plot(time[time > 0], values[time > 0], linewidth=1.4 if s == 0 else 0.7,
                          label=value_of(self.data, self.lines, i) if self.lines and s == 0 else None, **line_look(i))
        axes.set_xscale("log")
        axes.set_xlabel(r"training time $\tau$")
        axes.set_ylabel(label_of(self.name))
        axes.set_title(text, fontsize=9)
        if first and self.lines:
            self.legend(axes)
