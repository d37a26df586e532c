"""Which layers, heads or texts: "3", "-1", "0-3,7"; which token: "3", "film". Knows nothing of what these are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from attnviz.errors import BadSelection

GRAMMAR = "Write 3, 0-3 or 0-3,7; -1 is the last."
_ITEM = re.compile(r"\s*(-?[0-9]{1,18})\s*(?:-\s*(-?[0-9]{1,18})\s*)?")  # 18 digits: no number that int() refuses
_NUMBER = re.compile(r"-?[0-9]{1,18}")
MOST_LISTED = 20  # positions of a word
LONGEST_WORD = 40  # characters that are compared and shown when a word is not found


def numbers(chosen: Sequence[str], count: int, what: str) -> tuple[int, ...]:
    """The positions below `count` that `chosen` names, in its order and each once; all of them if it is empty.

    `what` is what is counted, in the singular: "head". Raises BadSelection for a position that is not there and
    for anything that is not written like the grammar.
    """
    if not chosen:
        return tuple(range(count))
    spans = [span for written in chosen for span in _spans(written, count, what)]
    return tuple(dict.fromkeys(position for span in spans for position in span))


def position(written: str, pieces: Sequence[str]) -> int:
    """The token that a position (-1 is the last) or a word names: as it is written, else whatever its case.

    Raises BadSelection for a position that is not there and for a word that occurs several times or not at all.
    """
    if _NUMBER.fullmatch(written):
        return _position(written, len(pieces), "token")
    found = [place for place, piece in enumerate(pieces) if piece == written]
    found = found or [place for place, piece in enumerate(pieces) if piece.casefold() == written.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        places = ", ".join(map(str, found[:MOST_LISTED])) + (", …" if len(found) > MOST_LISTED else "")
        raise BadSelection(f"{_cut(written)} occurs {len(found)} times", hint=f"Choose by position: {places}.")
    place_of = {piece.casefold()[:LONGEST_WORD]: place for place, piece in reversed(list(enumerate(pieces)))}
    near = get_close_matches(written.casefold()[:LONGEST_WORD], list(place_of), n=1)
    nearest = f"The nearest is {place_of[near[0]]} {_cut(pieces[place_of[near[0]]])}." if near else ""
    raise BadSelection(f"no token {_cut(written)} in the text", hint=nearest or _what_there_is(len(pieces), "token"))


def _cut(word: str) -> str:
    return repr(word if len(word) <= LONGEST_WORD else word[: LONGEST_WORD - 1] + "…")


def _spans(written: str, count: int, what: str) -> Iterator[range]:
    """A range for each item between commas. Both ends are checked first, so that 0-999999999 costs nothing."""
    for item in written.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise BadSelection(f"{written!r} does not say which {what}", hint=GRAMMAR)
        first, last = match.group(1), match.group(2) or match.group(1)
        start, end = _position(first, count, what), _position(last, count, what)
        if start > end:
            raise BadSelection(f"{what}s {item.strip()} run backwards", hint=GRAMMAR)
        yield range(start, end + 1)


def _position(written: str, count: int, what: str) -> int:
    number = int(written)
    if not -count <= number < count:
        raise BadSelection(f"no {what} {number}", hint=_what_there_is(count, what))
    return number + count if number < 0 else number


def _what_there_is(count: int, what: str) -> str:
    if count == 0:
        return f"There are no {what}s."
    return f"There is only {what} 0." if count == 1 else f"There are {what}s 0 to {count - 1}."
