"""What a config may say, made from the specs: a model for each command's settings, and all of it as a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from attnviz.configs.naming import NAME
from attnviz.jobs import JOBS, NOT_IN_CONFIGS
from attnviz.options import FlatOption, flat_options

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT_SCHEMA: dict[str, Any] = {"type": ["string", "integer"]}


def _text(value: object) -> object:
    """`query: 3` is the text "3". 1.50 would lose its last digit, so only whole numbers."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _several(value: object) -> object:
    """One value where a list may be."""
    return tuple(value) if isinstance(value, list) else (value,)


def _not_empty(values: tuple[str, ...]) -> tuple[str, ...]:
    if not values:
        raise ValueError("the list is empty; leave it out")
    return values


def _not_stdin(values: tuple[str, ...]) -> tuple[str, ...]:
    if "-" in values:
        raise ValueError("a batch has no standard input; name a file")
    return values


Text = Annotated[str, BeforeValidator(_text), WithJsonSchema(TEXT_SCHEMA)]
Texts = Annotated[
    tuple[Text, ...],
    BeforeValidator(_several),
    AfterValidator(_not_empty),
    WithJsonSchema({"anyOf": [TEXT_SCHEMA, {"type": "array", "items": TEXT_SCHEMA, "minItems": 1}]}),
]


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


NOT_GIVEN = Field(default=None, json_schema_extra=_without_default)  # None stands for absence, which shows no default
Files = Annotated[Texts, AfterValidator(_not_stdin)]
Number = Annotated[float, Field(allow_inf_nan=False)]
READ_AS: dict[Any, Any] = {bool: bool, int: int, float: Number, str: Text, tuple[str, ...]: Texts}


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class AnyJob(_Strict):
    """What jobs of all commands have."""

    name: Annotated[Text, WithJsonSchema({**TEXT_SCHEMA, "pattern": f"^{NAME}$"})] | None = NOT_GIVEN
    matrix: Any = None


class Shell(_Strict):
    """A config, its jobs unread."""

    out: Text | None = None
    defaults: dict[str, Any] | None = None
    jobs: Annotated[list[Any], Field(min_length=1)]


def _options(command: str) -> dict[str, FlatOption]:
    return {each.name: each for each in flat_options(JOBS[command]) if each.name not in NOT_IN_CONFIGS}


@cache
def types(command: str) -> dict[str, Any]:
    """The settings that a config may give a command, with the types that pydantic checks them by."""
    read_as = {name: _read_as(option.type) for name, option in _options(command).items()}
    return read_as | ({"text_file": Files} if "text_file" in read_as else {})


@cache
def required(command: str) -> tuple[str, ...]:
    """Settings without a default."""
    return tuple(name for name, option in _options(command).items() if option.default is MISSING)


@cache
def settings_model(command: str) -> type[BaseModel]:
    """Settings of one command. None is required here: it may come from the defaults or the matrix."""
    defaults = {name: option.default for name, option in _options(command).items()}
    found: dict[str, Any] = {
        name: (hint, NOT_GIVEN if defaults[name] in (MISSING, ()) else defaults[name])
        for name, hint in types(command).items()
    }
    return create_model(f"{command.title()}Settings", __base__=_Strict, **found)


@cache
def matrix_model(command: str) -> type[BaseModel]:
    """Lists of settings of one command."""
    found: dict[str, Any] = {
        name: (Annotated[list[hint], Field(min_length=1)], NOT_GIVEN)  # type: ignore[valid-type]  # computed
        for name, hint in types(command).items()
    }
    return create_model(f"{command.title()}Matrix", __base__=_Strict, **found)


@cache
def job_model(command: str) -> type[AnyJob]:
    """A job of one command."""
    found: dict[str, Any] = {
        command: (settings_model(command) | None, ...),
        "matrix": (matrix_model(command) | None, NOT_GIVEN),
    }
    return create_model(f"{command.title()}Job", __base__=AnyJob, **found)


def json_schema() -> dict[str, Any]:
    """A whole config as a JSON Schema of draft 2020-12."""
    _, made = models_json_schema([(job_model(command), "validation") for command in JOBS], schema_generator=_Untitled)
    definitions: dict[str, Any] = made["$defs"]
    for command in JOBS:
        settings = definitions[settings_model(command).__name__]["properties"]
        for name, option in _options(command).items():
            settings[name]["description"] = option.option.config_help()
    definitions["Defaults"] = _defaults({command: definitions[settings_model(command).__name__] for command in JOBS})
    return {
        "$schema": DIALECT,
        "title": "attnviz batch",
        "description": "What `attnviz batch` makes.",
        "type": "object",
        "properties": {
            "out": {**TEXT_SCHEMA, "description": "Folder to write to.", "default": "figures", "minLength": 1},
            "defaults": {"anyOf": [{"$ref": "#/$defs/Defaults"}, {"type": "null"}]},
            "jobs": {
                "type": "array",
                "minItems": 1,
                "items": {"anyOf": [{"$ref": f"#/$defs/{job_model(command).__name__}"} for command in JOBS]},
            },
        },
        "required": ["jobs"],
        "additionalProperties": False,
        "$defs": definitions,
    }


class _Untitled(GenerateJsonSchema):
    """A title that repeats the name helps nobody."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _defaults(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Settings of any command. Where commands differ in a setting's type, any of them."""
    properties: dict[str, Any] = {}
    for name in sorted({name for model in settings.values() for name in model["properties"]}):
        written = [dict(model["properties"][name]) for model in settings.values() if name in model["properties"]]
        descriptions = {each.pop("description", None) for each in written}
        for each in written:
            each.pop("default", None)
        kinds = [each for number, each in enumerate(written) if each not in written[:number]]
        properties[name] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        if len(descriptions) == 1 and None not in descriptions:
            properties[name]["description"] = descriptions.pop()
    return {
        "title": "Defaults",
        "description": "Settings for every job whose command has them.",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _read_as(hint: Any) -> Any:
    """How pydantic reads a setting whose type in the spec is `hint`."""
    if get_origin(hint) in (Union, UnionType):
        return Union[tuple(each if each is type(None) else _read_as(each) for each in get_args(hint))]  # noqa: UP007
    return hint if get_origin(hint) is Literal else READ_AS[hint]
