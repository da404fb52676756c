"""What a sweep has of each task: paths and ends of heads, their similarity, attention maps."""

import numpy as np
from matplotlib.lines import Line2D

from .heads import draw_over_time, draw_plane, present, set_limits
from .style import LINES
from .sweep_axes import combinations
from .sweep_block import MOST_PANELS, Block

GRID_SIDE = 6


class Each(Block):
    """One panel for each task; of seeds only the first."""

    def __init__(self, data, name, most=MOST_PANELS):
        super().__init__(data, name)
        long = [axis for axis in self.names if data.sizes[axis] > 1]
        grid = self.cells == 1 and len(long) == 2 and min(data.sizes[axis] for axis in long) <= GRID_SIDE
        if grid:  # the longer axis across, the other down
            long.sort(key=lambda axis: data.sizes[axis] if data.sizes[axis] <= GRID_SIDE else 0)
        panels = [({**place, **({self.seed: 0} if self.seed else {})}, text) for place, text in combinations(data, long)]
        fixed = {axis: 0 for axis in self.names if axis not in long}
        panels = [({**fixed, **place}, text) for place, text in panels]
        if grid:
            self.layout(panels, data.sizes[long[1]] * GRID_SIDE, data.sizes[long[1]])
        else:
            self.layout(panels, most)
        if self.seed and data.sizes[self.seed] > 1:
            self.title += f"; of {data.sizes[self.seed]} seeds the first"

    def of(self, name, place):
        return self.data[name].isel({k: i for k, i in place.items() if k in self.data[name].dims})


class Trajectories(Each):
    """Overlaps over training time: a colour and a marker a head, dashes a feature."""

    def draw_panel(self, axes, place, text, first):
        m, time = self.of(self.name, place).values, self.of("tau", place).values
        for f in range(m.shape[2]):
            draw_over_time(axes, time, m[:, :present(m), f], linestyle=LINES[f % len(LINES)], linewidth=1.2, markersize=3.5)
        axes.set_xlabel(r"training time $\tau$")
        axes.set_ylabel(r"$m_{hf}$")
        axes.set_title(text, fontsize=9)
        if first and m.shape[2] > 1:
            handles = [Line2D([], [], color="#444444", linestyle=LINES[f % len(LINES)]) for f in range(m.shape[2])]
            axes.legend(handles, [f"$f = {f + 1}$" for f in range(m.shape[2])], fontsize=8)


class Planes(Each):
    """Heads in the plane of the first two hidden directions: their paths, or their ends."""

    share = False

    def draw_panel(self, axes, place, text, first):
        draw_plane(axes, self.of(self.name, place).values)
        axes.set_title(text, fontsize=9)

    def finish(self, part, axes):
        """One scale, so that panels can be compared; none of them a thin strip."""
        shown = [self.of(self.name, place).values for place, *_ in self.panels]
        set_limits(axes, np.concatenate([m.reshape(-1, m.shape[-1]) for m in shown]), least=0.5)


class Similarities(Each):
    share = False

    def draw_panel(self, axes, place, text, first):
        matrix = self.of(self.name, place).values
        there = ~np.isnan(np.diag(matrix))
        matrix = matrix[np.ix_(there, there)]
        image = axes.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
        if len(matrix) <= 8:  # for those who see no colours
            for (h, k), value in np.ndenumerate(matrix):
                axes.text(k, h, f"{value:.1f}", ha="center", va="center", fontsize=8 if len(matrix) <= 5 else 6,
                          color="white" if abs(value) > 0.6 else "black")
        ticks = range(len(matrix))
        axes.set_xticks(ticks, [h + 1 for h in ticks])
        axes.set_yticks(ticks, [h + 1 for h in ticks])
        axes.set_xlabel("head")
        axes.set_ylabel("head")
        axes.set_title(text, fontsize=9)
        axes.grid(False)
        self.image = image

    def finish(self, part, axes):
        part.colorbar(self.image, ax=axes, label=r"$\cos(k_h, k_{h'})$", aspect=30)


class Attention(Each):
    """A row of sequences for each task; the relevant token has a triangle above it."""

    height = 1.75
    share = False

    def __init__(self, data, name):
        self.cells = data.sizes["sequence"]
        super().__init__(data, name, most=4)
        self.title += "; a triangle marks the relevant token"
        self.most = float(data[name].max())

    def draw_panel(self, axes, place, text, first):
        maps = self.of(self.name, place).values
        relevant = self.of("relevant", place).values
        there = ~np.isnan(maps).all(axis=(0, 2))
        tokens = ~np.isnan(maps).all(axis=(0, 1))
        for s, cell in enumerate(axes):
            grid = maps[s][np.ix_(there, tokens)]
            image = cell.imshow(grid, cmap="Blues", vmin=0, vmax=self.most, aspect="auto")
            cell.plot(relevant[s] - 1, -0.62, "v", color="#D55E00", markersize=7, clip_on=False)
            cell.set_xticks(range(grid.shape[1]), range(1, grid.shape[1] + 1))
            cell.set_yticks(range(grid.shape[0]), range(1, grid.shape[0] + 1))
            cell.set_ylim(grid.shape[0] - 0.5, -0.5)
            cell.grid(False)
            if place == self.panels[-1][0]:
                cell.set_xlabel("token")
            if s == 0:
                cell.set_ylabel("head")
                cell.set_title(text, fontsize=9, loc="left", pad=12)
        self.image = image

    def finish(self, part, axes):
        part.colorbar(self.image, ax=axes, label="attention", aspect=30)
