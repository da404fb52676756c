"""headflow.plot with results that the program makes. Usage: plot_test.py PATH_TO_HEADFLOW.

All pictures are drawn in this process: starting Python and matplotlib takes longer than most of them.
"""

import contextlib
import functools
import io
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings
from pathlib import Path

import netCDF4
import numpy as np
import matplotlib
import xarray
from matplotlib.figure import Figure
from PIL import Image

PROGRAM = sys.argv.pop(1)
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from headflow.figures import attention_maps, picture, similarity, style  # noqa: E402
from headflow.figures.heads import draw_path, draw_plane  # noqa: E402
from headflow.plot import main, plot  # noqa: E402

DPI = 100
KINDS = ("flow", "one", "sgd", "compare", "curves", "tasks", "grid")

SWEEP = """\
[problem]
tokens = 3
nu = [2.0, 2.0]
[run]
tolerance = 1e-3
[flow]
time = 50
outputs = 20
spacing = "log"
[sweep]
measure = [{measures}]
[[sweep.axis]]
key = "problem.heads"
range = [1, 2]
{axis}[[sweep.axis]]
key = "run.seed"
range = [1, 2]
"""
# Curves over three axes; what has a panel a task over two.
CURVES = SWEEP.format(measures='"end", "bayes", "pruning"', axis="""\
[[sweep.axis]]
key = "problem.activation"
values = ["softmax", "softmax-1"]
""")
TASKS = SWEEP.format(measures='"flow", "phases", "similarity", "attention"', axis="")

GRID = """\
[problem]
nu = [2.0, 2.0]
[sweep]
measure = ["bayes"]
[[sweep.axis]]
key = "problem.eta"
linspace = [0.5, 2.0, 4]
[[sweep.axis]]
key = "problem.tokens"
range = [2, 6]
"""


LABELS = """\
[problem]
nu = [2.0, 2.0]
[sweep]
measure = ["bayes"]
[[sweep.axis]]
name = "prices"
key = "problem.tokens"
values = [2, 3]
labels = ["$1, $2", 'a$\\frac{$']
"""


