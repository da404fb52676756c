"""What `headflow reproduce` has left in its folder. Whatever is missing or cannot be read is None or empty."""

import json
import tomllib
from pathlib import Path

import netCDF4

from embed import embed

PAPER = [f"fig{number:02d}" for number in range(1, 21)]


def read_json(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def read_figure_table(path):
    """The texts of the table [figure] of a configuration."""
    try:
        table = tomllib.loads(path.read_text()).get("figure", {})
    except (OSError, ValueError):
        return {}
    return {key: text.strip() for key, text in table.items() if isinstance(text, str) and text.strip()}


def read_attributes(path):
    try:
        with netCDF4.Dataset(path) as data:
            return {name: data.getncattr(name) for name in data.ncattrs()}
    except OSError:
        return {}


def read_picture(path):
    try:
        return embed(path)
    except (OSError, SyntaxError):  # SyntaxError is how PIL names a broken PNG
        return None


class Figure:
    """One figure: its texts, picture, files and time."""

    def __init__(self, folder, name, times):
        self.name = name
        self.number = int(name[3:]) if name in PAPER else None
        self.texts = read_figure_table(folder / "configs" / f"{name}.toml")
        self.picture = read_picture(folder / "figures" / f"{name}.png")
        self.data = (folder / f"{name}.nc").is_file()
        self.times = times if isinstance(times, dict) else {}
        files = {"data": f"{name}.nc", "configuration": f"configs/{name}.toml", "PDF": f"figures/{name}.pdf",
                 "SVG": f"figures/{name}.svg"}
        self.files = {label: file for label, file in files.items() if (folder / file).is_file()}

    @property
    def title(self):
        return self.texts.get("title", "" if self.number else self.name.replace("_", " "))


class Outcome:
    def __init__(self, folder):
        self.folder = Path(folder)
        times = read_json(self.folder / "times.json")
        self.times = times if isinstance(times, dict) else {}
        drawn = {path.stem for path in (self.folder / "figures").glob("*.png")}
        more = sorted(drawn - set(PAPER))  # beyond the paper
        self.figures = [Figure(self.folder, name, self.times.get(name)) for name in PAPER + more]
        self.verify = read_json(self.folder / "verify.json")
        self.attributes = [read_attributes(path) for path in sorted(self.folder.glob("*.nc"))]

    def seconds(self, name):
        entry = self.times.get(name)
        value = entry.get("seconds") if isinstance(entry, dict) else None
        return value if isinstance(value, (int, float)) else None

    def total_seconds(self):
        """As recorded, else the sum of what is recorded; None without any."""
        total = self.seconds("total")
        parts = [self.seconds(name) for name in self.times if name != "total"]
        return total if total is not None else sum(filter(None, parts)) or None

    def programs(self):
        """Versions of the program that wrote the files."""
        return sorted({f"{a['program_version']}, commit {a.get('program_commit', 'unknown')}"
                       for a in self.attributes if "program_version" in a})

    def is_empty(self):
        return self.verify is None and not any(figure.picture or figure.data for figure in self.figures)
