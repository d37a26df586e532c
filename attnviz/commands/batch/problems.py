"""What pydantic finds wrong, in sentences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from attnviz.commands.batch.jobs import NOT_IN_CONFIGS
from attnviz.option_values import TYPE_NAMES, InvalidValue, find_nearest, shorten

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

WANTED = {  # by pydantic's name for what is wrong
    **{f"{kind.__name__.replace('str', 'string')}_type": wanted for kind, wanted in TYPE_NAMES.items()},
    "list_type": "a list",
    "tuple_type": "a list",
    "too_short": "at least one",
    "dict_type": "settings (name: value)",
    "model_type": "settings (name: value)",
    "dataclass_type": "an object",
}


def describe_error(error: ErrorDetails, known: Iterable[str] = ()) -> str:
    """Write what was wanted and what was found, and of a name that does not exist the nearest of those `known`."""
    match error["type"]:
        case "extra_forbidden" | "unexpected_keyword_argument":
            return describe_unknown(str(error["loc"][-1]), known)
        case "missing":
            return f"{error['loc'][-1]} is missing"
        case "json_invalid":  # half a character, which json.loads takes
            return f"is not JSON: {error['ctx']['error']}"
        case "value_error":
            found = error["ctx"]["error"]
            quoted = isinstance(found, InvalidValue) and found.wanted == TYPE_NAMES[str]
            quoted = quoted and isinstance(found.found, bool | float)
            return f'{found}; quotes make it one: "{shorten(found.found)}"' if quoted else str(found)
        case kind if kind in WANTED:
            return str(InvalidValue(WANTED[kind], error["input"]))
    return error["msg"]


def describe_unknown(name: str, known: Iterable[str]) -> str:
    """Write the next move after a name that does not exist here."""
    known = tuple(known)
    if known and name in NOT_IN_CONFIGS:
        return f"{shorten(name)} is for the command line; a batch decides it"
    near = find_nearest(name, known)
    there = f". There are {', '.join(known)}." if known else ""
    return f"no {shorten(name)} here" + (f". Did you mean {near!r}?" if near else there)
