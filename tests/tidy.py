"""clang-tidy on the sources that changed since they last passed. Usage: tidy.py SOURCE BUILD."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

source, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()


def check(entry):
    """True if the file is clean. The object file is newer than everything the source includes."""
    path = Path(entry["file"])
    stamp = build / "tidy" / path.relative_to(source).with_suffix(".stamp")
    words = entry["command"].split()
    built = build / words[words.index("-o") + 1]
    newest = max(f.stat().st_mtime for f in (path, built, source / ".clang-tidy"))
    if stamp.exists() and stamp.stat().st_mtime > newest:
        return True
    # One instruction set is enough to read the vectorised files once.
    done = subprocess.run(["clang-tidy", "--quiet", "-p", build, "--extra-arg=-DHWY_COMPILE_ONLY_STATIC", path],
                          capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout or done.stderr)
        return False
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.touch()
    return True


entries = json.loads((build / "compile_commands.json").read_text())
wanted = [e for e in entries if Path(e["file"]).is_relative_to(source / "src") and "_test." not in e["file"]]
with ThreadPoolExecutor(2) as pool:
    clean = list(pool.map(check, wanted))
print(f"{sum(clean)} of {len(clean)} files are clean")
sys.exit(not all(clean) or not clean)
