"""The command verify: its effort, its rows, and its exit codes: verify_test.py PATH_TO_HEADFLOW"""

import json
import math
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HEADFLOW = ""


def run(*arguments):
    return subprocess.run([HEADFLOW, "verify", "--quiet", *arguments], capture_output=True, text=True)


class Verify(unittest.TestCase):
    def test_rows_name_what_they_reject(self):
        done = run("--effort", "quick", "--only", "A.4,Erratum 4,Extension 2,Claim r", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(result["effort"], "quick")
        self.assertIn('effort = "quick"', result["provenance"]["configuration"])
        self.assertEqual(result["not_as_expected"], 0)
        self.assertGreater(len(result["rows"]), 40)
        for row in result["rows"]:
            self.assertTrue(row["rejects_wrong"], row)
            for number in ("predicted", "measured", "error", "smallest_wrong"):
                self.assertTrue(math.isfinite(row[number]), row)
            self.assertTrue(row["error_kind"], row)
            if row["id"].startswith("Extension"):  # no error of the paper: nothing printed that fails
                self.assertIsNone(row["printed"])
                self.assertEqual(row["verdict"], "holds", row)
        fails = {row["id"] for row in result["rows"] if row["verdict"] == "fails"}
        self.assertEqual(fails, {"Claim r = 0"})

    def test_errata_are_numbered_as_in_the_documentation(self):
        text = (Path(__file__).resolve().parents[2] / "docs" / "theory.md").read_text()
        known = run("--only", "nothing of that name").stderr
        for name in ("Remark 2", "Erratum 5", "Erratum 6", "Erratum 7", "Extension 1", "Extension 2", "Extension 3"):
            self.assertIn(name, known)
        for heading in ("## Errata", "## Extensions", "## Words that do not hold"):
            self.assertIn(heading, text)
        self.assertIn("version 1", text)

    def test_unknown_effort(self):
        done = run("--effort", "fast")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--effort", done.stderr)
        self.assertIn("quick", done.stderr)

    def test_same_bits_for_any_number_of_threads(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / f"{threads}.json" for threads in (1, 2)]
            for threads, file in zip((1, 2), files):
                self.assertEqual(run("--only", "A.4,Extension", "--effort", "quick", "--threads", str(threads), "--output", str(file)).returncode, 0)
            one, two = (json.loads(file.read_text())["rows"] for file in files)
            self.assertEqual(one, two)

    def test_lists_of_statements(self):
        ids = [{row["id"] for row in json.loads(run("--effort", "quick", "--json", *only).stdout)["rows"]}
               for only in (("--only", "Remark 2,Erratum 6"), ("--only", "Remark 2", "--only", "Erratum 6"), ("--only", "Remark 2", "Erratum 6"))]
        self.assertEqual(ids, 3 * [{"Remark 2", "Erratum 6"}])
        done = run("--only", "")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--only", done.stderr)

    def test_interrupted_from_within(self):
        """SGD with one sample a step takes a minute; what was measured before it is printed, and nothing of it."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "verify.json"
            command = [HEADFLOW, "verify", "--quiet", "--only", "III.2,Remark 2", "--threads", "2", "--json", "--output", str(file)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
            self.assertEqual(process.returncode, 130, err)
            self.assertIn("interrupted: these are the statements measured so far", err)
            result = json.loads(out)
            self.assertEqual(result["outcome"], "interrupted")
            self.assertEqual(result["not_as_expected"], 0)
            self.assertFalse(file.exists())


if __name__ == "__main__":
    HEADFLOW = sys.argv.pop(1)
    unittest.main()
