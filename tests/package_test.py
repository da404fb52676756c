"""The package of Python without its extension: what draws needs Debian's packages and nothing else. Usage: package_test.py"""

import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Every module that draws is imported where there is no extension; whoever asks the network for something ends it.
IMPORT = """
import importlib, pkgutil, sys

class NoExtension:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("headflow._"):
            raise ImportError(name)

def watch(event, arguments):
    if event.startswith(("socket.connect", "socket.getaddrinfo", "socket.bind")):
        raise SystemExit(f"{event} {arguments}")

sys.meta_path.insert(0, NoExtension())
sys.addaudithook(watch)
import headflow.figures
names = [module.name for module in pkgutil.iter_modules(headflow.figures.__path__, "headflow.figures.")]
import matplotlib
before = dict(matplotlib.rcParams)
for name in [*names, "headflow.plot", "headflow.animate"]:
    importlib.import_module(name)
assert dict(matplotlib.rcParams) == before, "settings of matplotlib"
assert "matplotlib.pyplot" not in sys.modules, "pyplot"
print(len(names))
"""


def python(*arguments):
    return subprocess.run([sys.executable, "-P", *arguments], capture_output=True, text=True, cwd="/",
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})


class Package(unittest.TestCase):
    def test_drawings_need_neither_the_extension_nor_the_network(self):
        done = python("-W", "error::DeprecationWarning:headflow", "-c", IMPORT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(int(done.stdout), 25)

    def test_modules_are_programs(self):
        for module in ("headflow.plot", "headflow.figures.draw", "headflow.figures.report"):
            with self.subTest(module):
                done = python("-m", module, "--help")
                self.assertEqual(done.stderr.count("Warning"), 0, done.stderr)
                self.assertIn(f"python -m {module} ", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
