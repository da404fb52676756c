"""Result files of headflow, of this format version and of older ones."""

import xarray

FORMAT_VERSION = 4
# Until version 2 the dimension of heads was `head`, which xarray takes for its method Dataset.head.
RENAMED = {"head": "attention_head", "head2": "other_head"}


def is_known(data):
    return data.attrs.get("format_version") in range(1, FORMAT_VERSION + 1)


def modern(data):
    """The data with the names of dimensions as they are today."""
    if data.attrs.get("format_version") != 1:
        return data
    return data.rename({old: new for old, new in RENAMED.items() if old in data.dims})


def read(path):
    with xarray.open_dataset(path, engine="netcdf4") as data:
        return modern(data.load())
