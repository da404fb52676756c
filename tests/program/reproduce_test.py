"""reproduce: the time left at its start, and whose drawings it takes. Usage: reproduce_test.py PATH_TO_HEADFLOW."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)
ROOT = Path(__file__).resolve().parents[2]


def seconds(text):
    total = 0
    for part in text.split(":"):
        total = 60 * total + int(part)
    return total


class TimeLeft(unittest.TestCase):
    def test_the_first_estimate_can_be_believed(self):
        """All figures take about 2300 s of one core, as docs/performance.md has it."""
        reader, writer = pty.openpty()
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen([PROGRAM, "reproduce", "all", "--threads", "2", "--output", folder], stderr=writer)
            os.close(writer)
            said, found, end = b"", None, time.monotonic() + 60
            while not found and time.monotonic() < end:
                if select.select([reader], [], [], 1)[0]:
                    said += os.read(reader, 4096)
                found = re.search(rb"([0-9:]+) left", said)
            process.send_signal(signal.SIGINT)
            process.wait()
            os.close(reader)
        self.assertIsNotNone(found, said)
        left = seconds(found[1].decode())
        self.assertGreater(left, 2300 / 2 / 2)
        self.assertLess(left, 2300 / 2 * 2)


class Drawings(unittest.TestCase):
    def test_only_ours(self):
        with tempfile.TemporaryDirectory() as folder:
            configs = Path(folder) / "configs"
            configs.mkdir()
            (configs / "fig11.toml").write_text('[figure]\ndrawing = "antigravity"\n')
            (Path(folder) / "fig11.nc").write_text("")
            done = subprocess.run(["/usr/bin/python3", "-P", "-m", "headflow.figures.draw", folder, "fig11"], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("antigravity", done.stderr)
            self.assertIn("similarity", done.stderr)

    def test_reproduce_refuses_others_before_it_computes(self):
        with tempfile.TemporaryDirectory() as folder:
            share = Path(folder) / "share"
            (share / "configs/paper").mkdir(parents=True)
            (share / "python").symlink_to(ROOT / "python")
            text = (ROOT / "configs/paper/fig11.toml").read_text()
            (share / "configs/paper/fig11.toml").write_text(text.replace('drawing = "similarity"', 'drawing = "similarty"'))
            done = subprocess.run([PROGRAM, "reproduce", "fig11", "--output", Path(folder) / "out"], capture_output=True,
                                  text=True, env={**os.environ, "HEADFLOW_SHARE": str(share)})
            self.assertEqual(done.returncode, 2)
            self.assertIn('did you mean "similarity"', done.stderr)
            self.assertEqual(list(Path(folder).glob("out/*.nc*")), [])


if __name__ == "__main__":
    unittest.main()
