"""Tokens as labels. Knows records."""

from __future__ import annotations

from attnviz.display import escape_for_display
from attnviz.records import AttentionMaps, Tokens

WRITTEN = "▸ "  # before the name of a token that the model wrote


def label(tokens: Tokens, position: int, max_width: int = 24) -> str:
    """What a token is called beside a map: the characters of the text that it covers, whatever the vocabulary says.

    The space with which a word begins in many vocabularies is left out, and tokens that are bytes of one character are
    counted: "猫 1/3".
    """
    piece = tokens.pieces[position]
    if not tokens.special[position] and piece.startswith(" ") and piece.strip():
        piece = piece[1:]
    first, last = _sharing(tokens, position)
    part = f" {position - first + 1}/{last - first + 1}" if first < last else ""
    return escape_for_display(piece, max_width) + part


def labels(tokens: Tokens) -> tuple[str, ...]:
    """All of them, in order."""
    return tuple(label(tokens, position) for position in range(len(tokens)))


def query_labels(maps: AttentionMaps) -> tuple[str, ...]:
    """The names of a record's queries, in order: those that chose a token are named by that token."""
    names, n_chosen = labels(maps.queries), len(maps.chosen)
    if not n_chosen:
        return names
    last = maps.chosen[-1]
    chosen = [*names, label(Tokens((last,), ((0, len(last)),), (False,)), 0)][-n_chosen:]
    return (*names[:-n_chosen], *(WRITTEN + name for name in chosen))


def key_labels(maps: AttentionMaps) -> tuple[str, ...]:
    """The names of a record's keys, in order: those that the model wrote stand apart."""
    names = labels(maps.keys)
    n_prompt = len(names) - len(maps.chosen) + 1
    if not (maps.chosen and maps.self_attention):
        return names
    return (*names[:n_prompt], *(WRITTEN + name for name in names[n_prompt:]))


def token(tokens: Tokens, position: int, max_width: int = 24) -> str:
    """A token is identified by its position: "7 film"."""
    return f"{position} {label(tokens, position, max_width)}"


def _sharing(tokens: Tokens, position: int) -> tuple[int, int]:
    """The first and the last of the tokens around this one that share characters of the text, each with the next."""
    first = last = position
    while first > 0 and _overlap(tokens, first - 1):
        first -= 1
    while last < len(tokens) - 1 and _overlap(tokens, last):
        last += 1
    return first, last


def _overlap(tokens: Tokens, position: int) -> bool:
    """Whether a token and the next one cover a character in common."""
    (start, end), (next_start, next_end) = tokens.offsets[position : position + 2]
    return max(start, next_start) < min(end, next_end)
