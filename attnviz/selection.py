"""Parse selections: layers, heads or texts ("3", "-1", "0-3,7", "mean"), heads of layers ("0.2,1.mean"), one token
("3", "film") and consecutive tokens ("5:20", "not good … saved"). Knows nothing of what is selected.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import accumulate

from attnviz.display import shorten_name
from attnviz.errors import InvalidSelection

GRAMMAR = "Write 3, 0-3 or 0-3,7; -1 is the last."
MEAN = "mean"  # of all heads of a layer, where the number of one may stand
_ITEM = re.compile(r"\s*(-?[0-9]{1,18})\s*(?:-\s*(-?[0-9]{1,18})\s*)?")  # 18 digits: no number that int() refuses
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_PAIR = re.compile(rf"\s*([0-9]{{1,18}})\.([0-9]{{1,18}}|{MEAN})\s*")
_SLICE = re.compile(r"(-?[0-9]{1,18})?\s*:\s*(-?[0-9]{1,18})?")
PAIR_GRAMMAR = f"Write layer.head, several with commas: 0.2,1.8. 1.{MEAN} is the mean over the heads of layer 1."
SPAN_GRAMMAR = "Write 5:20 (without 20), or words of the text: 'not good … saved'."
MAX_LISTED = 20  # positions of a word
MAX_WORD_LENGTH = 40  # characters that are compared when a word is not found


def select_numbers(
    chosen: Sequence[str], available: int | Sequence[int], what: str, *, mean: bool = False
) -> tuple[int, ...]:
    """Return the indices of what `chosen` names, in its order and each once; all of them where it is empty.

    `available` is a count, or a rising sequence of numbers, of which -1 is the last and 0-3 are all from 0 to 3. `what`
    is the noun for messages, in the singular: "head". With `mean`, MEAN is the index behind the last. Raises
    InvalidSelection for a number that is not available and for anything outside the grammar.
    """
    available = range(available) if isinstance(available, int) else available
    if not chosen:
        return tuple(range(len(available)))
    spans = [span for written in chosen for span in _parse_spans(written, available, what, mean)]
    return tuple(dict.fromkeys(position for span in spans for position in span))


def find_token(written: str, pieces: Sequence[str]) -> int:
    """Find the position of a token by its position (-1 is the last) or its word.

    A word is as it is, else without the spaces around it, which tables leave out, too, else in any case.
    Raises InvalidSelection for a position beyond the text and for a word that occurs several times or not at all.
    """
    if _NUMBER.fullmatch(written):
        return _parse_number(written, range(len(pieces)), "token")
    found = [place for place, piece in enumerate(pieces) if piece == written]
    for same in (str.strip, lambda piece: piece.strip().casefold()):
        found = found or [place for place, piece in enumerate(pieces) if same(piece) == same(written)]
    if len(found) == 1:
        return found[0]
    if found:
        places = ", ".join(map(str, found[:MAX_LISTED])) + (", …" if len(found) > MAX_LISTED else "")
        raise InvalidSelection(f"{_shorten(written)} occurs {len(found)} times", hint=f"Choose by position: {places}.")
    place_of = {piece.casefold()[:MAX_WORD_LENGTH]: place for place, piece in reversed(list(enumerate(pieces)))}
    near = get_close_matches(written.casefold()[:MAX_WORD_LENGTH], list(place_of), n=1)
    nearest = f"The nearest is {place_of[near[0]]} {_shorten(pieces[place_of[near[0]]])}." if near else ""
    problem = f"no token {_shorten(written)} in the text"
    raise InvalidSelection(problem, hint=nearest or _list_available(range(len(pieces)), "token"))


def select_pairs(chosen: Sequence[str], layers: Sequence[int], heads: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return the indices in `layers` and `heads` of each "layer.head", in the order given and each once.

    That of "layer.mean" is the index behind the last head. Raises InvalidSelection for a layer or head that does not
    exist and for anything written otherwise.
    """
    found = []
    written = ",".join(chosen)
    for item in written.split(","):
        match = _PAIR.fullmatch(item)
        if match is None:
            meant = re.sub(r"\s*[,:/]\s*", ".", written.strip())
            near = f"Did you mean {meant}? " if _PAIR.fullmatch(meant) else ""
            problem = f"{_shorten(item.strip())} does not say which head of which layer"
            raise InvalidSelection(problem, hint=near + PAIR_GRAMMAR)
        layer, head = match.groups()
        of_head = len(heads) if head == MEAN else heads.index(_parse_number(head, heads, "head"))
        found.append((layers.index(_parse_number(layer, layers, "layer")), of_head))
    return tuple(dict.fromkeys(found))


