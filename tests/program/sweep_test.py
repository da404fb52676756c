"""Sweeps as their users meet them: mistakes, stores, growth, results. Usage: sweep_test.py PATH_TO_HEADFLOW."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest
from pathlib import Path

import numpy as np
import xarray

PROGRAM = sys.argv.pop(1)

# Bayes risks of the flipping spike: milliseconds each.
BAYES = """
[problem]
tokens = 4
nu = 2.0
[sweep]
measure = ["bayes"]
[[sweep.axis]]
key = "problem.tokens"
values = [3, 4]
[[sweep.axis]]
key = "run.seed"
range = [1, 2]
"""


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, **options)


class Sweeps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)
        self.config = self.path / "sweep.toml"
        self.result = self.path / "sweep.nc"
        self.store = self.path / "sweep.nc.tasks"

    def sweep(self, text=None, *more):
        if text is not None:
            self.config.write_text(text)
        return run("sweep", self.config, "--output", self.result, *more)

    def done(self, text=None, *more):
        got = self.sweep(text, "--json", *more)
        self.assertEqual(got.returncode, 0, got.stderr)
        return json.loads(got.stdout), got.stderr

    def refused(self, text, *parts, flags=()):
        got = self.sweep(text, *flags)
        self.assertEqual(got.returncode, 2, got.stderr)
        for part in parts:
            self.assertIn(part, got.stderr)
        self.assertFalse(self.result.exists())
        self.assertEqual(list(self.store.glob("*.task")), [])

    def data(self):
        with xarray.open_dataset(self.result) as data:
            return data.load()


class Numbers(Sweeps):
    def test_an_axis_of_one_strength_leaves_the_other(self):
        self.done("""
[problem]
tokens = 4
nu = 2.0
[sweep]
measure = ["bayes"]
[[sweep.axis]]
key = "problem.nu[1]"
values = [1.0, 2.0, 4.0]
""")
        data = self.data()
        self.assertTrue(np.allclose(data.bayes, [0.4486, 0.3429, 0.1996], atol=1e-4), data.bayes.values)
        self.assertEqual(data.bayes.dims, ("nu1",))
        # And as the command bayes has them.
        one = json.loads(run("bayes", "--tokens", 4, "--nu", "4,2", "--json").stdout)
        self.assertAlmostEqual(float(data.bayes[2]), one["risk"], places=6)

    def test_the_configuration_is_that_of_the_start(self):
        """The file changes while tasks run; the result is wholly of what was read."""
        slow = """
[problem]
tokens = 6
heads = 2
nu = 2.0
[run]
engine = "mc"
samples = 10000
[flow]
integrator = "euler"
step = 0.05
time = 2
outputs = 2
[sweep]
measure = ["flow"]
[[sweep.axis]]
key = "run.seed"
range = [1, TASKS]
"""
        for tasks in (20, 100, 500):  # until it is slow enough to be disturbed
            text = slow.replace("TASKS", str(tasks))
            self.config.write_text(text)
            process = subprocess.Popen([PROGRAM, "sweep", self.config, "--output", self.result, "--threads", "1", "--quiet"])
            while not list(self.store.glob("*.task")) and process.poll() is None:
                time.sleep(0.002)
            process.send_signal(signal.SIGSTOP)
            early = len(list(self.store.glob("*.task"))) < tasks and process.poll() is None
            self.config.write_text(text.replace("tokens = 6", "tokens = 60").replace("heads = 2", "heads = 3"))
            process.send_signal(signal.SIGCONT)
            self.assertEqual(process.wait(), 0)
            data = self.data()
            self.result.unlink()
            shutil.rmtree(self.store)
            if early:
                break
        self.assertTrue(early)
        self.assertEqual(tomllib.loads(data.attrs["configuration"])["problem"]["tokens"], 6)
        self.done(text)
        self.assertTrue(data.equals(self.data()))

    def test_whole_numbers_times_and_attributes(self):
        self.done("""
