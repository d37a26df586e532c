"""The only room that writes files, each one whole or not at all; records in and out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from attnviz.errors import BadOption, BadRecord, OutputFailed
from attnviz.records import AttentionMaps, Provenance, Tokens

SCHEMA = 1
RECORD = "attention.safetensors"


def check_folder(path: Path) -> None:
    """Raises BadOption where something that is not a folder stands at `path` or above it. Makes nothing."""
    with suppress(OSError):  # a name that is too long, say: `make_folder` tells what is wrong
        standing = next(place for place in (path, *path.parents) if place.exists())
        if not standing.is_dir():
            raise BadOption(f"{standing} is not a folder", hint="Choose another --out.")


def make_folder(path: Path) -> None:
    """Make `path` and what is above it; clear away what writers that were killed left half-written in it.

    Raises BadOption where something that is not a folder stands in the way, OutputFailed where the disk refuses.
    """
    check_folder(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputFailed(f"cannot make the folder {_short(path)}: {error.strerror}") from error
    for part in path.glob(".*.part"):
        if not _alive(part):
            with suppress(OSError):
                part.unlink()


def write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. What stands there is replaced only if it is a regular file.

    Raises OutputFailed when the disk refuses; nothing half-written stays behind.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if path.exists() and not path.is_file():  # a device or a pipe: replacing it would destroy it
            with path.open("wb") as device:
                device.write(data)
            return
        try:
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise OutputFailed(f"cannot write {_short(path)}: {error.strerror}") from error


def append(path: Path, data: bytes) -> None:
    """Write at the end of a file, a new one if there is none; a device or a pipe is written to.

    Raises OutputFailed when the disk refuses; a regular file is then as it was.
    """
    try:
        existed = path.exists()
        size = path.stat().st_size if path.is_file() else None
        try:
            with path.open("ab") as file:
                file.write(data)
                file.flush()
                if size is not None or not existed:
                    os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):  # only now: what was not written yet is written when the file is closed
                if size is not None:
                    os.truncate(path, size)
                elif not existed:
                    path.unlink()
            raise
    except OSError as error:
        raise OutputFailed(f"cannot write {_short(path)}: {error.strerror}") from error


def remove(path: Path) -> None:
    """Take away a file of ours that is done with, if it is there. Raises OutputFailed when the disk refuses."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputFailed(f"cannot remove {_short(path)}: {error.strerror}") from error


def remove_folder(path: Path) -> None:
    """Take away a folder of ours if it is there and empty."""
    with suppress(OSError):
        path.rmdir()


def _alive(part: Path) -> bool:
    """Whether the process that writes `part` still runs; its number stands in the name."""
    number = part.name.split(".")[-2]
    if not number.isdigit():
        return True  # not ours
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _short(path: Path) -> str:
    """A path that leaves an error one line long."""
    text = str(path)
    return text if len(text) <= 120 else f"{text[:60]}…{text[-40:]}"


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
        raise BadRecord(f"cannot read {_short(path)}: {reason}") from error
    return read_record(data, _short(path))


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
