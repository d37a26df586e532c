"""Make any string safe to show: nothing hidden, no grapheme cut, of a bounded width.

Errors, views, renderers and the command line all show strings, so it imports no other room. Graphemes follow the
properties that Unicode gives its characters (UAX 29, UTS 51), through `regex`, which is imported only when a string
holds more than printable ASCII.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

Item = TypeVar("Item")
EMPTY, CUT = "∅", "…"
JOIN = "\xa0"  # a space at which no line breaks
SIGNS = {"\n": "⏎", "\t": "⇥", " ": "␣"}  # a space only at the ends: within a label it can be seen
SPACES = " \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"  # Zs
DOTTED_CIRCLE = "◌"  # carries a mark that has no base of its own
FORMULA = tuple("=+-@＝＋－＠")  # what makes a spreadsheet compute a cell; the wide ones do so in some locales
LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # in a Python string a surrogate is always a lone one
REPLACEMENT = "\ufffd"
MAX_EXCERPT_LENGTH = 40  # characters of a text that name it
MAX_MARKS = 6  # on one base; no script stacks more, Zalgo does

# Draws nothing, or changes how its neighbours are drawn. The signs that are put before Arabic numbers are visible.
_HIDDEN = r"[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}\u2800\ufffe\uffff]--[\p{PCM}]]"
_SELECTOR = r"[\ufe00-\ufe0f\U000e0100-\U000e01ef]"  # chooses a variant of the character before it
_HAS_VARIANTS = r"[\p{S}\p{P}\p{N}\p{Extended_Pictographic}\u2e80-\U000dffff]"  # letters have none
_MARK = rf"[\p{{M}}--{_HIDDEN}]"
_PICTURE = r"\p{Extended_Pictographic}[\ufe0f\U0001f3fb-\U0001f3ff]?"
_JOINED_SCRIPT = r"[[\u0600-\u0dff]--\p{Cf}]"  # Arabic to Sinhala, which joiners shape
_UNIT = rf"""
    (?P<whole> \U0001f3f4 [\U000e0020-\U000e007e]{{1,7}} \U000e007f   # a flag such as Scotland's
             | \p{{RI}} \p{{RI}}
             | {_PICTURE} (?: \u200d {_PICTURE} ){{1,7}}
             | [\u1100-\u115e]+ [\u1161-\u11a7]+ [\u11a8-\u11ff]*     # a Korean syllable in its parts
    )
  | (?P<base> [^\p{{M}}] (?<! {_HIDDEN} ) )
    (?P<tail> [\U0001f3fb-\U0001f3ff]? (?: (?<= {_HAS_VARIANTS} ) {_SELECTOR} )?
      (?: {_MARK} | (?<= {_JOINED_SCRIPT} ) [\u200c\u200d] (?= {_JOINED_SCRIPT} ) ){{0,{MAX_MARKS}}} )
    (?P<more> {_MARK}* )
  | (?P<mark> {_MARK}{{1,{MAX_MARKS}}} ) (?P<more> {_MARK}* )
  | (?P<hidden> . )
"""


def escape_for_display(text: str, max_width: int = 24) -> str:
    """Write `text` with nothing hidden: controls, bidi controls and zero-width characters as escapes (`\\u202e`).

    Newline is ⏎, tab ⇥, a space at either end ␣, the empty string ∅. Joiners stay where scripts and emoji need them,
    and marks stay on their base. More than `max_width` graphemes are cut with …, never within a grapheme.
    """
    if not text:
        return EMPTY
    if text.isascii() and text.isprintable() and len(text) <= max_width and text.strip() == text:
        return text
    units: list[tuple[str, int]] = []
    width = 0
    for unit in _split_units(text):
        units.append(unit)
        width += unit[1]
        if width > max_width:
            break
    else:
        return "".join(shown for shown, _ in units)
    while units and width > max_width - len(CUT):
        width -= units.pop()[1]
    return "".join(shown for shown, _ in units) + CUT


def replace_surrogates(text: str) -> str:
    """Replace each lone surrogate, which no encoding has, by U+FFFD."""
    return LONE_SURROGATE.sub(REPLACEMENT, text)


def escape_for_spreadsheet(text: str) -> str:
    """Write `text`, however long, as a cell that a spreadsheet does not take for a formula (CWE-1236)."""
    cell = escape_for_display(text, sys.maxsize)
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def _split_units(text: str) -> Iterator[tuple[str, int]]:
    """Yield each part that may not be cut, and its width: 1 for a grapheme, more for a character that is escaped."""
    first, end = len(text) - len(text.lstrip(SPACES)), len(text.rstrip(SPACES))
    for found in _compile_unit_pattern().finditer(text):
        unit, character = found[0], found[0][0]
        if character in "\n\t":
            yield SIGNS[character], 1
        elif found["hidden"]:
            yield _escape(unit), len(_escape(unit))
        elif character in SPACES and not first <= found.start() < end:
            escaped = SIGNS.get(character) or _escape(character)
            yield escaped, len(escaped)
            if len(unit) > 1:
                yield DOTTED_CIRCLE + unit[1 : 1 + MAX_MARKS], 1
        else:
            kept = unit[: len(unit) - len(found["more"] or "")]
            yield (DOTTED_CIRCLE + kept if found["mark"] else kept), 1
        if found["more"]:
            yield CUT, 1


@cache
def _compile_unit_pattern() -> Any:
    import regex  # only for more than printable ASCII

    return regex.compile(_UNIT, regex.VERSION1 | regex.VERBOSE | regex.DOTALL)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shorten_name(name: str, longest: int = MAX_EXCERPT_LENGTH) -> str:
    """Cut a name to a length that fits a message."""
    return name if len(name) <= longest else name[: longest - 1] + CUT


def pluralize(number: int, many: str) -> str:
    """Return the plural `many`, or its singular where `number` is 1: "keys" and "key", "queries" and "query"."""
    if number != 1:
        return many
    return many.removesuffix("ies") + "y" if many.endswith("ies") else many.removesuffix("s")


def name_measure(name: str, unit: str = "") -> str:
    """Write a measure as tables and axes have it, "entropy (nats)"; without a unit that it says: "effective keys"."""
    title = name.replace("_", " ")
    return f"{title} ({unit})" if unit and unit not in title else title


def format_count(number: int, many: str) -> str:
    """Write a count with its noun: "1,024 keys", "1 key"."""
    return f"{number:,} {pluralize(number, many)}"


def quote_beginning(text: str) -> str:
    """Name a text by its beginning, up to the end of a word: “the film was not good but…”."""
    words = " ".join(text.split())
    if len(words) <= MAX_EXCERPT_LENGTH:
        return f"“{words}”"
    whole, _, _ = words[: MAX_EXCERPT_LENGTH + 1].rpartition(" ")  # of a script without spaces the characters
    beginning = whole if len(whole) >= MAX_EXCERPT_LENGTH // 2 else words[:MAX_EXCERPT_LENGTH]
    return f"“{beginning.rstrip('….')}…”"  # a sentence that ends there would have four dots


def list_first(items: Sequence[Item], limit: int, write: Callable[[Item], str] = str, between: str = ", ") -> str:
    """Write the first `limit` items of a list: "a, b and 3 more"."""
    more = f" and {len(items) - limit} more" if len(items) > limit else ""
    return between.join(map(write, items[:limit])) + more
