"""What attnviz says in several languages: one table of sentences with places to fill in.

What pages and lessons say of their own is known by its name. Reports are written in English, by many hands: of them a
sentence is known by its form. "layer 3, head 0" is an entry with two places filled in. One that is not in the table
stays as it is.
"""

import re
import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

Language = Literal["en", "zh"]
SEPARATOR = re.compile(r" · (?![^“]*”)")  # not within a quoted text
COUNT = r"(?P<\1>[0-9,.]+)"
PLACE = r"(?P<\1>(?:“[^”]*”|(?! · ).)+?)"  # holds no separator either, but where it is a form's own
LANGUAGE_TAGS = {"en": "en", "zh": "zh-Hans"}  # as a page names them


def find_language(environment: Mapping[str, str]) -> Language | None:
    """Return the language that a shell asks for, by what overrides the others; None where it is not Chinese."""
    name = next(filter(None, map(environment.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return "zh" if name.startswith("zh") else None


@cache
def load_table() -> dict[str, dict[str, str]]:
    """Return each entry by its name, in each language, with the same placeholders throughout."""
    found = tomllib.loads(files("attnviz").joinpath("words.toml").read_text(encoding="utf-8"))
    return {f"{part}.{name}": words for part, entries in found.items() for name, words in entries.items()}


def phrase(name: str, language: Language, **places: object) -> str:
    """Return an entry in a language, its places filled in."""
    return load_table()[name][language].format(**places)


def list_phrases(language: Language, *parts: str) -> dict[str, str]:
    """Return the entries of these parts of the table, as the script of a page needs them."""
    return {name: entry[language] for name, entry in load_table().items() if name.partition(".")[0] in parts}


def say(text: str, language: Language, kept: Collection[str] = ()) -> str:
    """Return a sentence in a language, or several with a dot between them; as it is where the table has none.

    Places that hold a quotation or one of the words `kept` are left as they are.
    """
    if language == "en" or text in kept:
        return text
    for form, sentence in _list_forms(language):
        if found := form.fullmatch(text):
            places = found.groupdict().items()
            return sentence.format(
                **{name: each if each[0] in "“‘" else say(each, language, kept) for name, each in places}
            )
    parts = SEPARATOR.split(text)
    if len(parts) > 1:
        return " · ".join(say(part, language, kept) for part in parts)
    items = text.split(", ")
    said = [say(item, language, kept) for item in items] if len(items) > 1 else items
    return text if {*said} & {*items} else "、".join(said)  # a list of names, each of which has a form


@cache
def _list_forms(language: Language) -> list[tuple[re.Pattern[str], str]]:
    """Return the form of each English sentence, its places as groups, and the sentence in a language."""
    entries = [words for name, words in load_table().items() if name.startswith("report.")]
    entries.sort(key=lambda words: -len(re.sub(r"\{\w+\}", "", words["en"])))  # what says most is tried first
    forms = (re.sub(r"\\{(layer|[nmk])\\}", COUNT, re.escape(words["en"])) for words in entries)
    compiled = (re.compile(re.sub(r"\\{(\w+)\\}", PLACE, form)) for form in forms)
    return [(form, words[language]) for form, words in zip(compiled, entries, strict=True)]
