"""Read files of weights, those of torch too: which array is meant, whether it has room, its numbers. Runs no pickle."""

from __future__ import annotations

import hashlib
import pickle
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnviz.bounded import exists, format_bytes
from attnviz.errors import InvalidRecord, TooLarge
from attnviz.records.single import OF_TEXT
from attnviz.store import shorten_path
from attnviz.store.weights import (
    PICKLED,
    FileArray,
    FileWeights,
    choose_arrays,
    find_kind,
    list_arrays,
    open_zip,
    read_chosen,
    reading,
)

Check = Callable[[Sequence[FileArray]], None]
MAX_BYTES = 2**32  # of arrays, unless the caller allows more
MAX_OUTLINE = 2**22  # bytes of what says which tensors a .pt holds


def check_size(chosen: Sequence[FileArray]) -> None:
    """Raise TooLarge for more than MAX_BYTES."""
    n_bytes = sum(each.n_bytes for each in chosen)
    if n_bytes > MAX_BYTES:
        raise TooLarge(
            f"these weights take {format_bytes(n_bytes)}, at most {format_bytes(MAX_BYTES)} are read",
            hint="Give the array itself: from_attentions(numpy.load(path)).",
        )


def read_weights_file(path: Path, array: str | None = None, check: Check = check_size) -> FileWeights:
    """Read the array that is meant, once `check` has seen its size.

    Raises InvalidRecord for a file that cannot be read and where several arrays leave open which is meant,
    InvalidOption for an `array` that there is not, and what `check` raises.
    """
    if not exists(path):
        raise InvalidRecord(f"there is no file {shorten_path(path)}", hint=OF_TEXT)
    kind = find_kind(path)
    if kind == "record":
        raise InvalidRecord(f"{shorten_path(path)} is a record, or a damaged one", hint="attnviz.load reads records.")
    arrays = _list_torch(path) if kind == "torch" else list_arrays(path, kind)
    chosen = choose_arrays(arrays, array, path)
    check(chosen)
    found = read_chosen(chosen, arrays, path)
    with reading(path), path.open("rb") as file:
        return replace(found, revision=f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}")


def _list_torch(path: Path) -> tuple[FileArray, ...]:
    """List what a .pt holds: a tensor, a list of one for each layer, or several of these by name."""
    with reading(path), open_zip(path) as archive:
        members = archive.infolist()
        if any(each.compress_type != zipfile.ZIP_STORED for each in members):
            raise ValueError("PyTorch packs no members")
        if any(each.file_size > MAX_OUTLINE for each in members if each.filename.endswith("data.pkl")):
            raise ValueError("it lists too many tensors")
    try:
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError as error:
        problem = (
            f"{shorten_path(path)} holds more than tensors, lists and texts: that needs a pickle, which is never read"
        )
        raise InvalidRecord(problem, hint=PICKLED) from error
    except Exception as error:  # torch raises anything where a file is damaged
        raise InvalidRecord(f"{shorten_path(path)} is damaged, or no .pt of tensors", hint=PICKLED) from error
    several = found if isinstance(found, Mapping) else {"": found}
    if isinstance(found, list | tuple) and any(isinstance(each, list | tuple) for each in found):
        several = {str(place): each for place, each in enumerate(found)}  # a list of layers for each step
    return tuple(_describe(str(name), each) for name, each in several.items())


def _describe(name: str, found: Any) -> FileArray:
    parts = list(found) if isinstance(found, list | tuple) else [found]
    if parts and all(isinstance(each, str) for each in parts):
        return FileArray(name, (len(parts),), 0, lambda: FileWeights(parts), "texts, which are not weights", True)
    tensors = [each for each in parts if isinstance(each, Tensor)]
    if not tensors or not all(each is None or isinstance(each, Tensor) for each in parts):
        return FileArray(name, (), 0, lambda: FileWeights(None), f"a {type(found).__name__}, which is no tensor")
    if any(each.layout is not torch.strided or each.is_nested or each.is_quantized for each in tensors):
        return FileArray(name, (), 0, lambda: FileWeights(None), "sparse, nested or quantized tensors")
    shape = tuple(tensors[0].shape)
    if parts[0] is not found:
        shape = (sum(prod(each.shape) for each in tensors) // max(1, prod(shape)), *shape)
    weights = found if isinstance(found, Tensor) else tuple(parts)
    return FileArray(name, shape, tensors[0].element_size(), lambda: FileWeights(weights))
