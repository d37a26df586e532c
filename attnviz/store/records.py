"""Records as safetensors files, and back.

Tokens, provenance and numbers are JSON beside the tensors, and are checked on the way back. Of records by factors, the
file holds what weights are worked out from, an axis of layers in front.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors
from safetensors.numpy import save_file

from attnviz.bounded import check_file_size, decode_json, parse_json
from attnviz.errors import InvalidOption, InvalidRecord, raising
from attnviz.records import AttentionMaps, Provenance, Setting, Tokens, holds_factors
from attnviz.records.factored import FactoredMaps
from attnviz.records.factors import Factors, Window
from attnviz.records.grid import Grid
from attnviz.records.single import unwrap_record
from attnviz.store import make, shorten_path, write
from attnviz.store.tensors import read_header
from attnviz.store.weights import find_kind

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
    kinds = {**get_type_hints(Provenance), "settings": dict[str, Setting], "versions": dict[str, str]}
    read = {name: decode_json(kind, found[name], name) for name, kind in kinds.items()}
    return Provenance(**{**read, **{name: tuple(read[name].items()) for name in ("settings", "versions")}})


FACTORED = 4  # the schema of records that hold factors
PARTS = ("query", "key", "log_sum_exp", "bias", "attendable_keys")  # tensors; not every model has the last two
REQUIRED_PARTS = PARTS[:3]


def encode_factored(maps: FactoredMaps, meta: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the tensors of a record's file, and its JSON: `meta` and what else there is."""
    layers = [(of.query, of.key, of.sums) for of in maps.factors]
    tensors = {name: np.stack(parts) for name, parts in zip(REQUIRED_PARTS, zip(*layers, strict=True), strict=True)}
    # Not every model has a bias. Where a layer has one of fewer distances, its farthest numbers go on.
    if any(of.bias is not None for of in maps.factors):
        biases = [np.zeros((1, 1), dtype=np.float32) if of.bias is None else of.bias for of in maps.factors]
        n_biased, n_distances = (max(sizes) for sizes in zip(*(bias.shape for bias in biases), strict=True))
        missing = [(n_distances - bias.shape[1]) // 2 for bias in biases]
        longer = [np.pad(bias, ((0, 0), (n, n)), mode="edge") for bias, n in zip(biases, missing, strict=True)]
        tensors["bias"] = np.stack([np.broadcast_to(bias, (n_biased, n_distances)) for bias in longer])
    if any(of.attendable_keys is not None for of in maps.factors):
        tensors["attendable_keys"] = np.stack([of.keys_mask for of in maps.factors])
    found = {**meta, "schema": FACTORED}
    found |= {"scales": [of.scale for of in maps.factors], "windows": [of.window for of in maps.factors]}
    return tensors, found


def read_factors(meta: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> tuple[Factors, ...]:
    """Read the factors of each layer. Raises InvalidRecord where a part is missing or of another type."""
    found = {name: tensors[name] for name in PARTS if name in REQUIRED_PARTS or name in tensors}
    scales = decode_json(tuple[float, ...], meta["scales"], "scales")
    windows = decode_json(tuple[Window, ...], meta["windows"], "windows")
    if {*map(len, found.values()), len(windows)} != {len(scales)}:
        raise InvalidRecord("factors are of different numbers of layers")
    layers = [{name: part[layer] for name, part in found.items()} for layer in range(len(scales))]
    return tuple(
        Factors(**parts, scale=scale, window=window)
        for parts, scale, window in zip(layers, scales, windows, strict=True)
    )


VALUE_NORMS = "value_norms"  # [layer, head, key], of any record; versions before do not read it
IMAGE = "image"  # [height, width], grey: what patches are of, as small as a picture needs it
RECORD = "attention.safetensors"
RECORD_HINT = f"attnviz heatmap writes {RECORD}."
OTHER_ENDINGS = (".png", ".svg", ".pdf", ".csv", ".json", ".npy")
TYPES = {"attendable": "bool", "attendable_keys": "bool", IMAGE: "uint8"}  # other tensors are float32
MAX_RECORD = 2**32  # bytes, unless the caller allows more


def encode_record(maps: AttentionMaps) -> bytes:
    """Encode a record as a safetensors file: tensors, and JSON under the metadata key `attnviz`.

    The tensors are `weights` [layer, head, query, key], `attendable` [query, key] ([layer, query, key] where layers
    differ) and, where the model has one, `sink` [layer, head, query]; of a factored record those of `Factors`, each
    with an axis of layers in front, and its other fields in the JSON.
    """
    tensors, metadata = _encode(maps)
    return bytes(save_tensors(tensors, metadata=metadata))


def write_record(maps: AttentionMaps, path: Path) -> None:
    """Write the same to a new file, without its bytes in memory beside the record. Raises OSError too."""
    tensors, metadata = _encode(maps)
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file(tensors, path, metadata=metadata)
    except SafetensorError as error:
        number = re.search(r"os error ([0-9]+)", str(error))
        raise OSError(*((int(number[1]), os.strerror(int(number[1]))) if number else (0, str(error)))) from error
    path.chmod(mode)  # the library's own is for nobody else


def _encode(maps: AttentionMaps) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the tensors and the metadata of a record's file."""
    meta = encode_metadata(maps)
    if holds_factors(maps):
        tensors, meta = encode_factored(maps, meta)
    else:
        tensors = {"weights": maps.weights, "attendable": maps.attendable[0] if maps.layers_alike else maps.attendable}
    image = None if maps.grid is None else maps.grid.pixels
    parts = {**tensors, "sink": maps.sink, VALUE_NORMS: maps.value_norms, IMAGE: image}
    tensors = {name: np.ascontiguousarray(part) for name, part in parts.items() if part is not None}
    # ensure_ascii: a piece may hold half of a surrogate pair, which UTF-8 cannot
    return tensors, {"attnviz": json.dumps(meta, allow_nan=False)}


def save(maps: AttentionMaps | Sequence[AttentionMaps], path: str | Path) -> None:
    """Write a record, or a sequence of one. Raises as `attnviz.save` does."""
    maps, path = unwrap_record(maps), _check_path(path)
    if path.suffix.lower() in OTHER_ENDINGS:
        hint = "Name it .safetensors or .html: attnviz render draws the first, and writes its numbers (--print)."
        raise InvalidOption(f"{shorten_path(path)} would be a record, not a {path.suffix}", hint=hint)
    if path.exists() and not path.is_file():  # a device or a pipe, which cannot be replaced
        write(path, encode_record(maps))
    else:
        make(path, partial(write_record, maps))


def load(path: str | Path, max_bytes: float = MAX_RECORD) -> AttentionMaps:
    """Read a record that `save` or `attnviz heatmap` wrote.

    Raises InvalidRecord for anything else, or larger; InvalidOption for a path that is none.
    """
    path = _check_path(path)
    check_file_size(path, max_bytes, InvalidRecord)
    if find_kind(path) != "record":
        problem = f"{shorten_path(path)} is not a record of attnviz"
        raise InvalidRecord(problem, hint="attnviz.from_attentions and attnviz render read weights.")
    metadata = read_header(path, InvalidRecord, RECORD_HINT).metadata
    with safe_open(path, "numpy") as file:
        return _make_record(file.get_tensors(), metadata, shorten_path(path))


def _check_path(path: str | Path) -> Path:
    """Check that a path is a text or a pathlib.Path. Raises InvalidOption for anything else."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidOption(f"path is of type {type(path).__name__}", hint="It is a text, or a pathlib.Path.")
    return Path(path)


def read_record_shape(path: str | Path) -> tuple[tuple[int, int, int, int], bool]:
    """Read [layer, head, query, key] of a record, and whether it holds what its weights are worked out from.

    Its header alone is read. Raises InvalidRecord.
    """
    shapes = read_header(Path(path), InvalidRecord, RECORD_HINT).shapes
    with raising(InvalidRecord, f"{shorten_path(Path(path))} is not a record of attnviz", RECORD_HINT):
        if "weights" in shapes:
            n_layers, n_heads, n_queries, n_keys = shapes["weights"]
        else:
            (n_layers, n_heads, n_queries, _), (_, _, n_keys, _) = shapes["query"], shapes["key"]
    return (n_layers, n_heads, n_queries, n_keys), "query" in shapes


def read_record(data: bytes, name: str) -> AttentionMaps:
    """Read what `encode_record` wrote. Raises InvalidRecord with `name` for anything else."""
    try:
        tensors = load_tensors(data)  # first: it refuses what has no header
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])  # which the library does not hand over
        return _make_record(tensors, dict(header.get("__metadata__", {})), name)
    except SafetensorError as error:
        raise InvalidRecord(f"{name} is not a record of attnviz ({error})", hint=RECORD_HINT) from error


def _make_record(tensors: Mapping[str, np.ndarray], metadata: dict[str, str], name: str) -> AttentionMaps:
    try:
        meta = parse_json(metadata["attnviz"])
        if meta["schema"] not in (SCHEMA, FACTORED):
            problem = f"schema {meta['schema']!r} is not {SCHEMA}"
            raise InvalidRecord(problem, hint="Update attnviz, or draw the text anew.")
        for tensor, numbers in tensors.items():
            if numbers.dtype != (kind := TYPES.get(tensor, "float32")):
                raise InvalidRecord(f"{tensor} are not {kind}")
        queries = decode_json(Tokens, meta["queries"], "queries")
        keys = queries if meta["keys"] is None else decode_json(Tokens, meta["keys"], "keys")
        provenance, norms = parse_provenance(meta["provenance"]), tensors.get(VALUE_NORMS)
        layers = decode_json(tuple[int, ...], meta["layer_numbers"], "layer_numbers")
        heads = decode_json(tuple[int, ...], meta.get("head_numbers", []), "head_numbers")
        if meta["schema"] == FACTORED:
            given = (queries, keys, provenance, None, layers)
            return FactoredMaps(*given, value_norms=norms, head_numbers=heads, factors=read_factors(meta, tensors))
        grid = None
        if meta.get("grid") is not None:
            n_rows, n_columns, *at = decode_json(tuple[int, ...], meta["grid"], "grid")
            grid = Grid(n_rows, n_columns, at=at).over(tensors.get(IMAGE))
        return AttentionMaps(
            *(tensors["weights"], queries, keys, tensors["attendable"], provenance, tensors.get("sink"), layers),
            grid=grid,
            value_norms=norms,
            head_numbers=heads,
        )
    except (InvalidRecord, InvalidOption) as error:  # the latter of a grid
        raise InvalidRecord(f"{name}: {error.problem}", hint=error.hint) from error
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InvalidRecord(f"{name} is not a record of attnviz ({reason})", hint=RECORD_HINT) from error
