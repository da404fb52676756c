"""Engines as users meet them at hard points: right, or refused in a line. Usage: engine_test.py PATH_TO_HEADFLOW."""

import json
import os
import math
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)
FULL = os.environ.get("HEADFLOW_TEST_EFFORT") == "full"
SANITIZED = b"__asan_init" in Path(PROGRAM).read_bytes()
MEMORY = resource.RLIM_INFINITY if SANITIZED else 4 << 30  # the sanitizer reserves terabytes

POINT = """\
[problem]
prior = "flipping"
tokens = 4
heads = 2
features = 2
nu = [2.0, 2.0]
[point]
m = [[1.0, 0.5], [1.0, -0.5]]
R = [[1.0, 0.0], [0.0, 1.0]]
"""


def run(*arguments):
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # noqa: E731
    return subprocess.run(
        [PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=600 if SANITIZED else 60, preexec_fn=limit
    )


class Engines(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.point = Path(self.folder.name) / "point.toml"
        self.point.write_text(POINT)

    def tearDown(self):
        self.folder.cleanup()

    def loss(self, *flags):
        done = run("loss", self.point, *flags, "--threads", 1, "--json", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        out = json.loads(done.stdout)
        self.assertTrue(math.isfinite(out["loss"]) and math.isfinite(out["loss_error"]), out)
        return out

    def refused(self, *flags, word):
        done = run("loss", self.point, *flags, "--threads", 1, "--json")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertNotIn("internal error", done.stderr)
        self.assertIn(word, done.stderr)

    def near(self, out, expected, slack):
        self.assertLessEqual(abs(out["loss"] - expected), slack + 5 * out["loss_error"], out)

    def test_b_softmax_does_not_overflow(self):
        plain = self.loss("--activation", "b-softmax")
        shifted = self.loss("--activation", "b-softmax", "--b", "800,800")
        self.assertTrue(shifted["tolerance_met"])
        self.assertLess(abs(plain["loss"] - shifted["loss"]), 1e-6)
        sharp = ["--activation", "b-softmax", "--nu", "2500,0", "--m", "20,0;20,0", "--R", "0,0;0,0"]
        self.near(self.loss(*sharp), 0, 1e-6)
        large = ["--activation", "b-softmax", "--nu", "1e6,1e6"]
        sampled = self.loss(*large, "--engine", "mc", "--samples", 20000)
        self.near(self.loss(*large), sampled["loss"], 5 * sampled["loss_error"] + 2e-4)

    def test_softmax_1_with_high_sinks(self):
        flags = ["--activation", "softmax-1", "--nu", "1e6,0", "--b", "900,1000"]
        sampled = self.loss(*flags, "--engine", "mc", "--samples", 20000)
        self.near(self.loss(*flags), sampled["loss"], 5 * sampled["loss_error"])

    def test_numbers_without_measure_are_answered(self):
        sampled = self.loss("--activation", "softmax-1", "--b", "1e3,-1e3")
        self.near(self.loss("--activation", "softmax-1", "--b", "1e300,-1e300"), sampled["loss"], 1e-6)
        for nu in ("1e14", "1e300"):  # bounded in time and memory; a sampled zero has an error
            done = run("bayes", "--nu", nu, "--threads", 1, "--json", "--quiet")
            self.assertEqual(done.returncode, 0, done.stderr)
            out = json.loads(done.stdout)
            self.assertLess(out["risk"], 1e-6)
            self.assertGreater(out["risk_error"], 1e-7)

    def test_unused_and_unseen(self):
        self.assertIn("point.v does not matter", run("loss", self.point, "--v", 5).stderr)
        self.assertNotIn("does not matter", run("loss", self.point, "--activation", "softmax-1", "--v", 5).stderr)
        sure = ["--nu", "100,0", "--m", "30,0;30,0", "--R", "0,0;0,0", "--samples", 2000]
        self.assertIn("samples agree", run("loss", self.point, "--engine", "mc", *sure).stderr)
        self.assertNotIn("samples agree", run("loss", self.point, "--engine", "mc", "--samples", 2000).stderr)
        for at in ("origin", "saddle"):
            done = run("hessian", self.point, "--at", at, "--m", "1,0;0,1")
            self.assertEqual(done.returncode, 2)
            self.assertIn("point.m is not used", done.stderr)

    def test_large_scores(self):
        flags = ["--tokens", 100, "--heads", 1, "--nu", 2, "--m", "1000,0", "--R", 1]
        if FULL:  # half a minute: every engine is tried before qmc is taken
            self.near(self.loss(*flags), 1.682, 0.01)
        for size in ("1e4", "1e10"):
            out = self.loss("--m", f"{size},0;0,{size}")
            self.assertNotEqual(out["engine"], "factorised")
        self.refused("--m", "1e4,0;0,1e4", "--engine", "factorised", word="too many nodes")

    def test_what_overflows_is_refused(self):
        for engine in ("auto", "factorised", "qmc", "mc"):
            self.refused("--activation", "softmax-1", "--v", "1e200", "--engine", engine, word="not finite")

    def test_memory_and_threads(self):
        flags = ["--engine", "mc", "--samples", 10**8, "--tokens", 1000, "--memory", 10**8]
        self.refused(*flags, word="program.memory")
        for threads in (1000000, -1):
            done = run("loss", self.point, "--threads", threads)
            self.assertEqual(done.returncode, 2)
            self.assertIn("program.threads", done.stderr)
        self.refused("--engine", "qmc", "--randomisations", 4096, "--tokens", 1000, "--memory", 1000, word="run.randomisations")


if __name__ == "__main__":
    unittest.main()
