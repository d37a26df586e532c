"""An option is written once: as the field of a spec that holds its value, with type, default and help.

A spec holds the options of one command: its own, and groups of options that commands share. Code reads groups
(`spec.text.split`); users write options without them (`--split`, `split:`), and `list_options` lists them so. Knows no
option itself, and neither the command line nor configs.

Modules of specs do without `from __future__ import annotations`, because annotations are read here.

The one checker of options turns a value from a command line, a config or Python into the option's type. Each of the
three passes values as YAML has them (a command line parses numbers first), and names the option in its own
errors: `--heads`, `heads` with its line, `heads=`.
"""

import operator
import re
from collections.abc import Collection
from dataclasses import field, fields, replace
from difflib import get_close_matches
from functools import cache
from math import inf, isfinite
from types import NoneType
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from attnviz.display import shorten_name
from attnviz.errors import InvalidOption
from attnviz.registry import load

Spec = TypeVar("Spec")
# Panels of a command's help, in its order. Options of the first are positional: they have no flag.
PANELS = (
    *("Arguments", "Which figures", "Which text", "Which model", "How to train", "What may differ", "What comes out"),
    "On a cluster",
)
ARGUMENT, FIGURE, TEXT, MODEL, TRAINING, CHECK, OUTPUT, CLUSTER = PANELS
Limits = tuple[tuple[Literal["at least", "above", "at most", "below"], float], ...]
FROM_0: Limits = (("at least", 0),)
FROM_1: Limits = (("at least", 1),)
FROM_2: Limits = (("at least", 2),)
HELP_OPTIONS, HELP_ALL = ("-h", "--help"), "--help-all"  # of every command
FLAG = re.compile(r"--([a-z-]+)")
COMMAND_LINE_ONLY = re.compile(r"\{(.*?)\}")


class Option(NamedTuple):
    """What help, docs and configs say of one option.

    In `help`, {names} stands for the names of `table`, and other braces hold what applies to a command line only.
    """

    help: str
    panel: str
    metavar: str | None = None  # None: by its type
    flags: str | None = None  # None: by its field's name
    short: str | None = None  # such as "-o"
    table: str | None = None  # "package:NAME", a table of plugins that its value may name
    offers: tuple[str, ...] = ()  # what else a shell offers to complete it
    limits: Limits = ()  # of a number: ("at least", 1), ("below", 2)
    is_common: bool = False  # in `--help` also of a command that has many; `--help-all` shows the others

    def field(self, default: Any) -> Any:
        """Declare a field of a spec that holds this option's value. Without a default (MISSING) it must be given."""
        return field(default=default, metadata={"option": self})

    def names(self) -> list[tuple[str, str]]:
        """List the names in the option's table, each with its line of help."""
        if self.table is None:
            return []
        return [(plugin.name, plugin.help) for plugin in load(self.table)]

    def write_command_line_help(self) -> str:
        """Write the help as `--help` shows it."""
        return COMMAND_LINE_ONLY.sub(r"\1", self._fill_names())

    def write_config_help(self) -> str:
        """Write the help for configs: without what only a command line has, and options by their keys."""
        return FLAG.sub(lambda flag: flag[1].replace("-", "_"), COMMAND_LINE_ONLY.sub("", self._fill_names()))

    def _fill_names(self) -> str:
        return self.help.replace("{names}", ", ".join(name for name, _ in self.names()))


def option(default: Any, help: str, panel: str, metavar: str | None = None, **more: Any) -> Any:
    """Declare a field of a spec, of a default and of what an Option is made of."""
    return Option(help, panel, metavar, **more).field(default)


def common(default: Any, help: str, panel: str, metavar: str | None = None, **more: Any) -> Any:
    """Declare such a field of an option that `--help` shows of every command, however many it has."""
    return option(default, help, panel, metavar, is_common=True, **more)


