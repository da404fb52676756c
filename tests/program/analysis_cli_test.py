"""Commands that analyse what was trained, sweeps of SGD, and reproduce: analysis_cli_test.py PROGRAM"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import xarray

PROGRAM = None
SMALL = ["--prior", "gaussian", "--heads", "3", "--features", "2", "--nu", "6,2", "--tolerance", "1e-4"]


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


def result(*arguments):
    done = run(*arguments, "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Analysis(unittest.TestCase):
    def test_pruning_starts_at_the_end_of_training(self):
        out = result("prune", *SMALL)
        end = result("fixed-point", *SMALL)
        self.assertAlmostEqual(out["loss"], end["loss"], delta=1e-6)
        self.assertAlmostEqual(out["pruned_loss"][0], out["loss"], delta=1e-4)
        self.assertEqual(out["removed_head"][0], 0)
        self.assertTrue(all(a < b for a, b in zip(out["pruned_loss"], out["pruned_loss"][1:])))
        self.assertIn("heads left", run("prune", *SMALL).stdout)

    def test_similarity_is_that_of_the_overlaps(self):
        out = result("similarity", *SMALL)
        m = np.array(out["m"])
        self.assertLess(max(out["R_norm"]), 1e-3)  # then the heads are in the plane
        unit = m / np.linalg.norm(m, axis=1, keepdims=True)
        self.assertLess(np.abs(unit @ unit.T - np.array(out["similarity"])).max(), 1e-5)

    def test_attention_adds_up(self):
        out = result("attention", *SMALL, "--tokens", 6)
        maps = np.array(out["attention"])
        self.assertEqual(maps.shape, (5, 3, 6))
        self.assertLess(np.abs(maps.sum(axis=2) - 1).max(), 1e-12)
        text = run("attention", *SMALL, "--tokens", 6).stdout
        self.assertEqual(text.count("["), 15)

    def test_phases_come_in_the_order_of_variances(self):
        flow = ["--integrator", "implicit", "--time", 3000, "--spacing", "log", "--outputs", 200]
        out = result("phases", *SMALL, *flow)
        self.assertTrue(np.allclose(out["variance"], [6, 2]))
        self.assertLess(out["tau_s"][0], out["tau_s"][1])
        self.assertIsNone(out["tau_u"])  # no mean
        flipping = result("phases", "--heads", 2, "--nu", "2,2", "--tolerance", "1e-4", *flow)
        self.assertLess(flipping["tau_u"], flipping["tau_s"][0])
        self.assertIn("tau_s", run("phases", *SMALL, *flow).stdout)


SGD = """
[problem]
heads = 2
[run]
tolerance = 1e-4
[sgd]
dim = 500
batch = 200
lr = 0.05
tau = 1
outputs = 4
[sweep]
measure = ["sgd"]
[[sweep.axis]]
name = "nu2"
key = "problem.nu[2]"
values = [1.0, 3.0]
[[sweep.axis]]
name = "nu1"
key = "problem.nu[1]"
values = [2.0]
[[sweep.axis]]
key = "run.seed"
range = [1, 2]
"""


class Sweeps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)
        self.config = self.path / "sgd.toml"

    def sweep(self, text):
        self.config.write_text(text)
        return run("sweep", self.config, "--output", self.path / "sgd.nc", "--quiet")

    def test_sgd_and_its_flow_from_one_start(self):
        done = self.sweep(SGD)
        self.assertEqual(done.returncode, 0, done.stderr)
        with xarray.open_dataset(self.path / "sgd.nc") as data:
            self.assertEqual(data.sgd_m_t.dims, ("nu2", "nu1", "seed", "time", "attention_head", "feature"))
            off = data.sgd_m_t - data.m_t
            self.assertLess(np.abs(off.isel(time=0)).max(), 1e-12)
            self.assertGreater(np.abs(off.isel(time=-1)).max(), 1e-4)
            self.assertTrue(np.allclose(data.tau.isel(nu2=0, nu1=0, seed=0), [0, 0.25, 0.5, 0.75, 1]))
        # The command compare draws the same run.
        with xarray.open_dataset(self.path / "sgd.nc") as data:
            mine = data.sgd_m_t.isel(nu2=1, nu1=0, seed=0).values
        other = self.path / "compare.nc"
        done = run("compare", "--heads", 2, "--nu", "2,3", "--tolerance", "1e-4", "--dim", 500, "--batch", 200, "--lr",
                   0.05, "--tau", 1, "--outputs", 4, "--output", other, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        with xarray.open_dataset(other) as data:
            self.assertTrue(np.array_equal(mine, data.m.isel(run=0).values))

    def test_other_numbers_of_a_list_are_those_of_the_file(self):
        one_axis = SGD.replace("[problem]", "[problem]\nnu = [2.0, 9.0]").replace(
            '[[sweep.axis]]\nname = "nu1"\nkey = "problem.nu[1]"\nvalues = [2.0]\n', "")
        self.assertEqual(self.sweep(SGD).returncode, 0)
        with xarray.open_dataset(self.path / "sgd.nc") as data:
            both = data.m_t.isel(nu1=0).values
        (self.path / "sgd.nc").unlink()
        done = self.sweep(one_axis)
        self.assertEqual(done.returncode, 0, done.stderr)
        with xarray.open_dataset(self.path / "sgd.nc") as data:
            self.assertTrue(np.array_equal(data.m_t.values, both))

    def test_mistakes_are_found_first(self):
        for wrong, says in [(SGD.replace("nu[1]", "nu[3]"), "problem.nu[1] is neither"),
                            (SGD.replace("outputs = 4", "outputs = 4\nruns = 2"), "sgd.runs"),
                            (SGD.replace("[sgd]", "[end]\nsearch = 'newt'\n[sgd]"), "newton")]:
            done = self.sweep(wrong)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)

    def test_an_end_by_samples_has_a_loss_on_others(self):
        text = """
