"""The program as its users meet it: output, errors, files. Usage: cli_test.py PATH_TO_HEADFLOW."""

import json
import os
import pty
import resource
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

POINT = """\
[problem]
activation = "softmax-1"
prior = "flipping"
tokens = 4
heads = 2
features = 2
nu = [2.0, 2.0]
eta = 1.0

[point]
m = [[1.0, 0.5], [1.0, -0.5]]
R = [[1.0, 0.0], [0.0, 1.0]]
b = [0.1, -0.1]
v = 1.2
"""
QUICK = ["--samples", "500", "--time", "1"]


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, **options)


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.point = self.path / "point.toml"
        self.point.write_text(POINT)
        self.output = self.path / "run.nc"

    def tearDown(self):
        self.folder.cleanup()


class Loss(CommandLine):
    def test_json(self):
        done = run("loss", self.point, "--engine", "mc", "--samples", 100000, "--seed", 1, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        out = json.loads(done.stdout)
        for key in ("loss", "loss_error", "grad_m", "grad_R_error", "error_kinds", "engine", "engine_samples", "seconds", "provenance"):
            self.assertIn(key, out)
        self.assertEqual(out["engine"], "mc")
        self.assertEqual(out["engine_samples"], 100000)
        for end in ("", "_error"):
            self.assertEqual([len(row) for row in out["grad_m" + end]], [2, 2])
            self.assertEqual([len(row) for row in out["grad_R" + end]], [2, 2])
            self.assertEqual(len(out["grad_b" + end]), 2)
            self.assertIsInstance(out["grad_v" + end], float)
            self.assertEqual(out["error_kinds"]["grad_v_error"], "Monte-Carlo standard error")
        for key in ("program_version", "program_commit", "date", "configuration"):
            self.assertTrue(out["provenance"][key], key)
        plain = json.loads(run("loss", self.point, "--activation", "softmax", "--json").stdout)
        parts = [key for key in plain if key.startswith("grad_") and not key.endswith("_error")]
        self.assertEqual(parts, ["grad_m", "grad_R"])  # softmax has nothing else
        self.assertTrue(0 < out["loss_error"] < 0.01)

    def test_flags_win_over_the_file(self):
        done = run("loss", self.point, "--v", "0", "--samples", 100, "--json")
        self.assertAlmostEqual(json.loads(done.stdout)["loss"], 1.0, places=12)

    def test_threads_do_not_change_bits(self):
        results = []
        for threads in (1, 2, 7):
            out = json.loads(run("loss", self.point, "--threads", threads, "--json").stdout)
            del out["seconds"], out["provenance"]
            results.append(out)
        self.assertEqual(results[0], results[1])
        self.assertEqual(results[0], results[2])

    def test_text_output(self):
        done = run("loss", self.point, "--samples", 1000)
        self.assertEqual(done.returncode, 0)
        self.assertIn("Monte-Carlo standard error", done.stdout)

    def test_the_default_is_auto_and_says_why(self):
        out = json.loads(run("loss", self.point, "--json").stdout)
        self.assertEqual(out["engine"], "factorised")
        self.assertIn("meets the tolerance", out["engine_reason"])
        self.assertTrue(out["tolerance_met"])
        self.assertLess(out["loss_error"], 1e-6)

    def test_engines_agree(self):
        results = {}
        for engine in ("factorised", "qmc", "mc"):
            done = run("loss", self.point, "--engine", engine, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            results[engine] = json.loads(done.stdout)
            self.assertEqual(results[engine]["engine"], engine)
        exact = results["factorised"]["loss"]
        for engine in ("qmc", "mc"):
            self.assertLess(abs(results[engine]["loss"] - exact), 5 * results[engine]["loss_error"])
        self.assertLess(results["qmc"]["loss_error"], results["mc"]["loss_error"])

    def test_excess_risk(self):
        """Equal to the loss above the Bayes risk within six standard errors of 15 degrees of freedom: a false alarm in 4e4."""
        done = run("loss", self.point, "--excess", 20000, "--output", self.output, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        out = json.loads(done.stdout)
        bayes = json.loads(run("bayes", self.point, "--json").stdout)
        off = out["excess_risk"] - (out["loss"] - bayes["risk"])
        self.assertLess(abs(off), 6 * out["excess_risk_error"] + 1e-5)
        self.assertLess(out["excess_risk_error"], 0.01 * out["excess_risk"])
        self.assertEqual(out["error_kinds"]["excess_risk_error"], "standard error over randomisations")
        self.assertIn("excess = 20000", out["provenance"]["configuration"])
        with xarray.open_dataset(self.output) as data:
            self.assertEqual(data.excess_risk.item(), out["excess_risk"])
            self.assertEqual(data.excess_risk.attrs["ancillary_variables"], "excess_risk_error")
        # Heads on the two atoms are the Bayes estimator.
        at_atoms = ["--m", "1.5,1;1.5,-1", "--R", "0,0;0,0", "--b", "0,0", "--nu", "2.25,1", "--activation", "b-softmax"]
        done = run("loss", self.point, *at_atoms, "--excess", 1000)
        self.assertRegex(done.stdout, r"excess risk  \S+e-\d+ \+- 1e-28")
        self.assertNotIn("excess", run("loss", self.point).stdout)
        refused = run("loss", self.point, "--excess", 1)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("loss.excess = 1", refused.stderr)

    def test_a_tolerance_out_of_reach_is_remarked(self):
        point = self.path / "wide.toml"
        point.write_text("[problem]\nactivation = 'b-softmax'\nheads = 8\nfeatures = 2\nnu = 2.0\n")
        done = run("loss", point, "--engine", "factorised", "--tolerance", "1e-9", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the tolerance 1e-09 is not reached", done.stderr)
        self.assertFalse(json.loads(done.stdout)["tolerance_met"])

    def test_gradient_is_in_the_overlaps_with_directions_that_are_not_orthonormal(self):
        def loss(m, p="1.2,0.3;0.3,0.9"):
            done = run("loss", self.point, "--p", p, "--m", m, "--tolerance", 1e-10, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)

        step = 1e-4
        above, below = loss(f"1,{0.5 + step};1,-0.5"), loss(f"1,{0.5 - step};1,-0.5")
        here = loss("1,0.5;1,-0.5")
        self.assertAlmostEqual(here["grad_m"][0][1], (above["loss"] - below["loss"]) / (2 * step), delta=1e-6)
        self.assertNotAlmostEqual(here["loss"], loss("1,0.5;1,-0.5", "1,0;0,1")["loss"], places=3)

    def test_orthonormal_directions_change_no_bit(self):
        plain, given = (run("loss", self.point, *more, "--json") for more in ((), ("--p", "1,0;0,1")))
        plain, given = json.loads(plain.stdout), json.loads(given.stdout)
        for out in (plain, given):
            del out["seconds"], out["provenance"]
        self.assertEqual(plain, given)

    def test_unused_parameter_is_remarked(self):
        done = run("loss", self.point, "--points", "1,0;0,1", "--samples", 100)
        self.assertEqual(done.returncode, 0)
        self.assertIn("problem.points is not used by prior", done.stderr)


class Analysis(CommandLine):
    def test_hessian_at_the_origin_has_the_closed_forms(self):
        done = run("hessian", "--prior", "gaussian", "--nu", "8,2", "--heads", 4, "--tokens", 5, "--at",
                   "origin", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        out = json.loads(done.stdout)
        first = out["spectrum"][0]
        self.assertEqual((first["multiplicity"], first["mode"]), (3, "m, across heads, feature 1"))
        for row in out["spectrum"]:
            self.assertLess(abs(row["eigenvalue"] - row["closed_form"]), 1e-6)
        self.assertAlmostEqual(out["escape_rate"], 0.384, places=6)
        self.assertEqual(run("hessian", "--at", "nowhere").returncode, 2)
        for activation in ("softmax", "softmax-1", "b-softmax"):
            done = run("hessian", "--activation", activation, "--nu", "2,2", "--heads", 3, "--at", "saddle", "--json")
            out = json.loads(done.stdout)
            self.assertEqual(out["m"][0], out["m"][2])
            self.assertLess(out["spectrum"][0]["eigenvalue"], -0.02)
            self.assertLess(out["gradient_norm"], 1e-7)
        unequal = run("hessian", "--activation", "softmax-1", "--nu", "2,2", "--b", "1,0", "--at", "origin")
        self.assertEqual(unequal.returncode, 2)
        self.assertEqual(run("hessian", "--nu", "2,2", "--dim", 1).returncode, 2)
        text = run("hessian", "--nu", "2,2", "--at", "saddle").stdout
        self.assertIn("m, across heads, feature 2", text)

    def test_fixed_point(self):
        done = run("fixed-point", self.point, "--activation", "softmax", "--seed", 1, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        out = json.loads(done.stdout)
        self.assertLess(out["gradient_norm"], 1e-8)
        self.assertEqual((out["index"], out["kind"]), (0, "minimum"))
        self.assertLess(out["loss_error"], 1e-8)
        self.assertEqual(len(out["m"]), 2)

    def test_minima(self):
        problem = ["--prior", "flipping", "--tokens", 4, "--heads", 2, "--features", 2, "--nu", "2,2", "--starts", 6]
        outs = []
        for threads in (1, 2):
            done = run("minima", *problem, "--threads", threads, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            outs.append(json.loads(done.stdout))
            del outs[-1]["provenance"]
        self.assertEqual(outs[0], outs[1])
        out = outs[0]
        self.assertEqual((out["starts"], out["paper_starts"], out["failed"]), (6, 2, 0))
        self.assertEqual(sum(one["starts"] for one in out["minima"]), 6)
        best = out["minima"][0]
        for key in ("loss", "loss_error", "gradient_norm", "zero_modes", "share", "paper_starts", "m", "R"):
            self.assertIn(key, best)
        self.assertEqual((best["kind"], best["index"], best["above_best"]), ("minimum", 0, 0))
        self.assertEqual((best["paper_starts"], best["share_from_noise"]), (2, 1))
        self.assertEqual(best["loss"], min(one["loss"] for one in out["minima"]))
        self.assertIn("rows of m", run("minima", *problem).stdout)
        self.assertEqual(run("minima", "--starts", 0).returncode, 2)


class Results(CommandLine):
    def test_files_and_json_have_the_same_numbers(self):
        tables = {"spectrum": "eigenspace", "minima": "minimum"}
        rough = ("--nu", "2,2", "--activation", "softmax-1", "--tolerance", 1e-3, "--quiet", "--json", "--output", self.output)
        for command in (["loss"], ["bayes"], ["hessian", "--at", "saddle"], ["fixed-point"], ["minima", "--starts", 2], ["prune"],
                        ["similarity"], ["attention"], ["phases", "--time", 2]):
            with self.subTest(command):
                done = run(*command, *rough)
                self.assertEqual(done.returncode, 0, done.stderr)
                out = json.loads(done.stdout)
                for name in set(tables) & set(out):
                    out |= {key: [row[key] for row in out[name]] for key in out[name][0]}
                with xarray.open_dataset(self.output, engine="netcdf4") as data:
                    self.assertEqual(data.attrs["program_commit"], out["provenance"]["program_commit"])
                    self.assertGreater(len(data.data_vars), 1)
                    for name, variable in data.data_vars.items():
                        printed = out[name]
                        if variable.dtype.kind in "OU":
                            self.assertEqual(variable.values.tolist(), printed, name)
                        else:
                            np.testing.assert_array_equal(variable.values.astype(float), np.array(printed, float), name)


class Verify(CommandLine):
    def test_rows(self):
        outs = []
        for threads in (1, 2):
            done = run("verify", "--only", "A.1,A.4,Erratum 5", "--threads", threads, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            outs.append(json.loads(done.stdout))
            self.assertGreater(outs[-1].pop("seconds"), 0)
            provenance = outs[-1].pop("provenance")
            for key in ("program_version", "program_commit", "date"):
                self.assertTrue(provenance[key], key)
        self.assertEqual(outs[0], outs[1])
        out = outs[0]
        self.assertEqual({row["id"] for row in out["rows"]}, {"Lemma A.1", "Lemma A.4", "Erratum 5"})
        for row in out["rows"]:
            for key in ("id", "statement", "setting", "predicted", "measured", "error", "error_kind", "verdict"):
                self.assertIn(key, row)
            self.assertEqual(row["verdict"], "holds as corrected" if row["printed"] is not None else "holds")
        self.assertEqual(out["holds"] + out["holds_as_corrected"], len(out["rows"]))
        self.assertEqual((out["fails"], out["not_as_expected"]), (0, 0))

    def test_table_and_file(self):
        path = self.path / "verify.json"
        done = run("verify", "--only", "lemma a.3", "--output", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Lemma A.3", done.stdout)
        self.assertIn("all as expected", done.stdout)
        self.assertEqual(len(json.loads(path.read_text())["rows"]), 6)

    def test_unknown_statement(self):
        done = run("verify", "--only", "V.7")
        self.assertEqual(done.returncode, 2)
        self.assertIn("Prop. III.4", done.stderr)


SWEEP = """
[problem]
prior = "flipping"
tokens = 4
features = 2
nu = [2.0, 2.0]
[sweep]
measure = ["end", "bayes", "similarity", "pruning", "attention"]
[[sweep.axis]]
key = "problem.heads"
range = [1, 2]
[[sweep.axis]]
key = "run.seed"
range = [1, 3]
"""


class Sweep(CommandLine):
    def setUp(self):
        super().setUp()
        self.config = self.path / "sweep.toml"
        self.config.write_text(SWEEP)
        self.result = self.path / "sweep.nc"

    def sweep(self, *more, output=None):
        return run("sweep", self.config, "--output", output or self.result, *more)

    def test_one_file_with_the_axes_as_dimensions(self):
        done = self.sweep("--threads", 2, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["tasks"], 6)
        self.assertEqual(len(list((self.path / "sweep.nc.tasks").glob("*.task"))), 6)
        other = self.path / "other.nc"
        self.assertEqual(self.sweep("--threads", 1, output=other).returncode, 0)
        with xarray.open_dataset(self.result) as one, xarray.open_dataset(other) as two:
            self.assertEqual(one.loss.dims, ("heads", "seed"))
            self.assertEqual(list(one.seed.values), [1, 2, 3])
            self.assertEqual(one.m.dims, ("heads", "seed", "attention_head", "feature"))
            self.assertTrue(np.isnan(one.m.sel(heads=1, attention_head=2)).all())
            self.assertTrue((one.loss > one.bayes).all())
            self.assertTrue((one.loss.sel(heads=2) < one.loss.sel(heads=1)).all())
            self.assertTrue(np.allclose(one.pruned_loss.isel(removed=0), one.loss, atol=1e-5))
            self.assertTrue(np.allclose(one.attention.sum("token").sel(heads=2), 1))
            self.assertTrue(one.equals(two))  # bit by bit

    def test_goes_on_where_it_was_stopped(self):
        whole = self.path / "whole.nc"
        self.assertEqual(self.sweep(output=whole).returncode, 0)
        process = subprocess.Popen([PROGRAM, "sweep", self.config, "--output", self.result, "--threads", "1"],
                                   stderr=subprocess.DEVNULL)
        tasks = self.path / "sweep.nc.tasks"
        for _ in range(2000):
            if len(list(tasks.glob("*.task"))) >= 2 or process.poll() is not None:
                break
            time.sleep(0.005)
        process.kill()
        process.wait()
        kept = len(list(tasks.glob("*.task")))
        done = self.sweep("--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["kept"], kept)
        with xarray.open_dataset(self.result) as one, xarray.open_dataset(whole) as two:
            self.assertTrue(one.equals(two))

    def test_another_configuration_is_refused(self):
        self.assertEqual(self.sweep().returncode, 0)
        before = self.result.read_bytes()
        done = self.sweep("--nu", "2,3")
        self.assertEqual(done.returncode, 2)
        self.assertIn("another configuration", done.stderr)
        self.assertEqual(self.result.read_bytes(), before)

    def test_wrong_tasks_are_found_before_anything_is_computed(self):
        self.config.write_text(SWEEP.replace("range = [1, 2]", "values = [2, 0]"))
        done = self.sweep()
        self.assertEqual(done.returncode, 2)
        self.assertIn("heads 0, seed 1", done.stderr)
        self.assertFalse((self.path / "sweep.nc.tasks").exists())
        self.assertEqual(run("sweep", self.config).returncode, 2)
        self.assertEqual(run("sweep", "--output", self.result).returncode, 2)


class Flow(CommandLine):
    def test_factorised_flow_reaches_stationarity_in_hundreds_of_evaluations(self):
        done = run("flow", self.point, "--activation", "b-softmax", "--integrator", "implicit", "--time", 1e4,
                   "--gradient-tolerance", 1e-6, "--output", self.output, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        out = json.loads(done.stdout)
        self.assertEqual(out["outcome"], "stationary")
        self.assertLess(out["evaluations"], 1000)
        self.assertEqual(out["engine"], "factorised")
        bayes = json.loads(run("bayes", self.point, "--json").stdout)
        self.assertLess(abs(out["loss"] - bayes["risk"]), 1e-6)  # two heads, two atoms: optimal
        import xarray
        with xarray.open_dataset(self.output) as data:
            self.assertIn("factorised", data.attrs["engine_reason"])
            self.assertEqual(data.attrs["error_kind"], "refinement difference")
            self.assertAlmostEqual(data.attrs["engine_tolerance"], 1e-7)

    def test_result_opens_in_xarray(self):
        done = run("flow", self.point, *QUICK, "--seed", 3, "--outputs", 5, "--output", self.output)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        import xarray

        with xarray.open_dataset(self.output) as data:
            self.assertEqual(dict(data.sizes), {"time": 6, "attention_head": 2, "other_head": 2, "feature": 2, "feature2": 2})
            self.assertEqual(data.m.dims, ("time", "attention_head", "feature"))
            for name in ("R", "q", "r"):
                self.assertEqual(data[name].dims, ("time", "attention_head", "other_head"))
            self.assertEqual(data.b.dims, ("time", "attention_head"))
            self.assertEqual(data.p.dims, ("feature", "feature2"))
            self.assertEqual(data.p.values.tolist(), [[1, 0], [0, 1]])
            for name in ("v", "loss", "loss_error", "gradient_norm", "gradient_error"):
                self.assertEqual(data[name].dims, ("time",))
            self.assertIn("units", data.time.attrs)
            self.assertEqual(data.loss_error.attrs["error_kind"], "Monte-Carlo standard error")
            q = data.m.values @ data.m.values.transpose(0, 2, 1) + data.R.values @ data.R.values.transpose(0, 2, 1)
            self.assertLess(abs(q - data.q.values).max(), 1e-13)
            self.assertLess(abs(data.r.values @ data.r.values - data.R.values @ data.R.values.transpose(0, 2, 1)).max(), 1e-12)
            for name in ("format_version", "program_version", "program_commit", "date", "configuration",
                         "command", "seed", "engine", "outcome", "outcome_message"):
                self.assertIn(name, data.attrs)
            self.assertEqual(data.attrs["seed"], 3)
            self.assertEqual(data.attrs["outcome"], "reached_time")

    def test_the_recorded_configuration_reproduces_the_run(self):
        import xarray

        run("flow", self.point, *QUICK, "--seed", 3, "--output", self.output)
        again = self.path / "again.toml"
        with xarray.open_dataset(self.output) as data:
            first = data.m.values.copy()
            again.write_text(data.attrs["configuration"])
        second = self.path / "second.nc"
        self.assertEqual(run("flow", again, "--threads", 2, "--output", second).returncode, 0)
        with xarray.open_dataset(second) as data:
            self.assertTrue((data.m.values == first).all())

    def test_from_a_given_point(self):
        done = run("flow", self.point, *QUICK, "--init", "point", "--json")
        self.assertEqual(json.loads(done.stdout)["outcome"], "reached_time")

    def test_directions_that_are_not_orthonormal(self):
        import numpy
        import xarray

        done = run("flow", self.point, "--p", "1.2,0.3;0.3,0.9", "--init", "point", "--time", 2, "--outputs", 4,
                   "--output", self.output, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        with xarray.open_dataset(self.output) as data:
            m, R = data.m.values, data.R.values
            self.assertEqual(data.p.values.tolist(), [[1.2, 0.3], [0.3, 0.9]])
            self.assertLess(abs(m[0] - [[1.0, 0.5], [1.0, -0.5]]).max(), 1e-14)
            q = m @ numpy.linalg.inv(data.p.values) @ m.transpose(0, 2, 1) + R @ R.transpose(0, 2, 1)
            self.assertLess(abs(q - data.q.values).max(), 1e-13)
            self.assertEqual(json.loads(done.stdout)["m"], m[-1].tolist())
            again = self.path / "again.toml"
            again.write_text(data.attrs["configuration"])
        second = self.path / "second.nc"
        self.assertEqual(run("flow", again, "--output", second).returncode, 0)
        with xarray.open_dataset(second) as data:
            self.assertTrue((data.m.values == m).all())

    def test_from_a_result_file(self):
        import xarray

        first, second, third = (self.path / f"{name}.nc" for name in ("first", "second", "third"))
        done = run("flow", self.point, *QUICK, "--p", "1.2,0.3;0.3,0.9", "--init", "point", "--output", first)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run("flow", self.point, *QUICK, "--init-from", first, "--output", second)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("point.m is not used: the flow starts from the file init_from", done.stderr)
        with xarray.open_dataset(first) as one, xarray.open_dataset(second) as two:
            self.assertTrue((one.p.values == two.p.values).all())
            self.assertLess(abs(one.m.values - two.m.values).max(), 1e-12)
            self.assertTrue((one.R.values[0] == two.R.values[0]).all())
            self.assertNotIn(str(first), two.attrs["configuration"])
            again = self.path / "again.toml"
            again.write_text(two.attrs["configuration"])
        first.unlink()
        self.assertEqual(run("flow", again, "--output", third).returncode, 0)
        with xarray.open_dataset(second) as two, xarray.open_dataset(third) as three:
            self.assertTrue((two.m.values == three.m.values).all())

    def test_map_of_sgd_steps(self):
        arguments = ("flow", self.point, "--init", "point", "--step", 0.5, "--time", 5, "--quiet", "--json")
        ends = {}
        for integrator, kappa in (("map", 0), ("euler", 0), ("map", 1)):
            done = run(*arguments, "--integrator", integrator, "--kappa", kappa)
            self.assertEqual(done.returncode, 0, done.stderr)
            ends[integrator, kappa] = json.loads(done.stdout)
            self.assertEqual(ends[integrator, kappa]["steps"], 10)
        for part in ("m", "R", "b", "v"):
            self.assertEqual(ends["map", 0][part], ends["euler", 0][part])
        self.assertEqual(ends["map", 1]["engine"], "factorised+qmc")

    def test_divergence_is_reported(self):
        done = run("flow", self.point, "--samples", 500, "--time", 1e9, "--integrator", "euler",
                   "--step", 1e4, "--output", self.output)
        self.assertEqual(done.returncode, 3)
        self.assertIn("diverged after tau", done.stderr)
        import xarray

        with xarray.open_dataset(self.output) as data:
            self.assertEqual(data.attrs["outcome"], "diverged")
            self.assertTrue(bool(data.to_array().notnull().all()))

    def test_quiet(self):
        done = run("flow", self.point, *QUICK, "--quiet", "--output", self.output)
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_bar_on_a_terminal(self):
        main, other = pty.openpty()
        process = subprocess.Popen([PROGRAM, "flow", str(self.point), "--samples", "100000", "--integrator", "euler",
                                    "--time", "60", "--output", str(self.output)], stderr=other)
        os.close(other)
        seen = b""
        try:
            while chunk := os.read(main, 4096):
                seen += chunk
        except OSError:
            pass  # the terminal closes with the program
        self.assertEqual(process.wait(), 0)
        self.assertIn(b"\r", seen)
        for word in (b"tau", b"loss", b"evaluations/s", b"left", b"%"):
            self.assertIn(word, seen)

    def test_killed_run_leaves_no_file(self):
        process = subprocess.Popen([PROGRAM, "flow", str(self.point), "--samples", "100000", "--integrator", "euler",
                                    "--time", "1e6", "--output", str(self.output)], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        process.kill()
        process.wait()
        self.assertEqual(list(self.path.iterdir()), [self.point])

    def test_interrupted_run_keeps_what_it_has(self):
        process = subprocess.Popen([PROGRAM, "flow", str(self.point), "--samples", "20000", "--integrator", "euler",
                                    "--time", "1e6", "--output", str(self.output)], stderr=subprocess.PIPE)
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        message = process.communicate()[1].decode()
        self.assertEqual(process.returncode, 130)
        self.assertIn("interrupted at tau", message)
        self.assertTrue(self.output.exists())


class Bayes(CommandLine):
    def test_json(self):
        done = run("bayes", self.point, "--tolerance", 1e-9, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        out = json.loads(done.stdout)
        keys = ["risk", "risk_error", "error_kinds", "error_kind", "method", "nodes", "tolerance", "tolerance_met",
                "seconds", "seed", "provenance"]
        self.assertEqual(list(out), keys)
        self.assertAlmostEqual(out["risk"], 0.3429277986134, delta=1e-9)
        self.assertTrue(0 < out["risk_error"] < 1e-9)
        self.assertEqual(out["error_kind"], "refinement difference")
        self.assertEqual(out["tolerance"], 1e-9)
        self.assertIs(out["tolerance_met"], True)
        # no loss is below it
        loss = json.loads(run("loss", self.point, "--json").stdout)
        self.assertLess(out["risk"], loss["loss"])

    def test_text(self):
        done = run("bayes", self.point, "--tokens", 5)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"Bayes risk +0\.\d+ \+- \S+ +\(refinement difference\)")
        self.assertRegex(done.stdout, r"uniform guess +0\.80000")

    def test_directions_that_are_not_orthonormal(self):
        p = ("--p", "1.2,0.3;0.3,0.9")
        risk = json.loads(run("bayes", self.point, *p, "--json").stdout)["risk"]
        self.assertNotAlmostEqual(risk, 0.3429277986134, places=2)
        done = run("flow", self.point, *p, "--activation", "b-softmax", "--integrator", "implicit", "--time", 1e4,
                   "--gradient-tolerance", 1e-6, "--json")
        self.assertLess(abs(json.loads(done.stdout)["loss"] - risk), 1e-6)  # two heads, two atoms: optimal

    def test_mixture(self):
        done = run("bayes", "--prior", "mixture", "--means", "1,0;0,2", "--covariances", "1,0;0,2;0,0;0,0",
                   "--weights", "0.4,0.6", "--json")
        self.assertIs(json.loads(done.stdout)["tolerance_met"], True, done.stderr)

    def test_beyond_a_grid(self):
        points = ";".join(",".join("1" if j <= i else "0" for j in range(7)) for i in range(7))
        done = run("bayes", "--prior", "discrete", "--features", 7, "--points", points)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Monte-Carlo standard error", done.stdout)
        self.assertIn("was not reached", done.stdout)

    def test_bad_tolerance(self):
        for tolerance in ("0", "1e-13", "0.5", "nan"):
            done = run("bayes", self.point, "--tolerance", tolerance)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--tolerance: run.tolerance", done.stderr)


class BadInput(CommandLine):
    """Each is one clear line, exit code 2, and leaves no file behind."""

    def rejected(self, *arguments, says, **options):
        before = sorted(self.path.rglob("*"))
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for part in says:
            self.assertIn(part, done.stderr)
        self.assertEqual(sorted(self.path.rglob("*")), before)

    def rejected_file(self, old, new, says):
        self.assertIn(old, POINT)
        self.point.write_text(POINT.replace(old, new))
        self.rejected("loss", self.point, "--samples", 100, says=says)
        self.rejected("flow", self.point, *QUICK, "--output", self.output, says=says)

    def test_kappa_samples_only_what_it_must(self):
        ends = {}
        for engine in ("factorised", "mc"):
            done = run("flow", self.point, "--init", "point", "--engine", engine, "--kappa", 0.1, "--time", 1, "--json", "--quiet")
            self.assertEqual(done.returncode, 0, done.stderr)
            ends[engine] = json.loads(done.stdout)
        self.assertEqual(ends["factorised"]["engine"], "factorised+qmc")
        self.assertLess(np.abs(np.subtract(ends["factorised"]["m"], ends["mc"]["m"])).max(), 0.02)

    def test_unknown_key(self):
        self.rejected_file("tokens = 4", "token = 4", ["point.toml:4:", '"token"', 'did you mean "tokens"?'])

    def test_unknown_table(self):
        self.rejected_file("[problem]", "[probelm]", ["point.toml:1:", '"probelm"', 'did you mean "problem"?'])

    def test_wrong_type(self):
        self.rejected_file("tokens = 4", 'tokens = "four"', ["point.toml:4:", "problem.tokens", "must be an integer"])

    def test_syntax_error(self):
        self.rejected_file("tokens = 4", "tokens = = 4", ["point.toml:4:"])

    def test_negative_nu(self):
        self.rejected_file("nu = [2.0, 2.0]", "nu = [2.0, -2.0]", ["point.toml:7:", "problem.nu = [2, -2]", "not negative"])

    def test_no_heads(self):
        self.rejected_file("heads = 2", "heads = 0", ["point.toml:5:", "problem.heads = 0", "must be from 1"])

    def test_unknown_activation(self):
        self.rejected_file("softmax-1", "softmax1", ["point.toml:2:", 'did you mean "softmax-1"?'])

    def test_weights_that_do_not_sum_to_one(self):
        self.rejected_file('prior = "flipping"', 'prior = "discrete"\npoints = [[1, 0], [0, 1]]\nweights = [0.5, 0.4]',
                           ["point.toml:5:", "problem.weights", "must sum to one", "0.9"])

    def test_wrong_shape(self):
        self.point.write_text(POINT.replace("m = [[1.0, 0.5], [1.0, -0.5]]", "m = [[1.0, 0.5, 0.0], [1.0, -0.5, 0.0]]"))
        self.rejected("loss", self.point, says=["point.toml:11:", "point.m", "must be 2 x 2"])

    def test_overlaps_of_the_directions(self):
        for p, rule in (("1,0.5;0.4,1", "must be symmetric"), ("1,2;2,1", "must be positive definite"),
                        ("1,0,0;0,1,0;0,0,1", "must be a 2 x 2 matrix")):
            self.rejected("loss", self.point, "--p", p, says=["--p: problem.p", rule])

    def test_start_from_a_file(self):
        start = self.path / "start.nc"
        flow = ["flow", self.point, *QUICK, "--quiet", "--output", self.output, "--init-from", start]
        self.rejected(*flow, says=["start.nc: cannot be read: No such file"])
        start.write_text("text")
        self.rejected(*flow, says=["start.nc: is not a netCDF file"])
        self.assertEqual(run("flow", self.point, *QUICK, "--quiet", "--output", start).returncode, 0)
        self.rejected(*flow, "--heads", 3, says=["--init-from: flow.init_from", "has 2 heads", "set problem.heads = 2"])
        self.rejected(*flow, "--features", 3, says=["has 2 features, but problem.features = 3"])
        self.rejected(*flow, "--init-run", 2, says=["--init-run: flow.init_run = 2", "must be 1"])
        self.rejected("flow", self.point, "--init", "file", "--output", self.output, says=["flow.init_from is missing"])

    def test_ragged_matrix(self):
        self.rejected_file("[1.0, -0.5]]", "[1.0]]", ["point.toml:11:", "rows of equal length"])

    def test_flag_errors(self):
        self.rejected("loss", self.point, "--tokens", 0, says=["--tokens", "problem.tokens = 0"])
        self.rejected("loss", self.point, "--tokens", "many", says=["--tokens", "must be an integer"])
        self.rejected("loss", self.point, "--token", 4, says=["--token", "did you mean --tokens?"])
        self.rejected("loss", self.point, "--samples", 1, says=["--samples", "run.samples = 1"])
        self.rejected("loss", self.point, "--engine", "monte", says=["--engine", "run.engine"])
        self.rejected("lost", says=["unknown command", 'did you mean "loss"?'])
        self.rejected("flow", self.point, "--sampling", "redrawn", "--output", self.output, says=["flow.sampling", "euler"])
        self.rejected("reproduce", "fig99", "--output", self.path / "paper", says=["fig99", "must be one of"])

    def test_unreadable_file(self):
        self.rejected("loss", self.path / "missing.toml", says=["missing.toml", "cannot be read"])
        self.rejected("loss", self.path, says=["cannot be read"])

    def test_unwritable_output(self):
        self.rejected("flow", self.point, *QUICK, "--output", self.path / "no" / "run.nc", says=["does not exist"])
        self.rejected("flow", self.point, *QUICK, "--output", self.path, says=["is a folder"])
        self.rejected("flow", self.point, *QUICK, "--output", "/dev/null", says=["not a regular file"])
        self.rejected("flow", self.point, *QUICK, says=["--output"])

    def test_full_disk(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        self.rejected("flow", self.point, *QUICK, "--quiet", "--output", self.output, preexec_fn=small_files,
                      says=["run.nc", "cannot be written"])

    def test_full_disk_on_standard_output(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "loss", str(self.point), "--samples", "100", "--json"], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("standard output", done.stderr)


class Help(CommandLine):
    def test_overview_lists_the_commands(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        for name in ("loss", "bayes", "flow", "reproduce"):
            self.assertIn(name, done.stdout)

    def test_every_command_explains_itself(self):
        for name in ("loss", "bayes", "flow", "reproduce"):
            done = run(name, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("--threads", done.stdout)

    def test_version(self):
        self.assertRegex(run("--version").stdout, r"^headflow \d+\.\d+\.\d+ \(\S+\)$")


if __name__ == "__main__":
    unittest.main()
