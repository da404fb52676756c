"""figures/plot.py with files that the program makes. Usage: plot_test.py PATH_TO_HEADFLOW."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import netCDF4
import numpy as np
from PIL import Image

PROGRAM = sys.argv.pop(1)
PLOT = Path(__file__).resolve().parents[2] / "figures" / "plot.py"

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
measure = ["end", "bayes", "flow", "phases", "pruning", "similarity", "attention"]
[[sweep.axis]]
key = "problem.heads"
range = [1, 2]
[[sweep.axis]]
key = "problem.activation"
values = ["softmax", "softmax-1"]
[[sweep.axis]]
key = "run.seed"
range = [1, 2]
"""

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


def headflow(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments), "--quiet", "--threads", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def plot(*arguments):
    return subprocess.run(["/usr/bin/python3", PLOT, *map(str, arguments)], capture_output=True, text=True)


class Plot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = folder = Path(cls.temporary.name)
        short = ["--tokens", 3, "--nu", "2,2"]
        sgd = [*short, "--dim", 100, "--batch", 100, "--lr", 0.1, "--tau", 5, "--outputs", 20]
        headflow("flow", *short, "--activation", "softmax-1", "--time", 20, "--outputs", 20, "--spacing", "log", "--output", folder / "flow.nc")
        headflow("flow", "--prior", "gaussian", "--features", 1, "--heads", 1, "--nu", 2, "--time", 2, "--output", folder / "one.nc")
        headflow("sgd", *sgd, "--runs", 2, "--output", folder / "sgd.nc")
        headflow("compare", *sgd, "--output", folder / "compare.nc")
        for name, text in (("sweep", SWEEP), ("grid", GRID)):
            (folder / f"{name}.toml").write_text(text)
            headflow("sweep", folder / f"{name}.toml", "--output", folder / f"{name}.nc")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def draw(self, name, *more, suffix="svg"):
        """The picture; an SVG is read as text, whose words say what was drawn."""
        picture = self.folder / "pictures" / f"{name}{''.join(more).replace('-', '')}.{suffix}"
        done = plot(self.folder / f"{name}.nc", picture, *more)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"drew {picture}\n", ""))
        return picture.read_text() if suffix == "svg" else picture

    def assert_words(self, text, *words):
        for word in words:
            self.assertTrue(word in text, f"not in the picture: {word}")

    def test_every_kind_has_a_picture(self):
        for name in ("flow", "one", "sgd", "compare", "sweep", "grid"):
            with self.subTest(name):
                with Image.open(self.draw(name, suffix="png")) as picture:
                    self.assertGreater(min(picture.size), 500)
                    self.assertGreater(np.mean(np.asarray(picture.convert("L")) < 200), 0.005)  # something is on it

    def test_the_default_is_a_png_beside_the_file(self):
        for more in ([], [""]):
            done = plot(self.folder / "one.nc", *more)
            self.assertEqual(done.stdout, f"drew {self.folder / 'one.png'}\n")
            self.assertTrue((self.folder / "one.png").stat().st_size > 10000)
            (self.folder / "one.png").unlink()

    def test_pdf(self):
        self.assertTrue(self.draw("one", suffix="pdf").read_bytes().startswith(b"%PDF"))

    def test_the_same_file_gives_the_same_bytes(self):
        self.assertEqual(self.draw("one"), self.draw("one"))

    def test_runs(self):
        self.assert_words(self.draw("flow"), "Flow: softmax-1", "refinement difference", "training time", "orthogonal part", "bias", "scale")
        self.assert_words(self.draw("sgd"), "SGD: softmax", "2 of 2 runs", "standard error")
        self.assert_words(self.draw("compare"), "SGD over its limit", "run 1 of 1", "SGD (a batch)", "<!-- flow -->")

    def test_sweeps(self):
        self.assert_words(self.draw("sweep"), "standard deviation over 2 seeds", "softmax-1", "Bayes risk", "loss along the flow",
                          "a line for each of 2 seeds", "training time", "overlaps along the flow", "of 2 seeds the first", "direction = 1",
                          "heads removed", "cosine of the angle", "a triangle marks the relevant token")
        some = self.draw("sweep", "--only", "v,b,converged")
        self.assert_words(some, "scale at the end", "biases at the end", "converged")
        self.assertNotIn("Bayes risk", some)
        self.assert_words(self.draw("grid"), "Bayes risk", "tokens", "<image")

    def refused(self, message, *arguments):
        done = plot(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_errors_say_what_to_do(self):
        self.refused("there is no such file", self.folder / "none.nc")
        (self.folder / "text.nc").write_text("not netCDF")
        self.refused("draw a result of headflow flow, sgd, compare or sweep", self.folder / "text.nc")
        with netCDF4.Dataset(self.folder / "foreign.nc", "w") as data:
            data.title = "something else"
        self.refused("its format is not given; draw a result of headflow", self.folder / "foreign.nc")
        with netCDF4.Dataset(self.folder / "future.nc", "w") as data:
            data.setncatts({"format": "headflow-flow", "format_version": 99})
        self.refused("format version 99, expected 1", self.folder / "future.nc")
        with netCDF4.Dataset(self.folder / "hollow.nc", "w") as data:
            data.setncatts({"format": "headflow-flow", "format_version": 1, "command": "headflow flow"})
        self.refused("not a whole result", self.folder / "hollow.nc")
        self.refused("a picture ends with .png, .svg or .pdf", self.folder / "flow.nc", self.folder / "flow.jpg")
        self.refused("there is no los; it has", self.folder / "sweep.nc", "--only", "los")
        self.refused("Not a directory", self.folder / "flow.nc", self.folder / "flow.nc" / "flow" / "run.png")


if __name__ == "__main__":
    unittest.main()
