"""A prompt in passages, and the question behind them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from attnviz.display import format_count
from attnviz.errors import InvalidOption, InvalidText

KINDS = {"paragraphs": re.compile(r"\n[ \t]*\n"), "lines": re.compile(r"\n")}
FEWEST = 2
MARKED = re.compile(r"<(\w+)[^<>]*>((?:(?!<\w).)*?)</\1>", re.DOTALL)  # innermost, where marks are nested
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
        raise InvalidOption(
            f"--passages {kind} of {len(texts)} texts", hint="Each text is a passage: --passages texts."
        )
    texts = [text.rstrip("\n") for text in texts]  # a file's last line has an end, and nobody answers behind it
    whole = GAP.join(texts)
    lengths = [0, *(len(text) + len(GAP) for text in texts)]
    starts = [sum(lengths[: i + 1]) for i in range(len(texts))]
    found = [(start, start + len(text)) for start, text in zip(starts, texts, strict=True) if text.strip()]
    last_asks = question is None and kind != "marked"
    fewest = FEWEST + last_asks
    if kind == "marked":
        found = [match.span(2) for match in MARKED.finditer(whole) if match[2].strip()]
    elif len(texts) == 1:
        for name, gap in KINDS.items():
            if kind in ("auto", name):
                found = _split(whole, gap)
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
        if not whole.rpartition(">")[2].strip():
            raise InvalidText("nothing is asked behind the passages", hint="Ask there, or with --question.")
        return Prompt(whole, tuple(found))
    first, last = found[-1]
    if whole[first:last] == question.strip():
        raise InvalidOption("--question is the last passage, too", hint="Leave --question out: the last passage asks.")
    return Prompt(f"{whole}{GAP}{question}", tuple(found))


def _split(text: str, gap: re.Pattern[str]) -> list[tuple[int, int]]:
    """Return where each part between gaps begins and ends, without space around it."""
    edges = [0, *(edge for match in gap.finditer(text) for edge in match.span()), len(text)]
    parts = zip(edges[::2], edges[1::2], strict=True)
    strips = ((a + len(text[a:b]) - len(text[a:b].lstrip()), a + len(text[a:b].rstrip())) for a, b in parts)
    return [(a, b) for a, b in strips if a < b]
