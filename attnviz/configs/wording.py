"""What is wrong with a value, in a sentence: what to write, and what was written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from attnviz.configs.source_file import MAX_SHOWN_LENGTH, shorten
from attnviz.jobs import NOT_IN_CONFIGS

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

CHOICE = re.compile(r"'([^']*)'")
DIGITS = re.compile(r"[-+]?[0-9]{19,}")
WANTED = {  # by pydantic's name for what is wrong
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "settings (name: value)",
    "model_type": "settings (name: value)",
    "dataclass_type": "an object",
}


def error_message(error: ErrorDetails, names: Sequence[str] = ()) -> str:
    """`names` are those that would be possible where the error is."""
    kind, given = error["type"], error["input"]
    if kind == "extra_forbidden":
        return unknown(str(error["loc"][-1]), names)
    if kind == "unexpected_keyword_argument":
        return f"no {shorten(error['loc'][-1])} here"
    if kind == "value_error":  # one of ours
        return str(error["ctx"]["error"])
    if kind == "json_invalid":  # half a character, which json.loads takes
        return f"is not JSON: {error['ctx']['error']}"
    if kind == "missing":
        return f"{error['loc'][-1]} is missing"
    if kind == "too_short":
        return "the list is empty"
    if kind == "literal_error":
        choices = CHOICE.findall(error["ctx"]["expected"])
        near = nearest(given, choices) if isinstance(given, str) else ""
        said = f"write one of {', '.join(choices)}, not {shorten(given)}"
        return f"{said}. Did you mean {near!r}?" if near else said
    if kind in WANTED:
        return instead(WANTED[kind], given)
    return error["msg"]


def unknown(name: str, names: Sequence[str]) -> str:
    """The next move after a name that does not exist here."""
    if name in NOT_IN_CONFIGS and name not in names:
        return f"{shorten(name)} is for the command line; a batch decides it"
    near = nearest(name, names)
    return f"no {shorten(name)} here. " + (f"Did you mean {near!r}?" if near else f"There are {', '.join(names)}.")


def nearest(name: str, names: Sequence[str]) -> str:
    """ "" where nothing is near. A setting spelled as its flag, such as --d-model, is near too."""
    plain = name[:MAX_SHOWN_LENGTH].strip(" -").replace("-", "_").lower()
    return plain if plain in names else next(iter(get_close_matches(plain, names, n=1)), "")


def instead(wanted: str, given: object) -> str:
    """Write this, not that."""
    said = f"write {wanted}, not {shorten(given)}"
    if wanted == "a text" and isinstance(given, bool | float):
        return f'{said}; quotes make it one: "{shorten(given)}"'
    if wanted == "a whole number" and isinstance(given, str) and DIGITS.fullmatch(given):
        return f"{said}; no number here has more than 18 digits"
    return said
