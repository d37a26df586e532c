"""Records as safetensors files, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from attnviz.errors import BadRecord
from attnviz.records import AttentionMaps, Provenance, Tokens
from attnviz.store.files import short, write

SCHEMA = 1
RECORD = "attention.safetensors"


def record_bytes(maps: AttentionMaps) -> bytes:
    """A record as a safetensors file: tensors, and JSON under the metadata key `attnviz`.

    The tensors are `weights` [layer, head, query, key], `attendable` [query, key] ([layer, query, key] where layers
    differ) and, where the model has one, `sink` [layer, head, query].
    """
    meta = {
        "schema": SCHEMA,
        "queries": asdict(maps.queries),
        "keys": None if maps.self_attention else asdict(maps.keys),  # None: the same tokens
        "provenance": {
            **asdict(maps.provenance),
            "settings": dict(maps.provenance.settings),
            "versions": dict(maps.provenance.versions),
        },
    }
    attendable = maps.attendable[0] if maps.layers_alike else maps.attendable
    tensors = {"weights": maps.weights, "attendable": attendable} | ({} if maps.sink is None else {"sink": maps.sink})
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    # ensure_ascii: a piece may hold half of a surrogate pair, which UTF-8 cannot
    return bytes(save_tensors(tensors, metadata={"attnviz": json.dumps(meta, allow_nan=False)}))


def save(maps: AttentionMaps, path: str | Path) -> None:
    """Write a record."""
    write(Path(path), record_bytes(maps))


def load(path: str | Path) -> AttentionMaps:
    """Read a record that `save` or `attnviz heatmap` wrote. Raises BadRecord for anything else."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadRecord(f"cannot read {short(path)}: {reason}") from error
    return read_record(data, short(path))


def read_record(data: bytes, name: str) -> AttentionMaps:
    """What `record_bytes` gave. Raises BadRecord with `name` for anything else."""
    try:
        meta = _metadata(data)
        tensors = load_tensors(data)
        queries = _tokens(meta["queries"])
        keys = queries if meta["keys"] is None else _tokens(meta["keys"])
        weights, attendable, sink = tensors["weights"], tensors["attendable"], tensors.get("sink")
        if (
            weights.dtype != np.float32
            or attendable.dtype != np.bool_
            or (sink is not None and sink.dtype != np.float32)
        ):
            raise BadRecord("weights are not float32, or attendable is not bool")
        return AttentionMaps(weights, queries, keys, attendable, _provenance(meta["provenance"]), sink)
    except BadRecord as error:
        raise BadRecord(f"{name}: {error.problem}", hint=error.hint) from error
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise BadRecord(
            f"{name} is not a record of attnviz ({reason})", hint=f"attnviz heatmap writes {RECORD}."
        ) from error


def _metadata(data: bytes) -> dict[str, Any]:
    """The JSON under the key `attnviz`. The library gives no metadata for bytes, so its header is read here."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    meta: dict[str, Any] = json.loads(header["__metadata__"]["attnviz"])
    if meta["schema"] != SCHEMA:
        raise BadRecord(f"schema {meta['schema']!r} is not {SCHEMA}", hint="Update attnviz, or draw the text anew.")
    return meta


def _tokens(found: Mapping[str, Any]) -> Tokens:
    return Tokens(
        pieces=tuple(map(_text, found["pieces"])),
        offsets=tuple((int(start), int(end)) for start, end in found["offsets"]),
        special=tuple(map(bool, found["special"])),
        unknown=tuple(map(bool, found["unknown"])),
    )


def _provenance(found: Mapping[str, Any]) -> Provenance:
    return Provenance(
        model=_text(found["model"]),
        revision=_text(found["revision"]),
        trained=None if found["trained"] is None else bool(found["trained"]),
        text_sha256=_text(found["text_sha256"]),
        text_name=_text(found["text_name"]),
        settings=tuple((_text(name), value) for name, value in found["settings"].items()),
        versions=tuple((_text(name), _text(value)) for name, value in found["versions"].items()),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value
