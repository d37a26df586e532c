"""Calls of attention that belong together, the layers of one group. Knows paths and shapes; no tokens, no records."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from attnviz.errors import BadRecord
from attnviz.models.capture import Call

NUMBER = re.compile(r"(?<![^._])\d+(?![^.])")  # "3" in "layers.3.attn" and in "layer_3", not in "attn1"


@dataclass(frozen=True, eq=False)
class Group:
    """Calls of one pass with the same shapes, whose paths are alike but for numbers. In order, they are its layers."""

    name: str  # "decoder.layers.*.self_attn"
    number: int  # of the pass
    calls: list[Call]

    @property
    def n_rows(self) -> int:
        return len(self.calls[0].weights)

    @property
    def n_queries(self) -> int:
        return int(self.calls[0].weights.shape[2])

    @property
    def n_keys(self) -> int:
        return int(self.calls[0].weights.shape[3])

    @property
    def place(self) -> str:
        """What an error calls it."""
        return self.name or "this block"

    @property
    def prefix(self) -> str:
        """What groups of the same layers share."""
        return self.name[: self.name.rfind("*") + 1] or self.name.rpartition(".")[0]


def grouped(calls: Iterable[Call]) -> list[Group]:
    """The groups of each pass, in the order of their first calls. Raises BadRecord where calls cannot be layers."""
    families: dict[tuple[int, str], list[Call]] = defaultdict(list)
    for call in calls:
        families[call.number, starred(call.path)].append(call)
    return [group for (number, _), family in families.items() for group in _alike(number, family)]


def starred(path: str, n_kept: int = 0) -> str:
    """The path with its numbers, besides the first ones, replaced by *."""
    numbers = iter(range(path.count(".") + 1))
    return NUMBER.sub(lambda found: found[0] if next(numbers) < n_kept else "*", path)


def _alike(number: int, family: Sequence[Call]) -> list[Group]:
    """One group; where shapes differ, as between stages of Swin, groups that share the first numbers of the path."""
    for n_kept in range(max(len(NUMBER.findall(call.path)) for call in family) + 1):
        groups: dict[str, list[Call]] = defaultdict(list)
        for call in family:
            groups[starred(call.path, n_kept)].append(call)
        if all(len({call.weights.shape for call in group}) == 1 for group in groups.values()):
            return [Group(name, number, group) for name, group in groups.items()]
    one, other = list(dict.fromkeys(call.weights.shape[1:] for call in family))[:2]
    raise BadRecord(
        f"the calls in {family[0].path or 'this block'} are not layers of one model: one has "
        "{} heads, {} queries and {} keys, another {}, {} and {}".format(*one, *other),
        hint="Record them in a block each.",
    )


def crossing(groups: Sequence[Group]) -> dict[str, bool]:
    """Of groups that make pairs with the same prefix: whether each is the later, which attends to another text."""
    pairs: dict[str, list[str]] = defaultdict(list)
    for group in groups:
        pairs[group.prefix].append(group.name)
    return {name: name == pair[1] for pair in pairs.values() if len(pair) == 2 for name in pair}
