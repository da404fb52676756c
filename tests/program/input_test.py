"""What the program says to odd numbers, flags and configuration files. Usage: input_test.py PATH_TO_HEADFLOW."""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)
FULL = os.environ.get("HEADFLOW_TEST_EFFORT") == "full"
MEMORY = 4 << 30
SANITIZED = b"__asan_init" in Path(PROGRAM).read_bytes()


def limited():
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def run(*arguments, **options):
    options = {"capture_output": True, "text": True, "timeout": 60, **options}
    return subprocess.run([PROGRAM, *map(str, arguments)], **options)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def refused(self, *arguments, words="", **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 2, (arguments, done.stdout[:300], done.stderr[:300]))
        self.assertEqual(done.stdout, "", arguments)
        self.assertTrue(done.stderr.startswith("headflow: "), done.stderr[:300])
        self.assertLess(len(done.stderr), 2000)
        self.assertIn(words, done.stderr)
        return done.stderr


class Numbers(Case):
    def test_spaces_are_never_deleted_inside_numbers(self):
        right = json.loads(run("bayes", "--nu", "2,2", "--json").stdout)["risk"]
        self.assertAlmostEqual(right, 0.3429277986134, delta=1e-6)
        self.assertEqual(json.loads(run("bayes", "--nu", " 2 , 2 ", "--json").stdout)["risk"], right)
        self.refused("bayes", "--nu", "2 2", words="separated by commas")

    def test_matrices_are_parsed_strictly(self):
        for bad in ("[]", "[[]]", "2,", ",2", "2,,2", "2;", "0x10", "nan", "inf", "1e999", "1e5junk", "2,2]",
                    "[2,2", "[[2,2]", "[[2],[2,2]]", "2 ,2 2", "1_0", "--2"):
            with self.subTest(bad):
                self.refused("bayes", f"--nu={bad}", words="problem.nu")

    def test_integers_and_numbers(self):
        for flag, bad in (("--tokens", "5-3"), ("--tokens", "1e99"), ("--tokens", "4.5"), ("--heads", "0x2"),
                          ("--samples", "-3"), ("--samples", "1e30"), ("--threads", "-1"), ("--threads", "1000000"),
                          ("--eta", "nan"), ("--eta", "inf"), ("--v", "1e999"), ("--tolerance", "nan"),
                          ("--seed", "-1"), ("--randomisations", "-2"), ("--memory", "-1")):
            with self.subTest(flag=flag, bad=bad):
                self.refused("loss", "--nu", "2,2", flag, bad)
        for flag, bad in (("--time", "inf"), ("--time", "-1"), ("--step", "nan"), ("--outputs", "1e8"),
                          ("--outputs", "9999999"), ("--kappa", "-inf"), ("--init-v", "nan"),
                          ("--init-b", "1,2,3"), ("--init-time", "3"), ("--init-run", "2"), ("--init-noise", "-1")):
            with self.subTest(flag=flag, bad=bad):
                self.refused("flow", "--activation", "softmax-1", "--nu", "2,2", "--json", "--quiet", flag, bad)

    def test_long_flags(self):
        short = run("sgd", "--nu", "2,2", "--dim", 50, "--batch", 20, "--tau", 0.1, "--json", "--quiet")
        long = run("sgd", "--problem.nu=2,2", "--sgd.dim", 50, "--sgd.batch=20", "--sgd.tau", 0.1, "--json", "--quiet")
        self.assertEqual(short.returncode, 0, short.stderr)
        long, short = json.loads(long.stdout), json.loads(short.stdout)
        for out in (long, short):
            del out["seconds"], out["provenance"]["date"], out["provenance"]["command"]
        self.assertEqual(long, short)
        self.refused("sweep", "x.toml", "--init", "noise", words="--flow.init or --sgd.init")
        self.refused("loss", "--sgd.dim", 50, words="--sgd.dim")

    def test_numbers_too_large_to_compute_with(self):
        for arguments in (("loss", "--prior", "gaussian", "--nu", "1", "--mean", "1e200,0"),
                          ("bayes", "--prior", "gaussian", "--nu", "1", "--mean", "1e200,0")):
            self.refused(*arguments, words="too large")


