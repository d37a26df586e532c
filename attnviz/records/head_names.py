"""The one rule by which a head gets a name. Knows shares of attention, and neither texts nor models.

Whoever names heads, over many texts or in one, measures the shares of the same patterns and asks `choose_name`: so a
head has one name in tables, pictures, pages, cards, surveys and lessons. A name needs a share of at least 30 %, and
more than chance gives, which each caller finds out in its own way: from models with random weights where it reads many
texts, from a test where it reads one.
"""

import re
from collections.abc import Iterable, Sequence
from math import isnan, nan
from typing import NamedTuple

from attnviz.display import escape_for_display

MIN_SHARE = 0.3
# Where attention rests that has nothing to do: it names a head only where no other pattern does.
SINKS = frozenset({"first token", "special tokens", "sink"})
PLACE = re.compile("previous token|itself|next token|[0-9]+ (before|after)")  # what `name_offset` gives
NO_NAME = "no single pattern"


class HeadPattern(NamedTuple):
    """What a head looks at: a pattern, how much of its attention that is, and the most that chance gives."""

    pattern: str = ""  # such as "previous token"; "" where none names it
    share: float = nan  # of the attention of the queries that have such a key; NaN: there are none
    chance: float = nan


def name_offset(offset: int) -> str:
    """Return what a head is called whose queries attend most to the key `offset` behind them: "2 before", "itself"."""
    near = {-1: "previous token", 0: "itself", 1: "next token"}
    return near.get(offset, f"{abs(offset)} {'before' if offset < 0 else 'after'}")


def choose_name(patterns: Iterable[HeadPattern]) -> HeadPattern:
    """Return the pattern with the largest share, of equal ones the first; one without a name where none is enough."""
    enough = (each for each in patterns if each.share >= MIN_SHARE and each.share > each.chance)
    return max(enough, key=lambda each: (each.pattern not in SINKS, each.share), default=HeadPattern())


def choose_names(heads: Sequence[Sequence[HeadPattern]], known: Sequence[str]) -> list[HeadPattern]:
    """Return the name of each head: the one that the model's card has, with its share here; without a card the best.

    The share is NaN where what was read has nothing of the kind. `known` are labels, "next token 0.60", or nothing. As
    they may come of anybody's file, what is hidden in them is written out, and a long one is cut.
    """
    if not known:
        return [choose_name(patterns) for patterns in heads]
    names = [label and escape_for_display(label.rpartition(" ")[0]) for label in known]
    return [
        next((each for each in patterns if each.pattern == name), HeadPattern(name))
        for patterns, name in zip(heads, names, strict=True)
    ]


def write_share(share: float) -> str:
    """Return a share in per cent, such as "64 %"; "" for NaN."""
    return "" if isnan(share) else f"{share:.0%}".replace("%", " %")
