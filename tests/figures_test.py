"""Checks in the result files what the paper's figures must show: figures_test.py RESULTS_FOLDER [NAME ...]

NAME: sgd losses pruning samples similarity phases planes attention; default: all. Figures without results are left out, and
are a failure if HEADFLOW_TEST_EFFORT is full.
"""

import os
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from figure_checks import attention, losses, phases, planes, pruning, samples, sgd, similarity
from figure_checks.verdicts import Verdicts
from headflow.figures import result_file

CHECKS = {"sgd": sgd, "losses": losses, "pruning": pruning, "samples": samples, "similarity": similarity, "phases": phases,
          "planes": planes, "attention": attention}


class Results:
    """Result files of a folder, by the name of the figure; None for those that are not there."""

    def __init__(self, folder):
        self.folder, self.missing = folder, set()

    def __call__(self, name):
        path = self.folder / f"{name}.nc"
        if not path.exists():
            self.missing.add(name)
            return None
        return result_file.read(path)

    def configuration(self, name):
        return tomllib.loads(self(name).attrs["configuration"])


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-") or not set(sys.argv[2:]) <= set(CHECKS):
        sys.exit(__doc__)
    load, verdicts = Results(Path(sys.argv[1])), Verdicts()
    for name in sys.argv[2:] or CHECKS:
        CHECKS[name].run(load, verdicts)
    if load.missing:
        print(f"no results of {', '.join(sorted(load.missing))}: not checked")
    print(f"{verdicts.passed} checks passed, {verdicts.failed} failed")
    incomplete = load.missing and os.environ.get("HEADFLOW_TEST_EFFORT") == "full"
    sys.exit(1 if verdicts.failed or not verdicts.passed or incomplete else 0)


if __name__ == "__main__":
    main()
