"""Arrays by name with JSON beside them, as a safetensors file, and back. Knows not what they are of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from attnviz.bounded import parse_header, parse_json, read_bytes
from attnviz.errors import InvalidRecord
from attnviz.store import shorten_path

KINDS = {"I64", "U64", "F64", "F32"}


def encode_arrays(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> bytes:
    """Arrays of `KINDS`, and what is said of them under the metadata key `attnviz`: equal ones, equal bytes."""
    tensors = {name: np.asarray(arrays[name], order="C") for name in sorted(arrays)}
    return bytes(save_tensors(tensors, metadata={"attnviz": json.dumps(meta, allow_nan=False, sort_keys=True)}))


def read_arrays(path: Path, max_bytes: float, what: str) -> tuple[dict[str, np.ndarray], Any]:
    """What `encode_arrays` gave. Raises InvalidRecord where a file is not `what`, such as "a survey", or is larger."""
    data = read_bytes(path, max_bytes, InvalidRecord)
    try:
        header = parse_header(BytesIO(data), len(data))
        meta = parse_json(header.metadata["attnviz"])
        if not {of["dtype"] for of in header.tensors.values()} <= KINDS:
            raise TypeError("numbers of another type")
        arrays = load_tensors(data)
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InvalidRecord(f"{shorten_path(path)} is not {what} of attnviz") from error
    return arrays, meta
