"""What a decoder loses without the heads that a survey names: alone, all of a kind, and as many others at random.

A label says what a head looks at. Whether it matters only leaving it out says: a kind that was found on tokens that
come twice should cost there and not on texts, one that was found on texts should cost there and not on such tokens.
Costs are held against those of as many heads at random that have no name but that of a sink.
"""

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from attnviz.commands.survey.facts import draw_repeats
from attnviz.commands.survey.spec import SurveySpec
from attnviz.commands.survey.survey import HeadCost, SurveyInfo
from attnviz.errors import InvalidModel, InvalidOption, InvalidText
from attnviz.models.built_in import TRAINED
from attnviz.models.protocols import AttentionModel, Continues
from attnviz.records.head_names import SINKS
from attnviz.table.numbers import Numbers
from attnviz.text import Document

N_DRAWS, N_TEXTS, N_TOKENS = (
    2,
    4,
    64,
)  # of repeats, of texts, of each text at most: heads are many
N_RANDOM = 8  # heads without a name that are left out one by one
LEAST = 0.01  # nats per token, below which nothing is said to cost
Heads = tuple[tuple[int, int], ...]


def check_knockouts(spec: SurveySpec, model: AttentionModel) -> None:
    """Raise InvalidModel where a model foresees no tokens, InvalidOption for what a decoder's heads are not put to."""
    if not isinstance(model, Continues):
        raise InvalidModel(f"the heads of {model.name} cannot be put out of action", hint=f"--ablate: {TRAINED}")
    if spec.ablations != ("zero",):
        raise InvalidOption("heads of a decoder are replaced by zeros only", hint="Use --ablate zero.")
    if spec.shard is not None:
        raise InvalidOption("a part of a survey names no heads to leave out", hint="Leave out --shard or --ablate.")


def group_heads(names: Numbers) -> dict[str, Heads]:
    """Return by kind the heads of that name, the kinds in order: `names` as in `Tables`."""
    found = {str(kind): of.rows() for (kind,), of in names.group("pattern")}
    return {kind: tuple((row["layer"], row["head"]) for row in found[kind]) for kind in sorted(found)}


def measure_costs(
    model: Continues, info: SurveyInfo, documents: Sequence[Document], kinds: Mapping[str, Heads]
) -> tuple[HeadCost, ...]:
    """Return what is lost without all heads of each kind and without each head, beside as many heads at random.

    Heads that only rest on a sink are left out together, not one by one: there are hundreds.
    """
    repeats = draw_repeats(model, N_DRAWS)
    texts = list[Sequence[int]]()
    for document in documents[:N_TEXTS]:
        with suppress(InvalidText):
            texts.append(model.read_ids(document.text)[:N_TOKENS])
    texts = [ids for ids in texts if len(ids) > 1]

    def lose(heads: Heads) -> tuple[float, float]:
        places = [(info.layer_numbers.index(layer), head) for layer, head in heads]
        twice = np.concatenate([model.losses(ids, places)[len(ids) // 2 :] for ids in repeats])
        on_texts = np.concatenate([model.losses(ids, places) for ids in texts]) if texts else np.zeros(1)
        return float(twice.mean()), float(on_texts.mean())

    telling = {kind: heads for kind, heads in kinds.items() if kind not in SINKS}
    named = {head for heads in telling.values() for head in heads}
    others = [head for head in info.heads if head not in named]
    draws = random.Random(0)  # noqa: S311 - no secret
    sizes = {len(heads) for heads in telling.values()} - {1}
    asked = [(kind, heads) for kind, heads in kinds.items() if len(heads) > 1]
    asked += [(kind, (head,)) for kind, heads in telling.items() for head in heads]
    if named:
        asked += [("", (head,)) for head in draws.sample(others, min(N_RANDOM, len(others)))]
        asked += [("", tuple(sorted(draws.sample(others, size)))) for size in sorted(sizes) if size <= len(others)]
    whole, known, found = lose(()), dict[Heads, tuple[float, float]](), list[HeadCost]()
    for kind, heads in asked:
        if heads not in known:  # one head may have two names
            known[heads] = lose(heads)
        on_repeats, on_texts = (lost - before for lost, before in zip(known[heads], whole, strict=True))
        found.append(HeadCost(kind, heads, on_repeats, on_texts))
    return tuple(found)


def find_chance(costs: Sequence[HeadCost], n_heads: int) -> tuple[float, float]:
    """Return what as many heads at random cost at most, on repeats and on texts; never below what counts as a cost."""
    alike = [cost for cost in costs if not cost.kind and len(cost.heads) == n_heads]
    return (
        max([LEAST, *(abs(cost.on_repeats) for cost in alike)]),
        max([LEAST, *(abs(cost.on_texts) for cost in alike)]),
    )


def matters(cost: HeadCost, chance: tuple[float, float], of_repeats: bool) -> bool:
    """Return whether heads cost more than chance where their kind was found, and nothing elsewhere."""
    beyond = cost.on_repeats > chance[0], cost.on_texts > chance[1]
    return beyond == ((True, False) if of_repeats else (False, True))