class Files(Case):
    def write(self, text):
        path = self.path / "c.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def test_an_empty_file_is_one_without_keys(self):
        for text in ("", "# nothing\n"):
            done = run("bayes", self.write(text), "--nu", "2,2", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_pipe_is_a_configuration_too(self):
        done = run("bayes", "/dev/stdin", "--json", input="[problem]\nnu = [2.0, 2.0]\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        axis = '[sweep]\nmeasure = ["bayes"]\n[[sweep.axis]]\nkey = "problem.tokens"\nvalues = [3, 4]\n'
        done = run("sweep", "/dev/stdin", "--output", self.path / "piped.nc", input="[problem]\nnu = [2.0, 2.0]\n" + axis)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_empty_lists(self):
        for key in ("nu", "p", "points", "covariance", "mean", "weights"):
            for value in ("[]", "[[]]", "[[], []]"):
                self.refused("loss", self.write(f"[problem]\n{key} = {value}\n"), words=f"c.toml:2: problem.{key}")

    def test_depth_and_length(self):
        deep = ".".join("a" * 50_000)
        for text in (f"[{deep}]\n", f"{deep} = 1\n", "x = " + "[" * 50_000, "x = " + "{a=" * 50_000,
                     "[[" * 50_000, f"[problem]\n{'x' * 10**6} = 1\n", f"[{'x' * 10**6}]\n",
                     f"[problem]\nprior = \"{'x' * 10**6}\"\n", f"[problem]\nnu = [{'1.0, ' * 10**5}]\n"):
            self.refused("loss", self.write(text))

    def test_folders_and_endless_files(self):
        self.refused("loss", self.path, words="is a folder")
        self.refused("loss", "/dev/zero", words="larger than", preexec_fn=limited)
        self.refused("loss", self.path / ("x" * 5000))
        self.refused("flow", "--nu", "2,2", "--init-from", self.path, "--json")
        self.refused("plot", self.path / "no.nc", "--output", self.path / "new" / "picture.png",
                     words="does not exist")
        self.assertFalse((self.path / "new").exists())


class Help(Case):
    def test_help_of_a_command(self):
        self.assertEqual(run("help", "flow").stdout, run("flow", "--help").stdout)
        self.assertEqual(run("help", "flow").returncode, 0)
        self.assertEqual(run("help").stdout, run("--help").stdout)
        self.refused("help", "flwo", words="did you mean")


class Noise(Case):
    """Random flags and files: exit 0 with finite numbers, or 2 with a line; never a crash."""

    FLAGS = ("tokens", "heads", "features", "eta", "nu", "mean", "p", "m", "R", "b", "v", "engine", "tolerance", "samples",
             "randomisations", "seed", "precision", "memory", "threads", "prior", "activation", "points", "weights")
    VALUES = ("0", "1", "2", "3", "-1", "1e300", "1e-300", "nan", "inf", "", "x", "[]", "[[]]", "2,2", "1,0;0,1", "1;2",
              "2 2", "9999999999999999999", "softmax-1", "b-softmax", "gaussian", "discrete", "mixture", "mc", "qmc",
              "factorised", "float32", "1e3", "0.5", "1e9", "-0", "\xff", "\n")
    WORDS = ("[problem]", "[run]", "[point]", "[[problem]]", "[flow]", "nu", "tokens", "heads", "=", "= 2", "= [1, 2]", "= [[1]]",
             "= nan", "= inf", "= []", "= {}", "= 1979-05-27", "= \"x\"", "= '''", "\n", "\n", "\n", ".", "[", "]", "\x00", "\xff",
             "m", "p", "#", "= -1", "= 1e400", "= 0x10", "= true", "seed", "{", "}", ",")

    def allowed(self, done, arguments):
        self.assertIn(done.returncode, (0, 2), (arguments, done.returncode, done.stderr[-500:]))
        self.assertNotIn("internal error", done.stderr, arguments)
        if done.returncode == 0 and done.stdout:
            out = json.loads(done.stdout, parse_constant=lambda x: self.fail((x, arguments)))
            for key in ("loss", "risk"):
                self.assertIsNotNone(out.get(key, 0), arguments)
        if done.returncode == 2:
            self.assertTrue(done.stderr.rstrip().splitlines()[-1].startswith("headflow: "), done.stderr[-300:])

    def test_random_flags(self):
        chance = random.Random(12)
        for _ in range(300 if FULL else 40):
            arguments = [chance.choice(("loss", "bayes")), "--json", "--quiet", "--nu=2,2"]
            used = {"nu"}
            for _ in range(chance.randint(1, 4)):
                flag = chance.choice(self.FLAGS)
                if flag not in used:
                    arguments.append(f"--{flag}={chance.choice(self.VALUES)}")
                used.add(flag)
            if arguments[0] == "bayes":
                arguments = [a for a in arguments if a.split("=")[0] not in ("--m", "--R", "--b", "--v")]
            try:
                done = run(*arguments, preexec_fn=limited, timeout=20)
            except subprocess.TimeoutExpired:
                continue  # slow is another matter
            self.allowed(done, arguments)

    def test_random_files(self):
        chance = random.Random(13)
        for _ in range(500 if FULL else 60):
            text = " ".join(chance.choice(self.WORDS) for _ in range(chance.randint(1, 25)))
            path = self.path / "c.toml"
            path.write_bytes(text.encode("latin-1"))
            self.allowed(run("bayes", path, "--json", "--nu", "2,2", preexec_fn=limited), text)


class Bounds(unittest.TestCase):
    """What cannot be done is refused at once."""

    def test_help_of_help(self):
        for arguments in (("help", "help"), ("--help", "--help"), ("-h", "-h"), ("help", "help", "loss")):
            done = run(*arguments)
            self.assertEqual(done.returncode, 0)
            self.assertIn("commands:", done.stdout)

    def test_refusals(self):
        for arguments, word in ((("flow", "--integrator", "implicit", "--heads", 256, "--json"), "unknowns"),
                                (("fixed-point", "--heads", 256), "unknowns"),
                                (("hessian", "--heads", 128, "--at", "origin"), "unknowns"),
                                (("flow", "--integrator", "euler", "--step", "1e-300", "--json"), "10^12 steps"),
                                (("compare", "--rtol", -1, "--batch", 100000, "--steps", 300), "compare.rtol"),
                                (("sgd", "--checkpoint-seconds", -1, "--json"), "checkpoint_seconds")):
            done = run(*arguments, "--nu", 2, "--threads", 1)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(word, done.stderr)

    def test_what_is_not_used_is_said(self):
        for arguments, word in ((("bayes", "--engine", "mc", "--samples", 100), "run.samples"),
                                (("loss", "--m", "1,0;0,1", "--engine", "mc", "--samples", 100, "--tolerance", "1e-3"), "run.tolerance"),
                                (("loss", "--m", "1,0;0,1", "--engine", "mc", "--samples", 100, "--randomisations", 3), "run.randomisations")):
            done = run(*arguments, "--nu", 2, "--threads", 1)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{word} is not used", done.stderr)


if __name__ == "__main__":
    unittest.main()
