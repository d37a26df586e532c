"""The one checker of options: turns a value from a command line, a config or Python into the option's type.

Each of the three passes values as YAML has them (a command line parses numbers first), and names the option in its own
errors: `--heads`, `heads` with its line, `heads=`.
"""

import operator
import re
from difflib import get_close_matches
from math import inf, isfinite
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from attnviz.display import shorten_name
from attnviz.options import FlatOption

MAX_SHOWN_LENGTH = 40  # characters of a name or a value in a message
MAX_DIGITS = 18
DIGITS = re.compile(rf"[-+]?[0-9]{{{MAX_DIGITS + 1},}}")
LIMITS = {"at least": operator.ge, "above": operator.gt, "at most": operator.le, "below": operator.lt}
TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


class InvalidValue(Exception):
    """A value that an option does not accept: what it accepts, and the names that may have been meant."""

    def __init__(self, wanted: str, found: object, choices: tuple[str, ...] = ()) -> None:
        super().__init__(wanted, found, choices)
        self.wanted, self.found, self.choices = wanted, found, choices

    def __str__(self) -> str:
        return f"write {self.wanted}, not {shorten(self.found)}{self.note()}"

    def note(self) -> str:
        """Return a further hint, "" for none. It searches names, so it is written only when the message is."""
        if self.wanted == TYPE_NAMES[int] and DIGITS.fullmatch(str(self.found)):
            return f"; no number here has more than {MAX_DIGITS} digits"
        if self.wanted == TYPE_NAMES[str] and isinstance(self.found, bool | float):
            return f'; quotes make it one: "{shorten(self.found)}"'
        near = find_nearest(self.found, self.choices) if isinstance(self.found, str) else ""
        return f". Did you mean {near!r}?" if near else ""


def check_option(option: FlatOption, value: object) -> Any:
    """Return the value as an option has it: of its type, a number within its limits. Raises InvalidValue."""
    found, limits = check(option.type, value), option.option.limits
    if found is not None and not all(LIMITS[how](found, limit) for how, limit in limits):
        wanted = " and ".join(f"{how} {limit:,}" for how, limit in limits)
        raise InvalidValue(f"{TYPE_NAMES[type(found)]} that is {wanted}", found)
    return found


def check(kind: Any, value: object) -> Any:
    """Return the value as type `kind`, an option's. A whole number also counts as a text, and one value as a list.

    Raises InvalidValue.
    """
    if get_origin(kind) is tuple:
        values = value if isinstance(value, list | tuple) else [value]
        if not values:
            raise InvalidValue("at least one", values)
        return tuple(check(get_args(kind)[0], each) for each in values)
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        if isinstance(value, str) and value in choices:
            return value
        raise InvalidValue(f"one of {', '.join(choices)}", value, choices)
    if NoneType in get_args(kind):
        return None if value is None else check(get_args(kind)[0], value)
    return _check_one_type(kind, value)


def _check_one_type(kind: type, value: object) -> object:
    wanted = TYPE_NAMES[kind]
    whole = isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, int) and whole:
        if kind is int and abs(value) >= 10**MAX_DIGITS:
            raise InvalidValue(wanted, value)
        if kind is str:
            return str(value)
        if kind is float:
            value = float(value) if abs(value) < 2**1023 else inf
    if not isinstance(value, kind) or (kind is int and not whole):
        raise InvalidValue(wanted, value)
    if isinstance(value, float) and not isfinite(value):
        raise InvalidValue("a finite number", value)
    return value


def find_nearest(name: str, names: tuple[str, ...]) -> str:
    """Return the nearest of `names`, "" where none is near. A setting written as a flag, such as --d-model, is near."""
    plain = name[:MAX_SHOWN_LENGTH].strip(" -").replace("-", "_").lower()
    return plain if plain in names else next(iter(get_close_matches(plain, names, n=1)), "")


def shorten(value: object) -> str:
    """Write a value for a message, cut where it is long."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return repr(shorten_name(value))
        case dict():
            return "settings"
        case list() | tuple():
            return "a list" if value else "an empty list"
    return shorten_name(str(value))
