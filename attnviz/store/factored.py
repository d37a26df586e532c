"""Records by factors in files, those of many tokens in few bytes. Knows numpy and tokens.

Pieces, and rows of q and k, that come again are then held once: a token that comes again has the q and k of before
where nothing but the token decides them, as in a first layer without positions. All is exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Int

from attnviz.bounded import MAX_HEADER
from attnviz.distinct_rows import find_distinct_rows
from attnviz.errors import InvalidRecord
from attnviz.records import Tokens
from attnviz.records.factored import FactoredMaps
from attnviz.records.factors import Factors

FACTORED, COMPACT = 4, 5  # schemas; the second in few bytes
PARTS = ("query", "key", "log_sum_exp", "bias", "attendable_keys")  # tensors; not every model has the last two
REQUIRED_PARTS, HALF_PARTS = PARTS[:3], PARTS[:2]
MIN_COMPACT_TOKENS = 2**12  # shorter records are as any program reads them
# Tensors [layer, head, token, ...] that share an index.
ROW_TENSORS = {"query": ("query",), "key": ("key", "value_norms")}
TOKEN_AXIS = 2
UNSIGNED, SIGNED = ("u1", "<u2", "<u4"), ("i1", "<i2", "<i4")
# Bytes that all tensors may take when their rows are written out: as much as a file may have.
MAX_EXPANDED_BYTES = 2**32

Arrays = dict[str, np.ndarray]


def encode_factored(maps: FactoredMaps, meta: Mapping[str, Any], *, half: bool) -> tuple[Arrays, dict[str, Any]]:
    """The tensors of a record's file, and its JSON: `meta` and what else there is. `half`: q and k as float16."""
    if half:
        maps = replace(maps, factors=tuple(of.round_to_half() for of in maps.factors))
    layers = [(of.query, of.key, of.sums) for of in maps.factors]
    tensors = {name: np.stack(parts) for name, parts in zip(REQUIRED_PARTS, zip(*layers, strict=True), strict=True)}
    tensors |= {name: tensors[name].astype(np.float16) for name in HALF_PARTS if half}
    # Not every model has a bias. Where a layer has one of fewer distances, its farthest numbers go on.
    if any(of.bias is not None for of in maps.factors):
        biases = [np.zeros((1, 1), dtype=np.float32) if of.bias is None else of.bias for of in maps.factors]
        n_biased, n_distances = (max(sizes) for sizes in zip(*(bias.shape for bias in biases), strict=True))
        missing = [(n_distances - bias.shape[1]) // 2 for bias in biases]
        longer = [np.pad(bias, ((0, 0), (n, n)), mode="edge") for bias, n in zip(biases, missing, strict=True)]
        tensors["bias"] = np.stack([np.broadcast_to(bias, (n_biased, n_distances)) for bias in longer])
    if any(of.attendable_keys is not None for of in maps.factors):
        tensors["attendable_keys"] = np.stack([of.keys_mask for of in maps.factors])
    tensors |= {} if maps.value_norms is None else {"value_norms": maps.value_norms}
    found = {**meta, "schema": FACTORED}
    found |= {"scales": [of.scale for of in maps.factors], "windows": [of.window for of in maps.factors]}
    if max(len(maps.queries), len(maps.keys)) < MIN_COMPACT_TOKENS:
        return tensors, found
    told = {"queries": encode_tokens("queries", maps.queries)}
    if not maps.self_attention:
        told["keys"] = encode_tokens("keys", maps.keys)
    tensors = _share_rows(tensors)
    for name, (of_json, arrays) in told.items():
        found[name], tensors = of_json, tensors | arrays
    return tensors, {**found, "schema": COMPACT}


def read_factors(meta: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> tuple[Factors, ...]:
    """Of each layer. Raises InvalidRecord where a part is missing or of another type."""
    found = {name: tensors[name] for name in PARTS if name in REQUIRED_PARTS or name in tensors}
    scales, windows = meta["scales"], meta["windows"]
    if not all(isinstance(window, list) and len(window) == 2 for window in windows):  # `Factors` checks the numbers
        raise InvalidRecord("a window is not how far back and how far forward a query sees")
    found |= {name: found[name].astype(np.float32) for name in HALF_PARTS if found[name].dtype == np.float16}
    if any(part.dtype != (np.bool_ if name == PARTS[-1] else np.float32) for name, part in found.items()):
        raise InvalidRecord("factors are not float32, or attendable_keys are not bool")
    if {*map(len, found.values()), len(windows)} != {len(scales)}:
        raise InvalidRecord("factors are of different numbers of layers")
    if not all(type(scale) is float for scale in scales):
        raise InvalidRecord("the scales of q and k are not numbers")
    return tuple(
        Factors(
            **{name: part[layer] for name, part in found.items()}, scale=scales[layer], window=tuple(windows[layer])
        )
        for layer in range(len(scales))
    )


def encode_tokens(name: str, tokens: Tokens) -> tuple[dict[str, Any], Arrays]:
    """What JSON has of tokens, and what tensors have: each piece once; which piece each token is; how far it begins
    behind the end of the one before, and how long it is; whether it is special, and unknown.
    """
    numbers = {piece: number for number, piece in enumerate(dict.fromkeys(tokens.pieces))}
    starts, ends = np.array(tokens.offsets, dtype=np.int64).reshape(-1, 2).T
    gaps = starts - np.concatenate([[0], ends[:-1]])
    return {"pieces": list(numbers)}, {
        f"{name}_pieces": _shrink_integers(np.array([numbers[piece] for piece in tokens.pieces]), UNSIGNED),
        f"{name}_offsets": _shrink_integers(np.stack([gaps, ends - starts]), SIGNED),
        f"{name}_marks": np.array([tokens.special, tokens.unknown], dtype=bool),
    }


def decode_tokens(name: str, found: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Tokens:
    """The same back. Raises KeyError, TypeError or InvalidRecord for what never was."""
    pieces, numbers, marks = found["pieces"], tensors[f"{name}_pieces"], tensors[f"{name}_marks"]
    gaps, lengths = tensors[f"{name}_offsets"].astype(np.int64)
    if not all(isinstance(piece, str) for piece in pieces):
        raise TypeError("pieces that are not texts")
    _check_index(numbers, len(pieces), "pieces of tokens")
    n_characters = int(np.array([len(piece) for piece in pieces], dtype=np.int64)[numbers].sum())
    if n_characters > MAX_HEADER:  # of which words are made, one for each token
        raise InvalidRecord(f"tokens of {n_characters:,} characters are more than {MAX_HEADER:,}")
    ends = np.cumsum(gaps + lengths)
    special, unknown = marks.tolist()
    return Tokens(
        pieces=tuple(pieces[number] for number in numbers.tolist()),
        offsets=tuple(zip((ends - lengths).tolist(), ends.tolist(), strict=True)),
        special=tuple(map(bool, special)),
        unknown=tuple(map(bool, unknown)),
    )


def _share_rows(tensors: Arrays) -> Arrays:
    """With the rows of each side once, and an index, where enough of its tokens have the same."""
    found = dict(tensors)
    for side, names in ROW_TENSORS.items():
        parts = [name for name in names if name in tensors]
        by_token = [np.moveaxis(tensors[name], TOKEN_AXIS, 0) for name in parts]
        if find_distinct_rows(by_token[0][:, 0, 0].reshape(len(by_token[0]), -1)) is None:
            continue  # the first head says quickly where there is nothing to find
        flat = [np.ascontiguousarray(part).reshape(len(part), -1).view(np.uint8) for part in by_token]
        if (rows := find_distinct_rows(np.concatenate(flat, axis=1))) is not None:
            found |= {name: tensors[name][:, :, rows.first] for name in parts}
            found[f"{side}_rows"] = _shrink_integers(rows.places, UNSIGNED)
    return found


def expand_rows(tensors: Mapping[str, np.ndarray]) -> Arrays:
    """Return what `_share_rows` was given. Raises InvalidRecord for an index that does not fit, or fits too much."""
    held = count_expanded_bytes({name: (tensor.shape, tensor.nbytes) for name, tensor in tensors.items()})
    if held > MAX_EXPANDED_BYTES:
        raise InvalidRecord(f"a record of {held:,} bytes is more than {MAX_EXPANDED_BYTES:,}")
    found = dict(tensors)
    for side, names in ROW_TENSORS.items():
        if f"{side}_rows" not in tensors:
            continue
        rows = found.pop(f"{side}_rows")
        for name in (name for name in names if name in tensors):
            _check_index(rows, tensors[name].shape[2], f"rows of {side}")
            found[name] = tensors[name][:, :, rows]
    return found


def count_expanded_bytes(tensors: Mapping[str, tuple[Sequence[int], int]]) -> int:
    """What tensors take when they are spread, by the shape and the bytes of each. Raises InvalidRecord."""
    held = {name: n_bytes for name, (_, n_bytes) in tensors.items()}
    for side, names in ROW_TENSORS.items():
        if f"{side}_rows" not in tensors:
            continue
        shape_of_index, _ = tensors[f"{side}_rows"]
        for name in (name for name in names if name in tensors):
            shape, n_bytes = tensors[name]
            if len(shape) < TOKEN_AXIS + 1:
                raise InvalidRecord(f"{name} of {len(shape)} axes has no tokens")
            held[name] = n_bytes // max(1, shape[TOKEN_AXIS]) * math.prod(shape_of_index)
    return sum(held.values())


def _shrink_integers(numbers: Int[np.ndarray, "*n"], kinds: Sequence[str]) -> Int[np.ndarray, "*n"]:
    """In the first of these types that holds them all."""
    low, high = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)
    fitting = (kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return numbers.astype(next(fitting))


def _check_index(index: np.ndarray, count: int, what: str) -> None:
    if index.ndim != 1 or index.dtype.kind != "u" or (index.size and int(index.max()) >= count):
        raise InvalidRecord(f"{what} are not numbered 0 to {count - 1}")
