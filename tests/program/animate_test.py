"""headflow.animate with runs that the program makes. Usage: animate_test.py PATH_TO_HEADFLOW."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import matplotlib
import numpy as np
import xarray
from matplotlib.animation import FuncAnimation
from PIL import Image

PROGRAM = sys.argv.pop(1)
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from headflow.animate import animate  # noqa: E402
from headflow.figures.film import Scene, moments, plane_of, principal  # noqa: E402
from headflow.figures.style import our_look  # noqa: E402

FRAMES = 5


def headflow(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments), "--quiet", "--threads", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Animate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = folder = Path(cls.temporary.name)
        headflow("flow", "--tokens", 3, "--nu", "2,2", "--time", 20, "--outputs", 20, "--spacing", "log", "--output", folder / "flow.nc")
        headflow("flow", "--prior", "gaussian", "--features", 1, "--heads", 1, "--nu", 2, "--time", 2, "--output", folder / "one.nc")
        headflow("sgd", "--tokens", 3, "--nu", "2,2", "--dim", 100, "--batch", 100, "--lr", 0.1, "--tau", 5, "--outputs", 20, "--runs", 2,
                 "--output", folder / "sgd.nc")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def data(self, name):
        with xarray.open_dataset(self.folder / f"{name}.nc") as data:
            return data.load()

    def test_gif(self):
        path = self.folder / "film.gif"
        film = animate(self.data("flow"), path, fps=10, frames=FRAMES)
        self.assertIsInstance(film, FuncAnimation)
        with Image.open(path) as picture:
            self.assertEqual((picture.format, picture.n_frames, picture.info["duration"]), ("GIF", FRAMES, 100))
            frames = []
            for i in range(FRAMES):
                picture.seek(i)
                frames.append(np.asarray(picture.convert("L"), int))
        self.assertGreater(min(np.abs(a - b).max() for a, b in zip(frames, frames[1:])), 100, "something moves")
        self.assertEqual([file.name for file in self.folder.iterdir() if file.name.startswith(".")], [])

    def test_html(self):
        path = self.folder / "film.html"
        before = dict(matplotlib.rcParams)
        film = animate(self.folder / "flow.nc", path, frames=FRAMES)
        text = path.read_text()
        self.assertEqual(text.count("data:image/png;base64,"), FRAMES)
        self.assertIn(film._repr_html_(), text)
        self.assertLess(len(text) / FRAMES, 40000)
        self.assertNotIn("<link", text)
        self.assertNotIn("http", text)
        self.assertEqual(dict(matplotlib.rcParams), before)
        self.assertNotIn("matplotlib.pyplot", sys.modules)

    def test_other_runs(self):
        for name in ("one", "sgd"):
            with self.subTest(name):
                self.assertIn("<img", animate(self.data(name), frames=2)._repr_html_())

    def test_the_last_frame_is_the_end_of_the_run(self):
        data = self.data("flow")
        with our_look():
            scene = Scene(data, None, FRAMES)
        scene.show(FRAMES - 1)
        for h, end in enumerate(scene.ends):
            np.testing.assert_allclose(np.ravel(end.get_data()), data.m.values[-1, h], atol=1e-9)
        np.testing.assert_allclose(np.ravel(scene.now.get_data()), [data.time.values[-1], data.loss.values[-1]], rtol=1e-9)
        scene.show(0)
        np.testing.assert_allclose(np.ravel(scene.now.get_data())[0], data.time.values[1], rtol=1e-9)

    def test_planes(self):
        m = np.zeros((4, 3, 3))
        m[..., 0], m[..., 2] = np.arange(4)[:, None], [-1, 0, 1]  # direction 2 stays out of it
        data = xarray.Dataset({"m": (("time", "attention_head", "feature"), m)})
        np.testing.assert_allclose(np.abs(principal(m)), [[1, 0, 0], [0, 0, 1]], atol=1e-12)
        np.testing.assert_allclose(np.abs(plane_of(data, None)[0]), np.abs(m[..., [0, 2]]), atol=1e-12)
        np.testing.assert_array_equal(plane_of(data, (3, 1))[0], m[..., [2, 0]])
        for plane in ((0, 1), (1, 4), "upright"):
            with self.assertRaisesRegex(ValueError, "plane ="):
                plane_of(data, plane)

    def test_frames_go_forward_and_stay_where_something_happens(self):
        time = np.geomspace(1, 1e6, 61)
        places = np.zeros((61, 1, 2))
        places[30:, 0, 0] = 1  # all of the way in one step
        log = moments(time, places, 101)
        self.assertTrue(np.all(np.diff(log) > 0))
        self.assertEqual((log[0], log[-1]), (0, np.log(1e6)))
        inside = (log >= np.log(time[29])) & (log <= np.log(time[30]))
        self.assertAlmostEqual(inside.mean(), 0.5, delta=0.05)
        still = moments(time, np.zeros((61, 1, 2)), 3)
        np.testing.assert_allclose(still, np.log([1, 1e3, 1e6]))

    def test_what_has_no_film(self):
        data = self.data("flow")
        for message, run, more in (("a film is of a result of headflow flow or sgd", xarray.Dataset(), {}),
                                   ("at least two frames", data, {"frames": 1}), ("more outputs", data.isel(time=[0, 1]), {}),
                                   ("there is no such file", "none.nc", {})):
            with self.subTest(message), self.assertRaisesRegex((ValueError, OSError), message):
                animate(run, **more)


if __name__ == "__main__":
    unittest.main()
