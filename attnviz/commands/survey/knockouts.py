"""What a decoder loses without the heads that a survey names: alone, all of a kind, and as many others at random.

A label says what a head looks at. Whether it matters only leaving it out says: a kind that was found on tokens that
come twice should cost there and not on texts, one that was found on texts should cost there and not on such tokens
(see `HeadCost.stands` for kinds that both have), and one that goes by lists where lists stand in order. Costs are held
against those of as many heads at random that have no name but that of a sink, of the layers from the first to the last
that the kind is in: whatever goes out in the first layers costs more, as all others read it.
"""

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache

import numpy as np

from attnviz.commands.survey.facts import draw_repeats, score_draws, write_list
from attnviz.commands.survey.spec import SurveySpec
from attnviz.commands.survey.survey import ON_REPEATS, HeadCost, HeadFeed, SurveyInfo, choose_places
from attnviz.errors import InvalidModel, InvalidOption, InvalidText
from attnviz.measures.shares import LISTS
from attnviz.models.built_in import TRAINED
from attnviz.models.protocols import AttentionModel, Continues
from attnviz.records.head_names import SINKS
from attnviz.text import Document

N_DRAWS, N_TEXTS, N_TOKENS = 2, 4, 64  # of repeats, of texts, of each text at most: heads are many
N_RANDOM, N_GROUPS = 6, 2  # heads without a name that are left out one by one, and draws of as many as are of a kind
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


def leave_out_heads(
    model: Continues, info: SurveyInfo, documents: Sequence[Document], kinds: Mapping[str, Heads]
) -> tuple[tuple[HeadCost, ...], tuple[HeadFeed, ...]]:
    """Return what is lost without all heads of each kind and without each head, beside as many heads at random; and
    which heads feed others: see `measure_feeds`.

    Heads that only rest on a sink are left out together, not one by one: there are hundreds.
    """
    texts = list[Sequence[int]]()
    for document in documents[:N_TEXTS]:
        with suppress(InvalidText):
            texts.append(model.read_ids(document.text)[:N_TOKENS])
    read: dict[str, Sequence[Sequence[int]]] = {"repeats": draw_repeats(model, N_DRAWS)}
    read |= {"texts": [ids for ids in texts if len(ids) > 1]}
    read |= {"lists": [model.read_ids(write_list(words)) for words in LISTS]}

    @cache  # one head may have two names
    def measure_loss(place: str, heads: Heads) -> float:
        with model.without_heads(info.place(heads)):
            losses = [model.losses(ids) for ids in read[place]]
        if place == "repeats":  # of the second time
            losses = [of[(len(of) + 1) // 2 :] for of in losses]
        return float(np.concatenate(losses).mean()) if losses else 0.0

    def lose(place: str, heads: Heads) -> float:
        return measure_loss(place, heads) - measure_loss(place, ())

    telling = {kind: heads for kind, heads in kinds.items() if kind not in SINKS}
    named, found = {head for heads in telling.values() for head in heads}, list[HeadCost]()
    # One order for all kinds, so that a head that is drawn for several is left out once.
    order = random.Random(0).sample(info.heads, len(info.heads))  # noqa: S311 - no secret
    for kind, heads in kinds.items():
        asked = [heads] if len(heads) > 1 else []
        asked += [(head,) for head in heads if kind in telling]
        layers, draws = [layer for layer, _ in heads], random.Random(kind)  # noqa: S311 - no secret
        near = [head for head in info.heads if min(layers) <= head[0] <= max(layers)]
        nameless, chances = [head for head in near if head not in named], dict[int, dict[str, float]]()
        for size in sorted({len(each) for each in asked}):
            pool = nameless if size <= len(nameless) else near
            drawn: list[Heads] = [tuple(draws.sample(pool, size)) for _ in range(N_GROUPS)]
            if size == 1:
                drawn = [(head,) for head in sorted(pool, key=order.index)[:N_RANDOM]]
            costs = {place: [abs(lose(place, each)) for each in drawn] for place in choose_places(kind)}
            chances[size] = {place: max(LEAST, *of_place) for place, of_place in costs.items()}
        for each in asked:
            lost = {place: lose(place, each) for place in choose_places(kind)}
            found.append(HeadCost(kind, each, lost, chances[len(each)]))
    return tuple(found), measure_feeds(model, info, kinds)


def measure_feeds(model: Continues, info: SurveyInfo, kinds: Mapping[str, Heads]) -> tuple[HeadFeed, ...]:
    """Return how much of the pattern of each head that goes by what tokens are is left without each other such head.

    Those that look at the token before are asked what goes without them and not what they take: they go by places.
    What is left of a pattern has to be less than without any of some heads at random from layers below all of these.
    """
    named = {head: kind for kind, heads in kinds.items() if kind.endswith(ON_REPEATS) for head in heads}
    readers = [head for head, kind in named.items() if not kind.startswith("previous")]
    if not readers:
        return ()
    below = [head for head in info.heads if head not in named and head[0] < min(readers)[0]]
    at_random = random.Random(0).sample(below, min(N_RANDOM, len(below)))  # noqa: S311 - no secret
    repeats, found = draw_repeats(model, N_DRAWS), list[HeadFeed]()

    def look(*heads: tuple[int, int]) -> dict[str, np.ndarray]:
        with model.without_heads(info.place(heads)):
            return score_draws(model, repeats)[0]

    last = max(readers)[0]  # what comes after all readers feeds none
    whole, without = look(), {head: look(head) for head in (*named, *at_random) if head[0] < last}
    for reader in readers:
        score, (place,) = named[reader].removesuffix(ON_REPEATS), info.place([reader])
        place = place[0] - len(whole[score]), place[1]  # from the last layer on: those below a writer's are not seen
        left = {head: float(of[score][place]) for head, of in without.items() if head[0] < reader[0]}
        before = float(whole[score][place])
        least = min([before, *(left[head] for head in at_random)])
        writers = (head for head in named if left.get(head, least) < least)
        found += (HeadFeed(writer, reader, before, left[writer], least) for writer in writers)
    return tuple(found)
