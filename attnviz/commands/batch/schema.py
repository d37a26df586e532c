"""What a config may say: one pydantic model per command, made from the options of its spec, and the JSON Schema of all.

A setting is checked by `attnviz.option_values.check`, as on a command line; the models hold which settings there are,
which of them are lists, and what editors are told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

from annotated_types import MinLen
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model
from pydantic.functional_validators import AfterValidator, BeforeValidator, PlainValidator
from pydantic_core import PydanticCustomError

from attnviz.commands.batch import naming
from attnviz.commands.batch.jobs import JOBS, NOT_IN_CONFIGS
from attnviz.option_values import InvalidValue, check
from attnviz.options import FlatOption, list_options

DIALECT = "https://json-schema.org/draft/2020-12/schema"
CLOSED = ConfigDict(extra="forbid")
Fields = dict[str, Any]


def json_schema() -> dict[str, Any]:
    """A whole config as a JSON Schema of draft 2020-12."""
    defaults: Fields = {}
    for name in _names():
        options = [settings(command)[name] for command in JOBS if name in settings(command)]
        helps = {each.option.write_config_help() for each in options}
        kind: Any = Union[*(annotate(kind) for kind in dict.fromkeys(each.type for each in options))]
        defaults[name] = kind, _describe(helps.pop() if len(helps) == 1 else None, MISSING)
    model = config_model(Union[*map(job_model, JOBS)], defaults)
    return {"$schema": DIALECT, **model.model_json_schema()}


@cache
def settings(command: str) -> Mapping[str, FlatOption]:
    """The options of a command that a config may set, by their names."""
    return {each.name: each for each in list_options(JOBS[command]) if each.name not in NOT_IN_CONFIGS}


def config_model(job: Any = Any, defaults: Fields | None = None) -> type[BaseModel]:
    """A whole config. What stands in its jobs and its defaults is left to the models of commands; editors are told."""
    defaults = dict.fromkeys(_names(), (Any, None)) if defaults is None else defaults
    said = "Settings for every job whose command has them."
    of_all = create_model("Defaults", __config__=CLOSED, __doc__=said, **defaults)
    folder = Annotated[str, MinLen(1)] | int
    out = _read_as(str, folder, lambda text: "" if text else "write a folder, not nothing")
    fields: Fields = {
        "out": (out | None, Field("figures", description="Folder to write to.")),
        "defaults": (of_all | None, None),
        "jobs": (_list_of(job), ...),
    }
    return create_model("attnviz batch", __config__=CLOSED, __doc__="What `attnviz batch` makes.", **fields)


def _names() -> list[str]:
    """All settings, by the commands that have them."""
    return list(dict.fromkeys(name for command in JOBS for name in settings(command)))


@cache
def job_model(command: str) -> type[BaseModel]:
    """A job of one command: its name, settings and matrix; of "" what a job without a command may have."""
    fields: Fields = dict.fromkeys(("name", *JOBS, "matrix"), (Any, None))
    if not command:
        return create_model("Job", __config__=CLOSED, **fields)
    name = command.title()
    matrix: Fields = {
        each.name: (_list_of(annotate(each.type, each.name)), _describe(None, MISSING))
        for each in settings(command).values()
    }
    written = Annotated[str, StringConstraints(pattern=f"^{naming.NAME}$")] | int
    fields = {
        "name": (_read_as(str, written, naming.name_error) | None, None),
        command: (settings_model(command) | None, ...),
        "matrix": (create_model(f"{name}Matrix", __config__=CLOSED, **matrix) | None, None),
    }
    return create_model(f"{name}Job", __config__=CLOSED, **fields)


@cache
def settings_model(command: str) -> type[BaseModel]:
    """The settings of a command. None is required: it may come from the defaults or the matrix."""
    fields: Fields = {
        each.name: (annotate(each.type, each.name), _describe(each.option.write_config_help(), each.default))
        for each in settings(command).values()
    }
    return create_model(f"{command.title()}Settings", __config__=CLOSED, **fields)


def _describe(help: str | None, default: object) -> Any:
    """Where a setting has no default the schema names none."""
    if default in (MISSING, ()):
        return Field(default_factory=tuple, description=help)
    return Field(default, description=help)


def annotate(kind: Any, name: str = "") -> Any:
    """An option's type as pydantic reads it: a list item by item, and one value as a list of one."""
    if get_origin(kind) is tuple:
        item = annotate(get_args(kind)[0], name)
        several = _list_of(item)
        as_list = BeforeValidator(lambda value: value if isinstance(value, list | tuple) else [value], item | several)
        return Annotated[several, AfterValidator(tuple), as_list]
    written = kind | int if str in (kind, *get_args(kind)) else kind  # `query: 3` is the text "3"
    stdin = "a batch has no standard input; name a file"
    return _read_as(kind, written, lambda value: stdin if name == "text_file" and value == "-" else "")


def _list_of(item: Any) -> Any:
    return Annotated[list[item], MinLen(1)]


def _read_as(kind: Any, written: Any, find_fault: Callable[[Any], str]) -> Any:
    """A type that is read by the checker of options, and then by `find_fault`; an editor takes what is `written`."""

    def read(value: object) -> object:
        try:
            found = check(kind, value)
        except InvalidValue as error:
            raise PydanticCustomError("value_error", "invalid", {"error": error}) from error
        if fault := find_fault(found):
            raise ValueError(fault)
        return found

    return Annotated[kind, PlainValidator(read, written)]
