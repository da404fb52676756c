"""An include never points upwards in the order of the folders; what headflow::core and headflow::study may be built without is
included by its adapter alone. Usage: check_includes.py SOURCE."""

import re
import sys
from pathlib import Path

ORDER = ["core", "model", "expectation", "dynamics", "sgd", "theory", "analysis", "study", "verify", "io", "sweep", "cli"]
LIBRARY = ORDER[:ORDER.index("io")]  # core and study: no files, no threads, no system

# What is outside, and who may include it.
OUTSIDE = {
    r"(oneapi/)?tbb/": {"core/tbb_executor.cc"},
    r"(sundials|cvode|arkode|nvector|sunmatrix|sunlinsol)/": {"dynamics/sundials.cc"},
    r"(sys/|unistd\.h|fcntl\.h|spawn\.h|pthread\.h|dlfcn\.h)": {"core/memory.cc"},
    r"(netcdf|toml\+\+/|nlohmann/|CLI/)": set(),
}
# Headers are installed without these, which only our own sources need.
PRIVATE = r"(boost/|Random123/)"


def complaints(source):
    for path in sorted(source.rglob("*.[ch]*")):
        name = path.relative_to(source).as_posix()
        own = name.split("/")[0]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r"\s*#\s*include\s*([<\"])(.+?)[>\"]", line)
            if not match:
                continue
            included, there = match[2], f"src/{name}:{number}"
            folder = included.split("/")[0]
            if match[1] == '"' and folder in ORDER and ORDER.index(folder) > ORDER.index(own):
                yield f"{there}: {own} includes {folder}"
            if own in LIBRARY and not name.endswith("_test.cc"):
                for what, who in OUTSIDE.items():
                    if re.match(what, included) and name not in who:
                        yield f"{there}: <{included}> is for {' and '.join(sorted(who)) or 'io'} alone"
            if name.endswith(".h") and re.match(PRIVATE, included):
                yield f"{there}: <{included}> in a header that is installed"


wrong = list(complaints(Path(sys.argv[1]) / "src"))
print("\n".join(wrong) or "no include points upwards or outside")
sys.exit(bool(wrong))
