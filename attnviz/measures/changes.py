"""How each head of one record differs from the same head of another. Knows records and arrays."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from jaxtyping import Bool

from attnviz.errors import InvalidRecord
from attnviz.measures.divergence import jsd
from attnviz.measures.rows import Rows, head_rows, split_real_queries
from attnviz.records import AttentionMaps, Tokens
from attnviz.records.differences import HeadChange

TIE_TOLERANCE = 1e-6  # weights this close to the largest are favourites too: rounding may swap them
MAX_TOKEN_LENGTH = 40  # characters of a token in an error


def measure_changes(before: AttentionMaps, after: AttentionMaps) -> tuple[HeadChange, ...]:
    """Return the JSD of each head's rows between two records, and how many queries share no favourite key.

    Nats, from 0 (the same attention) to ln 2 (no key in common); of the layers and heads that both have, in order.
    Raises InvalidRecord where the records are not of the same tokens.
    """
    check_tokens(before, after)
    n_queries = int(before.real_queries.sum())
    found = []
    for layer, head in find_shared_heads(before, after):
        apart, turned = 0.0, 0
        for rows in _pair_rows(before, after, layer, head):
            apart += float(jsd(*rows).sum())
            turned += int((~np.logical_and(*map(_find_favourites, rows)).any(axis=-1)).sum())
        found.append(HeadChange(layer, head, apart / n_queries, turned, n_queries))
    return tuple(found)


def find_shared_heads(before: AttentionMaps, after: AttentionMaps) -> list[tuple[int, int]]:
    """Return the layer and head numbers that both records have, in order."""
    layers = [number for number in before.layer_numbers if number in after.layer_numbers]
    return list(product(layers, [number for number in before.head_numbers if number in after.head_numbers]))


def _pair_rows(before: AttentionMaps, after: AttentionMaps, layer: int, head: int) -> Iterator[tuple[Rows, Rows]]:
    for block in split_real_queries(before, 2):
        of_a, of_b = (head_rows(maps, *maps.locate(layer, head), block) for maps in (before, after))
        yield of_a, of_b


def check_tokens(before: AttentionMaps, after: AttentionMaps) -> None:
    """Raise InvalidRecord naming the first token that differs: queries and keys have to be the same ones."""
    if before.self_attention != after.self_attention:
        raise InvalidRecord("one record is of self-attention, the other is not")
    for one, other, what in ((before.queries, after.queries, "query"), (before.keys, after.keys, "key")):
        _check_same_tokens(one, other, what if not before.self_attention else "token")
    if not np.array_equal(before.real_queries, after.real_queries):
        raise InvalidRecord("the records differ in which tokens are padding")


def _check_same_tokens(one: Tokens, other: Tokens, what: str) -> None:
    for place, (left, right) in enumerate(zip(one.pieces, other.pieces, strict=False)):
        if left != right:
            raise InvalidRecord(f"{what} {place} is {_shorten(left)} before and {_shorten(right)} after")
        if one.special[place] != other.special[place]:
            raise InvalidRecord(f"{what} {place}, {_shorten(left)}, is a marker on one side and text on the other")
    if len(one) != len(other):
        side, longer = ("before", one) if len(one) > len(other) else ("after", other)
        place = min(len(one), len(other))
        raise InvalidRecord(f"{what} {place}, {_shorten(longer.pieces[place])}, is only there {side}")


def _shorten(piece: str) -> str:
    return repr(piece if len(piece) <= MAX_TOKEN_LENGTH else f"{piece[: MAX_TOKEN_LENGTH - 1]}…")


def _find_favourites(rows: Rows) -> Bool[np.ndarray, "query key"]:
    return np.asarray(rows >= rows.max(axis=-1, keepdims=True) - TIE_TOLERANCE)
