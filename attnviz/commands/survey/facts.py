"""What a survey measures once, on a few of the texts: first weights, words in random order, tokens that come twice."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from attnviz.commands.survey.survey import ModelFacts, SurveyInfo
from attnviz.commands.survey.words import measure_heads
from attnviz.errors import InvalidOption, InvalidText
from attnviz.measures import PATTERNS, SOME_TEXTS_MEASURES
from attnviz.measures.rows import MAX_OFFSET, sum_by_distance
from attnviz.measures.shares import SCORES, score_repeats
from attnviz.models.protocols import AttentionModel, ReadsIds, Reinitialisable, quickest_attention
from attnviz.records import AttentionMaps
from attnviz.records.head_names import name_offset
from attnviz.running.metrics import find_known_heads
from attnviz.text import Document

N_TEXTS = 8  # of a random sample, that the model and random models read alike
N_RANDOM = 20  # models of first weights
N_REPEATED, N_DRAWS = 50, 10  # tokens that come twice, and how often others are drawn: as TransformerLens has them


def check_facts(model: AttentionModel, asked: Sequence[str]) -> None:
    """Raises InvalidOption for what cannot be measured of this model: it is said before the first text is."""
    drawn_anew = isinstance(model, Reinitialisable) and model.n_attention_parameters != 0
    if "random" in asked and not drawn_anew:
        raise InvalidOption(f"{model.name} has no weights to draw anew", hint="Use --null none.")
    if "repeat" not in asked:
        return
    if not isinstance(model, ReadsIds):
        raise InvalidOption(f"{model.name} reads no tokens by their ids", hint="Leave out --probe repeat.")
    if _n_repeated(model) < 2:
        raise InvalidOption("--probe repeat reads two tokens twice", hint="Give more --max-tokens.")


def model_facts(
    model: AttentionModel, info: SurveyInfo, documents: Sequence[Document], asked: Sequence[str]
) -> ModelFacts:
    """Measure the patterns of the model's heads on some texts, and what to hold them against.

    Raises InvalidOption as `check_facts` does.
    """
    check_facts(model, asked)
    names, texts = sorted(PATTERNS), [document.text for document in documents]
    known = find_known_heads(model)
    named = tuple(known[layer * info.n_heads + head] for layer, head in info.heads) if known else ()
    facts = ModelFacts(len(texts[:N_TEXTS]), plain=_shares(model, texts, names), named=named)
    if "random" in asked:
        assert isinstance(model, Reinitialisable)
        found, probed = [], list[dict[str, tuple[float, ...]]]()
        for seed in range(N_RANDOM):
            random_model = model.with_first_weights(seed)
            found.append(_shares(random_model, texts, names))
            if "repeat" in asked:
                assert isinstance(random_model, ReadsIds)
                probed.append(_probes(random_model, 1))
        chance, by_probe = (_find_largest(each) for each in (found, probed))
        facts = replace(facts, n_random=N_RANDOM, chance=chance, probe_chance=by_probe)
    if "shuffled" in asked:
        facts = replace(facts, shuffled=_shares(model, [shuffle_words(text) for text in texts], names))
    if "repeat" in asked:
        assert isinstance(model, ReadsIds)
        facts = replace(facts, probes=_probes(model, N_DRAWS))
    return facts


def _find_largest(found: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, float]:
    """Return of each name the largest share of any head of any model."""
    return {name: max(max(shares[name]) for shares in found) for name in (found[0] if found else ())}


def shuffle_words(text: str) -> str:
    """The words of a text in random order, the same one each time."""
    words = text.split()
    random.Random(text).shuffle(words)  # noqa: S311 - no secret
    return " ".join(words)


def _shares(model: AttentionModel, texts: Iterable[str], names: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Return the mean over texts of each pattern's share, head by head; none of what no text has."""
    found = []
    for maps, known in _attentions(model, texts, names):
        shares = measure_heads(maps, known)
        if known == names:
            by_offset = sum_by_distance(maps) / maps.real_queries.sum()
            of_heads = by_offset.reshape(-1, by_offset.shape[-1])
            shares |= {
                name_offset(offset): of_heads[:, MAX_OFFSET + offset] for offset in range(-MAX_OFFSET, MAX_OFFSET + 1)
            }
        found.append(shares)
    return {name: tuple(means.tolist()) for name, means in _means(found)}


def _attentions(
    model: AttentionModel, texts: Iterable[str], names: Sequence[str]
) -> Iterator[tuple[AttentionMaps, Sequence[str]]]:
    """What the model does with each text, and what to measure of it: of all but the first only what is rare."""
    rare = [name for name in names if name in SOME_TEXTS_MEASURES]
    attention = quickest_attention(model)
    for number, text in enumerate(texts):
        known = names if number < N_TEXTS else rare
        if known:
            with suppress(InvalidText):  # it is named elsewhere
                yield attention(text, "text"), known


def _means(found: Sequence[Mapping[str, np.ndarray]]) -> Iterator[tuple[str, np.ndarray]]:
    """Of each name the mean over those that have it."""
    for name in sorted({name for each in found for name in each}):
        yield name, np.mean([each[name] for each in found if name in each], axis=0)


def _probes(model: ReadsIds, n_draws: int) -> dict[str, tuple[float, ...]]:
    """The scores of `score_repeats`, a mean over several draws of tokens, each as likely as any other."""
    draws = random.Random(0)  # noqa: S311 - no secret
    drawn = [draws.choices(model.ordinary_ids, k=_n_repeated(model)) for _ in range(n_draws)]
    found = [score_repeats(model.attention_of_ids([*ids, *ids], "repeated tokens")) for ids in drawn]
    return {
        name: tuple(np.mean([scores[name] for scores in found], axis=0).ravel().tolist()) for name in sorted(SCORES)
    }


def _n_repeated(model: ReadsIds) -> int:
    """How many tokens come twice: both times have to have room."""
    return N_REPEATED if model.max_ids is None else min(N_REPEATED, model.max_ids // 2)
