"""What an object of Python holds that may be weights: tensors, lists, tables; what a .pt or a .json was read as.

Every array has a name: a name within another stands behind a dot, a place in a list in brackets, as `attentions[3]`.

Arrays whose names are alike but for a number or two are layers, heads, texts, or the steps of a generation:
`layer_0 … layer_11` of a file and the places of a list are the same: `[3][1]` is the second layer of the fourth step.
"""

import pickle
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from attnviz.bounded import open_zip
from attnviz.errors import InvalidRecord, raising
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
    elif hasattr(array, "to_numpy") and hasattr(array, "index"):  # of pandas
        yield FileArray(name, tuple(array.shape), 8, lambda: read_table(array.to_csv(), ".csv", "this table"))
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
        return f"an object of type {type(array).__name__}, not a tensor" if array or array == 0 else EMPTY
    if not isinstance(array, Tensor):
        dtype = np.asarray(array).dtype
        return "" if dtype.kind == "V" and dtype.names is None else NOT_READ.get(dtype.kind, "")
    if array.layout is not torch.strided or array.is_nested or array.is_quantized:
        return "sparse, nested or quantized tensors"
    return NOT_READ["c"] if array.is_complex() else ""


def to_array(array: Any) -> np.ndarray:
    """Return float32 of a tensor on any device or an array. Raises InvalidRecord."""
    unreadable = NotImplementedError, TypeError, ValueError  # such as of a tensor on the device "meta"
    with raising(InvalidRecord, "this array holds no numbers that can be read", told=unreadable):
        on_host = array.detach().float().cpu() if isinstance(array, Tensor) else array
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large for float32 is refused as infinite
            return np.asarray(on_host, dtype=np.float32)


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


STEPS = "Its {} steps are put together, each below the one before it."
ORDER = ("text", "layer", "head")
COUNTED = {"head": "head", **dict.fromkeys(("text", "sentence", "sample", "batch"), "text")}  # else layers
Grid = np.ndarray  # of FileArray, an axis for each number


def join_by_number(arrays: Sequence[FileArray]) -> Iterator[FileArray]:
    """Yield arrays of one shape whose names differ by one number or two as one array, and others as they are.

    What a number counts is said by the word before it. Else two of matrices are layers and heads; of arrays with more
    axes, steps or texts and their layers. The only member of a list is counted, too.
    """
    alike: dict[str, list[FileArray]] = defaultdict(list)
    for each in arrays:
        alike[re.sub(r"\d+", "*", each.name)].append(each)
    for pattern, all_alike in alike.items():
        members = [each for each in all_alike if not each.problem]
        columns = list(zip(*([int(n) for n in re.findall(r"\d+", each.name)] for each in members), strict=True))
        parts, every = pattern.split("*"), [sorted({*column}) for column in columns]
        counting = [
            at for at, each in enumerate(every) if len(each) > 1 or (parts[at + 1] in ("]", "][") and each == [0])
        ]
        words = ["".join(re.findall("[a-z]+", parts[at].lower())[-1:]).rstrip("s") for at in counting]
        axes = [COUNTED.get(word, "layer") for word in words]
        if axes == ["layer", "layer"]:
            axes = ["layer", "head"] if len(members[0].shape) == 2 else ["text", "layer"]
        places = {axis: counting[axes.index(axis)] for axis in ORDER if axis in axes}
        n_each = [len(every[at]) for at in places.values()]
        shapes = {each.shape[: -2 if axes[:1] == ["text"] else None] for each in members}
        if not axes or len(places) < len(axes) or prod(n_each) != len(members) or len(shapes) > 1:
            yield from all_alike
            continue
        order = sorted(range(len(members)), key=lambda nth: [columns[at][nth] for at in places.values()])
        grid = np.array([members[nth] for nth in order], dtype=object).reshape(n_each)
        shown = ["*" if at in counting else str(each[0]) for at, each in enumerate(every)]
        name = "".join(map("".join, zip(parts, [*shown, ""], strict=True))).replace("[*]", "")
        numbers = tuple(every[places["layer"]]) if "layer" in places else ()
        n_layers = len(all_alike) if axes == ["layer"] and len(all_alike) > len(members) else None
        is_steps = [*places] == ["text", "layer"] and _are_steps(grid)
        known, first = [*places][is_steps:], members[0]
        shape = (*(n_each[1:] if is_steps else n_each), *np.max([each.shape for each in members], axis=0).tolist())
        if is_steps:
            shape = (*shape[:-2], sum(step.shape[-2] for step in grid[:, 0]), shape[-1])
        what = FileWeights(None, known=tuple(known), layers=numbers, n_layers=n_layers)
        yield FileArray(name, shape, first.item_size, partial(_read_steps if is_steps else _read, grid, what))


def _are_steps(grid: Grid) -> bool:
    """Tell whether these are the layers of each step of a generation: of a cache that grows, or of a text beside it.

    A step has a query or more, and the keys of those before it and its own; or always the same keys, and one query.
    """
    if len(grid[0, 0].shape) < 3 or any(len({each.shape for each in step}) > 1 for step in grid):
        return False
    n_queries, n_keys = np.array([step[0].shape[-2:] for step in grid]).T
    grows = (n_keys - n_queries.cumsum() == n_keys[0] - n_queries[0]).all()
    return bool(grows or ((n_keys == n_keys[0]).all() and (n_queries[1:] == 1).all()))


def _read(grid: Grid, what: FileWeights) -> FileWeights:
    """Read several arrays as one, with zeros behind the texts that are not the longest."""
    arrays = [to_array(each.read().weights) for each in grid.flat]
    if what.known[0] == "text":
        shape = np.max([each.shape for each in arrays], axis=0)
        arrays = [_pad(each[0] if len(shape) > 3 and shape[0] == 1 else each, shape) for each in arrays]
    return replace(what, weights=np.stack(arrays).reshape(*grid.shape, *arrays[0].shape))


def _read_steps(grid: Grid, what: FileWeights) -> FileWeights:
    """Put the steps of each layer below each other. Room in a cache that was never filled is left out."""
    steps = [[to_array(each.read().weights) for each in layer] for layer in grid.T]
    n_keys = max(step.shape[-1] for step in steps[0])
    weights = np.stack([np.concatenate([_pad(each, [n_keys]) for each in layer], axis=-2) for layer in steps])
    n_queries = weights.shape[-2]
    if n_keys > n_queries and not weights[..., n_queries:].any():
        weights = weights[..., :n_queries]
    return replace(what, weights=weights, guess=STEPS.format(len(grid)))


def _pad(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Make the last axes as long as is said, with zeros."""
    axes = [*array.shape[: -len(shape)], *shape[-array.ndim :]]
    return np.pad(array, [(0, n - m) for n, m in zip(axes, array.shape, strict=True)])
