"""Tables of names that a user can type. The code of a name is imported when it is used, not when it is listed."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any

from attnviz.errors import InvalidOption


@dataclass(frozen=True)
class Plugin:
    """One registration line: what a user types, where its code is ("package.module:name"), one line of help."""

    name: str
    where: str
    help: str


@cache
def load(plugin: Plugin | str) -> Any:
    """Import the object that a plugin, or an address "package.module:name", names. Cached."""
    module, _, attribute = (plugin if isinstance(plugin, str) else plugin.where).partition(":")
    return getattr(import_module(module), attribute)


def find(table: Sequence[Plugin], name: str, kind: str) -> Plugin:
    """Return the plugin of `table` called `name`. Raises InvalidOption with the nearest name, else with all names."""
    for plugin in table:
        if name == plugin.name:
            return plugin
    raise InvalidOption(f"no {kind} {name!r}", hint=suggest_name(name, [plugin.name for plugin in table]))


def suggest_name(name: str, names: Sequence[str]) -> str:
    """Write a hint for a name that does not exist: the nearest one, else all."""
    if not names:
        return "There is none."
    near = get_close_matches(name.lower(), names, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(names)}."
