"""Which axis of an array of weights is which: texts, layers, heads, queries, keys. Knows numbers and names only.

Every reading is listed: keys are the last axis, along which rows sum to 1; texts and layers come before heads; queries
before keys, or as decoders have them that go step by step: before heads, or first. What is known then strikes readings
out, in this order: how many texts are named, or that one is asked for; how many names queries and keys have; that no
query looks at a later key; that texts end in padding at places of their own; that tokens attend to each other. Of what
is left the usual one is taken, [layer, head, query, key] without its first axes, and it is said that it was taken.
Where there is no usual one, as of two texts in two layers, the readings are named, and the option that chooses.

Where weights are no distributions over the keys, it is said why, as far as the numbers tell.
"""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attnviz.display import format_count, list_first
from attnviz.errors import InvalidOption, InvalidRecord
from attnviz.models.recording.labels import Pieces
from attnviz.shapes import Weights

Axes = tuple[str, ...]
Rows = tuple[Pieces, ...] | None  # the names of each text
AXES: Axes = ("layer", "text", "head", "query", "key")
USUAL = ("query", "head", "layer", "text")  # which axes there are before the keys, the most usual first
EXPECTED = "Expected a tuple with a [batch, head, query, key] for each layer, or one array [layer, head, query, key]."
OF_TEXTS = "Give [text, head, query, key] of as many texts, or the names of one."
TAKEN = "Its axes are taken for {}; {} would say otherwise."


def find_axes(
    weights: np.ndarray, known: Axes, named: tuple[Rows, Rows], row: int | None, option: str
) -> tuple[Axes, str]:
    """Find what the axes of an array are, and say it where others would fit; `option` is what would decide.

    `known` are its first axes; `named` the tokens and the keys. Raises InvalidRecord where no reading fits, or several
    do and none is usual.
    """
    shape, n_texts = weights.shape, max(len(rows or ()) for rows in named)
    if not 0 < len(shape) <= len(AXES) or 0 in shape:
        why = "is empty" if 0 in shape else "is not attention"
        raise InvalidRecord(f"an array of shape {shape} {why}", hint=EXPECTED)
    orders = [each for each in _list_readings(len(shape)) if each[: len(known)] == known]
    readings = [dict(zip(each, shape, strict=True)) for each in orders]
    if n_texts > 1:
        readings = [each for each in readings if each.get("text") == n_texts]
        if not readings:
            problem = f"{n_texts} texts are named, and this is attention of {' × '.join(map(str, shape))}"
            raise InvalidRecord(problem, hint=OF_TEXTS)
    counts, looks_back, texts = _look(weights > 0)

    def rank(sizes: dict[str, int]) -> tuple[object, ...]:
        places = {axis: [place] for place, axis in enumerate(sizes)}
        fits = _count_fitting(sizes, {shape[-1], *counts}, *named)
        is_seen = places.get("query") == looks_back, places.get("text") == texts
        return (row is None or "text" in sizes, fits, *is_seen, sizes.get("query") == sizes["key"])

    def rank_usual(sizes: dict[str, int]) -> tuple[bool, ...]:
        return (*(axis in sizes for axis in USUAL), [*sizes][-2:-1] == ["query"], sizes.get("text") == 1)

    readings = _choose_best(readings, rank)
    different = {tuple(axis for axis, size in each.items() if size > 1) for each in readings}
    readings = _choose_best(readings, rank_usual)
    if len(readings) > 1:
        several = list_first([", ".join(each) for each in readings], 4, between=" or ")
        hint = f"Say which by {option.format(','.join(readings[0]))}."
        raise InvalidRecord(f"an array of shape {shape} may be {several}", hint=hint)
    taken = ", ".join(f"{axis}s" if axis in known else f"{axis}s ({size})" for axis, size in readings[0].items())
    said = TAKEN.format(taken.replace("querys", "queries"), option.partition("=")[0].partition(" ")[0])
    return tuple(readings[0]), said if len(different) > 1 else ""


def _choose_best(readings: list[dict[str, int]], rank: Callable[[dict[str, int]], Any]) -> list[dict[str, int]]:
    best = max(map(rank, readings))
    return [each for each in readings if rank(each) == best]


def _list_readings(n_axes: int) -> list[Axes]:
    """List what so many axes may be. Queries are before keys, before heads, or first; of one query there is no axis."""
    found = list[Axes]()
    for each in permutations(("layer", "text", "head", "query"), n_axes - 1):
        others = [axis for axis in each if axis != "query"]
        places = (0, len(others), len(others) - (others[-1:] == ["head"]))
        if "head" not in others[:-1] and ("query" not in each or each.index("query") in places):
            found.append((*each, "key"))
    return found


def read_axes(axes: str, n_axes: int) -> Axes:
    """Read what a caller says of the axes. Raises InvalidOption."""
    found = tuple(axis.strip() for axis in axes.split(","))
    if len(found) != n_axes or len({*found}) != n_axes or not {*found} <= {*AXES} or "key" not in found:
        hint = f"Each is one of {', '.join(AXES)}."
        raise InvalidOption(f"axes {axes!r:.80} do not name the {n_axes} axes there are", hint=hint)
    return found


