"""What a config may say, made from the specs, and all of it as a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from attnviz.commands.batch.jobs import JOBS, NOT_IN_CONFIGS
from attnviz.commands.batch.naming import NAME
from attnviz.options import FlatOption, list_options

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]
TEXT: Schema = {"type": ["string", "integer"]}  # `query: 3` is the text "3"
SCHEMAS: dict[type, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: TEXT,
    NoneType: {"type": "null"},
}


@cache
def settings(command: str) -> Mapping[str, FlatOption]:
    """The options of a command that a config may set, by their names."""
    return {each.name: each for each in list_options(JOBS[command]) if each.name not in NOT_IN_CONFIGS}


def json_schema() -> Schema:
    """A whole config as a JSON Schema of draft 2020-12."""
    definitions: Schema = {"Defaults": _defaults()}
    for command in JOBS:
        definitions |= _describe_command(command)
    return {
        "$schema": DIALECT,
        "title": "attnviz batch",
        "description": "What `attnviz batch` makes.",
        **_object(
            {
                "out": {**TEXT, "description": "Folder to write to.", "default": "figures", "minLength": 1},
                "defaults": _or_nothing("Defaults"),
                "jobs": _list({"anyOf": [{"$ref": f"#/$defs/{command.title()}Job"} for command in JOBS]}),
            },
            required=["jobs"],
        ),
        "$defs": definitions,
    }


def _describe_command(command: str) -> Schema:
    """A job of one command, its settings and its matrix. No setting is required: it may come from elsewhere."""
    name, options = command.title(), settings(command)
    job = {
        "name": {"anyOf": [{**TEXT, "pattern": f"^{NAME}$"}, SCHEMAS[NoneType]]},
        "matrix": _or_nothing(f"{name}Matrix"),
        command: _or_nothing(f"{name}Settings"),
    }
    return {
        f"{name}Job": _object(job, required=[command]),
        f"{name}Settings": _object({setting: _describe_option(option) for setting, option in options.items()}),
        f"{name}Matrix": _object({setting: _list(_describe_type(option.type)) for setting, option in options.items()}),
    }


def _defaults() -> Schema:
    """Settings of any command. Where commands differ in a setting's type, any of them."""
    properties: Schema = {}
    for name in sorted({name for command in JOBS for name in settings(command)}):
        options = [settings(command)[name] for command in JOBS if name in settings(command)]
        kinds = [_describe_type(option.type) for option in options]
        kinds = [each for number, each in enumerate(kinds) if each not in kinds[:number]]
        properties[name] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        helps = {option.option.write_config_help() for option in options}
        if len(helps) == 1:
            properties[name] = {**properties[name], "description": helps.pop()}
    return {**_object(properties), "description": "Settings for every job whose command has them."}


def _describe_option(each: FlatOption) -> Schema:
    told = {**_describe_type(each.type), "description": each.option.write_config_help()}
    if each.default in (MISSING, ()):
        return told
    return told | {"default": list(each.default) if isinstance(each.default, tuple) else each.default}


def _describe_type(kind: Any) -> Schema:
    """What `attnviz.option_values.check` takes."""
    if get_origin(kind) is tuple:
        one = _describe_type(get_args(kind)[0])
        return {"anyOf": [one, _list(one)]}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if NoneType in get_args(kind):
        return {"anyOf": [_describe_type(each) for each in get_args(kind)]}
    return SCHEMAS[kind]


def _object(properties: Schema, **more: Any) -> Schema:
    return {"type": "object", "properties": properties, **more, "additionalProperties": False}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1}


def _or_nothing(name: str) -> Schema:
    return {"anyOf": [{"$ref": f"#/$defs/{name}"}, SCHEMAS[NoneType]]}
