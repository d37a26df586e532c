"""Where phrases of Chinese, Japanese and Thai end, which are written without spaces. Knows BudouX and characters.

BudouX finds where a line may break, by which characters stand beside each other: short phrases, mostly words in Chinese
and Thai, and longer in Japanese. It is an extra (Apache-2.0, no dependencies, models of 35 to 65 kB). What it joins has
a kind of its own, and says its version, so that no result depends on whether it is installed.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from typing import Any

from attnviz.errors import InvalidOption

PACKAGE = "budoux"
KANA = ("HIRAGANA ", "HENTAIGANA ", "KATAKANA", "HALFWIDTH KATAKANA")
HAN = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "IDEOGRAPHIC ")  # the last are marks and signs, too
THAI = ("THAI CHARACTER ",)


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
