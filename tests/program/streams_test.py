"""Signals, standard streams and result files in odd places. Usage: streams_test.py PATH_TO_HEADFLOW."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import xarray

PROGRAM = sys.argv.pop(1)
SANITIZED = b"__asan_init" in Path(PROGRAM).read_bytes()
FLOW = ["flow", "--nu", "2,2", "--time", "1", "--samples", "200"]


def run(*arguments, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 100, **options}
    return subprocess.run([PROGRAM, *map(str, arguments)], **options)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.output = self.path / "run.nc"

    def tearDown(self):
        self.folder.cleanup()

    def names(self):
        return sorted(p.name for p in self.path.iterdir())


class Streams(Case):
    def test_an_error_stream_that_is_full_costs_nothing(self):
        with open("/dev/full", "w") as full:
            done = run("loss", "--nu", "2,2", "--m", "1,0", "--json", stderr=full)
            self.assertEqual(done.returncode, 2)
            done = run(*FLOW, "--output", self.output, "--json", stderr=full)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(json.loads(done.stdout)["outcome"], "reached_time")
        self.assertTrue(self.output.exists())

    def test_closed_streams(self):
        for number in (0, 1, 2):
            with self.subTest(number):
                done = run(*FLOW, "--output", self.output, preexec_fn=lambda: os.close(number))
                self.assertEqual(done.returncode, 0, done.stderr)
                xarray.open_dataset(self.output, engine="netcdf4").close()
        self.assertEqual(run("bayes", "--nu", "2", "--json", preexec_fn=lambda: os.close(1)).returncode, 2)

    def test_a_full_standard_output_is_an_error(self):
        with open("/dev/full", "w") as full:
            for arguments in (("help",), ("--help",), ("--version",), ("loss", "--help"), ("help", "loss")):
                self.assertEqual(run(*arguments, stdout=full).returncode, 2, arguments)
            for arguments in (("bayes", "--nu", "2", "--json"), ("hessian", "--nu", "2", "--heads", "12", "--at", "origin",
                                                                "--samples", "50", "--json")):
                done = run(*arguments, stdout=full)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("standard output", done.stderr)

    def test_a_reader_that_has_seen_enough(self):
        read, write = os.pipe()
        os.close(read)
        for arguments in (("sgd", "--help"), ("--version",), ("bayes", "--nu", "2", "--json")):
            done = run(*arguments, stdout=write)
            self.assertEqual((done.returncode, done.stderr), (141, ""), arguments)
        os.close(write)

    def test_a_reader_that_leaves_costs_nothing(self):
        read, write = os.pipe()
        os.close(read)
        done = run(*FLOW, "--output", self.output, stderr=write)
        os.close(write)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(self.output.exists())

    def test_names_that_are_no_utf8(self):
        name = os.fsencode(self.path) + b"/\xff.nc"
        done = subprocess.run([PROGRAM.encode(), *(a.encode() for a in FLOW), b"--json", b"--output", name],
                              capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["outcome"], "reached_time")


class Outputs(Case):
    def test_a_symbolic_link_is_followed(self):
        (self.path / "inner").mkdir()
        for target in ("inner/real.nc", "inner/real.nc"):  # first it is not there, then it is
            link = self.path / "link.nc"
            link.unlink(missing_ok=True)
            link.symlink_to(target)
            self.assertEqual(run(*FLOW, "--output", link).returncode, 0)
            self.assertTrue(link.is_symlink())
            self.assertFalse((self.path / target).is_symlink())
        self.assertEqual(self.names(), ["inner", "link.nc"])

    def test_standard_output_by_name_survives(self):
        link = self.path / "stdout"
        link.symlink_to("/proc/self/fd/1")
        with open(self.output, "w") as file:
            self.assertEqual(run(*FLOW, "--output", link, stdout=file).returncode, 0)
        self.assertTrue(link.is_symlink())
        done = run(*FLOW, "--output", link)  # a pipe
        self.assertEqual(done.returncode, 2)
        self.assertTrue(link.is_symlink())

    def test_pipes_devices_folders_and_long_names_are_refused_first(self):
        os.mkfifo(self.path / "pipe")
        for bad in (self.path / "pipe", "/dev/null", self.path, f"{self.path}/", self.path / "no" / "x.nc",
                    self.path / ("x" * 300), self.path / ("x" * 100_000), "/proc/x.nc"):
            begin = time.monotonic()
            done = run("flow", "--nu", "2,2", "--time", "1e6", "--output", bad)
            self.assertEqual(done.returncode, 2, done.stderr[-300:])
            self.assertLess(time.monotonic() - begin, 60)
        self.assertEqual(self.names(), ["pipe"])
        self.assertEqual(run(*FLOW, "--output", self.path / ("x" * 252 + ".nc")).returncode, 0)

    def test_leftovers_of_the_same_output_and_nothing_else(self):
        mine = self.path / "run.nc.headflow-tmp-AbC123"
        users = [self.path / name for name in ("run.nc.backup", "run.nc.AbC123", "other.nc.headflow-tmp-AbC123")]
        for file in (mine, *users):
            file.write_text("x")
        self.assertEqual(run(*FLOW, "--output", self.output).returncode, 0)
        self.assertEqual(self.names(), sorted(["run.nc", *(f.name for f in users)]))

    def test_killed_writers_leave_nothing_for_long(self):
        for _ in range(3):
            process = subprocess.Popen([PROGRAM, *FLOW, "--output", str(self.output), "--quiet"])
            time.sleep(0.05)
            process.kill()
            process.wait()
        self.assertEqual(run(*FLOW, "--output", self.output).returncode, 0)
        self.assertEqual(self.names(), ["run.nc"])


class Signals(Case):
    def stop(self, arguments, kind=signal.SIGINT, after=1.0, **options):
        """Returns code, output and error stream, and the seconds it took to stop."""
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, **options)
        try:
            time.sleep(after)
            self.assertIsNone(process.poll(), f"{arguments} ended by itself")
            begin = time.monotonic()
            process.send_signal(kind)
            out, error = process.communicate(timeout=60)  # no assertion on time: the machine may be busy
            return process.returncode, out, error, time.monotonic() - begin
        finally:
            process.kill()
            process.wait()

    def test_all_signals_keep_what_there_is(self):
        for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(kind):
                self.output.unlink(missing_ok=True)
                code, _, error, _ = self.stop(["flow", "--nu", "2,2", "--samples", "20000", "--integrator", "euler",
                                               "--time", "1e6", "--output", self.output], kind, 0.6)
                self.assertEqual(code, 130, error)
                self.assertIn("keeping what there is", error)
                self.assertIn("interrupted at tau", error)
                self.assertTrue(self.output.exists())
                with xarray.open_dataset(self.output, engine="netcdf4") as run:
                    self.assertGreater(float(run.time[-1]), 0)

    def test_nohup(self):
        ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        process = subprocess.Popen([PROGRAM, *FLOW, "--outputs", "20000", "--output", str(self.output)],
                                   preexec_fn=ignore, stderr=subprocess.PIPE)
        time.sleep(0.2)
        process.send_signal(signal.SIGHUP)
        process.communicate()
        self.assertEqual(process.returncode, 0)

    def test_from_within_long_evaluations(self):
        slow = ["--nu", "2,2", "--engine", "mc", "--tokens", "100000", "--samples", "1000000", "--memory", "1"]
        long_steps = ["--nu", "2,2", "--samples", "5000", "--integrator", "euler", "--step", "1000", "--time", "1000",
                      "--outputs", "100000", "--tokens", "50"]
        means = "1,0,0,0;0,1,.5,0;0,.3,1,0;.2,0,0,1;1,1,0,.1"
        covariances = ";".join(["1,.1,0,0", ".1,1,0,.1", "0,0,1,.2", "0,.1,.2,1"] * 5)
        for arguments in (["loss", *slow], ["flow", *slow, "--output", self.output], ["fixed-point", *slow],
                          ["hessian", *slow], ["minima", *slow], ["prune", *slow],
                          ["flow", *long_steps, "--output", self.output],
                          ["fixed-point", "--activation", "b-softmax", "--prior", "gaussian", "--nu", "4", "--heads", "8",
                           "--features", "4", "--tokens", "5"],
                          ["bayes", "--prior", "mixture", "--features", "4", "--tolerance", "1e-12", "--means", means,
                           "--covariances", covariances], ["verify", "--only", "III.4"]):
            with self.subTest(arguments[:2]):
                code, out, error, _ = self.stop(arguments, after=1.5 if SANITIZED else 0.7)
                self.assertEqual(code, 130, error)
                self.assertIn("headflow: interrupted", error)
                self.assertNotIn('"kind": "minimum"', out)

    def test_unknown_is_not_a_minimum(self):
        arguments = ["fixed-point", "--prior", "gaussian", "--nu", "20,1", "--heads", "8", "--features", "3", "--tokens",
                     "5", "--samples", "400000", "--json"]
        code, out, error, _ = self.stop(arguments, after=1.0)
        self.assertEqual(code, 130, error)
        if out:
            found = json.loads(out)
            self.assertEqual(found["kind"], "unknown")
            for key in ("index", "zero_modes", "symmetries", "unused_heads", "escape_rate"):
                self.assertIsNone(found[key], key)


class Together(Case):
    """Two processes, one output."""

    LONG = ["sgd", "--nu", "2,2", "--dim", "1000", "--batch", "1000", "--steps", "100000000", "--checkpoint-seconds", "0"]

    def test_a_second_run_of_sgd_is_told(self):
        first = subprocess.Popen([PROGRAM, *self.LONG, "--output", self.output], stderr=subprocess.DEVNULL)
        lock = self.path / "run.nc.checkpoint.lock"
        while not lock.exists() and first.poll() is None:
            time.sleep(0.01)
        done = run(*self.LONG, "--seed", 2, "--output", self.output)
        first.send_signal(signal.SIGINT)
        self.assertEqual(first.wait(20), 130)
        self.assertEqual(done.returncode, 2)
        self.assertIn("another process is at work", done.stderr)
        self.assertFalse(lock.exists())

    def test_links_lead_to_one_store(self):
        config = self.path / "sweep.toml"
        config.write_text('[problem]\nnu = 2.0\n[sweep]\nmeasure = ["bayes"]\n[[sweep.axis]]\nkey = "run.seed"\nrange = [1, 2]\n')
        (self.path / "link.nc").symlink_to("run.nc")
        self.assertEqual(run("sweep", config, "--output", self.path / "link.nc").returncode, 0)
        self.assertTrue((self.path / "run.nc.tasks").is_dir() and not (self.path / "link.nc.tasks").exists())

    def test_a_result_is_not_put_in_the_place_of_its_configuration(self):
        config = self.path / "flow.toml"
        text = "[problem]\nnu = 2.0\n[flow]\ntime = 1\n"
        config.write_text(text)
        self.assertEqual(run("flow", config, "--output", config).returncode, 2)
        self.assertEqual(config.read_text(), text)


class Drawing(Case):
    """Python is told to stop, too."""

    def test_signals(self):
        self.assertEqual(run(*FLOW, "--output", self.output).returncode, 0)
        slow = self.path / "python"
        slow.write_text('#!/bin/sh\ncase $2 in -c) exit 0;; esac\necho $$ > "$0.pid"\nexec sleep 60\n')
        slow.chmod(0o755)
        process = subprocess.Popen([PROGRAM, "plot", self.output], stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "PYTHON": str(slow)})
        pid = Path(f"{slow}.pid")
        while not (pid.exists() and pid.read_text().strip()) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130)
        self.assertFalse(Path(f"/proc/{pid.read_text().strip()}").exists())


class Population(Case):
    def test_runs_are_kept_when_their_losses_are_not_waited_for(self):
        process = subprocess.Popen(
            [PROGRAM, "sgd", "--nu", "2,2", "--steps", "20", "--dim", "100", "--batch", "10", "--loss", "population",
             "--engine", "mc", "--samples", "30000000", "--output", self.output], stderr=subprocess.PIPE, text=True)
        while not (self.path / "run.nc.checkpoint").exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130, said)
        self.assertTrue(self.output.exists(), said)


if __name__ == "__main__":
    unittest.main()
