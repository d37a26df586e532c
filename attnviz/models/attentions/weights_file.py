"""Read weights out of files and objects: which array is meant, whether it has room, its numbers. Runs no pickle.

A file and an object of Python are the same here: arrays by name, and texts beside them. Where there are several arrays,
those whose rows sum to 1 are meant.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attnviz.bounded import MAX_JSON, compute_sha256, exists, format_bytes, parse_json, read_bytes
from attnviz.display import escape_for_display, list_first
from attnviz.errors import InvalidOption, InvalidRecord, InvalidSelection, TooLarge
from attnviz.models.attentions.objects import EMPTY, join_by_number, list_object, load_torch, to_array
from attnviz.models.recording.labels import PADDING
from attnviz.records.single import OF_TEXT
from attnviz.store import shorten_path
from attnviz.store.weights import READ, FileArray, FileWeights, find_kind, list_arrays, reading

Check = Callable[[FileArray], None]
Door = Mapping[str, str]  # how an option is written, and what helps where names do not fit
EVERY = "Name each token once, markers such as [CLS], too."
PYTHON: Door = {"row": "row={}", "array": 'array="{}"', "axes": 'axes="{}"', "padding": PADDING}
COMMAND: Door = {"row": "--row {}", "array": "--array {}", "axes": "--axes {}", "padding": EVERY}
MAX_BYTES = 2**32  # of arrays, unless the caller allows more
MAX_ARRAYS = 2**16
MAX_LISTED = 8  # arrays in an error
NEAR = 0.1  # by which most of them may miss 1
NO_SUM = "whose rows do not sum to 1"
NO_NAMES = "texts not called tokens or keys"
NO_WEIGHTS = (
    'Load the model with attn_implementation="eager": other kernels give no weights. attnviz.record needs none of that.'
)


class WeightsRequest(NamedTuple):
    """What a caller asks for and calls things, as `from_attentions` has it, and how its options are written."""

    tokens: Any = None
    keys: Any = None
    row: int | None = None
    attention_mask: Any = None
    array: str | None = None
    axes: str | None = None
    door: Door = PYTHON


def check_size(chosen: FileArray) -> None:
    """Raise TooLarge for more than MAX_BYTES."""
    if chosen.n_bytes > MAX_BYTES:
        raise TooLarge(
            f"these weights take {format_bytes(chosen.n_bytes)}, at most {format_bytes(MAX_BYTES)} are read",
            hint="Give the array itself: from_attentions(numpy.load(path)).",
        )


def read_weights(given: Any, asked: WeightsRequest, check: Check = check_size) -> FileWeights:
    """Read the array that is meant, of a path or an object, as float32, once `check` has seen its size.

    Raises InvalidRecord for what cannot be read and where several arrays leave open which is meant, InvalidOption for
    an array that there is not, InvalidSelection for a text that there is not, and what `check` raises.
    """
    if not isinstance(given, str | os.PathLike):
        return _read(list_object(given), asked, f"this {type(given).__name__}", check)
    path = Path(given)
    name = shorten_path(path)
    if not exists(path):
        raise InvalidRecord(f"there is no file {name}", hint=OF_TEXT)
    kind = find_kind(path)
    with reading(path):
        if kind == "record":
            raise InvalidRecord(f"{name} is a record, or a damaged one", hint="attnviz.load reads records.")
        if kind in ("npy", "npz", "text"):
            arrays = list_arrays(path, kind)
        elif kind == "json":
            arrays = list_object(parse_json(read_bytes(path, MAX_JSON, InvalidRecord)))
        else:
            arrays = list_object(load_torch(path, kind))
        return replace(_read(arrays, asked, name, check), name=path.name, revision=f"sha256:{compute_sha256(path)}")


def _read(listed: Iterable[FileArray], asked: WeightsRequest, name: str, check: Check) -> FileWeights:
    """Read the array that is meant, and the names beside it."""
    arrays = [*islice(listed, MAX_ARRAYS + 1)]
    if len(arrays) > MAX_ARRAYS:
        raise InvalidRecord(f"{name} holds more than {MAX_ARRAYS:,} arrays", hint=READ)
    arrays = _join_edges(arrays)
    joined = [*join_by_number(arrays)]
    chosen = _choose(joined, asked, name, check)
    check(chosen)
    found = chosen.read()
    weights = to_array(found.weights)
    texts = {each.name: tuple(map(str, each.read().weights)) for each in arrays if each.is_names}
    named = {each: texts[each] for each in texts if each in ("tokens", "keys") or len(texts[each]) in weights.shape}
    keys = named.pop("keys", found.keys)
    queries = named.pop(next(iter(named)) if len({*named.values()}) == 1 else "tokens", found.queries)
    aside = {each.name: each.problem or NO_SUM for each in joined if each is not chosen and not each.is_names}
    aside |= {each: NO_NAMES for each, pieces in texts.items() if pieces not in (keys, queries)}
    left = [f"{escape_for_display(each, 60)}, {problem}" for each, problem in aside.items()]
    unread = list_first(left, MAX_LISTED, between="; ") if asked.array is None else ""
    keys = None if keys == queries else keys
    return replace(found, weights=weights, queries=queries, keys=keys, array=chosen.name, unread=unread)


def _choose(joined: Sequence[FileArray], asked: WeightsRequest, name: str, check: Check) -> FileArray:
    """Choose the array that is asked for, or the only one whose rows sum to 1.

    Raises InvalidOption for a name that there is not, InvalidRecord where there are several arrays, or none.
    """
    usable = [each for each in joined if not each.problem]
    if asked.array is not None:
        fitting = [each for each in joined if each.name == asked.array]
        if not fitting:
            there = list_first([each for each in usable if each.name], MAX_LISTED) or "one without a name"
            raise InvalidOption(f"{name} has no array {escape_for_display(asked.array, 60)}", hint=f"There is {there}.")
    else:
        fitting = usable or [*joined[:1]]
        if len(usable) > 1:
            fitting = [each for each in usable if _sums_to_one(each, check)] or fitting
            fitting = [each for each in fitting if len(each.shape) > 1] or fitting  # not a list of two layers, 0 and 1
    if problem := next((each.problem for each in fitting if each.problem), "" if fitting else EMPTY):
        raise InvalidRecord(f"{name} holds {problem}", hint=NO_WEIGHTS if problem == EMPTY else READ)
    if len(fitting) > 1:
        option = asked.door["array"].format(escape_for_display(fitting[0].name, 60))
        problem = f"{name} holds {len(fitting)} arrays: {list_first(fitting, MAX_LISTED)}"
        raise InvalidRecord(problem, hint=f"Choose one, as by {option}.")
    return fitting[0]


def _sums_to_one(array: FileArray, check: Check) -> bool:
    """Tell whether an array is attention, once `check` has seen its size."""
    check(array)
    weights = to_array(array.read().weights)
    return bool(weights.size and (weights >= 0).all() and np.mean(np.abs(weights.sum(axis=-1) - 1) < NEAR) > 0.5)


def _join_edges(arrays: list[FileArray]) -> list[FileArray]:
    """Make one array of the edges of a graph [2, edge], and the weights [edge, head] beside them."""
    for index in arrays:
        beside = [each for each in arrays if each is not index and 0 < len(each.shape) < 3]
        beside = [each for each in beside if each.shape[:1] == index.shape[1:] and not each.problem]
        if len(index.shape) == 2 == index.shape[0] and len(beside) == 1:
            nodes = np.asarray(index.read().weights)
            is_index = nodes.dtype.kind in "iu" or "edge" in index.name  # in JSON all numbers are of one type
            if is_index and nodes.size and nodes.min() >= 0:
                nodes, n_nodes = nodes.astype(int), int(nodes.max()) + 1
                shape = (*beside[0].shape[1:], n_nodes, n_nodes)
                edges = FileArray("edges", shape, 4, partial(_fill_edges, nodes, beside[0], shape))
                return [edges, *(each for each in arrays if each not in (index, beside[0]))]
    return arrays


def _fill_edges(nodes: np.ndarray, beside: FileArray, shape: tuple[int, ...]) -> FileWeights:
    """Read the edges [2, edge] of a graph as a map: targets ask sources. Edges between the same two nodes add up."""
    weights, given = np.zeros((*shape[-2:], *shape[:-2]), dtype=np.float32), np.zeros(shape[-2:], dtype=bool)
    np.add.at(weights, (nodes[1], nodes[0]), to_array(beside.read().weights))
    given[nodes[1], nodes[0]] = True
    weights = np.moveaxis(weights, 2, 0) if weights.ndim > 2 else weights[None]
    return FileWeights(weights, known=("head", "query"), given=given)


def check_row(row: int | None, n_rows: int, door: Door) -> int:
    """Return which text is asked for. Raises InvalidSelection where there is none such, or it is not said."""
    if row is None and n_rows > 1:
        first, last = (door["row"].format(each) for each in (0, n_rows - 1))
        raise InvalidSelection(f"a batch of {n_rows} texts", hint=f"Choose one with {first} to {last}.")
    if not isinstance(row, int | np.integer | None) or not 0 <= (row or 0) < n_rows:
        there = "is one text" if n_rows == 1 else f"are rows 0 to {n_rows - 1}"
        raise InvalidSelection(f"no row {row!r:.40} in a batch of {n_rows}", hint=f"There {there}.")
    return row or 0
