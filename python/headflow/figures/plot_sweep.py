"""The picture of a sweep: one block for each quantity, stacked."""

from .picture import figure_of
from .sweep_axes import axes_of, inner, map_axes
from .sweep_curves import Curves, Flows, Map
from .sweep_tasks import GRID_SIDE, Attention, Planes, Similarities, Trajectories

# Drawn if asked for by name: they are about the computation, or belong to another quantity.
QUIET = {"gradient_norm", "converged", "diverged", "index", "end_time", "R_norm", "R_norm_t", "signs", "excursions",
         "removed_head", "relevant", "tau"}


class NothingToDraw(ValueError):
    pass


def blocks_of(data, name):
    """The pictures of one quantity."""
    dimensions = inner(data, name)
    names, _ = axes_of(data)
    if dimensions == ["time", "attention_head", "feature"] and "tau" in data:
        return ([Planes(data, name)] if data.sizes["feature"] >= 2 else []) + [Trajectories(data, name)]
    if dimensions == ["time"] and "tau" in data:
        return [Flows(data, name)]
    if dimensions == ["attention_head", "feature"] and data.sizes["feature"] >= 2:
        return [Planes(data, name)]
    if dimensions == ["attention_head", "other_head"]:
        return [Similarities(data, name)]
    if dimensions == ["sequence", "attention_head", "token"] and "relevant" in data:
        return [Attention(data, name)]
    if dimensions == ["removed"]:
        return [Curves(data, name, x="removed")]
    if not dimensions and map_axes(data, names):
        return [Map(data, name, map_axes(data, names))]
    return [Curves(data, name, lines=dimensions[0] if len(dimensions) == 1 else None)]


def is_quiet(data, name):
    """Also what the activation trains besides m and R. Files of before format 3 do not say which variables that are."""
    return name in QUIET or data[name].attrs.get("role") == "parameter" or name in ("b", "v", "b_t", "v_t")


def chosen(data, only):
    """Quantities to draw: those asked for, else all that are about the model, with the most important first."""
    known = [str(name) for name in data.data_vars]
    for name in only:
        if name not in known:
            raise NothingToDraw(f"there is no {name}; it has {', '.join(known)}")
    if only:
        return only
    names = [name for name in known if not is_quiet(data, name) and not name.endswith("_error") and data[name].notnull().any()]
    if "loss" in names and "bayes" in names:
        names.remove("bayes")  # drawn with the loss
    if "m_t" in names and "m" in names:
        names.remove("m")  # the ends of m_t
    if not names:
        raise NothingToDraw(f"nothing to draw but by name: --only {known[0] if known else ''}")
    first = ["loss", "bayes", "tau_s", "pruned_loss", "loss_t", "m", "m_t", "similarity", "attention"]
    return sorted(names, key=lambda name: first.index(name) if name in first else len(first))


def draw_sweep(data, only=(), figure=None):
    blocks = [block for name in chosen(data, only) for block in blocks_of(data, name)]
    heights = [block.inches() for block in blocks]
    columns = max(min(block.columns, GRID_SIDE) for block in blocks)
    width = min(max(5.5, 3.1 * columns), 14)
    figure = figure_of(figure, (width, 0.4 + sum(heights)))
    parts = figure.subfigures(len(blocks), 1, height_ratios=heights, squeeze=False)[:, 0]
    for block, part in zip(blocks, parts):
        block.draw(part, columns)
    return figure
