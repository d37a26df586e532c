"""Which of the axes before queries and keys are of the batch, and which of heads. Knows numbers only."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence


def batch_and_heads(shape: Sequence[int], n_positions: Collection[int]) -> tuple[int, int] | None:
    """How many texts and heads weights [… query key] have; None where one axis may hold some of both.

    `n_positions` are those of each input of the module, all rows together. Where they say nothing, the last axis before
    queries is that of the heads.
    """
    leading, n_queries = shape[:-2], shape[-2]
    expected = math.prod(leading[:-1]), leading[-1] if leading else 1
    if not n_positions or not all(shape):
        return expected
    if len(leading) == 1:
        split = split_heads(shape, n_positions)
        return split[:2] if split else None if _batches(shape, n_positions) else expected
    if expected[0] * n_queries in n_positions:
        return expected
    fitting = {
        n for n in map(math.prod, (leading[:place] for place in range(len(leading)))) if n * n_queries in n_positions
    }
    if len(leading) < 3 or len(fitting) != 1:  # with one axis of heads its place is settled
        return expected
    n_batch = fitting.pop()
    return n_batch, math.prod(leading) // n_batch


def find_head_axis(shape: Sequence[int], n_positions: Collection[int]) -> int:
    """Return which of the axes before queries is that of heads in weights [… query key]: of windows, the last is none.

    The others, times the queries, are the positions that the module read. Where that leaves it open, it is the last.
    """
    leading, n_queries = shape[:-2], shape[-2]
    last = len(leading) - 1
    others = [math.prod(leading) // size * n_queries in n_positions for size in leading] if all(shape) else []
    fitting = [axis for axis, fits in enumerate(others) if fits and leading[axis] > 1]
    return fitting[0] if len(leading) > 2 and len(fitting) == 1 and not others[last] else last


def split_heads(shape: Sequence[int], n_positions: Collection[int]) -> tuple[int, int, int, int] | None:
    """[batch head query key] of [batch·head query key]; None where it could be either.

    `n_positions` are those of each input, such as of what attends and of what is attended to: where there are several,
    both have to be of one batch.
    """
    merged, n_queries, n_keys = shape
    if merged == 1:
        return 1, 1, n_queries, n_keys
    batches = _batches(shape, n_positions) or {
        n // n_keys for n in n_positions if n_queries == 1 and n % n_keys == 0 and merged % (n // n_keys) == 0
    }
    if len(batches) == 1 and (n_batch := batches.pop()) in (1, merged):
        return n_batch, merged // n_batch, n_queries, n_keys
    return None  # heads of one text may stand together, or one head of all texts


def _batches(shape: Sequence[int], n_positions: Collection[int]) -> set[int]:
    """The numbers of texts that there may be."""
    merged, n_queries, n_keys = shape
    return {
        n // n_queries
        for n in n_positions
        if n % n_queries == 0
        and merged % (n // n_queries) == 0
        and (len(n_positions) == 1 or n // n_queries * n_keys in n_positions)
    }
