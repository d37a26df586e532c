"""What a config may say: the settings of each command, from the options of its spec; read, and as a JSON Schema.

A value is checked by `attnviz.option_values.check`, as on a command line. What is wrong goes to the problems of the
file that says it.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING
from functools import cache, partial
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from attnviz.commands.batch import naming
from attnviz.commands.batch.jobs import JOBS, NOT_IN_CONFIGS
from attnviz.commands.batch.source_file import SourceFile, Steps
from attnviz.option_values import TYPE_NAMES, InvalidValue, check, check_option, find_nearest, shorten
from attnviz.options import FlatOption, list_options

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# A whole number is a text, too: `query: 3`.
JSON_TYPES = {bool: ["boolean"], int: ["integer"], float: ["number"], str: ["string", "integer"]}
Part = dict[str, Any]  # of a JSON Schema
JSON_LIMITS = {"at least": "minimum", "above": "exclusiveMinimum", "at most": "maximum", "below": "exclusiveMaximum"}


@cache
def settings(command: str) -> Mapping[str, FlatOption]:
    """The options of a command that a config may set, by their names."""
    return {each.name: each for each in list_options(JOBS[command]) if each.name not in NOT_IN_CONFIGS}


def read_members(source: SourceFile, data: Any, known: Collection[str], steps: Steps) -> dict[str, Any]:
    """Return the members of an object, none of nothing. Those that are not known are told and left out."""
    if not isinstance(data, dict):
        if data is not None:
            source.report(steps, str(InvalidValue("settings (name: value)", data)))
        return {}
    for name in data:
        if name not in known:
            source.report_name((*steps, name), partial(_describe_unknown, name, tuple(known)))
    return {name: value for name, value in data.items() if name in known}


def read_settings(source: SourceFile, data: Any, command: str, steps: Steps) -> dict[str, Any]:
    """Return the settings of a command as its spec has them; what cannot be is told, and None there."""
    options = settings(command)
    written = read_members(source, data, options, steps)
    return {name: read_setting(source, value, options[name], (*steps, name)) for name, value in written.items()}


def read_setting(source: SourceFile, value: Any, option: FlatOption, steps: Steps) -> Any:
    """Return a value as its option has it."""
    return read_value(source, value, option.type, steps, partial(_find_fault, option))


def read_value(
    source: SourceFile, value: Any, kind: Any, steps: Steps, find_fault: Callable[[Any], str] | None = None
) -> Any:
    """Return a value as a type: a list item by item, and one value as a list of one. What cannot be is told.

    `find_fault` says what is wrong with it besides, "" for nothing.
    """
    if get_origin(kind) is tuple and isinstance(value, list | tuple) and value:
        several = enumerate(value)
        return tuple(read_value(source, one, get_args(kind)[0], (*steps, place), find_fault) for place, one in several)
    try:
        found = check(kind, value)
    except InvalidValue as error:
        is_plain = error.wanted == TYPE_NAMES[str] and isinstance(error.found, bool | float)
        quoted = f'{error}; quotes make it one: "{shorten(error.found)}"'
        source.report(steps, quoted if is_plain else error.__str__)  # which searches for what may have been meant
        return None
    if find_fault and found is not None and (fault := find_fault(found)):
        source.report(steps, fault)
    return found


def _find_fault(option: FlatOption, found: Any) -> str:
    """Say what an option does not take of its type, "" for nothing. Of several values `found` is one."""
    if option.name == "text_file" and found in ("-", ("-",)):
        return "a batch has no standard input; name a file"
    try:
        check_option(option, found)
    except InvalidValue as error:
        return str(error)
    return ""


def read_list(source: SourceFile, value: Any, steps: Steps) -> list[Any]:
    """Return a list; [] where it is none or empty, which is told."""
    if isinstance(value, list) and value:
        return value
    source.report(steps, str(InvalidValue("at least one" if value == [] else "a list", value)))
    return []


def _describe_unknown(name: str, known: tuple[str, ...]) -> str:
    """Write the next move after a name that does not exist here."""
    if name in NOT_IN_CONFIGS:
        return f"{shorten(name)} is for the command line; a batch decides it"
    near = find_nearest(name, known)
    return f"no {shorten(name)} here. " + (f"Did you mean {near!r}?" if near else f"There are {', '.join(known)}.")


def json_schema() -> Part:
    """Return a whole config as a JSON Schema of draft 2020-12."""
    parts: dict[str, Part] = {}
    by_name: dict[str, list[FlatOption]] = {}
    for command in JOBS:
        options, title = settings(command), command.title()
        for name, option in options.items():
            by_name.setdefault(name, []).append(option)
        parts[f"{title}Settings"] = _close({name: _describe([each], each.default) for name, each in options.items()})
        several = {name: _list_of(_any_of(_list_kinds(each.type))) for name, each in options.items()}
        parts[f"{title}Matrix"] = _close(several)
        called = {"anyOf": [{"pattern": f"^{naming.NAME}$", "type": "string"}, {"type": "integer"}, {"type": "null"}]}
        own, matrix = (_refer(f"{title}{kind}") for kind in ("Settings", "Matrix"))
        parts[f"{title}Job"] = _close({"name": called, command: own, "matrix": matrix}, command)
    parts["Defaults"] = _close({name: _describe(options, MISSING) for name, options in by_name.items()})
    folder = [{"minLength": 1, "type": "string"}, {"type": "integer"}, {"type": "null"}]
    jobs = _list_of(_any_of([{"$ref": f"#/$defs/{command.title()}Job"} for command in JOBS]))
    out = {"anyOf": folder, "default": "figures", "description": "Folder to write to."}
    whole = _close({"out": out, "defaults": _refer("Defaults"), "jobs": jobs}, "jobs")
    return {"$schema": DIALECT, "description": "What `attnviz batch` makes.", "$defs": parts, **whole}


def _close(properties: dict[str, Part], *required: str) -> Part:
    found: Part = {"additionalProperties": False, "properties": properties, "type": "object"}
    return found | ({"required": list(required)} if required else {})


def _refer(name: str) -> Part:
    return _any_of([{"$ref": f"#/$defs/{name}"}, {"type": "null"}])


def _any_of(kinds: list[Part]) -> Part:
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _list_of(item: Part) -> Part:
    return {"items": item, "minItems": 1, "type": "array"}


def _list_kinds(kind: Any) -> list[Part]:
    """List what JSON may have in the place of an option's type."""
    if get_origin(kind) is Literal:
        return [{"enum": list(get_args(kind)), "type": "string"}]
    if get_origin(kind) is tuple:
        item = _list_kinds(get_args(kind)[0])
        return [*item, _list_of(_any_of(item))]
    if NoneType in get_args(kind):
        return [*_list_kinds(get_args(kind)[0]), {"type": "null"}]
    return [{"type": name} for name in JSON_TYPES[kind]]


def _describe(options: list[FlatOption], default: Any) -> Part:
    """Describe a setting that several commands may have. Where it has no default the schema names none."""
    kinds = [kind for each in options for kind in _list_kinds(each.type)]
    found = _any_of([kind for place, kind in enumerate(kinds) if kind not in kinds[:place]])
    helps, limits = {each.option.write_config_help() for each in options}, {each.option.limits for each in options}
    if len(limits) == 1:
        found |= {JSON_LIMITS[how]: limit for how, limit in limits.pop()}
    if default not in (MISSING, ()):
        found["default"] = list(default) if isinstance(default, tuple) else default
    return found | ({"description": helps.pop()} if len(helps) == 1 else {})