[problem]
nu = 2.0
[flow]
time = 1
outputs = 3
[end]
search = "flow"
[sweep]
measure = ["end", "flow"]
[[sweep.axis]]
key = "problem.heads"
range = [1, 2]
[[sweep.axis]]
key = "run.seed"
values = [1, 9007199254740993]
""")
        with xarray.open_dataset(self.result, mask_and_scale=False) as data:
            self.assertEqual(list(data.seed.values), [1, 9007199254740993])
            for name in ("seed", "heads", "index", "converged"):
                self.assertEqual(data[name].dtype.kind, "i", name)
            self.assertTrue((data["index"] == data["index"].attrs["_FillValue"]).all())  # no Hessian was looked at
            self.assertNotIn("_FillValue", data.converged.attrs)
            self.assertTrue(np.array_equal(data.time, data.tau.isel(heads=0, seed=0)))
            self.assertNotIn("seed", data.attrs)
            configuration = tomllib.loads(data.attrs["configuration"])
            self.assertNotIn("seed", configuration["run"])
            self.assertNotIn("heads", configuration["problem"])
        data = self.data()
        self.assertTrue(np.isnan(data["index"]).all())
        self.assertAlmostEqual(float(data.loss_t.sel(time=1 / 3, method="nearest")[0, 0]), float(data.loss_t[0, 0, 1]))

    def test_times_that_differ_are_no_coordinate(self):
        self.done("""
[problem]
nu = 2.0
[flow]
outputs = 3
[sweep]
measure = ["flow"]
[[sweep.axis]]
name = "length"
key = "flow.time"
values = [1.0, 2.0]
[[sweep.axis]]
key = "run.seed"
values = [5]
""")
        self.assertNotIn("time", self.data().coords)


class Starts(Sweeps):
    FLOW = """
[problem]
nu = 2.0
[flow]
time = 1
outputs = 2
[sweep]
measure = ["flow"]
[[sweep.axis]]
key = "problem.tokens"
values = [3, 4]
"""

    def test_a_start_from_a_file(self):
        start = self.path / "start.nc"
        got = run("flow", "--nu", 2, "--time", 1, "--outputs", 2, "--seed", 7, "--output", start, "--quiet")
        self.assertEqual(got.returncode, 0, got.stderr)
        self.done(self.FLOW, "--init-from", start)
        with xarray.open_dataset(start) as one:
            self.assertTrue(np.array_equal(self.data().m_t.isel(tokens=1).values, one.m.values))
        recorded = tomllib.loads(self.data().attrs["configuration"])
        self.assertEqual(recorded["flow"]["init"], "point")  # numbers, without the file
        self.assertIn("m", recorded["point"])

    def test_starts_as_an_axis(self):
        start = self.path / "start.nc"
        run("flow", "--nu", 2, "--time", 30, "--outputs", 2, "--seed", 7, "--output", start, "--quiet")
        with xarray.open_dataset(start) as one:
            m = one.m.values
        axis = self.FLOW.split("[[sweep.axis]]")[0] + '[[sweep.axis]]\nkey = "flow.{}"\nvalues = {}\n'
        self.done(axis.format("init", '["noise", "file"]'), "--init-from", start, "--init-time", "last")
        found = self.data().m_t.isel(time=0).values
        self.assertTrue(np.array_equal(found[1], m[-1]))
        self.assertLess(abs(found[0]).max(), 0.1)
        self.result.unlink()
        self.done(axis.format("init_time", '["first", "last", 15]'), "--init-from", start)
        self.assertTrue(np.array_equal(self.data().m_t.isel(time=0).values, m[[0, 2, 1]]))
        self.result.unlink()
        self.done(axis.format("init_b[1]", "[1, 2]"), "--activation", "softmax-1", "--init-b", 0.5)
        self.assertEqual(self.data().b_t.isel(time=0).values.tolist(), [[1, 0.5], [2, 0.5]])

    def test_starts_that_are_not_there_are_refused(self):
        self.refused(self.FLOW, "nonexistent.nc", flags=("--init-from", "nonexistent.nc"))
        self.refused(self.FLOW.replace('["flow"]', '["bayes"]'), "none of the measures starts", flags=("--init-from", "x.nc"))
        self.refused(self.FLOW, "nothing starts there", flags=("--m", "1,0;0,1"))
        self.refused(self.FLOW, "point.m", flags=("--m", "1,0,0;0,1,0", "--flow.init", "point"))

    SGD = """
