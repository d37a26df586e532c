"""Tables of names that a user can type. A name's code is imported when it is used, not when it is listed."""

from __future__ import annotations

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
    """The object that a plugin names, or its address "package.module:name", imported when it is first asked for."""
    module, _, attribute = (plugin if isinstance(plugin, str) else plugin.where).partition(":")
    return getattr(import_module(module), attribute)


def find(table: Sequence[Plugin], name: str, kind: str) -> Plugin:
    """The line of `table` called `name`. Raises InvalidOption with the nearest name, else with all of them."""
    for plugin in table:
        if name == plugin.name:
            return plugin
    raise InvalidOption(f"no {kind} {name!r}", hint=suggest_name(name, [plugin.name for plugin in table]))


def suggest_name(name: str, names: Sequence[str]) -> str:
    """The next move after a name that does not exist."""
    if not names:
        return "There is none."
    near = get_close_matches(name, names, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(names)}."
