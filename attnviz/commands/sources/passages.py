"""A prompt in passages, and the question behind them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from attnviz.display import format_count
from attnviz.errors import InvalidOption, InvalidText

LINE = r"\S(?:.*\S)?"
KINDS = {
    "paragraphs": re.compile(rf"(?P<passage>{LINE}(?:[^\S\n]*\n[^\S\n]*{LINE})*)"),
    "lines": re.compile(rf"(?P<passage>{LINE})"),
    # Innermost, where marks are nested. A mark's name is whole, or a long one would be tried at each of its lengths.
    "marked": re.compile(r"<(?P<mark>\w+)\b[^<>]*>(?P<passage>(?:(?!<\w).)*?)</(?P=mark)>", re.DOTALL),
}
FEWEST = 2
GAP = "\n\n"  # before a question that is given beside its passages, and between passages that are texts


class Prompt(NamedTuple):
    """A text, and the begin and end of each passage in it. What is asked stands behind them."""

    text: str
    passages: tuple[tuple[int, int], ...]


def split_prompt(texts: Sequence[str], kind: str, question: str | None) -> Prompt:
    """Find the passages of a prompt. Without a question the last one is it, or what stands behind marked ones.

    Raises InvalidOption for texts that are not the passages they are said to be, InvalidText for fewer than two, and
    for marked ones behind which nothing is asked.
    """
    if len(texts) > 1 and kind not in ("auto", "texts"):
        raise InvalidOption(f"--passages {kind} of {len(texts)} texts", hint="Each is a passage: --passages texts.")
    texts = [text.rstrip("\n") for text in texts]  # a file's last line has an end, and nobody answers behind it
    whole = GAP.join(texts)
    lengths = [0, *(len(text) + len(GAP) for text in texts)]
    starts = [sum(lengths[: i + 1]) for i in range(len(texts))]
    found = [(start, start + len(text)) for start, text in zip(starts, texts, strict=True) if text.strip()]
    last_asks = question is None and kind != "marked"
    fewest = FEWEST + last_asks
    if len(texts) == 1 and kind != "texts":
        for name in ("paragraphs", "lines") if kind == "auto" else (kind,):
            matches = KINDS[name].finditer(whole)
            found = [each.span("passage") for each in matches if each["passage"].strip()]
            if len(found) >= fewest:
                break
    if len(found) < fewest:
        asked = f"{FEWEST} and a question behind them" if last_asks else str(FEWEST)
        raise InvalidText(
            f"the prompt has {format_count(len(found), 'passages')}, and sources are told apart from {asked} on",
            hint="Put an empty line, a line's end or marks (--passages marked) between passages; --question asks.",
        )
    if last_asks:
        return Prompt(whole, tuple(found[:-1]))
    if question is None:
        if not whole[found[-1][1] :].partition(">")[2].strip():
            raise InvalidText("nothing is asked behind the passages", hint="Ask there, or with --question.")
        return Prompt(whole, tuple(found))
    first, last = found[-1]
    if whole[first:last] == question.strip():
        raise InvalidOption("--question is the last passage, too", hint="Leave --question out: the last passage asks.")
    return Prompt(f"{whole}{GAP}{question}", tuple(found))
