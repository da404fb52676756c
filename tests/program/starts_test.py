"""Starts of a flow: from any time of a file, around a point, with b and v. Usage: starts_test.py PATH_TO_HEADFLOW."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import xarray

PROGRAM = sys.argv.pop(1)
PROBLEM = ["--activation", "softmax-1", "--nu", "2,2", "--tokens", "5"]
LOSS = [*PROBLEM, "--samples", "300"]


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


class Starts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name)
        cls.flow, cls.compare = cls.path / "flow.nc", cls.path / "compare.nc"
        done = run("flow", *LOSS, "--time", 4, "--outputs", 8, "--output", cls.flow)
        assert done.returncode == 0, done.stderr
        done = run("compare", *PROBLEM, "--dim", 50, "--batch", 20, "--steps", 10, "--lr", 0.1, "--outputs", 5, "--runs", 2,
                   "--output", cls.compare)
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def start(self, *arguments):
        output = self.path / "start.nc"
        done = run("flow", *LOSS, *arguments, "--time", 0.01, "--outputs", 1, "--output", output)
        self.assertEqual(done.returncode, 0, done.stderr)
        with xarray.open_dataset(output, engine="netcdf4") as file:
            return file.load()

    def test_any_time_of_a_flow(self):
        with xarray.open_dataset(self.flow, engine="netcdf4") as file:
            whole = file.load()
        for time, i in (("first", 0), ("last", 8), ("1.5", 3), ("1.6", 3), ("0", 0), ("4", 8)):
            got = self.start("--init-from", self.flow, "--init-time", time)
            for name in ("m", "R", "b", "v"):
                np.testing.assert_array_equal(got[name][0], whole[name][i], err_msg=f"{name} at {time}")
        np.testing.assert_array_equal(self.start("--init-from", self.flow).m[0], whole.m[0])
        for bad in ("5", "-0.1", "middle", "nan"):
            done = run("flow", *LOSS, "--init-from", self.flow, "--init-time", bad, "--json")
            self.assertEqual(done.returncode, 2)
            self.assertIn("flow.init_time", done.stderr)

    def test_any_time_of_a_comparison(self):
        with xarray.open_dataset(self.compare, engine="netcdf4") as file:
            whole = file.load()
        for number in (1, 2):
            got = self.start("--init-from", self.compare, "--init-run", number, "--init-time", "last")
            np.testing.assert_allclose(got.m[0], whole.m[number - 1, -1], rtol=1e-12)
            np.testing.assert_allclose(got.q[0], whole.q[number - 1, -1], rtol=1e-8)
            np.testing.assert_array_equal(got.b[0], whole.b[number - 1, -1])

    def test_hessian_at_a_time_of_a_file(self):
        with xarray.open_dataset(self.flow, engine="netcdf4") as file:
            m = file.m[4].values
        done = run("hessian", *PROBLEM, "--init-from", self.flow, "--init-time", 2, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        out = json.loads(done.stdout)
        np.testing.assert_allclose(out["m"], m, rtol=1e-13)
        hessian, vectors = np.array(out["hessian"]), np.array(out["eigenvectors"])
        np.testing.assert_allclose(vectors @ vectors.T, np.eye(len(vectors)), atol=1e-12)
        np.testing.assert_allclose(vectors @ hessian @ vectors.T, np.diag(out["eigenvalues"]), atol=1e-12)
        self.assertEqual(run("hessian", *PROBLEM, "--init-from", self.flow, "--at", "saddle").returncode, 2)

    def test_the_saddle_is_in_the_text(self):
        point = json.loads(run("hessian", *PROBLEM, "--at", "saddle", "--json").stdout)
        text = run("hessian", *PROBLEM, "--at", "saddle").stdout
        for h in range(2):
            self.assertIn(f"head {h + 1}: m", text)
        self.assertIn(f"{point['m'][0][0]:.7f}", text)
        self.assertIn(f"v {point['v']:.7f}", text)

    def test_noise_around_a_point(self):
        point = ["--init", "point", "--m", "1,0;0,1"]
        exact, noisy = self.start(*point), self.start(*point, "--init-noise", 0.1)
        noise, other = self.start("--init-noise", 0.1), self.start(*point, "--init-noise", 0.1, "--seed", 2)
        np.testing.assert_array_equal(exact.m[0], np.eye(2))
        np.testing.assert_allclose(noisy.m[0] - exact.m[0], noise.m[0], atol=1e-15)
        np.testing.assert_allclose(noisy.R[0], noise.R[0], atol=1e-15)
        self.assertGreater(float(abs(noisy.m[0] - other.m[0]).max()), 0.01)
        again = self.path / "again.toml"  # what was recorded starts from the same
        for one in (exact, noisy):
            again.write_text(one.attrs["configuration"])
            np.testing.assert_array_equal(self.start(again).m[0], one.m[0])
        around = self.start("--init-from", self.flow, "--init-time", "last", "--init-noise", 0.1)
        with xarray.open_dataset(self.flow, engine="netcdf4") as file:
            np.testing.assert_allclose(around.m[0] - file.m[-1], noise.m[0], atol=1e-15)

    def test_b_and_v(self):
        got = self.start("--init-b", 0.5, "--init-v", 2)
        np.testing.assert_array_equal(got.b[0], [0.5, 0.5])
        self.assertEqual(float(got.v[0]), 2.0)
        got = self.start("--init-b", "0.5,-1", "--init-from", self.flow)
        np.testing.assert_array_equal(got.b[0], [0.5, -1])
        self.assertEqual(run("flow", *LOSS, "--init-b", "1,2,3", "--json").returncode, 2)

    def test_nothing_but_local_files(self):
        for bad in ("http://127.0.0.1:9/run.nc", "https://127.0.0.1:9/run.nc#mode=bytes", "/dev/zero", self.path):
            done = run("flow", *LOSS, "--init-from", bad, "--json")
            self.assertEqual(done.returncode, 2, done.stderr)


if __name__ == "__main__":
    unittest.main()
