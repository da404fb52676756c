"""What configurations say of figures, in their table [figure]. One that cannot be read says nothing."""

import tomllib


def read(path):
    """Its texts: title, caption, drawing, ..."""
    try:
        table = tomllib.loads(path.read_text()).get("figure", {})
    except (OSError, ValueError):
        return {}
    return {key: text.strip() for key, text in table.items() if isinstance(text, str) and text.strip()}


def parts(folder):
    """{figure: names of its configurations}. A configuration is the figure of its own name, or says of which it is a part."""
    out = {}
    for path in sorted(folder.glob("*.toml")):
        out.setdefault(read(path).get("part_of", path.stem), []).append(path.stem)
    return out
