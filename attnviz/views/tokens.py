"""What tokens are called, which are drawn and listed, and how much attention goes to the others. Knows records, specs.

Hiding is of the picture only: positions and weights stay what they are, and every measure counts every token. Colours
that say multiples of an equal share are of all keys, or of those that --hide-special and --drop-first leave (see
`Heatmap.equal_share`); --tokens cuts a part out of the picture and leaves its colours as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from attnviz.display import escape_for_display, pluralize
from attnviz.errors import InvalidOption, InvalidSelection
from attnviz.records import AttentionMaps, Measurement, Tokens
from attnviz.selection import find_span, is_slice
from attnviz.specs import FigureOptions

BYTE = "·"  # of a token that is part of the characters of the one before it
MAX_PIECE = 64  # characters kept of a token
LESS_HINT = "Leave the option out, or give a longer text."
WRITTEN_PREFIX = "▸ "  # before the name of a token that the model wrote


def quote_token(tokens: Tokens, position: int) -> str:
    """Quote a token within a sentence: "5 “and”"."""
    return f"{position} “{label_token(tokens, position)}”"


def label_token(tokens: Tokens, position: int, max_width: int = 24) -> str:
    """Label a token beside a map: the characters of the text that it covers, whatever the vocabulary says.

    The space with which a word begins in many vocabularies is left out, and tokens that are bytes of one character are
    counted: "猫 1/3".
    """
    piece = tokens.pieces[position]
    if not tokens.special[position] and piece.startswith(" ") and piece.strip():
        piece = piece[1:]
    first = last = position  # of the tokens that share characters of the text, each with the next
    while first > 0 and _overlap(tokens, first - 1):
        first -= 1
    while last < len(tokens) - 1 and _overlap(tokens, last):
        last += 1
    part = f" {position - first + 1}/{last - first + 1}" if first < last else ""
    return escape_for_display(piece, max_width) + part


def read_piece(tokens: Tokens, position: int) -> str:
    """Return a token's characters, after a space where the text has room before it; of one that is a further byte of
    the same characters as the token before it, a dot.
    """
    piece, here, before = tokens.pieces[position], tokens.offsets[position], tokens.offsets[max(0, position - 1)]
    if tokens.special[position]:
        return f" {piece}"[:MAX_PIECE]
    if position and here == before and here[0] < here[1]:
        return BYTE
    apart = position > 0 and here[0] > before[1] and not piece.startswith(" ")
    return f"{' ' * apart}{piece}"[:MAX_PIECE]


def read_words(tokens: Tokens) -> str:
    """Return the beginning of a text as its tokens have it, markers left out."""
    places = [place for place in range(min(len(tokens), MAX_PIECE)) if not tokens.special[place]]
    return "".join(read_piece(tokens, place) for place in places if not (place and _overlap(tokens, place - 1)))


def label_tokens(tokens: Tokens) -> tuple[str, ...]:
    """Label all tokens, in order."""
    return tuple(label_token(tokens, position) for position in range(len(tokens)))


def label_queries(maps: AttentionMaps) -> tuple[str, ...]:
    """Label a record's queries, in order: those that chose a token are named by that token."""
    names, n_chosen = label_tokens(maps.queries), len(maps.chosen)
    if not n_chosen:
        return names
    last = maps.chosen[-1]
    chosen = [*names, label_token(Tokens((last,), ((0, len(last)),), (False,)), 0)][-n_chosen:]
    return (*names[:-n_chosen], *(WRITTEN_PREFIX + name for name in chosen))


def label_keys(maps: AttentionMaps) -> tuple[str, ...]:
    """Label a record's keys, in order: those that the model wrote stand apart."""
    names = label_tokens(maps.keys)
    n_prompt = len(names) - len(maps.chosen) + 1
    if not (maps.chosen and maps.self_attention):
        return names
    return (*names[:n_prompt], *(WRITTEN_PREFIX + name for name in names[n_prompt:]))


def name_token(tokens: Tokens, position: int, max_width: int = 24) -> str:
    """Name a token by its position: "7 film"."""
    return f"{position} {label_token(tokens, position, max_width)}"


def _overlap(tokens: Tokens, position: int) -> bool:
    """Return whether a token and the next one cover a character in common."""
    (start, end), (next_start, next_end) = tokens.offsets[position : position + 2]
    return max(start, next_start) < min(end, next_end)


@dataclass(frozen=True)
class TokenSelection:
    """The queries and the keys that are drawn, by position and in order; `counted` are the keys that share colours."""

    queries: tuple[int, ...]
    keys: tuple[int, ...]
    counted: tuple[int, ...] = ()  # default: the keys that are drawn

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
    """Select all tokens but those that `spec` hides.

    Raises InvalidSelection where no query or no key would be left, and InvalidOption for a stretch of two texts.
    """
    queries = _choose_kept(maps.queries, spec)
    keys = counted = queries if maps.self_attention else _choose_kept(maps.keys, spec)
    if spec.tokens is not None:
        if not maps.self_attention:
            raise InvalidOption("--tokens needs one text, and queries and keys of this record are two", hint=LESS_HINT)
        chosen = find_span(spec.tokens, maps.queries.pieces)
        queries = keys = tuple(position for position in queries if position in chosen)
    if spec.query is not None and is_slice(spec.query):
        chosen = find_span(spec.query, maps.queries.pieces)
        queries = tuple(position for position in queries if position in chosen)
    if spec.key is not None:
        chosen = find_span(spec.key, maps.keys.pieces)
        keys = tuple(position for position in keys if position in chosen)
    for tokens, kept, many in ((maps.queries, queries, "queries"), (maps.keys, keys, "keys")):
        if not kept:
            what = pluralize(len(tokens), "tokens" if maps.self_attention else many)
            raise InvalidSelection(f"{_name_options(spec)} leaves none of {len(tokens)} {what}", hint=LESS_HINT)
    if not maps.real_queries[list(queries)].any():
        raise InvalidSelection(f"{_name_options(spec)} leaves nothing but padding", hint=LESS_HINT)
    return TokenSelection(queries, keys, () if counted == keys else counted)


def measure_hidden(maps: AttentionMaps, part: TokenSelection) -> Measurement | None:
    """Return the share of what goes to tokens that goes to hidden keys: a mean over the queries drawn, padding aside.

    Nothing where all tokens are drawn.
    """
    left_out = list_left_out(maps.keys, part.keys)
    if not left_out and not list_left_out(maps.queries, part.queries):
        return None
    queries = np.array([query for query in part.queries if maps.real_queries[query]])
    values = np.empty((maps.n_layers, maps.n_heads))
    for layer, head in np.ndindex(values.shape):
        rows = maps.rows(layer, head, queries)
        shares = rows[:, left_out].sum(axis=-1, dtype=np.float64) / rows.sum(axis=-1, dtype=np.float64)
        values[layer, head] = shares.mean()
    return Measurement("hidden", "share", values, (0.0, 1.0))


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