def is_slice(written: str) -> bool:
    """Return whether a slice such as "5:20" is written, rather than a word or a position."""
    return _SLICE.fullmatch(written.strip()) is not None and written.strip() != ":"


def find_span(written: str, pieces: Sequence[str]) -> range:
    """Find consecutive tokens: a slice of positions, one phrase, or all from one phrase to the next of another.

    A phrase is whole tokens, in any case and with any spaces between them; the first one must occur only once.
    Raises InvalidSelection for a phrase that does not occur, and where no token is left.
    """
    if match := _SLICE.fullmatch(written.strip()):
        first, last = (int(end) if end else None for end in match.groups())
        found = range(len(pieces))[first:last]
    else:
        begin, dots, end = (part.strip() for part in written.replace("...", "…").partition("…"))
        found = _find_phrase(begin, pieces) if begin else range(0)
        if dots:
            found = range(found.start, _find_phrase(end, pieces, found.stop).stop if end else len(pieces))
    if not found or not written.strip(" .…"):
        raise InvalidSelection(f"{_shorten(written)} leaves none of {len(pieces)} tokens", hint=SPAN_GRAMMAR)
    return found


def _find_phrase(words: str, pieces: Sequence[str], after: int | None = None) -> range:
    """Find the only occurrence of these words, or the first that begins at `after` or later."""
    parts = ["".join(piece.split()).casefold() for piece in pieces]
    wanted = "".join(words.split()).casefold()
    ends = list(accumulate(map(len, parts)))
    places: list[range] = []
    for first in range(after or 0, len(parts)):
        begin = ends[first] - len(parts[first])
        last = bisect_left(ends, begin + len(wanted))
        if parts[first] and last < len(ends) and "".join(parts[first : last + 1]) == wanted:
            places.append(range(first, last + 1))
    if len(places) == 1 or (places and after is not None):
        return places[0]
    if places:
        listed = ", ".join(f"{place.start}:{place.stop}" for place in places[:MAX_LISTED])
        raise InvalidSelection(f"{_shorten(words)} occurs {len(places)} times", hint=f"Choose by position: {listed}.")
    later = f" after token {after - 1}" if after else ""
    raise InvalidSelection(f"no {_shorten(words)} in the text{later}", hint=SPAN_GRAMMAR)


def _shorten(word: str) -> str:
    return repr(shorten_name(word))


def _parse_spans(written: str, available: Sequence[int], what: str, mean: bool) -> Iterator[range]:
    """Yield a range of indices for each item between commas. Both ends are checked first: 0-999999999 costs nothing."""
    for item in written.split(","):
        if item.strip() == MEAN and what == "head":
            if not mean:
                raise InvalidSelection("the mean over heads is not a head", hint="heatmap and render draw it.")
            yield range(len(available), len(available) + 1)
            continue
        match = _ITEM.fullmatch(item)
        if match is None:
            hint = f"{GRAMMAR} {MEAN} is the mean over all." if mean else GRAMMAR
            if mean and all(map(_PAIR.fullmatch, written.split(","))):
                hint = f"Did you mean --pick {written.strip()}? {PAIR_GRAMMAR}"
            raise InvalidSelection(f"{written!r} does not say which {what}", hint=hint)
        first, last = match.group(1), match.group(2)
        start = _parse_number(first, available, what, between=last is not None)
        end = start if last is None else _parse_number(last, available, what, between=True)
        if start > end:
            raise InvalidSelection(f"{what}s {item.strip()} run backwards", hint=GRAMMAR)
        yield range(bisect_left(available, start), bisect_right(available, end))


def _parse_number(written: str, available: Sequence[int], what: str, between: bool = False) -> int:
    """Parse one available number; with `between`, any number up to the last of them."""
    number = int(written)
    if -len(available) <= number < 0:
        return available[number]
    if number in available or (between and available and 0 <= number <= available[-1]):
        return number
    raise InvalidSelection(f"no {what} {number}", hint=_list_available(available, what))


def _list_available(available: Sequence[int], what: str) -> str:
    if not available:
        return f"There are no {what}s."
    if len(available) == 1:
        return f"There is only {what} {available[0]}."
    if available[-1] - available[0] == len(available) - 1:
        return f"There are {what}s {available[0]} to {available[-1]}."
    listed = ", ".join(map(str, available[:MAX_LISTED])) + (", …" if len(available) > MAX_LISTED else "")
    return f"There are {what}s {listed}."
