"""What tokens are called. Knows records only."""

from attnviz.display import escape_for_display
from attnviz.records import AttentionMaps, Tokens

BYTE = "·"  # of a token that is part of the characters of the one before it
MAX_PIECE = 64  # characters kept of a token
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
