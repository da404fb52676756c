"""Error of the gradient against the time of an evaluation, for every engine and PyTorch."""

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from headflow.figures.picture import subplots  # noqa: E402
from headflow.figures.style import HEADS, our_look  # noqa: E402

PANELS = [
    ("H2F2L10/softmax/R1", "softmax, $H=2$, $F=2$, $L=10$"),
    ("H8F4L5/softmax-1/R1", "softmax-1, $H=8$, $F=4$, $L=5$"),
]
LINES = [  # name in the measurements, label, colour, marker, line
    ("torch_autograd", "PyTorch, autograd", HEADS[3], "v", ":"),
    ("torch_tuned", "PyTorch, tuned by hand", HEADS[4], "^", ":"),
    ("mc", "headflow, mc", HEADS[0], "o", "-"),
    ("qmc", "headflow, qmc", HEADS[2], "s", "--"),
    ("factorised", "headflow, factorised", HEADS[1], "D", "-"),
]


def points(data, setting, line):
    """(ms, error) in the order of the sizes or tolerances."""
    prefix = f"work/{setting}/{line}/"
    sizes = [name[len(prefix):-len("/ms")] for name in data.values
             if name.startswith(prefix) and name.endswith("/ms")]
    found = []
    for size in sorted(sizes, key=float, reverse=line == "factorised"):
        errors = data.values[f"work_error/{setting}/{line}/{size}/error"]
        root_mean_square = statistics.fmean(e * e for e in errors) ** 0.5
        found.append((data.median(f"{prefix}{size}/ms"), root_mean_square, size))
    return found


@our_look()
def draw_work_precision(data, path):
    figure, panels = subplots(1, 2, figsize=(8.8, 4.3), sharex=True, sharey=True)
    for axes, (setting, title) in zip(panels, PANELS):
        for line, label, colour, marker, style in LINES:
            found = points(data, setting, line)
            axes.loglog([p[0] for p in found], [p[1] for p in found], color=colour, marker=marker,
                        linestyle=style, linewidth=1.4, markersize=5.5, markeredgecolor="white",
                        markeredgewidth=0.6, label=label)
        axes.set_title(title)
        axes.set_xlabel("time of a loss and its gradient, one thread [ms]")
    panels[0].set_ylabel("largest error of an entry of the gradient")
    panels[0].legend(loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
