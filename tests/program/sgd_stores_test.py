"""What SGD stores is looked at before it is used, and nothing of the user's is touched; steps can be stopped and take
little memory. Usage: sgd_stores_test.py PATH_TO_HEADFLOW."""

import os
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
PROBLEM = ["--activation", "softmax-1", "--prior", "flipping", "--tokens", 3, "--heads", 2, "--features", 2, "--nu", "2,2",
           "--seed", 3]
SGD = ["sgd", *PROBLEM, "--dim", 10**6, "--batch", 1000, "--lr", 0.1, "--steps", 400, "--outputs", 40]


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


def start(*arguments):
    return subprocess.Popen([PROGRAM, *map(str, arguments)], stderr=subprocess.PIPE, text=True)


class Stores(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.output = self.path / "run.nc"
        self.checkpoint = self.path / "run.nc.checkpoint"

    def tearDown(self):
        self.folder.cleanup()

    def load(self, path):
        with xarray.open_dataset(path) as data:
            return data.load()

    def killed(self):
        """A run that was killed after a few checkpoints."""
        process = start(*SGD, "--output", self.output, "--checkpoint-seconds", 0, "--quiet")
        previous = self.path / "run.nc.checkpoint.previous"
        while not (self.checkpoint.exists() and previous.exists()) and process.poll() is None:
            time.sleep(0.01)
        process.kill()
        process.communicate()
        self.assertTrue(previous.exists())

    def test_damaged_checkpoints_never_change_a_result(self):
        whole = self.path / "whole.nc"
        self.assertEqual(run(*SGD, "--output", whole).returncode, 0)
        self.killed()
        # A kill between two renames leaves the one before only; that is as good.
        good = (self.checkpoint if self.checkpoint.exists() else self.path / "run.nc.checkpoint.previous").read_bytes()
        before = (self.path / "run.nc.checkpoint.previous").read_bytes()
        for place in (3, 60, 2 * len(good) // 3):
            with self.subTest(place=place):
                damaged = bytearray(good)
                damaged[place] ^= 16
                self.checkpoint.write_bytes(damaged)
                (self.path / "run.nc.checkpoint.previous").write_bytes(before)
                done = run(*SGD, "--output", self.output, "--quiet")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("is damaged", done.stderr)
                self.assertIn("going on from the one before", done.stderr)
                self.assertTrue(np.array_equal(self.load(whole).m.values, self.load(self.output).m.values))

    def test_the_start_is_saved_after_a_restart_too(self):
        first, again = self.path / "first.nc", self.path / "again.nc"
        self.assertEqual(run(*SGD, "--output", self.path / "whole.nc", "--save-init", first).returncode, 0)
        self.killed()
        done = run(*SGD, "--output", self.output, "--save-init", again)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("going on", done.stderr)
        for name in ("m", "q", "batch_loss"):
            self.assertTrue(np.array_equal(self.load(first)[name].values, self.load(again)[name].values), name)

    def test_what_overflows_has_no_error_of_zero(self):
        done = run("sgd", *PROBLEM, "--init", "point", "--v", 1e80, "--dim", 50, "--batch", 10,
                   "--steps", 3, "--output", self.output)
        self.assertEqual(done.returncode, 3)
        self.assertTrue(np.isnan(self.load(self.output).batch_loss_error.values).all())
        done = run("sgd", *PROBLEM, "--dim", 50, "--batch", 1, "--steps", 3, "--output", self.output)
        self.assertEqual(done.returncode, 0)
        self.assertIn("error unknown", done.stderr)

    def test_files_of_the_user_survive(self):
        mine = [self.path / f"run.nc.checkpoint.{name}" for name in ("backup", "abc123", "previous")]
        for path in mine:
            path.write_text("mine")
        self.assertEqual(run(*SGD[:-4], "--steps", 5, "--output", self.output).returncode, 0)
        self.assertEqual([path.read_text() for path in mine], ["mine"] * 3)
        self.checkpoint.write_text("mine")
        done = run(*SGD, "--output", self.output)
        self.assertEqual((done.returncode, self.checkpoint.read_text()), (2, "mine"))
        self.assertIn("is not a checkpoint", done.stderr)

    def test_a_damaged_start_is_refused(self):
        small = ["--dim", 100, "--batch", 50, "--lr", 0.1, "--steps", 4, "--outputs", 2]
        first = self.path / "first.nc"
        self.assertEqual(run("sgd", *PROBLEM, *small, "--output", self.output, "--save-init", first).returncode, 0)
        flow = ["flow", *PROBLEM, "--time", 0.5, "--outputs", 1, "--output", self.path / "flow.nc", "--init-from"]
        for path in (self.output, first):
            good = path.read_bytes()
            at = good.index(self.load(path).m.values[0, 0, 0].tobytes())
            damaged = bytearray(good)
            damaged[at + 6] ^= 4
            path.write_bytes(damaged)
            done = run(*flow, path)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("checksum", done.stderr)
            path.write_bytes(good)
            done = run(*flow, path)
            self.assertEqual(done.returncode, 0)
            self.assertNotIn("checksum", done.stderr)
        data = self.load(self.output)
        del data.attrs["checksum"]
        data.to_netcdf(self.path / "mine.nc")
        done = run(*flow, self.path / "mine.nc")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("has no checksum", done.stderr)

    def stopped(self, *arguments):
        """Exit code, message and peak memory (MB) of a run that is stopped in its first step, which would take minutes."""
        process = start(*arguments, "--output", self.output)
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
        message = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stderr.close()
        return process.returncode, message, usage.ru_maxrss / 1024

    def test_a_step_of_minutes_can_be_stopped_and_takes_little_memory(self):
        for command in ("sgd", "compare"):
            for arguments in (["--batch", 10**9], ["--method", "direct", "--dim", 10**6, "--batch", 10**4]):
                with self.subTest(command=command, arguments=arguments):
                    code, message, memory = self.stopped(command, *PROBLEM, "--steps", 5, *arguments)
                    self.assertEqual(code, 130, message)
                    self.assertIn("starts anew", message)
                    self.assertLess(memory, 700)
                    self.assertEqual(list(self.path.iterdir()), [])

    def test_what_cannot_be_held_is_refused(self):
        for arguments, says in ((["--method", "direct", "--dim", 2**52], 'sgd.method = "reduced"'),
                                (["--method", "direct", "--dim", 2**52, "--tokens", 10**4], 'sgd.method = "reduced"'),
                                (["--runs", 4 * 10**6, "--outputs", 10**7, "--steps", 10**7, "--batch", 1], "of memory"),
                                (["--batch", 10**9, "--steps", 10**12], "10^17 samples"),
                                (["--tokens", 10**6, "--heads", 40], "a sample")):
            for command in ("sgd", "compare"):
                done = run(command, "--nu", "2,2", *arguments, "--output", self.output)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
