"""Any string as one that is safe to show. Knows characters and imports nothing heavy: errors are shown with it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

SIGNS = {"\n": "⏎", "\t": "⇥", " ": "␣"}  # space only at the ends: within a label it can be seen
EMPTY, CUT, CIRCLE = "∅", "…", "◌"  # the dotted circle carries a mark that has no base of its own
JOINERS = "\u200c\u200d"
NUMBER_SIGNS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")  # format, yet visible
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2065\u2800\u3164\uffa0\ufffe\uffff")  # by name not format
MOST_MARKS = 6  # on one base; no script stacks more, Zalgo does
MOST_CHARACTERS = 16  # in one grapheme; the longest emoji families have ten


def visible(piece: str, longest: int = 24) -> str:
    """`piece` with nothing hidden: controls, bidi controls and zero-width characters written out, such as `\\u202e`.

    Newline is ⏎, tab ⇥, a space at either end ␣, the empty string ∅. Joiners stay where scripts and emoji need them,
    and marks stay on their base. More than `longest` graphemes are cut with …, never within a grapheme.
    """
    if not piece:
        return EMPTY
    if piece.isascii() and piece.isprintable() and len(piece) <= longest and piece.strip() == piece:
        return piece
    units: list[tuple[str, int]] = []
    size = 0
    for unit in _units(piece):
        units.append(unit)
        size += unit[1]
        if size > longest:
            break
    else:
        return "".join(text for text, _ in units)
    while units and size > longest - len(CUT):
        size -= units.pop()[1]
    return "".join(text for text, _ in units) + CUT


def _units(piece: str) -> Iterator[tuple[str, int]]:
    """What may not be cut apart, and how many places each takes: a grapheme one, a written-out character several."""
    first = next((i for i, c in enumerate(piece) if not _is_space(c)), len(piece))
    last = next((i for i in range(len(piece) - 1, -1, -1) if not _is_space(piece[i])), -1)
    at = 0
    while at < len(piece):
        character = piece[at]
        at_an_end = _is_space(character) and not first <= at <= last
        if character in "\n\t" or (at_an_end and character == " "):
            yield SIGNS[character], 1
            at += 1
        elif at_an_end or _is_hidden(character):
            written = _written(character)
            yield written, len(written)
            at += 1
        else:
            end = _grapheme_end(piece, at)
            text = piece[at:end]
            yield (CIRCLE + text if _is_mark(character) else text), 1
            at = _marks_end(piece, end)
            if at > end:
                yield CUT, 1


def _grapheme_end(piece: str, start: int) -> int:
    """Where the grapheme that begins at `start` ends: close to UAX 29, and bounded."""
    base = piece[start]
    if base == "\U0001f3f4" and (flag := _flag_end(piece, start)):
        return flag
    end, marks = start + 1, int(_is_mark(base))
    while end < min(len(piece), start + MOST_CHARACTERS):
        character, before = piece[end], piece[end - 1]
        if _is_selector(character):
            if _is_selector(before) or not _takes_selector(before):
                break
            end += 1
        elif _is_mark(character) and not _is_hidden(character):
            if marks == MOST_MARKS:
                break
            marks += 1
            end += 1
        elif _belongs(base, before, character, end - start):
            end += 1
        elif character in JOINERS and end + 1 < len(piece) and _joins(base, before, character, piece[end + 1]):
            end += 2
        else:
            break
    return end


def _marks_end(piece: str, start: int) -> int:
    """Where the marks end that are too many to show."""
    if start == len(piece) or not _is_mark(piece[start]) or _is_hidden(piece[start]):
        return start
    end = start
    while end < len(piece) and _is_mark(piece[end]):
        end += 1
    return end


def _flag_end(piece: str, start: int) -> int:
    """The end of a flag such as Scotland's, spelled in tag characters after a black flag; 0 where there is none."""
    end = start + 1
    while end < min(len(piece), start + 9) and 0xE0020 <= ord(piece[end]) <= 0xE007E:
        end += 1
    return end + 1 if start + 1 < end < len(piece) and piece[end] == "\U000e007f" else 0


def _belongs(base: str, before: str, character: str, length: int) -> bool:
    """The second half of a flag, a skin colour, or the rest of a Hangul syllable in jamo."""
    if _is_between(character, 0x1F1E6, 0x1F1FF):
        return length == 1 and _is_between(base, 0x1F1E6, 0x1F1FF)
    if _is_between(character, 0x1F3FB, 0x1F3FF):
        return _is_picture(before)
    if _is_between(character, 0x1161, 0x11A7):
        return _is_between(before, 0x1100, 0x11A7)
    return _is_between(character, 0x11A8, 0x11FF) and _is_between(before, 0x1161, 0x11FF)


def _joins(base: str, before: str, joiner: str, after: str) -> bool:
    """Joiners shape Arabic and the scripts of India; the zero-width joiner also makes one emoji of several."""
    if joiner == "\u200d" and _is_picture(base):
        return _is_picture(after)
    return _is_between(before, 0x600, 0xDFF) and _is_between(after, 0x600, 0xDFF) and not _is_hidden(after)


def _is_hidden(character: str) -> bool:
    """Characters that draw nothing, or that change how their neighbours are drawn."""
    category = unicodedata.category(character)
    if category == "Cf":
        return character not in NUMBER_SIGNS
    return (
        category in {"Cc", "Cs", "Zl", "Zp"}
        or character in INVISIBLE
        or _is_selector(character)
        or _is_between(character, 0xFFF0, 0xFFF8)
        or _is_between(character, 0xE0000, 0xE0FFF)
    )


def _is_selector(character: str) -> bool:
    return _is_between(character, 0xFE00, 0xFE0F) or _is_between(character, 0xE0100, 0xE01EF)


def _takes_selector(before: str) -> bool:
    """Symbols, digits (keycaps) and ideographs have variants; a letter with a selector looks like the letter."""
    return unicodedata.category(before)[0] in "SPN" or _is_picture(before) or ord(before) >= 0x2E80


def _is_picture(character: str) -> bool:
    """Roughly Unicode's Extended_Pictographic, and the skin colours."""
    return (
        _is_between(character, 0x1F000, 0x1FAFF)
        or _is_between(character, 0x2190, 0x2BFF)
        or character in "©®‼⁉™ℹ〰〽㊗㊙"
    ) and not _is_between(character, 0x1F1E6, 0x1F1FF)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


def _is_space(character: str) -> bool:
    return unicodedata.category(character) == "Zs"


def _is_between(character: str, first: int, last: int) -> bool:
    return first <= ord(character) <= last


def _written(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