def headflow(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments), "--quiet", "--threads", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(*arguments):
    """As `python -m headflow.plot ARGUMENTS`: (exit code, standard output, standard error)."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), \
            unittest.mock.patch.object(sys, "argv", ["plot", *map(str, arguments)]):
        try:
            code = main() or 0
        except SystemExit as stop:
            code = stop.code
    return code, out.getvalue(), errors.getvalue()


def setUpModule():
    style.LOOK["savefig.dpi"] = DPI  # what is looked at here can be seen so
    Plot.temporary = tempfile.TemporaryDirectory()
    Plot.folder = folder = Path(Plot.temporary.name)
    short = ["--tokens", 3, "--nu", "2,2"]
    sgd = [*short, "--dim", 100, "--batch", 100, "--lr", 0.1, "--tau", 5, "--outputs", 20]
    headflow("flow", *short, "--activation", "softmax-1", "--time", 20, "--outputs", 20, "--spacing", "log", "--output", folder / "flow.nc")
    headflow("flow", "--prior", "gaussian", "--features", 1, "--heads", 1, "--nu", 2, "--time", 2, "--output", folder / "one.nc")
    headflow("sgd", *sgd, "--runs", 2, "--output", folder / "sgd.nc")
    headflow("compare", *sgd, "--output", folder / "compare.nc")
    for name, text in (("curves", CURVES), ("tasks", TASKS), ("grid", GRID), ("labels", LABELS)):
        (folder / f"{name}.toml").write_text(text)
        headflow("sweep", folder / f"{name}.toml", "--output", folder / f"{name}.nc")


def tearDownModule():
    Plot.temporary.cleanup()


class Plot(unittest.TestCase):
    @functools.cache
    def draw(name, only=()):
        """Path of the picture without its suffix: drawn once, written as PNG and as SVG, whose words say what was drawn."""
        path = Plot.folder / f"{name}{''.join(only)}"
        picture.save(plot(Plot.folder / f"{name}.nc", only), path, ["png", "svg"])
        return path

    def words(self, name, *only):
        return Plot.draw(name, only).with_suffix(".svg").read_text()

    def assert_words(self, text, *words):
        for word in words:
            self.assertTrue(word in text, f"not in the picture: {word}")

    def test_every_kind_has_a_picture(self):
        for name in KINDS:
            with self.subTest(name):
                with Image.open(Plot.draw(name).with_suffix(".png")) as picture:
                    self.assertGreater(min(picture.size) / DPI, 2.5)  # inches
                    self.assertGreater(np.mean(np.asarray(picture.convert("L")) < 200), 0.005)  # something is on it

    def test_the_default_is_a_png_beside_the_file(self):
        for more in ([], [""]):
            picture = self.folder / "one.png"
            picture.unlink(missing_ok=True)
            self.assertEqual(run(self.folder / "one.nc", *more), (0, f"drew {picture}\n", ""))
            self.assertGreater(picture.stat().st_size, 10000)

    def test_pdf_and_the_same_bytes_each_time(self):
        pictures = [self.folder / "again.pdf", self.folder / "once more.pdf"]
        for picture in pictures:
            self.assertEqual(run(self.folder / "one.nc", picture), (0, f"drew {picture}\n", ""))
        first, second = (picture.read_bytes() for picture in pictures)
        self.assertTrue(first.startswith(b"%PDF"))
        self.assertEqual(first, second)

    def test_heads_in_the_plane_are_those_of_the_figures(self):
        """A path ends with the marker of its head; an end without a path stands at the end of a ray from the origin."""
        axes = Figure().subplots()
        draw_path(axes, np.array([1.0]), np.array([2.0]), 1)
        self.assertEqual((axes.lines[0].get_xydata()[0].tolist(), axes.lines[-1].get_xydata().tolist()), ([0, 0], [[1, 2]]))
        self.assertEqual(axes.lines[-1].get_marker(), style.MARKERS[1])
        heads = np.full((3, 4, 2), np.nan)
        heads[:2, :2] = [[[0, 0], [0, 0]], [[1, 1], [1, -1]]]  # two of four heads and two of three times are padding
        axes = Figure().subplots()
        draw_plane(axes, heads)
        ends = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() in style.MARKERS]
        self.assertEqual(ends, [[[1, 1]], [[1, -1]]])

    def test_runs(self):
        self.assert_words(self.words("flow"), "Flow: softmax-1", "refinement difference", "training time", "orthogonal part", "bias", "scale")
        self.assert_words(self.words("sgd"), "SGD: softmax", "2 of 2 runs", "standard error")
        self.assert_words(self.words("compare"), "SGD over its limit", "run 1 of 1", "SGD (a batch)", "<!-- flow -->")

    def test_sweeps(self):
        self.assert_words(self.words("curves"), "standard deviation over 2 seeds", "softmax-1", "Bayes risk", "heads removed")
        self.assert_words(self.words("tasks"), "loss along the flow", "a line for each of 2 seeds", "training time", "overlaps along the flow",
                          "of 2 seeds the first", "direction = 1", "cosine of the angle", "a triangle marks the relevant token")
        some = self.words("curves", "v", "b", "converged")
        self.assert_words(some, "global scale at the end", "bias of a head at the end", "converged")
        self.assertNotIn("Bayes risk", some)
        self.assert_words(self.words("grid"), "Bayes risk", "tokens", "<image")

    def refused(self, message, *arguments):
        code, out, errors = run(*arguments)
        self.assertEqual((code, out), (2, ""))
        self.assertIn(message, errors)
        self.assertEqual(errors.count("\n"), 1, errors)

    def test_errors_say_what_to_do(self):
        self.refused("there is no such file", self.folder / "none.nc")
        (self.folder / "text.nc").write_text("not netCDF")
        self.refused("draw a result of headflow flow, sgd, compare or sweep", self.folder / "text.nc")
        with netCDF4.Dataset(self.folder / "foreign.nc", "w") as data:
            data.title = "something else"
        self.refused("its format is not given; draw a result of headflow", self.folder / "foreign.nc")
        with netCDF4.Dataset(self.folder / "future.nc", "w") as data:
            data.setncatts({"format": "headflow-flow", "format_version": 99})
        self.refused("format version 99, expected up to", self.folder / "future.nc")
        with netCDF4.Dataset(self.folder / "hollow.nc", "w") as data:
            data.setncatts({"format": "headflow-flow", "format_version": 1, "command": "headflow flow"})
        self.refused("not a whole result", self.folder / "hollow.nc")
        self.refused("a picture ends with .png, .svg or .pdf", self.folder / "flow.nc", self.folder / "flow.jpg")
        self.refused("there is no los; it has", self.folder / "curves.nc", "--only", "los")
        for folder in (self.folder / "flow.nc" / "flow", self.folder / "none"):
            self.refused(f"the folder {folder} does not exist", self.folder / "one.nc", folder / "run.png")
            self.assertFalse(folder.exists())

    def test_what_is_there_is_replaced_whole_or_not_at_all(self):
        os.mkfifo(self.folder / "pipe.png")
        self.refused("is not a regular file", self.folder / "one.nc", self.folder / "pipe.png")
        (self.folder / "target.png").write_text("old")
        (self.folder / "link.png").symlink_to("target.png")
        self.assertEqual(run(self.folder / "one.nc", self.folder / "link.png", "--quiet"), (0, "", ""))
        self.assertTrue((self.folder / "link.png").is_symlink())
        self.assertTrue((self.folder / "target.png").read_bytes().startswith(b"\x89PNG"))
        with unittest.mock.patch("matplotlib.figure.Figure.savefig", side_effect=OSError(28, "No space left on device")):
            self.refused("No space left on device", self.folder / "one.nc", self.folder / "target.png")
        self.assertTrue((self.folder / "target.png").read_bytes().startswith(b"\x89PNG"))
        self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith(".")], [])

    def test_names_and_labels_are_no_formulas(self):
        self.assert_words(self.words("labels"), r"a$\frac{$", "$1, $2")


class InMemory(unittest.TestCase):
    """Pictures of datasets, as a notebook draws them."""

    def data(self, name):
        with xarray.open_dataset(Plot.folder / f"{name}.nc") as data:
            return data.load()

    def pixels(self, figure):
        return np.asarray(Image.open(io.BytesIO(figure._repr_png_())).convert("RGB"))

    def test_every_kind(self):
        before = dict(matplotlib.rcParams)
        filters = list(warnings.filters)
        for name in KINDS:
            with self.subTest(name):
                figure = plot(self.data(name))
                self.assertIsInstance(figure, Figure)
                self.assertGreater(sum(len(axes.lines) + len(axes.images) for axes in figure.axes), 0)
        self.assertEqual(dict(matplotlib.rcParams), before)
        self.assertEqual(warnings.filters, filters)
        self.assertNotIn("matplotlib.pyplot", sys.modules)

    def test_as_of_the_file_whatever_the_settings_of_the_caller(self):
        expected = self.pixels(plot(Plot.folder / "flow.nc"))
        with matplotlib.rc_context({"axes.facecolor": "black", "lines.linewidth": 9, "font.size": 30, "grid.color": "red", "xtick.color": "red"}):
            figure = plot(self.data("flow"))
            self.assertTrue(np.array_equal(self.pixels(figure), expected))

    def test_into_a_figure_of_the_caller(self):
        for name in ("flow", "compare", "tasks"):
            with self.subTest(name):
                figure = Figure(figsize=(7, 4))
                left, right = figure.subfigures(1, 2)
                self.assertIs(plot(self.data(name), figure=right), right)
                self.assertGreater(len(figure.axes), 1)
                self.assertEqual(left.axes, [])
        figure = Figure(figsize=(7, 4), layout="constrained")
        self.assertIs(plot(self.data("flow"), figure=figure), figure)
        figure.savefig(io.BytesIO(), format="png")
        self.assertEqual(matplotlib.colors.to_hex(figure.axes[0].xaxis.get_gridlines()[1].get_color()), style.LOOK["grid.color"])

    def test_what_cannot_be_drawn(self):
        self.assertEqual(plot(self.data("curves"), "bayes").axes[0].get_ylabel(), "Bayes risk")
        for message, data, only in (("there is no los; it has", self.data("curves"), ["los"]), ("none", self.data("flow"), ["loss"]),
                                    ("its format is not given", xarray.Dataset(), None), ("there is no such file", "none.nc", None),
                                    ("not a whole result", self.data("flow").drop_vars("m"), None)):
            with self.subTest(message), self.assertRaisesRegex((ValueError, OSError), message):
                plot(data, only)


class Scales(unittest.TestCase):
    """Colours of figures of the paper, from small files like those of a sweep."""

    def drawn(self, script, variables, coordinates, axes):
        configuration = '[problem]\nactivation = "softmax"\n[sweep]\n' + "".join(f'[[sweep.axis]]\nname = "{n}"\nkeys = ["{k}"]\n' for n, k in axes.items())
        data = xarray.Dataset(variables, coordinates, {"format_version": 1, "format": "headflow-sweep", "configuration": configuration})
        with tempfile.TemporaryDirectory() as folder:
            data.to_netcdf(Path(folder) / "small.nc")
            with style.our_look():
                return script.draw(Path(folder), "small")

    def test_cosines_diverge_from_zero(self):
        cosine = np.array([[-0.7, 0.0], [0.2, 1.0]])
        matrix = np.stack([np.stack([np.ones_like(cosine), cosine], -1), np.stack([cosine, np.ones_like(cosine)], -1)], -1)
        figure = self.drawn(similarity, {"similarity": (("nu1", "nu2", "attention_head", "other_head"), matrix)},
                            {"nu1": [1.0, 2.0], "nu2": [1.0, 2.0]}, {"nu1": "problem.nu[1]", "nu2": "problem.nu[2]"})
        panel, bar = figure.axes
        image = panel.images[0]
        self.assertEqual((image.norm.vmin, image.norm.vmax), (-1, 1))
        low, middle, high = (np.array(image.cmap(image.norm(x))[:3]) for x in (-1, 0, 1))
        self.assertGreater(middle.min(), 0.9)  # zero is white,
        self.assertLess(max(low.mean(), high.mean()), 0.5)  # both ends are dark,
        self.assertGreater(np.abs(low - high).max(), 0.3)  # and of different colours
        self.assertIn("cosine", bar.get_ylabel())

    def test_the_scale_of_attention_says_what_it_is(self):
        weights = np.linspace(0, 2, 3 * 2 * 2 * 3).reshape(3, 2, 2, 3)
        figure = self.drawn(attention_maps, {"attention": (("activation", "sequence", "attention_head", "token"), weights),
                                             "relevant": (("activation", "sequence"), np.ones((3, 2)))},
                            {"activation": ["softmax", "softmax-1", "b-softmax"]}, {"activation": "problem.activation"})
        bar = figure.axes[-1]
        for words in ("attention of head", "square-root scale", "at most 1 with softmax"):
            self.assertIn(words, bar.get_xlabel())
        self.assertEqual([text.get_text() for text in bar.get_xticklabels()], ["0", "0.1", "0.5", "1", "2"])


if __name__ == "__main__":
    unittest.main()
