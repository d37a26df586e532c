"""Names of jobs, which are also names of folders on any system."""

import re
from collections.abc import Mapping, Sequence
from itertools import product

from attnviz.options import shorten
from attnviz.store import manifest

MAX_LENGTH = 64
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
MAX_VALUE_LENGTH = 24  # characters of a value that stand in a name
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)  # Windows, with any ending


def name_error(name: str) -> str:
    """Say why `name` cannot be a job's name, "" if it can."""
    if len(name) > MAX_LENGTH:
        return f"the name {shorten(name)} has more than {MAX_LENGTH} characters"
    if not re.fullmatch(NAME, name):
        return f"{shorten(name)} cannot be a name: write A-Z a-z 0-9 . _ - only, and a letter or digit first"
    if name.endswith("."):
        return f"{shorten(name)} cannot be a name: Windows drops the dot at its end"
    if DEVICES.fullmatch(name):
        return f"{shorten(name)} cannot be a name: on Windows it is a device"
    if name.lower() in (manifest.NAME, manifest.PAGE):
        return f"{shorten(name)} cannot be a name: the batch writes a file called so"
    return ""


def combinations(name: str, matrix: Mapping[str, Sequence[object]]) -> list[tuple[str, dict[str, object]]]:
    """List every combination of the values, the last setting varying fastest, each named as in "mine-heads-8-index-0".

    A name that ends in the first setting does not repeat it: a job called heads makes "heads-8-index-0".
    """
    settings = list(matrix)
    stem = name
    if settings and re.search(rf"(?:^|-){settings[0]}$", name):
        stem = name.removesuffix(settings[0]).rstrip("-")
    found = []
    for chosen in product(*(zip(_labels(values), values, strict=True) for values in matrix.values())):
        labels = [f"{setting}-{label}" for setting, (label, _) in zip(settings, chosen, strict=True)]
        values = {setting: value for setting, (_, value) in zip(settings, chosen, strict=True)}
        found.append(("-".join([stem, *labels] if stem else labels), values))
    return found


def _labels(values: Sequence[object]) -> list[str]:
    """Label each value for a name: the value, its unsafe characters as _.

    Where such labels would be long, empty or the same for two values, the values are numbered from 1 instead.
    """
    labels = [UNSAFE.sub("_", _write_value(value)) for value in values]
    clear = all(label.strip("_.") and len(label) <= MAX_VALUE_LENGTH and not label.endswith(".") for label in labels)
    if clear and len({label.lower() for label in labels}) == len(labels):
        return labels
    return [str(number) for number in range(1, len(values) + 1)]


def _write_value(value: object) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
