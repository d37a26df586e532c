"""What the file of a record has as JSON beside its tensors: tokens, provenance and numbers; and back, checked."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, get_type_hints

from attnviz.bounded import decode_json
from attnviz.records import AttentionMaps, Facts, Provenance, Setting

SCHEMA = 2
# Facts that are left out where they are None: a record of all heads, and of a whole text, is what it has always been.
LEFT_OUT = {"n_heads_in_model", "window", "n_windows"}


def encode_metadata(maps: AttentionMaps) -> dict[str, Any]:
    """Return what JSON has of any record: no copies, and nothing that was worked out of tokens."""
    facts = asdict(maps.provenance.facts).items()
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
            "facts": {name: each for name, each in facts if each is not None or name not in LEFT_OUT},
        },
        "layer_numbers": maps.layer_numbers,
        **({} if maps.head_numbers == tuple(range(maps.n_heads)) else {"head_numbers": maps.head_numbers}),
        **({} if maps.grid is None else {"grid": [maps.grid.n_rows, maps.grid.n_columns, *maps.grid.at]}),
    }


def parse_provenance(found: Mapping[str, Any]) -> Provenance:
    """Read what the weights are of; facts that a record of before does not have are at their defaults."""
    defaults = {name: list(each) if isinstance(each, tuple) else each for name, each in asdict(Facts()).items()}
    written = {**found, "facts": {**defaults, **found["facts"]}}
    kinds = {**get_type_hints(Provenance), "settings": dict[str, Setting], "versions": dict[str, str]}
    read = {name: decode_json(kind, written[name], name) for name, kind in kinds.items()}
    return Provenance(**{**read, **{name: tuple(read[name].items()) for name in ("settings", "versions")}})
