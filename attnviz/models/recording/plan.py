"""Of every row of every group: what its queries and keys are called, and which of them to keep. Knows no records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from attnviz.models.recording.groups import Group, crossing, find_guessed
from attnviz.models.recording.names import (
    Names,
    Pieces,
    Role,
    Text,
    attention_role,
    find_attended,
    find_masked,
    labels_for,
    row_of,
)
from attnviz.records.grid import Grid

ORDER = "Of two attentions in the same layers the later is taken for the one to another text: a guess by their order."
WINDOWS = "Tokens are called by their places in the window, which may hold others in another layer."
Real = Bool[np.ndarray, "row token"]


class AxisLabels(NamedTuple):
    """Of one row of a batch: what its queries and keys are called, and which positions are kept."""

    queries: Pieces
    keys: Pieces
    kept_queries: Bool[np.ndarray, " query"]
    kept_keys: Bool[np.ndarray, " key"]
    same: bool  # the queries are the keys
    guess: str = ""  # what of this is not certain
    grid: Grid | None = None  # of keys that are patches


def plan_axes(groups: Sequence[Group], names: Names) -> Iterator[tuple[Group, list[AxisLabels]]]:
    """Each group with the sides of its rows. Raises InvalidRecord where names or attention_mask do not fit."""
    passes = [list(of_pass) for _, of_pass in groupby(groups, key=lambda group: group.number)]
    roles = list(_roles(passes, names))
    cached = {group.name for of_pass in roles for group, its in of_pass if its == "cached"}
    ends: dict[str, int] = {}  # how many positions a cache has seen
    for of_pass in roles:
        masked_text: Text = "keys" if names.keys is not None or any(its == "cross" for _, its in of_pass) else "tokens"
        unsure = find_guessed([group for group, _ in of_pass])
        own: list[AxisLabels] = []  # of the tokens among themselves, in this pass
        lengths = [n for group, _ in of_pass for n in (group.n_queries, group.n_keys)]
        for group, its in of_pass:
            if group.n_windows > 1 and not names.has_rows(group.n_rows):
                sides = _label_windows(group)
            elif group.name in cached and its in ("self", "cached"):
                is_first = group.name not in ends
                ends[group.name] = _end(group, ends.get(group.name, 0))
                real = names.real if masked_text == "tokens" else None
                sides = own = [
                    plan_cached_step(names, group, row, ends[group.name], real, is_first=is_first)
                    for row in range(group.n_rows)
                ]
            elif its == "pooled":
                sides = _label_pooled(
                    group, _leave_out_names(group.n_keys, names, lengths) if names.keys is None else names, masked_text
                )
            elif its == "cross":
                sides = _across(group, _turn_names(group, names), masked_text, own)
            else:
                named = _leave_out_names(group.n_queries, names, lengths) if its == "self" else names
                sides = _within(group, named, "tokens" if its == "self" else "keys", masked_text)
                own = sides if its == "self" else own
            yield group, [side._replace(guess=ORDER) for side in sides] if group.name in unsure else sides


def _roles(passes: Sequence[Sequence[Group]], names: Names) -> Iterator[list[tuple[Group, Role]]]:
    known: set[str] = set()
    for of_pass in passes:
        later = crossing(of_pass)
        source = None if names.keys is None else _find_source(of_pass)
        roles = [
            attention_role(group, names, later.get(group.name), bool(later) or group is source, group.name in known)
            for group in of_pass
        ]
        known |= {group.name for group, its in zip(of_pass, roles, strict=True) if its in ("self", "cached")}
        yield list(zip(of_pass, roles, strict=True))


def _turn_names(group: Group, names: Names) -> Names:
    """Exchange the names of tokens and keys where what was called keys attends to the tokens, by their numbers."""
    fits = names.matches_length("keys", group.n_queries) and names.matches_length("tokens", group.n_keys)
    turned = fits and names.real is None and not names.matches_length("tokens", group.n_queries)
    return replace(names, tokens=names.keys, keys=names.tokens) if turned else names


def _leave_out_names(n: int, names: Names, lengths: Sequence[int]) -> Names:
    """Leave out the names of tokens where `n` things are none, such as latents: others of the pass are as many.

    Where the names fit nothing, they may fit what is left without padding, or are wrong.
    """
    fits = any(names.matches_length("tokens", other) for other in lengths)
    return replace(names, tokens=None, real=None) if fits and not names.matches_length("tokens", n) else names


def _find_source(groups: Sequence[Group]) -> Group | None:
    """Return what another text may be read with, where one is attended to: the first of several that read their own."""
    own = [group for group in groups if group.n_queries == group.n_keys and group.own_keys is not False]
    return own[0] if len(own) > 1 and any(group.own_keys is False for group in groups) else None


def _within(group: Group, names: Names, text: Text, masked_text: Text) -> list[AxisLabels]:
    """Of a text whose tokens attend to each other."""
    real = _real(group, names, text, masked_text)
    pieces = [labels_for(names, text, row, kept, group) for row, kept in enumerate(real)]
    return [AxisLabels(called, called, kept, kept, True) for called, kept in zip(pieces, real, strict=True)]


def _across(group: Group, names: Names, masked_text: Text, own: Sequence[AxisLabels]) -> list[AxisLabels]:
    """Of tokens that attend to keys: the tokens are those that attended to each other before, if any did."""
    real = _real(group, names, "keys", masked_text)
    given = len(own) == group.n_rows and all(len(side.kept_queries) == group.n_queries for side in own)
    sides = []
    for row, kept_keys in enumerate(real):
        if given:
            queries, kept = own[row].queries, own[row].kept_queries
        else:
            kept = np.ones(group.n_queries, dtype=bool)
            queries = labels_for(names, "tokens", row, kept, group)
        sides.append(AxisLabels(queries, labels_for(names, "keys", row, kept_keys, group), kept, kept_keys, False))
    return sides


def _label_windows(group: Group) -> list[AxisLabels]:
    """Of windows of a text or an image: which of its tokens a window holds differs from layer to layer."""
    kept = np.ones(group.n_queries, dtype=bool)
    called = tuple(map(str, range(group.n_queries)))
    keys = tuple(map(str, range(group.n_keys)))
    same = group.n_queries == group.n_keys
    return [AxisLabels(called, keys, kept, np.ones(group.n_keys, dtype=bool), same, WINDOWS)] * group.n_rows


def _label_pooled(group: Group, names: Names, masked_text: Text) -> list[AxisLabels]:
    """Of queries that are no tokens and attend to some: called by `tokens` where `keys` has names for what is read."""
    text: Text = "tokens" if names.keys is None else "keys"
    real = _real(group, names, text, masked_text)
    kept = np.ones(group.n_queries, dtype=bool)
    own = ("⟨query⟩",) if group.n_queries == 1 else tuple(f"⟨query {n}⟩" for n in range(group.n_queries))
    given = text == "keys" and names.matches_length("tokens", group.n_queries)
    return [
        AxisLabels(
            labels_for(names, "tokens", row, kept, group) if given else own,
            labels_for(names, text, row, kept_keys, group),
            kept,
            kept_keys,
            False,
        )
        for row, kept_keys in enumerate(real)
    ]


def _real(group: Group, names: Names, text: Text, masked_text: Text) -> Bool[np.ndarray, "row key"]:
    """Which keys are no padding: by attention_mask, else those that are attended to."""
    return find_masked(names, group) if names.real is not None and text == masked_text else find_attended(group)


def _end(group: Group, before: int) -> int:
    """The position after the last key of this pass. A pass whose queries are all its keys begins a text."""
    n_keys = _n_keys(group)
    return n_keys if n_keys == group.n_queries else max(before + group.n_queries, n_keys)


def _n_keys(group: Group) -> int:
    """Without the room that a cache has left."""
    return max(group.n_queries, int(np.flatnonzero(find_attended(group).any(axis=0)).max(initial=-1)) + 1)


def plan_cached_step(
    names: Names, group: Group, row: int, end: int, masks: Real | None, *, is_first: bool
) -> AxisLabels:
    """Of a text that grows from pass to pass: its keys stand before position `end`, its queries are the last of them.

    What has no name is called by its position in angle brackets. In the first pass, keys beyond the queries stand for
    no token that the block read: learned memory, a prefix, or a cache from before. Names for the queries alone are
    theirs, then, and those keys are called ⟨before 1⟩.
    """
    n_keys = _n_keys(group)
    square = group.n_queries == group.n_keys == end
    kept = np.array(find_attended(group)[row]) if square and masks is None else np.ones(end, dtype=bool)
    real: np.ndarray | None = None if masks is None else row_of(masks, "attention_mask", row, group)
    if real is not None:
        kept[: len(real)] = real[:end]  # what is generated is no padding
    given = () if names.tokens is None else row_of(names.tokens, "tokens", row, group)
    if real is not None and len(given) == len(real):
        given = tuple(piece for piece, is_real in zip(given, real, strict=True) if is_real)
    if is_first and names.tokens is None and group.has_memory:
        given = tuple(map(str, range(group.n_queries)))
    if is_first and 0 < len(given) == group.n_queries < n_keys:
        given = (*(f"⟨before {n + 1}⟩" for n in range(n_keys - group.n_queries)), *given)
    unnamed = "{}" if names.tokens is None else "⟨{}⟩"
    places = np.cumsum(kept) - 1
    called = [given[place] if 0 <= place < len(given) else unnamed.format(place) for place in places]
    start = end - n_keys
    kept_queries = kept[end - group.n_queries :]
    kept_keys = np.zeros(group.n_keys, dtype=bool)
    kept_keys[:n_keys] = kept[start:]
    keys = tuple(piece for piece, is_real in zip(called[start:], kept[start:], strict=True) if is_real)
    queries = keys[len(keys) - int(kept_queries.sum()) :]
    return AxisLabels(queries, keys, kept_queries, kept_keys, n_keys == group.n_queries)
