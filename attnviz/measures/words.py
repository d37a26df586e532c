"""Which tokens are pieces of one word, or of one phrase, and attention from word to word. Knows records and characters.

A word is what our own tokenizer takes for one: a Han or kana character, else letters, digits and marks with their
inner apostrophes, else any one grapheme. Phrases are words, but for Chinese, Japanese and Thai, which are written
without spaces: there BudouX finds where a line may break, by which characters stand beside each other. These are short
phrases, mostly words in Chinese and Thai, and longer in Japanese. It is an extra (Apache-2.0, no dependencies, models
of 35 to 65 kB). What it joins has a kind of its own, and says its version, so that no result depends on whether it is
installed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from itertools import accumulate, pairwise, starmap
from typing import Any

from attnviz.errors import InvalidOption
from attnviz.measures.merging import Unit, merge_tokens
from attnviz.records import AttentionMaps, Tokens
from attnviz.specs import MergeKind

APOSTROPHES = "'’"
JOINERS = "\u200c\u200d"
TAGS, SKIN_COLOURS, FLAG_HALVES = (
    {*map(chr, range(first, last + 1))} for first, last in ((0xE0020, 0xE007F), (0x1F3FB, 0x1F3FF), (0x1F1E6, 0x1F1FF))
)

Text = Mapping[int, str]  # characters by their place
PACKAGE = "budoux"
# Prefixes of the names of characters: Python has no table of Unicode scripts.
KANA = ("HIRAGANA ", "HENTAIGANA ", "KATAKANA", "HALFWIDTH KATAKANA")
SINGLE_CHARACTER_WORDS = ("CJK ", "IDEOGRAPHIC ", "VERTICAL IDEOGRAPHIC ", "HANGZHOU ", *KANA)
HAN = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "IDEOGRAPHIC ")  # the last are marks and signs, too
THAI = ("THAI CHARACTER ",)


def merge_words(maps: AttentionMaps, kind: MergeKind = "words") -> AttentionMaps:
    """Merge attention to words or phrases (see `merge_tokens`). The facts count the tokens there were, markers too.

    Raises InvalidOption where phrases need a package that is not installed.
    """
    if kind == "phrases":
        check_segmenter()
    units = find_words(maps.queries, kind)
    of_keys = None if maps.self_attention else find_words(maps.keys, kind)
    joined = merge_tokens(maps, units, of_keys)
    if maps.self_attention:
        counts = [("tokens_before_merging", len(maps.queries))]
    else:
        counts = [("queries_before_merging", len(maps.queries)), ("keys_before_merging", len(maps.keys))]
    by = [("segmenter", f"{PACKAGE} {version(PACKAGE)}")] if kind == "phrases" else []
    settings = (*maps.provenance.settings, ("merge", kind), *by, *counts)
    facts = replace(
        maps.provenance.facts, queries_before_joining=len(maps.queries), keys_before_joining=len(maps.keys), chosen=()
    )
    return replace(joined, provenance=replace(maps.provenance, settings=settings, facts=facts))


def find_words(tokens: Tokens, kind: MergeKind = "words") -> tuple[Unit, ...]:
    """Return the tokens of each word, or phrase, in order. A token is never cut, a marker never joined.

    Tokens that share characters belong together, and so do those that touch where there is no border between words. A
    single space that is a token belongs to the token right after it, as in " cat".
    """
    units: list[list[int]] = []
    # Places count from 0 again after a marker, where a second text may follow: each stretch is of one text.
    starts = [
        position
        for position in range(1, len(tokens))
        if any(tokens.special[position - 1 : position + 1])
        or tokens.offsets[position][0] < tokens.offsets[position - 1][0]
    ]
    for stretch in starmap(range, pairwise([0, *starts, len(tokens)])):
        text = dict[int, str]()  # characters by place: only first and last of a piece whose length is not its span's
        for position in stretch:
            piece, (start, end) = tokens.pieces[position], tokens.offsets[position]
            if len(piece) == end - start:
                text.update(zip(range(start, end), piece, strict=True))
            elif piece and start < end:
                text |= {start: piece[0], end - 1: piece[-1]}
        borders = _find_phrase_borders(text) if kind == "phrases" else {}
        for position in stretch:
            if position > stretch.start and _belongs_to_word(tokens, position, text, borders):
                units[-1].append(position)
            else:
                units.append([position])
    return tuple(map(tuple, units))


def _find_phrase_borders(text: Text) -> Mapping[int, bool]:
    """Return where phrases end and where they do not, within each part of the text that is known without gaps."""
    borders: dict[int, bool] = {}
    places = sorted(text)
    gaps = [at for at, (one, other) in enumerate(pairwise(places), 1) if other != one + 1]
    for first, last in pairwise([0, *gaps, len(places)]):
        part = "".join(text[place] for place in places[first:last])
        borders |= {places[first] + at: is_border for at, is_border in find_borders(part).items()}
    return borders


def _belongs_to_word(tokens: Tokens, position: int, text: Text, borders: Mapping[int, bool]) -> bool:
    """Return whether a token belongs to the word of the one before it. `borders` are those of phrases."""
    (start, end), (next_start, next_end) = tokens.offsets[position - 1 : position + 1]
    if max(start, next_start) < min(end, next_end):
        return True
    if start == end or end != next_start or next_start == next_end:
        return False
    if tokens.pieces[position - 1] == " ":
        return not tokens.pieces[position][:1].isspace()
    before, after = text.get(end - 1, " "), text.get(end, " ")
    if before.isspace() or after.isspace():
        return False
    if _continues(text, end):
        return True
    if end in borders:
        return not borders[end]
    if _is_in_word(text, end - 1) and _is_in_word(text, end):
        return True
    if before in APOSTROPHES:
        return _is_in_word(text, end - 2) and _is_in_word(text, end)
    return after in APOSTROPHES and _is_in_word(text, end - 1) and _is_in_word(text, end + 1)


def _is_in_word(text: Text, at: int) -> bool:
    """Return whether a letter, digit or underscore is here that is no word alone. A mark counts as its base."""
    character = text.get(at, " ")
    while unicodedata.category(character)[0] == "M" and at - 1 in text:
        at -= 1
        character = text[at]
    category = unicodedata.category(character)
    if category[0] not in "LNM" and character != "_":
        return False
    return not unicodedata.name(character, "").startswith(SINGLE_CHARACTER_WORDS)


def _continues(text: Text, at: int) -> bool:
    """Return whether the character here continues the one before: a mark, a skin colour, half a flag, a joined part."""
    before, after = text[at - 1], text[at]
    if unicodedata.category(after)[0] == "M" or after in JOINERS or after in TAGS:
        return True
    if after in SKIN_COLOURS:
        return unicodedata.category(before) in ("So", "Mn")  # the variation selector of an emoji is a mark
    if after in FLAG_HALVES:
        n_before = 0
        while text.get(at - 1 - n_before, " ") in FLAG_HALVES:
            n_before += 1
        return n_before % 2 == 1
    if before in JOINERS:
        return unicodedata.category(after) == "So" or (_is_in_word(text, at - 2) and _is_in_word(text, at))
    return False


def check_segmenter() -> None:
    """Raise InvalidOption where BudouX is not installed."""
    if find_spec(PACKAGE) is None:
        raise InvalidOption(f"--merge phrases needs {PACKAGE}", hint="Install it with: pip install 'attnviz[phrases]'")


def find_borders(text: str) -> dict[int, bool]:
    """Return, for each place between two characters of these scripts, whether a phrase ends there.

    Han characters are Japanese where any kana stand beside them, else Chinese: simplified where GB 2312 has them all.
    """
    scripts = [_find_script(character) for character in text]
    has_kana = "kana" in scripts
    han = "".join(character for character, script in zip(text, scripts, strict=True) if script == "han")
    is_simplified = _is_in(han, "gb2312") or not _is_in(han, "big5")
    chinese = "simplified_chinese" if is_simplified else "traditional_chinese"
    languages = {"kana": "japanese", "han": "japanese" if has_kana else chinese, "thai": "thai"}
    borders: dict[int, bool] = {}
    for language in sorted({languages[script] for script in scripts if script}):
        ends = {*accumulate(map(len, _load_parser(language).parse(text)))}
        for at in range(1, len(text)):
            beside = {languages[script] for script in scripts[at - 1 : at + 1] if script}
            if beside == {language} and all(scripts[at - 1 : at + 1]):
                borders[at] = at in ends
    return borders


def _find_script(character: str) -> str:
    if unicodedata.category(character)[0] not in "LM":
        return ""
    name = unicodedata.name(character, "")
    kinds = {"kana": KANA, "han": HAN, "thai": THAI}
    return next((kind for kind, prefixes in kinds.items() if name.startswith(prefixes)), "")


def _is_in(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


@cache
def _load_parser(language: str) -> Any:
    return getattr(import_module("budoux"), f"load_default_{language}_parser")()
