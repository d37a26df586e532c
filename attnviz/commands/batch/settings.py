"""Settings of a config as values of their options, and in a sentence what is wrong with each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, get_args, get_origin

from attnviz.commands.batch import schema
from attnviz.commands.batch.jobs import NOT_IN_CONFIGS
from attnviz.commands.batch.source_file import SourceFile, Steps
from attnviz.option_values import TYPE_NAMES, InvalidValue, check, find_nearest, shorten
from attnviz.options import FlatOption

Settings = dict[str, Any]
NO_STDIN = "a batch has no standard input; name a file"
WRONG = object()  # stands for a value that is none, which is told


class SettingsReader:
    """One file, read on after a problem."""

    def __init__(self, document: SourceFile) -> None:
        self.document = document

    def report(self, steps: Steps, text: str | Callable[[], str], *, at_key: bool = False) -> None:
        """Tell a problem, unless one of the same value is told already."""
        if steps not in self.document.spoilt:
            self.document.report(steps, text, at_key=at_key)

    def members(self, data: Any, steps: Steps) -> dict[str, Any]:
        """What stands under names; nothing where nothing is written, or something else, and then that is told."""
        if data is not None and not isinstance(data, dict):
            self.report(steps, str(InvalidValue("settings (name: value)", data)))
        return data if isinstance(data, dict) else {}

    def items(self, data: Any, steps: Steps) -> list[Any]:
        """What stands in a list; nothing where something else is written, or nothing, and then that is told."""
        if not isinstance(data, list) or not data:
            self.report(steps, str(InvalidValue("at least one" if isinstance(data, list) else "a list", data)))
        return data if isinstance(data, list) else []

    def value(self, kind: Any, value: Any, steps: Steps) -> Any:
        """The value as one of its type; WRONG where it is none, and then that is told: of a list, of every item."""
        if steps in self.document.spoilt:
            return WRONG
        if get_origin(kind) is tuple and isinstance(value, list) and value:
            found = [self.value(get_args(kind)[0], each, (*steps, number)) for number, each in enumerate(value)]
            return WRONG if WRONG in found else tuple(found)
        try:
            return check(kind, value)
        except InvalidValue as error:
            self.report(steps, partial(error_message, error))
            return WRONG

    def setting(self, option: FlatOption, value: Any, steps: Steps) -> Any:
        """As `value`, of an option; a batch has no standard input."""
        found = self.value(option.type, value, steps)
        if found is WRONG or not reads_stdin(option, found):
            return found
        self.report(steps, NO_STDIN)
        return WRONG

    def settings(self, command: str, data: Any, steps: Steps) -> Settings:
        """The settings that were written, in their order there."""
        options = schema.settings(command)
        found: Settings = {}
        for name, value in self.members(data, steps).items():
            if name in options:
                found[name] = self.setting(options[name], value, (*steps, name))
            else:
                self.report((*steps, name), partial(unknown, name, options), at_key=True)
        return found

    def matrix(self, command: str, data: Any, steps: Steps) -> dict[str, list[Any]]:
        """Lists of settings, each value once."""
        options = schema.settings(command)
        found: dict[str, list[Any]] = {}
        for name, values in self.members(data, steps).items():
            place = (*steps, name)
            if name not in options:
                self.report(place, partial(unknown, name, options), at_key=True)
                continue
            found[name] = []
            for number, value in enumerate(self.items(values, place)):
                read = self.setting(options[name], value, (*place, number))
                if read is not WRONG and read in found[name]:
                    self.report((*place, number), "is in the list twice")
                found[name].append(read)
        return found


def reads_stdin(option: FlatOption, value: Any) -> bool:
    """Whether a setting asks for what a batch does not have."""
    return option.name == "text_file" and "-" in value


def error_message(error: InvalidValue) -> str:
    """The sentence of the checker; of what quotes would make a text, with that."""
    quoted = error.wanted == TYPE_NAMES[str] and isinstance(error.found, bool | float)
    return f'{error}; quotes make it one: "{shorten(error.found)}"' if quoted else str(error)


def unknown(name: str, names: Iterable[str]) -> str:
    """The next move after a name that does not exist here."""
    known = tuple(names)
    if name in NOT_IN_CONFIGS and name not in known:
        return f"{shorten(name)} is for the command line; a batch decides it"
    near = find_nearest(name, known)
    return f"no {shorten(name)} here. " + (f"Did you mean {near!r}?" if near else f"There are {', '.join(known)}.")
