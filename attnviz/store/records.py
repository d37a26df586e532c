"""Records as safetensors files, and back."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors
from safetensors.numpy import save_file

from attnviz.bounded import check_file_size, decode_json, parse_json
from attnviz.errors import InvalidOption, InvalidRecord
from attnviz.records import AttentionMaps, Tokens, holds_factors
from attnviz.records.factored import FactoredMaps
from attnviz.records.grid import Grid
from attnviz.records.single import unwrap_record
from attnviz.store import make, shorten_path, write
from attnviz.store.factored import FACTORED, encode_factored, read_factors
from attnviz.store.metadata import SCHEMA, encode_metadata, parse_provenance
from attnviz.store.tensors import read_header
from attnviz.store.weights import find_kind

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
        tensors |= {
            name: each for name, each in (("sink", maps.sink), (VALUE_NORMS, maps.value_norms)) if each is not None
        }
        if maps.grid is not None and maps.grid.pixels is not None:
            tensors[IMAGE] = maps.grid.pixels
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
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
    try:
        if "weights" in shapes:
            n_layers, n_heads, n_queries, n_keys = shapes["weights"]
        else:
            (n_layers, n_heads, n_queries, _), (_, _, n_keys, _) = shapes["query"], shapes["key"]
    except (KeyError, ValueError) as error:
        raise InvalidRecord(f"{shorten_path(Path(path))} is not a record of attnviz", hint=RECORD_HINT) from error
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
