"""As much of JSON Schema (draft 2020-12) as the schema of configs uses; any other word in a schema is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

ANNOTATIONS = {"$schema", "$defs", "title", "description", "default"}
TYPES: dict[str, Any] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or value == int(value or 0))
        if isinstance(value, int | float)
        else False
    ),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def fits(value: Any, schema: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    """Whether `value` is what `schema`, a part of `whole`, asks for."""
    return all(_fits(word, asked, value, schema, whole) for word, asked in schema.items() if word not in ANNOTATIONS)


def _fits(word: str, asked: Any, value: Any, schema: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    match word:
        case "$ref":
            return fits(value, whole["$defs"][asked.removeprefix("#/$defs/")], whole)
        case "anyOf":
            return any(fits(value, each, whole) for each in asked)
        case "type":
            return any(TYPES[each](value) for each in ([asked] if isinstance(asked, str) else asked))
        case "enum":
            return value in asked
        case "const":
            return bool(value == asked)
        case "pattern":
            return not isinstance(value, str) or re.search(asked, value) is not None
        case "minLength":
            return not isinstance(value, str) or len(value) >= asked
        case "minItems":
            return not isinstance(value, list) or len(value) >= asked
        case "items":
            return not isinstance(value, list) or all(fits(each, asked, whole) for each in value)
        case "required":
            return not isinstance(value, dict) or value.keys() >= set(asked)
        case "properties":
            members = asked.keys() & value.keys() if isinstance(value, dict) else ()
            return all(fits(value[name], asked[name], whole) for name in members)
        case "additionalProperties":
            assert asked is False
            return not isinstance(value, dict) or value.keys() <= schema["properties"].keys()
    raise AssertionError(f"{word} is not checked")
