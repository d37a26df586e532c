"""What a lesson says, in each language."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from attnviz.commands.lesson.spec import Language

WORDS = "words.toml"


@cache
def load_table() -> dict[str, dict[str, str]]:
    """Return each entry by its name, in each language, with the same placeholders throughout."""
    found = tomllib.loads(files("attnviz.commands.lesson").joinpath(WORDS).read_text(encoding="utf-8"))
    return {f"{part}.{name}": words for part, entries in found.items() for name, words in entries.items()}


def load_words(language: Language) -> dict[str, str]:
    """Return each entry by its name."""
    return {name: words[language] for name, words in load_table().items()}
