"""An include never points upwards in the order of the folders. Usage: check_includes.py SOURCE."""

import re
import sys
from pathlib import Path

ORDER = ["core", "model", "expectation", "dynamics", "sgd", "theory", "analysis", "verify", "study", "io", "sweep", "cli"]

source = Path(sys.argv[1]) / "src"
wrong = []
for path in sorted(source.rglob("*.[ch]*")):
    own = path.relative_to(source).parts[0]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'#include "(\w+)/', line)
        if match and match[1] in ORDER and ORDER.index(match[1]) > ORDER.index(own):
            wrong.append(f"{path.relative_to(source.parent)}:{number}: {own} includes {match[1]}")
print("\n".join(wrong) or "no include points upwards")
sys.exit(bool(wrong))
