"""What a config may say: the settings of each command, from the options of its spec; read, and as a JSON Schema.

A value is checked by `attnviz.options.check`, as on a command line. What is wrong goes to the problems of the
file that says it.
"""

from collections.abc import Collection, Mapping
from dataclasses import MISSING
from functools import cache, partial
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from attnviz.commands.batch import naming
from attnviz.commands.batch.jobs import JOBS, NOT_IN_CONFIGS
from attnviz.commands.batch.reading import SourceFile, Steps
from attnviz.options import OUTPUT, FlatOption, InvalidValue, Option, check_option, find_nearest, list_options, shorten

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# A whole number is a text, too: `query: 3`.
JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: ["string", "integer"]}
JSON_LIMITS = {"at least": "minimum", "above": "exclusiveMinimum", "at most": "maximum", "below": "exclusiveMaximum"}
# What a config says beside the settings of commands.
OUT = FlatOption("out", "", str | None, Option("Folder to write to.", OUTPUT), "figures")
NAME = FlatOption("name", "", str | None, Option("Name of the job and of its folder.", OUTPUT), None)
Part = dict[str, Any]  # of a JSON Schema


@cache
def settings(command: str) -> Mapping[str, FlatOption]:
    """Return the options of a command that a config may set, by their names."""
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
    """Return a value as its option has it, a list item by item. What cannot be is told, and None there."""
    if get_origin(option.type) is tuple and isinstance(value, list | tuple) and value:
        item = option._replace(type=get_args(option.type)[0])
        return tuple(read_setting(source, one, item, (*steps, place)) for place, one in enumerate(value))
    try:
        if option.name == "text_file" and value == "-":
            raise InvalidValue("the name of a file (a batch has no standard input)", value)
        return check_option(option, value)
    except InvalidValue as error:
        source.report(steps, error.__str__)  # which searches for what may have been meant
        return None


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
    jobs: dict[str, Part] = {}
    defaults: dict[str, list[Part]] = {}
    for command in JOBS:
        own = {name: _describe(option) for name, option in settings(command).items()}
        matrix = {name: _list_of(part) for name, part in own.items()}
        name = _describe(NAME) | {"pattern": f"^{naming.NAME}$"}
        jobs[command] = _close({"name": name, command: _close(own, "null"), "matrix": _close(matrix, "null")})
        jobs[command]["required"] = [command]
        for setting in own:
            reference = {"$ref": f"#/$defs/{command}/properties/{command}/properties/{setting}"}
            defaults.setdefault(setting, []).append(reference)
    any_job = _list_of({"anyOf": [{"$ref": f"#/$defs/{command}"} for command in JOBS]})
    any_default = _close({setting: {"anyOf": parts} for setting, parts in defaults.items()}, "null")
    whole = _close({"out": _describe(OUT) | {"minLength": 1}, "defaults": any_default, "jobs": any_job})
    about = {"$schema": DIALECT, "description": "What `attnviz batch` makes.", "required": ["jobs"]}
    return {**about, **whole, "$defs": jobs}


def _close(properties: dict[str, Part], *others: str) -> Part:
    """Describe an object of these members and no others, or a value of the `others` types."""
    return {"type": ["object", *others], "properties": properties, "additionalProperties": False}


def _list_of(item: Part) -> Part:
    return {"type": "array", "items": item, "minItems": 1}


def _describe(option: FlatOption) -> Part:
    """Describe the value of a setting. Where it has no default the schema names none."""
    found = _describe_type(option.type) | {JSON_LIMITS[how]: limit for how, limit in option.option.limits}
    found["description"] = option.option.write_config_help()
    if option.default not in (MISSING, ()):
        found["default"] = list(option.default) if isinstance(option.default, tuple) else option.default
    return found


def _describe_type(kind: Any) -> Part:
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if get_origin(kind) is tuple:
        item = _describe_type(get_args(kind)[0])
        return {"anyOf": [item, _list_of(item)]}
    if NoneType in get_args(kind):
        return {"anyOf": [_describe_type(get_args(kind)[0]), {"type": "null"}]}
    return {"type": JSON_TYPES[kind]}
