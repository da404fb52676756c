"""clang-tidy: tidy.py SOURCE BUILD. On the sources that the last commit changed or that have changed since,
or on all of them if HEADFLOW_TEST_EFFORT is full."""

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

source, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()


def git(*arguments):
    done = subprocess.run(["git", "-C", source, *arguments], capture_output=True, text=True)
    return done.stdout.split() if done.returncode == 0 else []


def flags():
    """Those of the program, which are the library's and more: units compile many files as one."""
    entries = json.loads((build / "compile_commands.json").read_text())
    words = next(shlex.split(e["command"]) for e in entries if "headflow.dir" in e["command"])
    kept = [w for w in words[1:] if w.startswith(("-D", "-I", "-std", "-W")) and not w.startswith("-Wno-")]
    for i, word in enumerate(words):
        if word in ("-isystem", "-I"):
            kept += [word, words[i + 1]]
    return [*kept, f"-I{build}/generated", "-DHEADFLOW_SOURCE=\"\"", "-DHEADFLOW_VERSION=\"\"", "-DHWY_COMPILE_ONLY_STATIC"]


def clean(path):
    done = subprocess.run(["clang-tidy", "--quiet", path, "--", *flags()], cwd=source, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout or done.stderr)
    return done.returncode == 0


every = sorted(p.relative_to(source).as_posix() for p in source.glob("src/**/*.cc") if not p.name.endswith("_test.cc"))
if os.environ.get("HEADFLOW_TEST_EFFORT") == "full":
    wanted = every
else:
    changed = {*git("diff", "--name-only", "HEAD~1"), *git("ls-files", "--others", "--exclude-standard")}
    wanted = [path for path in every if path in changed]
with ThreadPoolExecutor(2) as pool:
    results = list(pool.map(clean, wanted))
print(f"{sum(results)} of {len(results)} files are clean")
sys.exit(not all(results) or not every)
