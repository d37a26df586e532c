"""A report in another language: its sentences, titles and axes. Tokens, numbers and commands stay."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, cast

from attnviz.report import Chart, GraphNode, Report, Table
from attnviz.words import Language, say

SAID = {  # fields that hold what attnviz says, and no token
    *("title", "subtitle", "hint", "text", "more", "header", "unit", "label", "note", "notes", "footnote"),
    *("row_axis", "column_axis", "against", "said", "row", "x_axis", "y_axis", "groups", "quiet"),
}
SAID_COLUMNS = {  # likewise
    *("looks at", "mostly", "looks there because of", "what", "how", "group", "layer type", "mean per head"),
}


def translate(shown: Report, language: Language) -> Report:
    """Return a report in a language."""
    said = partial(say, language=language, kept=shown.kept)
    return shown if language == "en" else cast(Report, _translate(shown, "", said))


def _translate(value: Any, field: str, say: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return say(value) if field in SAID else value
    if field == "shares" and isinstance(value, Mapping):  # by what heads may look at
        return {say(name): each for name, each in value.items()}
    if field == "legend" and isinstance(value, Mapping):
        return {kind: say(each) for kind, each in value.items()}
    if isinstance(value, GraphNode) and value.token is None:
        value = value._replace(name=say(value.name))
    if isinstance(value, tuple) and field not in ("rows", "facts"):
        names = getattr(value, "_fields", [field] * len(value))
        said = [_translate(each, name, say) for name, each in zip(names, value, strict=True)]
        return type(value)(*said) if hasattr(value, "_fields") else tuple(said)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name) for each in fields(value)}
        news = {name: _translate(part, name, say) for name, part in parts.items()}
        if isinstance(value, Table | Chart):
            said = [getattr(each, "header", each) in SAID_COLUMNS for each in value.columns]
            if any(said):
                news["rows"] = tuple(
                    tuple(say(str(cell)) if is_said else cell for cell, is_said in zip(row, said, strict=True))
                    for row in value.rows
                )
        return replace(value, **news)
    return value
