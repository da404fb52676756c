"""A part of the picture of a sweep: panels of one quantity, and its title."""

import textwrap

from .sweep_axes import axes_of

COLUMNS = 4
MOST_PANELS = 8
LABELS = {"loss": r"$E^\infty$", "pruned_loss": "loss $E$", "loss_t": "loss $E$", "bayes": "Bayes risk", "tau_s": r"$\tau_s$"}


def label_of(name):
    return LABELS.get(name, name.replace("_", " "))


class Block:
    """Panels of one quantity in a part of the figure. Beyond MOST_PANELS, and all seeds but the first where there is no mean to
    show, panels are left out; the title says so."""

    height = 2.7
    cells = 1  # that a panel has in its row
    share = "all"  # one scale of y for what is to be compared

    def __init__(self, data, name):
        self.data, self.name = data, name
        self.names, self.seed = axes_of(data)
        self.title = data[name].attrs.get("long_name", name)

    def layout(self, panels, most=MOST_PANELS, columns=COLUMNS):
        self.panels = panels[:most]
        if len(panels) > most:
            self.title += f" (the first {most} of {len(panels)})"
        self.columns = self.cells * max(1, min(columns // self.cells, len(self.panels)))
        self.rows = -(-len(self.panels) * self.cells // self.columns)

    def inches(self):
        return 0.45 + self.height * self.rows

    def draw(self, part, columns):
        """A lone panel takes half of a wide figure."""
        empty = int(self.columns == 1 and columns > 2)
        axes = part.subplots(self.rows, self.columns + empty, squeeze=False, sharey=self.share)
        for cell in axes.flat:
            cell.set_visible(False)
        used = axes[:, :self.columns].reshape(-1, self.cells)
        for i, panel in enumerate(self.panels):
            for cell in used[i]:
                cell.set_visible(True)
                cell.tick_params(labelleft=True)
            self.draw_panel(used[i] if self.cells > 1 else used[i][0], *panel, first=i == 0)
        self.finish(part, [cell for cell in axes.flat if cell.get_visible()])
        width = int(13 * part.figure.get_size_inches()[0])  # letters of ten points in a line
        part.suptitle(textwrap.fill(self.title, width), fontsize=10, x=0.01, ha="left", color="#444444")

    def legend(self, axes):
        """Beside a lone panel, where nothing is; else inside the first."""
        beside = {"loc": "upper left", "bbox_to_anchor": (1.02, 1)} if len(self.panels) == 1 else {}
        axes.legend(fontsize=8, **beside)

    def finish(self, part, axes):
        pass
