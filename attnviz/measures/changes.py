"""How each head of one record differs from the same head of another. Knows records and arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from jaxtyping import Bool, Float64

from attnviz.differences import HeadChange
from attnviz.errors import InvalidRecord
from attnviz.measures.divergence import jsd
from attnviz.measures.rows import Rows, blocks, head_rows
from attnviz.records import AttentionMaps, Tokens

TIED = 1e-6  # weights as near as this to the largest are favourites too: rounding may turn them round
MAX_TOKEN_LENGTH = 40  # characters of a token in an error


def changes(before: AttentionMaps, after: AttentionMaps) -> tuple[HeadChange, ...]:
    """Jensen-Shannon divergence of each head's rows, and how many queries have no favourite key in common.

    Nats, from 0 (the same attention) to ln 2 (no key in common); of the layers and heads that both have, in order.
    Raises InvalidRecord where the records are not of the same tokens, or have no layer or head of one number.
    """
    check_tokens(before, after)
    layers = _shared(before.layer_numbers, after.layer_numbers, "layer")
    heads = _shared(before.head_numbers, after.head_numbers, "head")
    n_queries = int(before.real_queries.sum())
    found = []
    for layer, head in product(layers, heads):
        apart, turned = 0.0, 0
        for rows in _both(before, after, layer, head):
            apart += float(jsd(*rows).sum())
            turned += int((~np.logical_and(*map(_favourites, rows)).any(axis=-1)).sum())
        found.append(HeadChange(layer, head, apart / n_queries, turned, n_queries))
    return tuple(found)


def per_query(before: AttentionMaps, after: AttentionMaps, layer: int, head: int) -> Float64[np.ndarray, " query"]:
    """The divergence of each real query, in nats; `layer` and `head` are numbers that both records have."""
    return np.concatenate([jsd(*rows) for rows in _both(before, after, layer, head)])


def _both(before: AttentionMaps, after: AttentionMaps, layer: int, head: int) -> Iterator[tuple[Rows, Rows]]:
    for block in blocks(before, 2):
        of_a, of_b = (head_rows(maps, *maps.place(layer, head), block) for maps in (before, after))
        yield of_a, of_b


def _shared(one: Sequence[int], other: Sequence[int], what: str) -> tuple[int, ...]:
    """The numbers of what both records have. Raises InvalidRecord where there is none."""
    found = tuple(number for number in one if number in other)
    if not found:
        raise InvalidRecord(f"the records have no {what} of one number", hint=f"Compare records of the same {what}s.")
    return found


def check_tokens(before: AttentionMaps, after: AttentionMaps) -> None:
    """Raises InvalidRecord naming the first token that differs: queries and keys have to be the same ones."""
    same_text = before.provenance.text_sha256 == after.provenance.text_sha256
    why = "The text is the same, cut into other tokens." if same_text else "They are of different texts."
    if before.self_attention != after.self_attention:
        raise InvalidRecord("only one of the records is of a text that attends to itself", hint=why)
    for one, other, what in ((before.queries, after.queries, "query"), (before.keys, after.keys, "key")):
        _check(one, other, what if not before.self_attention else "token", why)
    if not np.array_equal(before.real_queries, after.real_queries):
        raise InvalidRecord("other tokens are padding", hint="Draw both with the same --max-tokens and --show-padding.")


def _check(one: Tokens, other: Tokens, what: str, why: str) -> None:
    for place, (left, right) in enumerate(zip(one.pieces, other.pieces, strict=False)):
        if left != right:
            raise InvalidRecord(f"{what} {place} is {_cut(left)} in A and {_cut(right)} in B", hint=why)
        if one.special[place] != other.special[place]:
            raise InvalidRecord(f"{what} {place}, {_cut(left)}, is a marker in one and text in the other", hint=why)
    if len(one) != len(other):
        more, longer = ("A", one) if len(one) > len(other) else ("B", other)
        place = min(len(one), len(other))
        raise InvalidRecord(f"{what} {place}, {_cut(longer.pieces[place])}, is only in {more}", hint=why)


def _cut(piece: str) -> str:
    return repr(piece if len(piece) <= MAX_TOKEN_LENGTH else f"{piece[: MAX_TOKEN_LENGTH - 1]}…")


def _favourites(rows: Rows) -> Bool[np.ndarray, "query key"]:
    return np.asarray(rows >= rows.max(axis=-1, keepdims=True) - TIED)