[problem]
activation = "b-softmax"
prior = "flipping"
heads = 4
nu = [2.0, 2.0]
[run]
engine = "mc"
samples = 2000
[flow]
integrator = "implicit"
time = 200
[end]
search = "flow"
gradient = 1e-3
[sweep]
measure = ["end", "bayes"]
"""
        done = self.sweep(text)
        self.assertEqual(done.returncode, 0, done.stderr)
        with xarray.open_dataset(self.path / "sgd.nc") as data:
            # Four heads fit 2000 samples better than the law allows: only fresh ones tell.
            self.assertGreater(data.loss, data.bayes - 4 * data.loss_error)
            self.assertGreater(data.loss_error, 0)


class Reproduce(unittest.TestCase):
    def test_a_figure_from_its_configuration_to_its_pictures(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "paper"
            first = run("reproduce", "fig2", "--output", out, "--json")
            self.assertEqual(first.returncode, 0, first.stderr)
            self.assertEqual(json.loads(first.stdout)[0]["outcome"], "done")
            for name in ("fig02.nc", "configs/fig02.toml", "times.json", "figures/fig02.png", "figures/fig02.svg",
                         "figures/fig02.pdf"):
                self.assertGreater((out / name).stat().st_size, 50, name)
            self.assertEqual(json.loads((out / "times.json").read_text())["fig02"]["tasks"], 3)
            # The numbers are those of the command sweep with the same configuration.
            alone = Path(folder) / "alone.nc"
            self.assertEqual(run("sweep", out / "configs/fig02.toml", "--output", alone, "--quiet").returncode, 0)
            with xarray.open_dataset(out / "fig02.nc") as one, xarray.open_dataset(alone) as two:
                self.assertTrue(one.equals(two))
            picture = Path(folder) / "any.svg"
            done = run("plot", alone, "--output", picture)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater(picture.stat().st_size, 1000)

    def test_mistakes(self):
        self.assertIn("must be one of", run("prune", *SMALL, "--search", "newt").stderr)
        self.assertIn("must be positive", run("similarity", *SMALL, "--gradient", "-1").stderr)
        self.assertIn("must be one of", run("reproduce", "fig77").stderr)
        self.assertEqual(run("plot").returncode, 2)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
