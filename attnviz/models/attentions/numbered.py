"""Arrays whose names are alike but for a number or two: layers, heads, texts, or the steps of a generation.

`layer_0 … layer_11` of a file and the places of a list are the same: `[3][1]` is the second layer of the fourth step.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from attnviz.models.attentions.objects import to_array
from attnviz.store.weights import FileArray, FileWeights

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
