"""Which part of a record is shown: what is chosen of its tokens, and refused here. Knows records, selection and specs.

Hiding is of the picture only: positions and weights stay what they are, and every measure counts every token. Colours
that say multiples of an equal share are of all keys, or of those that --hide-special and --drop-first leave (see
`Heatmap.equal_share`); --tokens cuts a part out of the picture and leaves its colours as they are.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from jaxtyping import Int

from attnviz.display import pluralize
from attnviz.errors import InvalidOption, InvalidSelection
from attnviz.records import AttentionMaps, Tokens
from attnviz.selection import find_span, find_token, is_slice
from attnviz.specs import FigureOptions

Place: TypeAlias = tuple[int, int]  # of a layer and a head in the record
LESS_HINT = "Leave the option out, or give a longer text."
PATCH = re.compile(r"[0-9]+,[0-9]+")


@dataclass(frozen=True)
class TokenSelection:
    """The queries and the keys that are drawn, by position and in order; `counted` are the keys that share colours."""

    queries: tuple[int, ...]
    keys: tuple[int, ...]
    counted: tuple[int, ...] = ()  # default: the keys that are drawn
    asked: int | None = None  # the query that alone is looked at, where one is named

    @property
    def asking(self) -> "TokenSelection":
        """Return the selection with the query that is asked for alone, if one is."""
        return self if self.asked is None else replace(self, queries=(self.asked,))

    def select_columns(self, cells: np.ndarray) -> np.ndarray:
        """Return what is drawn of cells [query drawn, key]; without a copy where possible, since maps may be large."""
        return cells[:, _create_index(self.keys)]

    @property
    def rows(self) -> slice | Int[np.ndarray, " query"]:
        """Return the queries that are drawn, as an index that copies nothing where they lie in one piece."""
        return _create_index(self.queries)

    def renormalizes(self, maps: AttentionMaps) -> bool:
        """Return whether an equal share is not one of all keys of these maps."""
        return len(self.counted or self.keys) < len(maps.keys)

    def equal_share(self, values: np.ndarray, allowed: np.ndarray) -> np.ndarray | None:
        """Return `Heatmap.equal_share` from cells [query drawn, key]; None where all keys are drawn."""
        counted = TokenSelection(self.queries, self.counted or self.keys)
        n_keys = values.shape[1]
        if len(self.keys) == n_keys:
            return None
        n_allowed = np.maximum(counted.select_columns(allowed).sum(axis=1), 1)
        share = np.ones(1, np.float32) if len(counted.keys) == n_keys else counted.select_columns(values).sum(axis=1)
        return np.asarray(np.where(share > 0, share, 1) / n_allowed, dtype=np.float32)


def select_tokens(maps: AttentionMaps, spec: FigureOptions) -> TokenSelection:
    """Select all tokens but those that `spec` hides, and find the query or the patch that it names.

    Raises InvalidSelection for one that is not there and where no query or no key would be left, and InvalidOption for
    a stretch of two texts.
    """
    asked, grid = None, maps.grid if spec.kind == "map" else None
    queries = _choose_kept(maps.queries, spec)
    keys = counted = queries if maps.self_attention else _choose_kept(maps.keys, spec)
    if spec.tokens is not None:
        if not maps.self_attention:
            raise InvalidOption("--tokens needs one text, and queries and keys of this record are two", hint=LESS_HINT)
        chosen = find_span(spec.tokens, maps.queries.pieces)
        queries = keys = tuple(position for position in queries if position in chosen)
    if spec.query is not None and grid is None and is_slice(spec.query):
        chosen = find_span(spec.query, maps.queries.pieces)
        queries = tuple(position for position in queries if position in chosen)
    elif spec.query is not None:
        if grid is not None and PATCH.fullmatch(spec.query) and spec.query not in maps.queries.pieces:
            hint = f"Rows are 0 to {grid.n_rows - 1}, columns 0 to {grid.n_columns - 1}."
            raise InvalidSelection(f"no patch {spec.query} among {grid.n_rows} × {grid.n_columns}", hint=hint)
        asked = find_token(spec.query, maps.queries.pieces)
    if spec.key is not None:
        chosen = find_span(spec.key, maps.keys.pieces)
        keys = tuple(position for position in keys if position in chosen)
    for tokens, kept, many in ((maps.queries, queries, "queries"), (maps.keys, keys, "keys")):
        if not kept:
            what = pluralize(len(tokens), "tokens" if maps.self_attention else many)
            raise InvalidSelection(f"{_name_options(spec)} leaves none of {len(tokens)} {what}", hint=LESS_HINT)
    if not maps.real_queries[list(queries)].any():
        raise InvalidSelection(f"{_name_options(spec)} leaves nothing but padding", hint=LESS_HINT)
    return TokenSelection(queries, keys, () if counted == keys else counted, asked)


def list_left_out(tokens: Tokens, kept: Sequence[int]) -> list[int]:
    """List the positions that are not kept, in order."""
    return sorted(set(range(len(tokens))) - set(kept))


def _choose_kept(tokens: Tokens, spec: FigureOptions) -> tuple[int, ...]:
    return tuple(
        position
        for position, special in enumerate(tokens.special)
        if not (spec.hide_special and special) and not (spec.drop_first and position == 0)
    )


def _name_options(spec: FigureOptions) -> str:
    given = [name for name in ("hide_special", "drop_first", "tokens", "query", "key") if getattr(spec, name)]
    return " with ".join(f"--{name.replace('_', '-')}" for name in given)


def _create_index(positions: Sequence[int]) -> slice | Int[np.ndarray, " position"]:
    """Return a slice for positions in order without a gap, else an array."""
    first, last = positions[0], positions[-1]
    return slice(first, last + 1) if last - first + 1 == len(positions) else np.array(positions)
