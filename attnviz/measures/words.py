"""Which tokens are pieces of one word, or of one phrase, and attention from word to word. Knows records and characters.

A word is what our own tokenizer takes for one: a Han or kana character, else letters, digits and marks with their
inner apostrophes, else any one grapheme. Phrases are words, but for Chinese, Japanese and Thai, which are written
without spaces: there BudouX finds where a line may break, by which characters stand beside each other. These are short
phrases, mostly words in Chinese and Thai, and longer in Japanese. It is an extra (Apache-2.0, no dependencies, models
of 35 to 65 kB). What it joins has a kind of its own, and says its version, so that no result depends on whether it is
installed.
"""

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

# Of graphemes that begin with a letter, digit, mark or underscore that is no word alone, with apostrophes within; else
# any one grapheme.
KANA = r"\p{Hiragana}\p{Katakana}ーｰﾞﾟ"
INNER = rf"(?:(?=[[\p{{L}}\p{{N}}\p{{M}}_]--[\p{{Han}}{KANA}]])\X)+"
WORD = rf"(?V1){INNER}(?:['’]{INNER})*|\X"
SCRIPT = rf"(?V1)(?=[\p{{L}}\p{{M}}])(?:(?P<kana>[{KANA}])|(?P<han>\p{{Han}})|(?P<thai>\p{{Thai}}))"
Text = Mapping[int, str]  # characters by their place
PACKAGE = "budoux"


def merge_words(maps: AttentionMaps, kind: MergeKind = "words") -> AttentionMaps:
    """Merge attention to words or phrases (see `merge_tokens`). The facts count the tokens there were, markers too.

    Raises InvalidOption where phrases need a package that is not installed.
    """
    if kind == "phrases":
        check_segmenter()
    units = find_words(maps.queries, kind)
    joined = merge_tokens(maps, units, None if maps.self_attention else find_words(maps.keys, kind))
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
        borders = _find_borders(text, kind)
        for position in stretch:
            if position > stretch.start and _belongs_to_word(tokens, position, text, borders):
                units[-1].append(position)
            else:
                units.append([position])
    return tuple(map(tuple, units))


def _find_borders(text: Text, kind: MergeKind) -> Mapping[int, bool]:
    """Return where words or phrases end and where they do not, in each part of the text that is known without gaps."""
    import regex  # whose graphemes and scripts are those of Unicode

    borders: dict[int, bool] = {}
    places = sorted(text)
    gaps = [at for at, (one, other) in enumerate(pairwise(places), 1) if other != one + 1]
    for first, last in pairwise([0, *gaps, len(places)]):
        part = "".join(text[place] for place in places[first:last])
        starts = {word.start() for word in regex.finditer(WORD, part)}
        of_part = {at: at in starts for at in range(len(part))}
        if kind == "phrases":
            of_part |= {at: ends for at, ends in find_borders(part).items() if not regex.match(r"\p{M}", part[at])}
        borders |= {places[first] + at: is_border for at, is_border in of_part.items()}
    return borders


def _belongs_to_word(tokens: Tokens, position: int, text: Text, borders: Mapping[int, bool]) -> bool:
    """Return whether a token belongs to the word, or phrase, of the one before it."""
    (start, end), (next_start, next_end) = tokens.offsets[position - 1 : position + 1]
    if max(start, next_start) < min(end, next_end):
        return True
    if start == end or end != next_start or next_start == next_end:
        return False
    if tokens.pieces[position - 1] == " ":
        return not tokens.pieces[position][:1].isspace()
    if text.get(end - 1, " ").isspace() or text.get(end, " ").isspace():
        return False
    return not borders[end]


def check_segmenter() -> None:
    """Raise InvalidOption where BudouX is not installed."""
    if find_spec(PACKAGE) is None:
        raise InvalidOption(f"--merge phrases needs {PACKAGE}", hint="Install it with: pip install 'attnviz[phrases]'")


def find_borders(text: str) -> dict[int, bool]:
    """Return, for each place between two characters of these scripts, whether a phrase ends there.

    Han characters are Japanese where any kana stand beside them, else Chinese: simplified where GB 2312 has them all.
    """
    import regex

    found = [regex.match(SCRIPT, character) for character in text]
    scripts = [match and str(match.lastgroup) for match in found]
    han = "".join(character for character, script in zip(text, scripts, strict=True) if script == "han")
    in_gb2312, in_big5 = (han.encode(each, "ignore").decode(each) == han for each in ("gb2312", "big5"))
    chinese = "simplified_chinese" if in_gb2312 or not in_big5 else "traditional_chinese"
    languages = {"kana": "japanese", "han": "japanese" if "kana" in scripts else chinese, "thai": "thai"}
    borders: dict[int, bool] = {}
    for language in sorted({languages[script] for script in scripts if script}):
        ends = {*accumulate(map(len, _load_parser(language).parse(text)))}
        for at in range(1, len(text)):
            beside = {languages[script] for script in scripts[at - 1 : at + 1] if script}
            if beside == {language} and all(scripts[at - 1 : at + 1]):
                borders[at] = at in ends
    return borders


@cache
def _load_parser(language: str) -> Any:
    return getattr(import_module("budoux"), f"load_default_{language}_parser")()