[problem]
nu = 2.0
p = [[1.0, 0.25], [0.25, 1.0]]
[point]
m = [[0.5, 0.25], [-0.5, 0.125]]
[sgd]
init = "point"
dim = 100
batch = 20
lr = 0.1
tau = 1
outputs = 2
[sweep]
measure = ["sgd"]
[[sweep.axis]]
key = "run.seed"
range = [1, 2]
"""

    def test_sgd_from_a_point(self):
        self.done(self.SGD)
        data = self.data()
        for name in ("sgd_m_t", "m_t"):
            self.assertTrue(np.allclose(data[name].isel(time=0), [[0.5, 0.25], [-0.5, 0.125]], atol=1e-12), name)
        self.refused_with("problem.p", self.SGD.replace('init = "point"', 'init = "law"'))

    def refused_with(self, part, text):
        self.result.unlink(missing_ok=True)
        shutil.rmtree(self.store, ignore_errors=True)
        self.refused(text, part)


class Ends(Sweeps):
    DIVERGES = """
[problem]
activation = "softmax-1"
nu = 2.0
[flow]
integrator = "euler"
step = 400
time = 4e4
outputs = 4
[end]
search = "flow"
[run]
engine = "mc"
samples = 200
[sweep]
measure = ["end", "flow", "phases", "pruning", "bayes"]
[[sweep.axis]]
key = "flow.step"
values = [400, 1]
"""

    def test_divergence_is_said(self):
        got = self.sweep(self.DIVERGES)
        self.assertEqual(got.returncode, 3, got.stderr)
        self.assertIn("diverged in 1 of 2 tasks", got.stderr)
        data = self.data()
        self.assertEqual(data.diverged.values.tolist(), [1, 0])
        self.assertEqual(data.converged.values[0], 0)
        for name in ("loss", "m", "tau_s", "pruned_loss"):
            self.assertTrue(np.isnan(data[name].values[0]).all(), name)
            self.assertTrue(np.isfinite(data[name].values[1]).any(), name)
        self.assertTrue(np.isfinite(data.bayes.values).all())
        self.assertNotIn("excess_risk", data)
        one = self.path / "one.toml"
        one.write_text(self.DIVERGES.split("[sweep]")[0])
        for command in ("phases", "prune"):
            got = run(command, one)
            self.assertEqual((got.returncode, got.stdout), (3, ""), got.stderr)
            self.assertIn("diverged", got.stderr)

    def test_excess_risk(self):
        """Equal to the loss above the Bayes risk within six standard errors; unknown where there is no end."""
        text = self.DIVERGES.replace(', "flow", "phases", "pruning"', "").replace("samples = 200", "samples = 5000")
        got = self.sweep(text.replace("time = 4e4", "time = 4e3") + "[loss]\nexcess = 5000\n")
        self.assertEqual(got.returncode, 3, got.stderr)
        data = self.data()
        self.assertTrue(np.isnan(data.excess_risk.values[0]) and np.isnan(data.excess_risk_error.values[0]))
        off = (data.excess_risk - (data.loss - data.bayes)).values[1]
        self.assertLess(abs(off), 6 * np.hypot(data.excess_risk_error, data.loss_error).values[1])
        self.assertGreater(data.excess_risk.values[1], 10 * data.excess_risk_error.values[1])

    def test_a_damaged_result_is_made_again(self):
        self.done(BAYES)
        good = self.data().bayes.values
        whole = self.result.read_bytes()
        damaged = bytearray(whole)
        damaged[whole.index(good[0, 0].tobytes()) + 6] ^= 4
        self.result.write_bytes(damaged)
        _, said = self.done(BAYES)
        self.assertIn("is damaged", said)
        self.assertTrue(np.array_equal(self.data().bayes.values, good))
        self.result.write_bytes(damaged)
        got = self.sweep(BAYES.replace("nu = 2.0", "nu = 3.0"))
        self.assertEqual(got.returncode, 2)
        self.assertIn("is damaged", got.stderr)

    def test_files_of_the_user_survive_in_the_store(self):
        self.store.mkdir()
        mine = [self.store / name for name in ("configuration", "2024.json", "my.task", "my.task.backup", "notes.txt")]
        for path in mine:
            path.write_text("mine")
        self.done(BAYES)
        copy = next(self.store.glob("????????????????????????????????.task"))
        mine.append(shutil.copy(copy, f"{copy}.backup"))
        self.result.unlink()
        self.done(BAYES.replace("range = [1, 2]", "range = [1, 3]"))
        for path in map(Path, mine):
            self.assertTrue(path.exists(), path)


class Mistakes(Sweeps):
    """Each is found before the first task, and says what to do."""

    def test_what_changes_nothing(self):
        for key, values, why in (("flow.time", "[1, 2]", "starts a flow"), ("sgd.method", '["reduced", "direct"]', "runs SGD"),
                                 ("end.gradient", "[0.1, 0.2]", "end of training"), ("loss.excess", "[0, 100]", "the measure \"end\"")):
            self.refused(BAYES.replace('"run.seed"', f'"{key}"').replace("range = [1, 2]", f"values = {values}"), key, why)
        end = BAYES.replace('["bayes"]', '["end"]')
        self.refused(end, "newton", flags=("--time", 5))
        self.refused(Starts.SGD, "starts a flow", flags=("--init-b", 3))
        for text in ('[sgd]\nmethod = "foo"\n', '[compare]\ntheory = "kapa"\n'):
            self.refused(BAYES + text, text.split('"')[1])
        _, said = self.done(BAYES, "--mean", "1,0")
        self.assertIn("problem.mean", said)
        got = run("prune", "--nu", 2, "--time", 5)
        self.assertEqual(got.returncode, 2)
        self.assertIn("newton", got.stderr)

    def test_theories(self):
        text = Starts.SGD + '[compare]\ntheory = "kapa"\n'
        self.refused(text, "compare.theory", "kappa")
        got = run("compare", "--nu", 2, "--dim", 50, "--batch", 20, "--tau", 0.1, "--theory", "kapa", "--json")
        self.assertEqual(got.returncode, 2)
        self.assertIn("kappa", got.stderr)
        self.done(text.replace('"kapa"', '["flow", "flow"]'))

    def test_axes(self):
        seed = 'key = "run.seed"\nrange = [1, 2]'
        for wrong, part in [(seed + '\nname = "my axis/1"', "my_axis_1"), (seed + '\nname = "head"', "xarray"),
                            (seed + '\nname = "bayes"', "what is measured"), ('key = "seed"\nrange = [1, 2]', "run.seed"),
                            ('key = "problem.nu[0]"\nvalues = [1.0]', "problem.nu[1]"),
                            ('key = "run.seed"\nrange = [5, 1]', "upwards"), ('key = "run.seed"\nrange = [1, inf]', "finite"),
                            ('key = "run.seed"\nrange = [0, 1e12]', "1000000"),
                            ('key = "run.seed"\nrange = [1, 100000000]', "1000000")]:
            self.refused(BAYES.replace(seed, wrong), part)

    def test_flags_beside_axes(self):
        self.refused(BAYES, "problem.tokens = 7", '"tokens"', flags=("--tokens", 7))

    def test_values_of_tasks(self):
        for lines, part in [('key = "run.engine"\nvalues = ["auto", "magic"]', "magic"),
                            ('key = "run.samples"\nvalues = [0, 1]', "run.samples"),
                            ('key = "run.tolerance"\nvalues = [1e-3, 7.0]', "run.tolerance"),
                            ('key = "problem.heads"\nvalues = [2, 3]', "point.m")]:
            self.refused(Starts.FLOW.replace('key = "problem.tokens"\nvalues = [3, 4]', lines).replace(
                "[flow]", "[point]\nm = [[1.0, 0.0], [0.0, 1.0]]\n[flow]\ninit = 'point'"), part)

    def test_a_result_that_would_not_fit(self):
        self.refused(Starts.FLOW.replace("outputs = 2", "outputs = 10000000"), "numbers", "outputs")

    def test_many_tasks_are_checked_quickly(self):
        """A wrong one among a hundred thousand is named."""
        full = os.environ.get("HEADFLOW_TEST_EFFORT") == "full"
        many = BAYES.replace("values = [3, 4]", "values = [3, 0]").replace("[1, 2]", f"[1, {100000 if full else 5000}]")
        self.refused(many, "tokens 0, seed 1")


class Stores(Sweeps):
    def kept(self, text=None):
        out, said = self.done(text)
        return out["kept"], out["tasks"], said

    def test_a_sweep_can_grow(self):
        self.assertEqual(self.kept(BAYES)[:2], (0, 4))
        before = self.data()
        kept, tasks, said = self.kept(BAYES.replace("range = [1, 2]", "range = [1, 3]"))
        self.assertEqual((kept, tasks), (4, 6))
        self.assertIn("axis seed: 3 values, was 2", said)
        data = self.data()
        self.assertEqual(dict(data.sizes), {"tokens": 2, "seed": 3})
        self.assertTrue(np.array_equal(data.bayes.isel(seed=slice(2)), before.bayes))
        # Another name discards nothing, and neither does going back.
        kept, tasks, said = self.kept(BAYES.replace('key = "run.seed"', 'key = "run.seed"\nname = "start"'))
        self.assertEqual((kept, tasks), (4, 4))
        self.assertIn("start", self.data().dims)
        self.assertEqual(self.kept(BAYES)[:2], (4, 4))
        self.assertTrue(self.data().equals(before))
        self.assertIn("up to date", self.sweep().stderr)

    def test_another_sweep_is_refused(self):
        self.done(BAYES)
        before = self.result.read_bytes()
        got = self.sweep(BAYES.replace("nu = 2.0", "nu = 3.0"))
        self.assertEqual(got.returncode, 2)
        self.assertIn("problem.nu = 3.0, was 2.0", got.stderr)
        self.assertEqual(self.result.read_bytes(), before)
        self.result.write_text("something else")
        self.assertIn("no result of a sweep", self.sweep(BAYES).stderr)
        self.assertEqual(self.result.read_text(), "something else")

    def test_damage_is_named_and_computed_again(self):
        self.done(BAYES)
        whole = self.data()
        files = sorted(self.store.glob("*.task"))
        self.assertEqual(len(files), 4)
        content = [path.read_bytes() for path in files]
        changes = 200 if os.environ.get("HEADFLOW_TEST_EFFORT") == "full" else 10
        for i in range(changes):
            path, old = files[i % 4], content[i % 4]
            place = len(old) * (2 * i + 1) // (2 * changes)
            path.write_bytes(old[:place] + (b"7" if old[place:place + 1] != b"7" else b"8") + old[place + 1:])
            self.result.unlink()
            kept, tasks, said = self.kept()
            self.assertEqual((kept, tasks), (3, 4))
            self.assertIn(path.name, said)
            self.assertIn("damaged", said)
            self.assertTrue(self.data().equals(whole))
        files[0].write_bytes(content[0][:100])
        files[1].write_bytes(b"")
        files[2].write_bytes(content[3])
        self.result.unlink()
        self.assertEqual(self.kept()[:2], (1, 4))
        self.assertTrue(self.data().equals(whole))

    def test_tasks_of_another_configuration_are_not_taken(self):
        """Whatever is lost of the folder: what is left is known by what it computes."""
        self.done(BAYES.replace("nu = 2.0", "nu = 3.0"))
        self.result.unlink()
        self.assertEqual(self.kept(BAYES)[:2], (0, 4))

    def test_what_json_has_not(self):
        """A batch of one has an infinite error; it survives a restart."""
        text = Starts.SGD.replace("batch = 20", "batch = 1")
        self.done(text)
        whole = self.data()
        self.assertTrue(np.isinf(whole.sgd_loss_t_error).all())
        self.result.unlink()
        self.assertEqual(self.kept(text)[:2], (2, 2))
        self.assertTrue(self.data().equals(whole))

    def test_two_processes_on_one_output(self):
        self.store.mkdir()
        with open(self.store / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            got = self.sweep(BAYES)
            self.assertEqual(got.returncode, 2)
            self.assertIn("another process", got.stderr)
            self.assertFalse(self.result.exists())
        self.done(BAYES)

    def test_interrupted(self):
        self.config.write_text(Starts.FLOW.replace("[flow]", "[run]\nengine = 'mc'\nsamples = 1000000\n[flow]\nintegrator = 'euler'\nstep = 1e-4"))
        process = subprocess.Popen([PROGRAM, "sweep", self.config, "--output", self.result, "--threads", "1"],
                                   stderr=subprocess.PIPE, text=True)
        while not (self.store / "lock").exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("the same command goes on", said)


if __name__ == "__main__":
    unittest.main()
