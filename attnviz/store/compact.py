"""Long records in few bytes: pieces, and rows of q and k, that come again are held once. Knows numpy and tokens.

A token that comes again has the q and k of before where nothing but the token decides them, as in a first layer without
positions. All is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from attnviz.alike import Unlike, unlike
from attnviz.errors import InvalidRecord
from attnviz.records import Tokens

SIDES = {"query": ("query",), "key": ("key", "value_norms")}  # tensors [layer, head, token, ...] that share an index
UNSIGNED, SIGNED = ("u1", "<u2", "<u4"), ("i1", "<i2", "<i4")
MAX_SPREAD = 2**32  # bytes that rows may take when they are written out: as much as a file may have

Arrays = dict[str, np.ndarray]


def tokens_told(name: str, tokens: Tokens) -> tuple[dict[str, Any], Arrays]:
    """What JSON has of tokens, and what tensors have: each piece once; which piece each token is; how far it begins
    behind the end of the one before, and how long it is; whether it is special, and unknown.
    """
    numbers = {piece: number for number, piece in enumerate(dict.fromkeys(tokens.pieces))}
    starts, ends = np.array(tokens.offsets, dtype=np.int64).reshape(-1, 2).T
    gaps = starts - np.concatenate([[0], ends[:-1]])
    return {"pieces": list(numbers)}, {
        f"{name}_pieces": _small(np.array([numbers[piece] for piece in tokens.pieces]), UNSIGNED),
        f"{name}_offsets": _small(np.stack([gaps, ends - starts]), SIGNED),
        f"{name}_marks": np.array([tokens.special, tokens.unknown], dtype=bool),
    }


def tokens_read(name: str, found: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Tokens:
    """The same back. Raises KeyError, TypeError or InvalidRecord for what never was."""
    pieces, numbers, marks = found["pieces"], tensors[f"{name}_pieces"], tensors[f"{name}_marks"]
    gaps, lengths = tensors[f"{name}_offsets"].astype(np.int64)
    if not all(isinstance(piece, str) for piece in pieces):
        raise TypeError("pieces that are no texts")
    _check_index(numbers, len(pieces), "pieces of tokens")
    ends = np.cumsum(gaps + lengths)
    special, unknown = marks.tolist()
    return Tokens(
        pieces=tuple(pieces[number] for number in numbers.tolist()),
        offsets=tuple(zip((ends - lengths).tolist(), ends.tolist(), strict=True)),
        special=tuple(map(bool, special)),
        unknown=tuple(map(bool, unknown)),
    )


def gathered(tensors: Arrays) -> Arrays:
    """With the rows of each side once, and an index, where enough of its tokens have the same."""
    found = dict(tensors)
    for side, names in SIDES.items():
        parts = [name for name in names if name in tensors]
        rows = _unlike_tokens([tensors[name] for name in parts])
        if rows is not None:
            found |= {name: tensors[name][:, :, rows.first] for name in parts}
            found[f"{side}_rows"] = _small(rows.places, UNSIGNED)
    return found


def spread(tensors: Mapping[str, np.ndarray]) -> Arrays:
    """What `gathered` was given. Raises InvalidRecord for an index that does not fit, or fits too much."""
    found = dict(tensors)
    for side, names in SIDES.items():
        if f"{side}_rows" not in tensors:
            continue
        rows = found.pop(f"{side}_rows")
        for name in (name for name in names if name in tensors):
            tensor = tensors[name]
            if tensor.ndim < 3:
                raise InvalidRecord(f"{name} of {tensor.ndim} axes has no tokens")
            _check_index(rows, tensor.shape[2], f"rows of {side}")
            if len(rows) * tensor[:, :, :1].nbytes > MAX_SPREAD:
                raise InvalidRecord(f"{name} of {len(rows):,} tokens is more than {MAX_SPREAD:,} bytes")
            found[name] = tensor[:, :, rows]
    return found


def n_tokens(side: str, shapes: Mapping[str, Any]) -> int:
    """How many tokens a side has, by the shapes of a header. Raises KeyError, TypeError or ValueError."""
    (count,) = shapes[f"{side}_rows"]["shape"] if f"{side}_rows" in shapes else shapes[side]["shape"][2:3]
    return int(count)


def _unlike_tokens(parts: Sequence[np.ndarray]) -> Unlike | None:
    """Of tensors [layer, head, token, ...]; the first head says quickly where there is nothing to find."""
    by_token = [np.moveaxis(part, 2, 0) for part in parts]
    if unlike(by_token[0][:, 0, 0].reshape(len(by_token[0]), -1)) is None:
        return None
    flat = [np.ascontiguousarray(part).reshape(len(part), -1).view(np.uint8) for part in by_token]
    return unlike(np.concatenate(flat, axis=1))


def _small(numbers: Int[np.ndarray, "*n"], kinds: Sequence[str]) -> Int[np.ndarray, "*n"]:
    """In the first of these types that holds them all."""
    low, high = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)
    fitting = (kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return numbers.astype(next(fitting))


def _check_index(index: np.ndarray, count: int, what: str) -> None:
    if index.ndim != 1 or index.dtype.kind != "u" or (index.size and int(index.max()) >= count):
        raise InvalidRecord(f"{what} are not numbered 0 to {count - 1}")
