"""What a lesson says, in every language: one table, whose entries have the same placeholders throughout."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

TABLE = "words.toml"


@cache
def load_table() -> dict[str, dict[str, str]]:
    """Return each entry by its name, in each language."""
    found = tomllib.loads(files("attnviz.commands.lesson").joinpath(TABLE).read_text(encoding="utf-8"))
    return {f"{part}.{name}": words for part, entries in found.items() for name, words in entries.items()}
