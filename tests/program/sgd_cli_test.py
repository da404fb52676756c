"""SGD as its users meet it: runs, restarts, comparisons. Usage: sgd_cli_test.py PATH_TO_HEADFLOW."""

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np
import xarray

PROGRAM = sys.argv.pop(1)
PROBLEM = ["--activation", "softmax-1", "--prior", "flipping", "--tokens", 4, "--heads", 2,
           "--features", 2, "--nu", "2,2", "--seed", 3]
SHORT = [*PROBLEM, "--dim", 100, "--batch", 50, "--lr", 0.1, "--steps", 20, "--outputs", 5]


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, **options)


class Sgd(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.output = self.path / "run.nc"

    def tearDown(self):
        self.folder.cleanup()

    def load(self, path):
        with xarray.open_dataset(path) as data:
            return data.load()

    def same(self, a, b):
        for name in a.data_vars:
            self.assertTrue(np.array_equal(a[name].values, b[name].values), name)

    def test_result_opens_in_xarray(self):
        for method in ("reduced", "direct"):
            done = run("sgd", *SHORT, "--method", method, "--runs", 3, "--loss", "population",
                       "--output", self.output, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            out = json.loads(done.stdout)
            self.assertEqual((out["outcome"], out["steps"], len(out["runs"])), ("finished", 20, 3))
            data = self.load(self.output)
            self.assertEqual(dict(data.sizes), {"run": 3, "time": 6, "attention_head": 2, "other_head": 2,
                                                "feature": 2, "feature2": 2})
            self.assertEqual(data.m.dims, ("run", "time", "attention_head", "feature"))
            self.assertEqual(data.p.dims, ("run", "feature", "feature2"))
            self.assertEqual(data.step.values.tolist(), [0, 4, 8, 12, 16, 20])
            self.assertAlmostEqual(float(data.time[-1]), 2.0)
            p, m, R = data.p.values[:, None], data.m.values, data.R.values
            q = m @ np.linalg.inv(p) @ m.swapaxes(-1, -2) + R @ R.swapaxes(-1, -2)
            self.assertLess(abs(q - data.q.values).max(), 1e-12)
            z = (data.batch_loss - data.loss) / data.batch_loss_error
            self.assertLess(abs(z).max(), 6)  # the limit of large D is within the noise of 50 samples
            self.assertEqual(data.attrs["format"], "headflow-sgd")
            self.assertGreater(abs(m[0] - m[1]).max(), 1e-3)

    def test_threads_and_configuration_reproduce_the_runs(self):
        run("sgd", *SHORT, "--runs", 3, "--threads", 1, "--output", self.output)
        first = self.load(self.output)
        again = self.path / "again.toml"
        again.write_text(first.attrs["configuration"])
        second = self.path / "second.nc"
        done = run("sgd", again, "--threads", 2, "--output", second)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.same(first, self.load(second))

    def test_a_killed_run_goes_on_to_the_same_bits(self):
        long = [*PROBLEM, "--dim", 1000, "--batch", 2000, "--runs", 2, "--outputs", 12]
        whole = self.path / "whole.nc"
        for method, steps in (("reduced", 3000), ("direct", 12)):
            arguments = [*long, "--method", method, "--steps", steps]
            self.assertEqual(run("sgd", *arguments, "--output", whole).returncode, 0)
            for kind in (signal.SIGKILL, signal.SIGINT):
                with self.subTest(method=method, kind=kind):
                    checkpoint = Path(f"{self.output}.checkpoint")
                    command = [PROGRAM, "sgd", *map(str, arguments), "--output", str(self.output),
                               "--checkpoint-seconds", "0", "--threads", "1"]
                    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
                    while not checkpoint.exists() and process.poll() is None:
                        time.sleep(0.01)
                    process.send_signal(kind)
                    message = process.communicate()[1]
                    self.assertTrue(checkpoint.exists(), message)
                    if kind == signal.SIGINT:
                        self.assertEqual(process.returncode, 130)
                        self.assertIn("run the same command again", message)
                        self.assertLess(self.load(self.output).sizes["time"], 13)
                    other = run("sgd", *arguments, "--lr", 0.03, "--output", self.output)
                    self.assertEqual(other.returncode, 2)
                    self.assertIn("another configuration", other.stderr)
                    done = run("sgd", *arguments, "--output", self.output)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn("going on from step", done.stderr)
                    self.same(self.load(whole), self.load(self.output))
                    self.assertFalse(checkpoint.exists())

    def test_twenty_kills_lose_nothing(self):
        arguments = [*PROBLEM, "--dim", 10**6, "--batch", 1000, "--steps", 6000, "--outputs", 300,
                     "--runs", 2]
        whole = self.path / "whole.nc"
        self.assertEqual(run("sgd", *arguments, "--output", whole).returncode, 0)
        chance = random.Random(1)
        command = [PROGRAM, "sgd", *map(str, arguments), "--output", str(self.output),
                   "--checkpoint-seconds", "0", "--quiet", "--threads", "1"]
        killed = 0
        for _ in range(20):
            process = subprocess.Popen(command)
            try:
                process.wait(chance.uniform(0.01, 0.2))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                killed += 1
        self.assertGreater(killed, 10)
        self.assertEqual(run("sgd", *arguments, "--output", self.output).returncode, 0)
        self.same(self.load(whole), self.load(self.output))
        self.assertEqual(sorted(f.name for f in self.path.iterdir()), ["run.nc", "whole.nc"])

    def test_the_flow_starts_where_sgd_started(self):
        start = self.path / "start.nc"
        run("sgd", *SHORT, "--runs", 2, "--output", self.output, "--save-init", start)
        for file in (start, self.output):
            flow = self.path / "flow.nc"
            done = run("flow", *PROBLEM, "--init-from", file, "--init-run", 2, "--time", 1, "--output", flow)
            self.assertEqual(done.returncode, 0, done.stderr)
            sgd, theory = self.load(self.output), self.load(flow)
            for name in ("m", "q", "b", "v"):
                self.assertLess(abs(sgd[name][1, 0].values - theory[name][0].values).max(), 1e-12)
            self.assertLess(abs(sgd.p[1].values - theory.p.values).max(), 1e-12)

    def test_a_start_takes_the_place_of_nothing_else(self):
        mine = self.path / "mine.toml"
        mine.write_text("[problem]\nnu = 2.0\n")
        for command in ("sgd", "compare"):
            for start in (mine, f"{self.output.parent}/./{self.output.name}"):
                done = run(command, mine, "--dim", 50, "--batch", 20, "--tau", 0.1, "--output", self.output, "--save-init", start)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(mine.read_text(), "[problem]\nnu = 2.0\n")

    def test_compare(self):
        done = run("compare", *PROBLEM, "--dim", 10000, "--batch", 10000, "--lr", 0.02, "--tau", 2,
                   "--runs", 2, "--outputs", 10, "--output", self.output, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        (flow,) = json.loads(done.stdout)["theories"]
        self.assertEqual(flow["theory"], "flow")
        self.assertLess(flow["largest_m"], 0.05)  # five times D^-1/2
        self.assertGreater(flow["rms_m"], 1e-5)
        data = self.load(self.output)
        self.assertEqual(data.m_theory.dims, ("theory", "run", "time", "attention_head", "feature"))
        self.assertLess(abs(data.m_theory[0, :, 0].values - data.m[:, 0].values).max(), 1e-12)
        self.assertEqual(float(data.rms_m.sel(theory="flow")), flow["rms_m"])
        self.assertAlmostEqual(flow["rms_m"], np.sqrt(((data.m - data.m_theory[0]).values ** 2).mean()))

    def test_compare_keeps_its_steps_until_the_result_is_written(self):
        arguments = ["compare", *PROBLEM, "--dim", 1000, "--batch", 1000, "--lr", 0.1, "--tau", 20,
                     "--outputs", 4, "--theory", "map", "--engine", "mc", "--samples", 200000]
        whole = self.path / "whole.nc"
        self.assertEqual(run(*arguments, "--output", whole).returncode, 0)
        process = subprocess.Popen([PROGRAM, *map(str, arguments), "--output", str(self.output)],
                                   stderr=subprocess.PIPE, text=True)
        checkpoint = Path(f"{self.output}.checkpoint")
        while not checkpoint.exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        message = process.communicate()[1]
        self.assertEqual(process.returncode, 130, message)
        self.assertIn("run the same command again", message)
        done = run(*arguments, "--output", self.output)
        self.assertIn("going on from step", done.stderr)
        self.assertFalse(checkpoint.exists())
        self.same(self.load(whole), self.load(self.output))

    def test_the_configuration_of_compare_reproduces_it(self):
        run("compare", *SHORT, "--rtol", 1e-2, "--atol", 1e-2, "--output", self.output)
        first = self.load(self.output)
        again, second = self.path / "again.toml", self.path / "second.nc"
        again.write_text(first.attrs["configuration"])
        self.assertEqual(run("compare", again, "--output", second).returncode, 0)
        self.same(first, self.load(second))
        self.assertEqual(first.sel(theory="flow").m_theory.dims, ("run", "time", "attention_head", "feature"))

    def test_a_flag_wins_over_the_file(self):
        file = self.path / "steps.toml"
        file.write_text("[sgd]\nsteps = 7\nbatch = 20\ndim = 50\nlr = 0.1\n")
        for arguments, steps in (([], 7), (["--tau", 2], 20), (["--steps", 3], 3)):
            done = run("sgd", file, *PROBLEM, *arguments, "--json")
            self.assertEqual(json.loads(done.stdout)["steps"], steps, done.stderr)
        self.assertEqual(run("sgd", file, *PROBLEM, "--tau", 2, "--steps", 3, "--json").returncode, 2)

    def test_divergence_is_an_outcome(self):
        done = run("sgd", *PROBLEM, "--dim", 100, "--batch", 10, "--lr", 1e3, "--steps", 200, "--output",
                   self.output)
        self.assertEqual(done.returncode, 3, done.stderr)
        data = self.load(self.output)
        self.assertEqual(data.attrs["outcome"], "diverged")
        self.assertTrue(np.isfinite(data.q.values).all())

    def test_start_from_a_given_point(self):
        done = run("sgd", *SHORT, "--init", "point", "--m", "0.5,0.1;0.4,-0.2", "--R", "1,0;0.2,1",
                   "--p", "1,0.1;0.1,0.9", "--output", self.output)
        self.assertEqual(done.returncode, 0, done.stderr)
        data = self.load(self.output)
        self.assertLess(abs(data.m[0, 0].values - [[0.5, 0.1], [0.4, -0.2]]).max(), 1e-14)
        self.assertLess(abs(data.p[0].values - [[1, 0.1], [0.1, 0.9]]).max(), 1e-14)

    def test_bad_input_says_what_to_do(self):
        for arguments, part in [
                (["--dim", 3], "features + heads = 4"), (["--batch", 0], "sgd.batch"),
                (["--method", "exact"], "reduced"), (["--init", "file"], "law"),
                (["--method", "direct", "--dim", 10**9], 'sgd.method = "reduced"'),
                (["--p", "1,0;0,1"], "sgd.init = \"point\""), (["--m", "1,0;0,1"], "sgd.init = \"point\""),
                (["--save-init", self.output], "another file"), (["--lr", -1], "sgd.lr")]:
            done = run("sgd", *PROBLEM, *arguments, "--output", self.output)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(part, done.stderr)
        done = run("compare", *SHORT, "--theory", "flows", "--output", self.output)
        self.assertIn('did you mean "flow"', done.stderr)


if __name__ == "__main__":
    unittest.main()
