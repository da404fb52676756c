"""Names and types in result files, and files of older formats. Usage: result_names_test.py PATH_TO_HEADFLOW."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import xarray

PROGRAM = sys.argv.pop(1)
PROBLEM = ["--tokens", 3, "--heads", 2, "--features", 2, "--nu", "2,2", "--seed", 2**63 - 1]
SGD = [*PROBLEM, "--dim", 50, "--batch", 20, "--lr", 0.1, "--steps", 4, "--outputs", 2]


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name)
        sweep = cls.path / "sweep.toml"
        sweep.write_text('[problem]\ntokens = 3\nnu = [2.0, 2.0]\n[sweep]\nmeasure = ["similarity", "flow"]\n[flow]\ntime = 1.0\n'
                         'outputs = 2\n[end]\nsearch = "flow"\ngradient = 1.0\n'
                         '[[sweep.axis]]\nkey = "problem.heads"\nvalues = [1, 2]\n')
        cls.files = [cls.make("flow", *PROBLEM, "--time", 1, "--outputs", 2), cls.make("sgd", *SGD),
                     cls.make("compare", *SGD), cls.make("sweep", sweep)]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def make(cls, command, *arguments):
        path = cls.path / f"{command}.nc"
        done = run(command, *arguments, "--output", path)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        with xarray.open_dataset(path) as data:
            return path, data.load()

    def test_nothing_hides_behind_a_method_of_xarray(self):
        for path, data in self.files:
            self.assertEqual(data.attrs["format_version"], 4)
            for name in [*data.dims, *data.variables]:
                self.assertFalse(callable(getattr(xarray.Dataset, name, None)), f"{path.name}: {name}")
            self.assertTrue((data.attention_head.values == [1, 2]).all())

    def test_whole_numbers_are_integers(self):
        for path, data in self.files:
            whole = ["attention_head", "run", "step", "feature"]
            for name in whole:
                if name in data.variables:
                    self.assertEqual(data[name].dtype.kind, "i", f"{path.name}: {name}")
            if path.stem != "sweep":
                self.assertEqual(data.attrs["seed"], 2**63 - 1)
            if path.stem in ("sgd", "compare"):
                self.assertIsInstance(data.attrs["dim"], np.integer)
                self.assertEqual(data.step.values.tolist(), [0, 2, 4])

    def test_files_of_format_1_are_read(self):
        for path, data in self.files:
            old = data.rename({new: name for new, name in
                               (("attention_head", "head"), ("other_head", "head2")) if new in data.dims})
            old.attrs["format_version"] = 1
            old.attrs.pop("checksum", None)
            before = self.path / f"old_{path.name}"
            old.to_netcdf(before)
            if path.stem == "sweep":  # a drawing takes seconds
                drawn = run("plot", before)
                self.assertEqual(drawn.returncode, 0, drawn.stderr)
            if path.stem in ("flow", "sgd"):
                starts = []
                for file in (path, before):
                    other = self.path / "from.nc"
                    done = run("flow", *PROBLEM, "--init-from", file, "--time", 0.5, "--outputs", 1, "--output", other)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    with xarray.open_dataset(other) as got:
                        starts.append(got.load())
                self.assertTrue(np.array_equal(starts[0].m.values, starts[1].m.values))


if __name__ == "__main__":
    unittest.main()
