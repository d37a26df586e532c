"""What the file of a record has as JSON beside its tensors: tokens, provenance and numbers; and back, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from attnviz.bounded import parse_json
from attnviz.errors import InvalidOption, InvalidRecord
from attnviz.records import AttentionMaps, Facts, Provenance, Setting, Tokens
from attnviz.records.grid import Grid

SCHEMA = 2
FACTORED_SCHEMAS = (4, 5)  # of records that hold factors, see `factored`
# Facts that are left out: a record of all heads, and of a whole text, is what it has always been.
LEFT_OUT = {("n_heads_in_model", None), ("window", None), ("n_windows", None)}


def encode_metadata(maps: AttentionMaps) -> dict[str, Any]:
    """Return what JSON has of any record: no copies, and nothing that was worked out of tokens."""
    sides = {"queries": maps.queries, "keys": None if maps.self_attention else maps.keys}  # None: the same tokens
    return {
        "schema": SCHEMA,
        **{
            name: None if side is None else {each.name: getattr(side, each.name) for each in fields(side)}
            for name, side in sides.items()
        },
        "provenance": {
            **asdict(maps.provenance),
            "settings": dict(maps.provenance.settings),
            "versions": dict(maps.provenance.versions),
            "facts": dict(_list_facts(maps.provenance.facts)),
        },
        "layer_numbers": maps.layer_numbers,
        **({} if maps.head_numbers == tuple(range(maps.n_heads)) else {"head_numbers": maps.head_numbers}),
        **({} if maps.grid is None else {"grid": [maps.grid.n_rows, maps.grid.n_columns]}),
    }


def _list_facts(facts: Facts) -> list[tuple[str, Any]]:
    return [(name, each) for name, each in asdict(facts).items() if each is not None or (name, each) not in LEFT_OUT]


def parse_metadata(found: Mapping[str, Any]) -> dict[str, Any]:
    """Read the JSON under the key `attnviz`. Raises InvalidRecord for another schema, KeyError for none."""
    meta: dict[str, Any] = parse_json(found["attnviz"])
    if meta["schema"] not in (SCHEMA, *FACTORED_SCHEMAS):
        raise InvalidRecord(f"schema {meta['schema']!r} is not {SCHEMA}", hint="Update attnviz, or draw the text anew.")
    return meta


def parse_tokens(found: Mapping[str, Any]) -> Tokens:
    """Read the tokens of one side. Raises TypeError or KeyError for what is none, as the others here do."""
    return Tokens(
        pieces=tuple(map(_check_text, found["pieces"])),
        offsets=tuple((_check_integer(start), _check_integer(end)) for start, end in found["offsets"]),
        special=tuple(map(bool, found["special"])),
        unknown=tuple(map(bool, found["unknown"])),
    )


def parse_numbers(meta: Mapping[str, Any], what: str, provenance: Provenance) -> tuple[int, ...]:
    """Read those of layers or heads; records before had them among their settings."""
    numbers = meta.get(f"{what}_numbers")
    if numbers is None:
        written = dict(provenance.settings).get(f"{what}s_in_model")
        numbers = [int(number) for number in written.split(",")] if isinstance(written, str) else []
    if not all(type(number) is int for number in numbers):
        raise TypeError(f"{what} numbers {numbers!r} are not numbers")
    return tuple(numbers)


def parse_grid(meta: Mapping[str, Any]) -> Grid | None:
    """Read how patches of an image stand, None where keys are no patches. Raises InvalidRecord for what cannot be."""
    if meta.get("grid") is None:
        return None
    n_rows, n_columns = map(_check_integer, meta["grid"])
    try:
        return Grid(n_rows, n_columns)
    except InvalidOption as error:
        raise InvalidRecord(error.problem) from error


def parse_provenance(found: Mapping[str, Any]) -> Provenance:
    """Read what the weights are of."""
    return Provenance(
        model=_check_text(found["model"]),
        revision=_check_text(found["revision"]),
        trained=None if found["trained"] is None else bool(found["trained"]),
        text_sha256=_check_text(found["text_sha256"]),
        text_name=_check_text(found["text_name"]),
        settings=tuple((_check_text(name), _check_setting(value)) for name, value in found["settings"].items()),
        versions=tuple((_check_text(name), _check_text(value)) for name, value in found["versions"].items()),
        facts=_parse_facts(found["facts"]),
    )


def _parse_facts(found: Mapping[str, Any]) -> Facts:
    """As they were written. Raises TypeError for a name or a type that is none of theirs."""
    lists = {name: found[name] for name, default in asdict(Facts()).items() if default == () and name in found}
    for name, each in lists.items():
        if not isinstance(each, list):
            raise TypeError(f"{name} is {each!r}")
    facts = Facts(**{**found, **{name: tuple(map(_check_text, each)) for name, each in lists.items()}})
    for name, default in asdict(Facts()).items():
        value = getattr(facts, name)
        fits = value is None or type(value) is int if default is None else type(value) is type(default)
        if not fits:
            raise TypeError(f"{name} is {value!r}")
    return facts


def _check_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _check_integer(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _check_setting(value: object) -> Setting:
    if not (value is None or isinstance(value, str | int | float)):
        raise TypeError(f"{value!r} is not a setting")
    return value
