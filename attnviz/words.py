"""What attnviz says in several languages: one table of sentences with places to fill in."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

Language = Literal["en", "zh"]


@cache
def load_table() -> dict[str, dict[str, str]]:
    """Return each entry by its name, in each language, with the same placeholders throughout."""
    found = tomllib.loads(files("attnviz").joinpath("words.toml").read_text(encoding="utf-8"))
    return {f"{part}.{name}": words for part, entries in found.items() for name, words in entries.items()}
