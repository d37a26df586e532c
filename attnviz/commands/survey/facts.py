"""What a survey measures once, on a few of the texts: first weights, words in random order, tokens that come twice."""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from attnviz.commands.survey.measure import measure_heads
from attnviz.commands.survey.survey import ON_REPEATS, SUCCESSOR, ModelFacts, SurveyInfo
from attnviz.errors import InvalidOption, InvalidText
from attnviz.measures import PATTERNS, SOME_TEXTS_MEASURES
from attnviz.measures.rows import MAX_OFFSET, sum_by_distance
from attnviz.measures.shares import LISTS, SCORES, STEPS, score_repeats, sum_by_step
from attnviz.models.protocols import MEASURED, AttentionModel
from attnviz.records.head_names import name_offset
from attnviz.running.metrics import find_known_heads
from attnviz.shapes import PerHead
from attnviz.text import Document

N_TEXTS = 8  # of a random sample, that the model and random models read alike
N_RANDOM = 20  # models of first weights
N_REPEATED, N_DRAWS = 50, 10  # tokens that come twice, and how often others are drawn: as TransformerLens has them
N_SHUFFLED = 2  # orders of the words of each list


def check_facts(model: AttentionModel, asked: Sequence[str]) -> None:
    """Refuse what cannot be measured of this model, before the first text is. Raises InvalidOption."""
    if "random" in asked and model.n_attention_parameters == 0:
        raise InvalidOption(f"{model.name} has no weights to draw anew", hint="Use --null none.")
    if "repeat" in asked and _n_repeated(model) < 2:
        raise InvalidOption("--probe repeat reads two tokens twice", hint="Give more --max-tokens.")


def model_facts(model: AttentionModel, info: SurveyInfo, few: Sequence[Document], asked: Sequence[str]) -> ModelFacts:
    """Measure the patterns of the model's heads on some texts, and what to hold them against."""
    names, texts = sorted(PATTERNS), [document.text for document in few]
    known = find_known_heads(model)
    named = tuple(known[layer * info.n_heads + head] for layer, head in info.heads) if known else ()
    facts = ModelFacts(len(texts[:N_TEXTS]), plain=_shares(model, texts, names), named=named)
    if "random" in asked:
        found = [_shares(model.with_first_weights(seed), texts, names) for seed in range(N_RANDOM)]
        # of each name the largest share of any head of any model
        chance = {name: max(max(shares[name]) for shares in found) for name in found[0]}
        facts = replace(facts, n_random=N_RANDOM, chance=chance)
    if "shuffled" in asked:
        words = [text.split() for text in texts]
        for text, of_text in zip(texts, words, strict=True):
            random.Random(text).shuffle(of_text)  # noqa: S311 - no secret; the same order each time
        facts = replace(facts, shuffled=_shares(model, map(" ".join, words), names))
    if "repeat" in asked:
        scores, wrong = score_draws(model, draw_repeats(model, N_DRAWS))
        scores = {f"{name}{ON_REPEATS}": of_heads for name, of_heads in sorted(scores.items())}
        wrongs = dict.fromkeys(scores, float(wrong.max(initial=0.0)))
        scores[SUCCESSOR], wrongs[SUCCESSOR] = score_lists(model)
        probes = {name: tuple(of_heads.ravel().tolist()) for name, of_heads in scores.items()}
        facts = replace(facts, probes=probes, probe_chance=wrongs)
    return facts


def _shares(model: AttentionModel, texts: Iterable[str], names: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Return the mean over texts of each pattern's share, head by head; of all texts but the first only what is rare.

    A mean is over the texts that have such keys, and there is none of what no text has.
    """
    rare = [name for name in names if name in SOME_TEXTS_MEASURES]
    found = defaultdict[str, list[np.ndarray]](list)
    for number, text in enumerate(texts):
        known = names if number < N_TEXTS else rare
        try:
            maps = model.attention(text, "text", MEASURED)
        except InvalidText:  # it is named elsewhere
            continue
        for name, shares in measure_heads(maps, known).items():
            found[name].append(shares)
        if known == names:
            by_offset = sum_by_distance(maps) / maps.real_queries.sum()
            for place, of_heads in enumerate(by_offset.reshape(-1, by_offset.shape[-1]).T):
                found[name_offset(place - MAX_OFFSET)].append(of_heads)
    return {name: tuple(np.mean(found[name], axis=0).tolist()) for name in sorted(found)}


def score_draws(model: AttentionModel, drawn: Sequence[Sequence[int]]) -> tuple[dict[str, PerHead], np.ndarray]:
    """Return what `score_repeats` does, as means over several draws of tokens."""
    scores, wrong = zip(*(score_repeats(model.attention_of_ids(ids, "repeated tokens")) for ids in drawn), strict=True)
    return {name: np.mean([each[name] for each in scores], axis=0) for name in SCORES}, np.mean(wrong, axis=0)


def score_lists(model: AttentionModel) -> tuple[PerHead, float]:
    """Return what each head gives from a word of a list to the one that comes before it, in lists out of order.

    Beside it the most that any head gives to a word by any other number of places before or after it. The words stand
    apart by commas: so what looks at the token before looks at none of them.
    """
    draws = random.Random(0)  # noqa: S311 - no secret
    texts = [write_list(draws.sample(words, len(words))) for words in LISTS for _ in range(N_SHUFFLED)]
    sums, counts = zip(*(sum_by_step(model.attention(text, "lists")) for text in texts), strict=True)
    means = np.sum(sums, axis=0) / np.maximum(np.sum(counts, axis=0), 1)[:, None, None]
    place = STEPS.index(1)
    return means[place], float(np.delete(means, place, axis=0).max())


def write_list(words: Sequence[str]) -> str:
    """Write a list behind a word that is none of it, on which attention may rest."""
    return f"Words: {', '.join(words)}"


def draw_repeats(model: AttentionModel, n_draws: int) -> list[list[int]]:
    """Draw tokens, each as likely as any other, and say them twice."""
    draws = random.Random(0)  # noqa: S311 - no secret
    drawn = [draws.choices(model.list_ids(), k=_n_repeated(model)) for _ in range(n_draws)]
    return [[*ids, *ids] for ids in drawn]


def _n_repeated(model: AttentionModel) -> int:
    """Count the tokens that come twice: both times have to have room."""
    most = model.find_max_ids()
    return N_REPEATED if most is None else min(N_REPEATED, most // 2)
