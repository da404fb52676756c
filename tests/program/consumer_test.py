"""A project of its own builds against the installed libraries, and configures with the source as a folder of it.
Usage: consumer_test.py PATH_TO_HEADFLOW (its folder is the build)."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import netCDF4

BUILD = Path(sys.argv.pop(1)).resolve().parent
ROOT = Path(__file__).resolve().parent.parent.parent
PLAIN = {key: value for key, value in os.environ.items() if key not in ("DESTDIR", "CMAKE_PREFIX_PATH")}


def cached(name):
    """What the build was configured with."""
    return re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)[1]


class Consumer(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.work = Path(temporary.name)
        shutil.copytree(ROOT / "tests/consumer", self.work / "source")

    def call(self, *command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=PLAIN, cwd=self.work)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def configure(self, *options):
        self.call("cmake", "-S", "source", "-B", "build", "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={cached('CMAKE_CXX_COMPILER')}",
                  "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", *options)

    def test_installed(self):
        self.call("cmake", "--install", BUILD, "--prefix", self.work / "there")
        shutil.move(self.work / "there", self.work / "moved")
        self.configure(f"-DCMAKE_PREFIX_PATH={self.work / 'moved'}")
        self.call("cmake", "--build", "build")
        said = self.call("build/consumer", "run.nc")
        self.assertIn("reached_time", said)
        with netCDF4.Dataset(self.work / "run.nc") as result:
            self.assertEqual(result["b"].dimensions, ("time", "attention_head"))  # the block of its activation
            self.assertLess(result["loss"][-1], result["loss"][0])
        headers = [path.name for path in (self.work / "moved/include").rglob("*")]
        self.assertIn("engine.h", headers)
        self.assertFalse([name for name in headers if name.endswith(("_test.cc", ".cc", "-inl.h"))])
        # What is installed names no folder of this machine's but the system's.
        for path in (self.work / "moved/lib").rglob("*.cmake"):
            self.assertNotIn(str(ROOT), path.read_text(), path.name)
            self.assertNotIn(str(self.work), path.read_text(), path.name)

    def test_as_a_folder(self):
        self.configure(f"-DHEADFLOW_SOURCE={ROOT}", "-DHEADFLOW_TBB=OFF")
        rules = (self.work / "build/build.ninja").read_text()
        self.assertIn("libheadflow_io.a", rules)
        self.assertNotIn("headflow_tests", rules)  # our tests and the strictness of our compiler are ours
        self.assertNotIn("-Werror", rules)


if __name__ == "__main__":
    unittest.main()