def _count_fitting(sizes: dict[str, int], counts: set[int], tokens: Rows, keys: Rows) -> int:
    """Count the sides that have as many tokens as names; padding, to which nothing attends, may have none.

    Queries that are not before the keys must be named as well as these. `counts`: of keys, with and without padding.
    """
    n_queries, n_keys = sizes.get("query", 1), sizes["key"]

    def fits(rows: Rows, n: int) -> bool:
        return rows is not None and all(len(row) == n or (n == n_keys and len(row) in counts) for row in rows)

    score = fits(tokens, n_queries) + fits(keys or (tokens if n_queries == n_keys else None), n_keys)
    score = score or (keys is None and fits(tokens, n_keys))
    return score if score == 2 or [*sizes][-2:-1] == ["query"] else 0


def _look(used: Bool[np.ndarray, "*axes key"]) -> tuple[set[int], list[int], list[int]]:
    """Look along each axis at which keys are used: how many; where nothing goes to a later key; where texts may be.

    The keys of texts are used all in a row, which begins or ends elsewhere in each.
    """
    counts, looks_back, texts = {int(used.any(axis=tuple(range(used.ndim - 1))).sum())}, [], []
    for axis in range(used.ndim - 1):
        goes = np.asarray(used.any(axis=tuple(each for each in range(used.ndim - 1) if each != axis)))
        n_each = goes.sum(axis=-1)
        counts |= {*n_each.tolist()}
        if goes.shape[0] == goes.shape[1] and np.tril(goes, -1).any() and not np.triu(goes, 1).any():
            looks_back.append(axis)
        first, behind = goes.argmax(axis=-1), goes.shape[1] - goes[:, ::-1].argmax(axis=-1)
        if axis < min(2, used.ndim - 2) and (behind - first == n_each).all() and np.ptp(first) + np.ptp(behind) > 0:
            texts.append(axis)
    return counts, looks_back, texts


EVALUATE = "model.eval() turns dropout off; scores need a softmax over the keys first."
FLOAT32_ERROR = 1e-6
EXACT = 1e-4  # by which a sum of float32 may miss 1
HALF_ROUNDING = 1e-2  # by which a row of half precision may
MAX_ROUNDING = 0.1  # by which one of few decimals may
NEAR = 1e-2  # by which a sum that says what numbers are may miss it, relative to it


def find_reason(weights: Weights) -> str:
    """Return the likeliest reason, and what to do, in a sentence."""
    if np.isnan(weights).any():
        return "Softmax gives it where every key of a query is masked: leave such queries out."
    with np.errstate(over="ignore", invalid="ignore"):
        sums = weights.sum(axis=-1, dtype=np.float64)
        if (weights <= 0).all() and _are(1.0, np.exp(weights).sum(axis=-1, dtype=np.float64)):
            return "They look like log probabilities: take exp of them."
        if (weights < 0).any() or not np.isfinite(weights).all():
            return "They look like scores before softmax: take softmax over the keys first."
        if _are(1.0, weights.sum(axis=-2, dtype=np.float64)):
            return "Columns sum to 1, so the axes look transposed: the last one is the keys."
        if _are(100.0, sums):
            return "They look like percent: divide them by 100."
        if ((weights == 0) | (weights == 1)).all():
            return "They are all 0 or 1, like a mask."
        if not sums.all() and _are(1.0, sums[sums != 0]):
            return "Some queries have no weight at all, such as padding or masked ones: leave them out."
        if (decimals := _count_decimals(weights)) and np.abs(sums - 1).max() < 0.5:
            return f"They look rounded to {format_count(decimals, 'decimals')}: keep more."
        if sums.min() > 0 and _are(float(sums.mean()), sums):
            return f"{EVALUATE} All rows sum to about {sums.mean():.4g}: were weights added up?"
    if (sums < 1 + NEAR).all():
        return f"Rows sum to less than 1: were keys cut off, such as markers? {EVALUATE}"
    return EVALUATE


def _are(number: float, sums: Float[np.ndarray, "..."]) -> bool:
    return bool((np.abs(sums - number) <= NEAR * number).all())


def _count_decimals(weights: Float[np.ndarray, "..."]) -> int:
    """Count the decimals that all numbers have at most; 0 for more than 4."""
    return next((n for n in range(1, 5) if np.abs(weights.round(n) - weights).max() < FLOAT32_ERROR), 0)


def scale_rounded(weights: Weights) -> tuple[Weights, str]:
    """Divide rows that rounding made miss 1 by their sums, and say it; what half precision rounded is not worth a word.

    Numbers were rounded where all in such rows have few decimals, or no more bits than those of half precision.
    """
    sums = weights.sum(axis=-1, keepdims=True)
    is_off = np.abs(sums - 1) > EXACT
    rows, said = weights[is_off[..., 0]], ""
    if not np.isfinite(rows).all() or not len(rows):
        return weights, ""
    rounding = HALF_ROUNDING if not (rows.view(np.uint32) & 0x1FFF).any() else 0.0
    if decimals := _count_decimals(rows):
        rounding = min(MAX_ROUNDING, 0.5 * 0.1**decimals * rows.shape[-1])
        said = f"Numbers have {format_count(decimals, 'decimals')}: rows are scaled to sum to 1."
    is_scaled = is_off & (np.abs(sums - 1) <= rounding)
    return np.divide(weights, sums, where=is_scaled, out=weights.copy()), said if is_scaled.any() else ""
