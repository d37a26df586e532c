"""What an object of Python holds that may be weights: tensors, lists, tables; what a .pt or a .json was read as.

Every array has a name: a name within another stands behind a dot, a place in a list in brackets, as `attentions[3]`.
"""

import pickle
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from attnviz.bounded import open_zip
from attnviz.errors import InvalidRecord
from attnviz.store import shorten_path
from attnviz.store.weights import MAX_DIRECTORY, NOT_READ, PICKLED, FileArray, FileWeights, read_table

MAX_OUTLINE = 2**22  # bytes of what says which tensors a .pt holds
EMPTY = "no weights"
BEAMS = "steps of a beam search, whose rows are of other texts from step to step"


def list_object(found: Any, name: str = "") -> Iterator[FileArray]:
    """Yield the arrays of an object by their names, and why others are none. Numbers in lists are one array."""
    array = found
    if isinstance(found, str):
        array = found.split()
    elif isinstance(found, list | tuple) and isinstance(_find_first(found), int | float):
        with suppress(TypeError, ValueError):  # lists of several lengths, which are an array each
            array = np.asarray(found, dtype=np.float32)
    if isinstance(array, list | tuple) and array and all(isinstance(each, str) for each in array):
        yield FileArray(name, (len(array),), 0, partial(FileWeights, array), NOT_READ["U"], is_names=True)
    elif hasattr(array, "to_numpy") and hasattr(array, "index"):  # of pandas
        yield FileArray(name, tuple(array.shape), 8, lambda: read_table(array.to_csv(), ".csv", "this table"))
    elif isinstance(array, Mapping):
        for part, each in array.items():
            inner = f"{name}.{part}".removeprefix(".")
            if array.get("beam_indices") is not None and isinstance(each, tuple) and isinstance(each[0], tuple):
                yield FileArray(inner, problem=BEAMS)
            else:
                yield from list_object(each, inner)
    elif isinstance(array, list | tuple) and array:
        for place, each in enumerate(array):
            yield from list_object(each, f"{name}[{place}]")
    elif problem := _find_problem(array):
        yield FileArray(name, problem=problem)
    else:
        array = array if isinstance(array, Tensor) else np.asarray(array)
        yield FileArray(name, tuple(array.shape), array.dtype.itemsize, partial(FileWeights, array))


def _find_first(found: Any) -> Any:
    while isinstance(found, list | tuple) and found:
        found = found[0]
    return found


def _find_problem(array: Any) -> str:
    """Say why an object is no array of weights."""
    if not hasattr(array, "shape"):
        return f"a {type(array).__name__}, not a tensor" if array or array == 0 else EMPTY
    if not isinstance(array, Tensor):
        dtype = np.asarray(array).dtype
        return "" if dtype.kind == "V" and dtype.names is None else NOT_READ.get(dtype.kind, "")
    if array.layout is not torch.strided or array.is_nested or array.is_quantized:
        return "sparse, nested or quantized tensors"
    return NOT_READ["c"] if array.is_complex() else ""


def to_array(array: Any) -> np.ndarray:
    """Return float32 of a tensor on any device or an array. Raises InvalidRecord."""
    try:
        on_host = array.detach().float().cpu() if isinstance(array, Tensor) else array
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large for float32 is refused as infinite
            return np.asarray(on_host, dtype=np.float32)
    except (NotImplementedError, TypeError, ValueError) as error:  # such as a tensor on the device "meta"
        raise InvalidRecord("this array holds no numbers that can be read") from error


def load_torch(path: Path, kind: str) -> Any:
    """Return what a .pt or .safetensors holds, which is read where it lies.

    Raises InvalidRecord for what is not tensors, lists and texts, and ValueError.
    """
    if kind == "safetensors":
        return load_file(path)
    with open_zip(path, MAX_DIRECTORY) as archive:
        members = archive.infolist()
        if any(each.compress_type != zipfile.ZIP_STORED for each in members):
            raise ValueError("PyTorch packs no members")
        if any(each.file_size > MAX_OUTLINE for each in members if each.filename.endswith("data.pkl")):
            raise ValueError("it lists too many tensors")
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError as error:
        problem = "holds more than tensors, lists and texts: that needs a pickle, which is never read"
        raise InvalidRecord(f"{shorten_path(path)} {problem}", hint=PICKLED) from error
    except Exception as error:  # torch raises anything where a file is damaged
        raise InvalidRecord(f"{shorten_path(path)} is damaged, or no .pt of tensors", hint=PICKLED) from error