def group(default: Any, *names: str, **instead: Option) -> Any:
    """Declare a field of a spec that holds those options of a group of which a command has the names.

    A field without it has all options of its group. `instead` are options that this command describes in other words.
    """
    return field(default=default, metadata={"names": names, "instead": instead})


class FlatOption(NamedTuple):
    """One option of a spec: its field's name, the group that the field is in ("" for none), its type and default."""

    name: str
    group: str
    type: Any
    option: Option
    default: Any  # dataclasses.MISSING: it must be given

    def complete(self, incomplete: str) -> list[tuple[str, str]]:
        """List the values that a shell offers for the beginning of one, each with its line of help."""
        kinds = (self.type, *get_args(self.type))
        choices = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
        known = [*self.option.names(), *((name, "") for name in (*self.option.offers, *choices))]
        return [(name, help) for name, help in known if name.startswith(incomplete)]

    @property
    def flag(self) -> str:
        """Return what users write on a command line."""
        return f"--{self.name.replace('_', '-')}"


def list_options(spec: type[Any]) -> tuple[FlatOption, ...]:
    """List all options of a spec in the order of its fields, those of its groups in their places."""
    key: Any = spec  # to mypy, a type is not hashable
    return _list_options(key)


def find_example(spec: type[Any]) -> str:
    """Return the command line that a spec's docstring gives as an example, "" without one."""
    return " ".join((spec.__doc__ or "").partition("Example: ")[2].split())


@cache
def _list_options(spec: Any) -> tuple[FlatOption, ...]:
    found: list[FlatOption] = []
    for each in fields(spec):
        if "option" in each.metadata:
            found.append(FlatOption(each.name, "", each.type, each.metadata["option"], each.default))
            continue
        kind: Any = each.type
        members = {member.name: member for member in _list_options(kind)}
        for member in (members[name] for name in each.metadata.get("names", members)):
            told = each.metadata.get("instead", {}).get(member.name, member.option)
            found.append(FlatOption(member.name, each.name, member.type, told, getattr(each.default, member.name)))
    return tuple(found)


def build(spec: type[Spec], /, **values: Any) -> Spec:
    """Build a spec from its options by their names, groups left out. Options that are not given have their defaults.

    Raises TypeError for a name that is not an option of the spec, and for a missing option without a default.
    """
    known = {option.name: option.group for option in list_options(spec)}
    groups: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if name not in known:
            raise TypeError(f"{spec.__name__} has no option {name!r}")
        groups.setdefault(known[name], {})[name] = value
    own = groups.pop("", {})
    kind: Any = spec  # a dataclass, which no type variable can say
    defaults: dict[str, Any] = {field.name: field.default for field in fields(kind)}
    return spec(**own, **{name: replace(defaults[name], **of_group) for name, of_group in groups.items()})


def list_values(spec: Any) -> dict[str, Any]:
    """Return the values of a spec's options by their names, groups left out, as `build` takes them."""
    return {
        option.name: getattr(getattr(spec, option.group) if option.group else spec, option.name)
        for option in list_options(type(spec))
    }


def find_changed(spec: Any) -> dict[str, Any]:
    """Return the values of a spec's options, as `list_values`, that are not at their defaults."""
    defaults = {option.name: option.default for option in list_options(type(spec))}
    return {name: value for name, value in list_values(spec).items() if value != defaults[name]}


def refuse_changed(spec: Any, names: Collection[str], why: str, hint: str = "Leave it out.") -> None:
    """Raise InvalidOption for an option of these names that is not at its default."""
    for name in find_changed(spec):
        if name in names:
            raise InvalidOption(f"--{name.replace('_', '-')} {why}", hint=hint)


def replace_values(spec: Spec, /, **values: Any) -> Spec:
    """Return the spec with other values of some options: `dataclasses.replace`, groups left out."""
    return build(type(spec), **list_values(spec) | values)


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
    if found == "" and option.option.metavar == "DIR":
        raise InvalidValue("a folder", found)
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
