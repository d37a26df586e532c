"""A report in another language. Its sentences, titles and axes are looked up; tokens, numbers and commands stay.

Reports are written in English, by many hands. A sentence is known by its form: "layer 3, head 0" is an entry of
the table with two places filled in. One that is not in the table stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, cast

from attnviz.report import Report, Table
from attnviz.words import Language, load_table

SAID = {  # fields that hold what attnviz says, and no token
    *("title", "subtitle", "caveat", "text", "more", "header", "unit", "label", "note", "notes", "footnote"),
    *("row_axis", "column_axis", "against"),
}
SEPARATOR = re.compile(r" · (?![^“]*”)")  # not within a quoted text


def translate(shown: Report, language: Language) -> Report:
    """Return a report in a language."""
    return shown if language == "en" else cast(Report, _translate(shown, "", language))


def say(text: str, language: Language) -> str:
    """Return a sentence in a language, or several with a dot between them; as it is where the table has none."""
    parts = SEPARATOR.split(text)
    if len(parts) > 1:
        return " · ".join(say(part, language) for part in parts)
    for form, sentence in _list_forms(language):
        if found := form.fullmatch(text):
            places = found.groupdict().items()
            return sentence.format(**{name: each if each[0] in "“‘" else say(each, language) for name, each in places})
    return text


@cache
def _list_forms(language: Language) -> list[tuple[re.Pattern[str], str]]:
    """Return the form of each English sentence, its places as groups, and the sentence in a language."""
    entries = [words for name, words in load_table().items() if name.startswith("report.")]
    return [
        (re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+?)", re.escape(words["en"]))), words[language])
        for words in entries
    ]


def _translate(value: Any, field: str, language: Language) -> Any:
    if isinstance(value, str):
        return say(value, language) if field in SAID else value
    if field == "shares" and isinstance(value, Mapping):  # by what heads may look at
        return {say(name, language): each for name, each in value.items()}
    if isinstance(value, tuple) and field not in ("rows", "facts"):
        names = getattr(value, "_fields", [field] * len(value))
        said = [_translate(each, name, language) for name, each in zip(names, value, strict=True)]
        return type(value)(*said) if hasattr(value, "_fields") else tuple(said)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name) for each in fields(value)}
        news = {name: _translate(part, name, language) for name, part in parts.items()}
        if isinstance(value, Table) and "looks at" in (headers := [each.header for each in value.columns]):
            at = headers.index("looks at")
            news["rows"] = [(*row[:at], say(str(row[at]), language), *row[at + 1 :]) for row in value.rows]
        return replace(value, **news)
    return value
