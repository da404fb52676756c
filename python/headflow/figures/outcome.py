"""What `headflow reproduce` has left in its folder. Whatever is missing or cannot be read is None or empty."""

import json
from pathlib import Path

import netCDF4

from . import figure_table
from .embed import embed

PAPER = [f"fig{number:02d}" for number in range(1, 21)]


def read_json(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


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

    def __init__(self, folder, name, parts, times):
        self.name = name
        self.number = int(name[3:]) if name in PAPER else None
        self.texts = figure_table.read(folder / "configs" / f"{parts[0]}.toml")
        self.picture = read_picture(folder / "figures" / f"{name}.png")
        self.data = any((folder / f"{part}.nc").is_file() for part in parts)
        self.times = times if isinstance(times, dict) else {}
        files = {}
        for part in parts:
            end = f" {part.removeprefix(name)}" if part != name else ""
            files |= {f"data{end}": f"{part}.nc", f"configuration{end}": f"configs/{part}.toml"}
        files |= {"PDF": f"figures/{name}.pdf", "SVG": f"figures/{name}.svg"}
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
        parts = figure_table.parts(self.folder / "configs")
        self.figures = [Figure(self.folder, name, parts.get(name, [name]), self.times.get(name)) for name in PAPER + more]
        self.verify = read_json(self.folder / "verify.json")
        self.attributes = [read_attributes(path) for path in sorted(self.folder.glob("*.nc"))]

    def seconds(self, name):
        """Of a figure: processor time, since figures are computed side by side. Of a stage: time on the wall."""
        entry = self.verify if name == "verify" else self.times.get(name)
        keys = ("core_seconds", "seconds")
        values = [entry.get(key) for key in keys] if isinstance(entry, dict) else []
        return next((value for value in values if isinstance(value, (int, float))), None)

    def programs(self):
        """Versions of the program that wrote the files."""
        return sorted({f"{a['program_version']}, commit {a.get('program_commit', 'unknown')}"
                       for a in self.attributes if "program_version" in a})

    def is_empty(self):
        return self.verify is None and not any(figure.picture or figure.data for figure in self.figures)
