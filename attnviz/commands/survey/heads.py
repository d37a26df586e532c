"""What a survey knows of each head, for machines: means and intervals, quantiles, extreme texts, labels, tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain, zip_longest

import numpy as np
from jaxtyping import Float64

from attnviz.commands.survey.survey import (
    ABLATION,
    EQUAL,
    N_EXTREMES,
    QUANTILES,
    ModelFacts,
    Survey,
    SurveyMeasure,
    TextExcerpt,
)
from attnviz.commands.survey.words import MASS_BITS, UNKNOWN
from attnviz.display import escape_for_spreadsheet
from attnviz.numbers.intervals import MIN_TEXTS, correct_p_values, p_value
from attnviz.records import is_mostly_unknown, training_metrics
from attnviz.records.training_metrics import LARGE_SHARE, HeadMetrics, HeadScore, name_offset
from attnviz.report import Row
from attnviz.views.patterns import LABELS, NO_PATTERN, OF_OFFSETS

MIN_SUPPORT = 20  # times that a word stands in the texts: of rarer ones a mean says little
STRENGTH = re.compile(r" ([0-9.]+(?: ×)?)$")  # of a label, such as "2 after 0.40"
ON_REPEATS = " on repeats"
PROBED = ("induction", "duplicate token")  # scores that name heads; the previous token names one over all texts
LARGE = 0.5  # of attention: a share that names a head by itself


def label_survey_heads(survey: Survey) -> list[str]:
    """Return of each head such as "2 after 0.40", "punctuation 5.2 ×"; "" for no single pattern, or without a null.

    Shares and what an equal share is are of all texts. The null is of a few, and compared with the same head on them.
    """
    facts, info = survey.facts or ModelFacts(), survey.info
    if not facts.chance or is_mostly_unknown(count_unknown(survey), survey.n_queries):
        return [""] * info.n_places
    scores = tuple(
        HeadScore(pattern, (tuple(np.where(_beyond_chance(facts, name), shares, 0.0).tolist()),), equal)
        for name, pattern, shares, equal in pattern_shares(survey)
        if name in facts.chance and equal > 0
    )
    chance = {score.name: 0.0 for score in scores}
    measured = HeadMetrics(survey.n_texts, info.max_tokens, scores, facts.n_random, chance)
    return list(training_metrics.label_heads(measured, LARGE))


def name_survey_heads(survey: Survey) -> list[tuple[tuple[str, str], ...]]:
    """Return what each head was found to do, each with how strongly: over the texts, and with tokens that come twice.

    Scores of repeated tokens name a head where they are large, and beyond those of all random models.
    """
    facts, found = survey.facts or ModelFacts(), []
    for place, label in enumerate(label_survey_heads(survey)):
        strength = STRENGTH.search(label)
        names = [(STRENGTH.sub("", label), strength[1])] if strength else []
        probed = ((name, facts.probes[name][place]) for name in PROBED if facts.probes)
        large = (each for each in probed if LARGE_SHARE <= each[1] > facts.probe_chance.get(each[0], 1.0))
        found.append((*names, *((f"{name}{ON_REPEATS}", f"{share:.2f}") for name, share in large)))
    return found


def find_telling(survey: Survey, n: int) -> list[int]:
    """Return up to `n` heads in order: of each pattern the strongest, the rarest first, then the second of each.

    Where none has a name, those with the largest share of any pattern.
    """
    by_pattern: dict[str, list[tuple[bool, float, int]]] = {}
    for place, names in enumerate(name_survey_heads(survey)):
        for pattern, strength in names:
            number, _, times = strength.partition(" ")  # shares before multiples of an equal one, which are smaller
            by_pattern.setdefault(pattern, []).append((bool(times), -float(number), place))
    ranked = sorted((sorted(of_pattern) for of_pattern in by_pattern.values()), key=len)
    if not ranked:
        largest = sorted((-float(shares.max()), int(shares.argmax())) for _, _, shares, _ in pattern_shares(survey))
        return sorted([*dict.fromkeys(place for _, place in largest)][:n])
    turns = chain.from_iterable(zip_longest(*ranked))
    return sorted([*dict.fromkeys(turn[2] for turn in turns if turn)][:n])


def count_unknown(survey: Survey) -> int:
    """Return how many tokens of the texts the vocabulary does not hold."""
    words = survey.words
    return int(words.n[words.names.index(UNKNOWN)]) if UNKNOWN in words.names else 0


def pattern_shares(survey: Survey) -> Iterator[tuple[str, str, Float64[np.ndarray, " place"], float]]:
    """Yield of each pattern its name in the facts, what it is called, each head's share, and what an equal share is.

    What is a place from the query is a mean over all queries, else a mean over texts.
    """
    info, means = survey.info, survey.statistics.means
    for name, pattern in LABELS.items():
        if name in info.columns and name not in OF_OFFSETS:
            equal = float(means[info.columns[f"{EQUAL}{name}"]].item())
            if np.isfinite(equal):
                yield name, pattern, means[info.columns[name]], equal
    n_queries = max(1, survey.n_queries) * 2.0**MASS_BITS
    for offset in sorted(range(-info.reach, info.reach + 1), key=abs):
        place, name = info.reach + offset, name_offset(offset)
        yield name, name, survey.offsets.mass[place] / n_queries, float(survey.offsets.equal[place] / n_queries)


def _beyond_chance(facts: ModelFacts, name: str) -> np.ndarray:
    return np.array(facts.plain[name]) > facts.chance[name]


def describe_heads(survey: Survey) -> list[str]:
    """The same for people, who are to tell a head without a single pattern from one that was held against nothing."""
    without = NO_PATTERN if survey.facts is not None and survey.facts.chance else "-"
    return [label or without for label in label_survey_heads(survey)]


def extreme_texts(survey: Survey, column: int, top: int) -> Iterator[tuple[str, TextExcerpt, float]]:
    """Yield the texts whose numbers are the largest and the smallest for their length: end, text, its number."""
    found = survey.statistics
    for end, side in enumerate(("largest", "smallest")):
        rows, values = (of[end, :top, column].tolist() for of in (found.extremes, found.extreme_values))
        for row, value in zip(rows, values, strict=True):
            if row >= 0:
                yield side, survey.excerpts[row], value


def top_words(survey: Survey, top: int, min_support: int) -> Iterator[list[tuple[str, float, int]]]:
    """Yield of each head the words that receive most: each with the share that its places receive, as a multiple of
    what attention gives the same places that favours no key, and how often it stands in the texts (`min_support`).
    """
    words = survey.words
    often = np.flatnonzero((words.n >= min_support) & (words.equal > 0))
    for of_head in (words.mass[often] / words.equal[often, None]).T:
        best = np.argsort(-of_head, kind="stable")[:top]
        yield [(words.names[often[n]], float(of_head[n]), int(words.n[often[n]])) for n in best]


def ablation_tests(survey: Survey) -> dict[int, float]:
    """By column: the p-value of what the right answer loses without a head, corrected for all heads and ways together.

    Paired t-tests over the texts that have a number there; of columns with fewer than 10 texts there is none.
    """
    info, of = survey.info, survey.statistics
    errors, found = of.errors, dict[int, float]()
    for name, columns in info.columns.items():
        for n in range(columns.start, columns.stop) if name.startswith(ABLATION) else ():
            if of.counts_once[n] >= MIN_TEXTS:  # t is 0 where nothing changes at all
                t = of.means_once[n] / errors[n] if errors[n] > 0 else 0.0
                found[n] = p_value(float(t), int(of.counts_once[n]) - 1)
    return dict(zip(found, correct_p_values([*found.values()]), strict=True))


def survey_rows(survey: Survey) -> Iterator[Row]:
    """For a spreadsheet: a row per head or layer and measure."""
    shares = [f"quantile {share:g}" for share in QUANTILES]
    yield ("layer", "head", "measure", "unit", "mean", "low", "high", "smallest", *shares, "largest", "label")
    places = {level: survey.info.list_places(level) for level in ("head", "layer", "text")}
    labels = [escape_for_spreadsheet(label) for label in label_survey_heads(survey)]
    for measure, numbers, place, _ in _numbers(survey):
        of = ("" if number is None else number for number in places[measure.level][place])
        written = ("" if value is None else repr(value) for value in numbers.values())
        yield (*of, measure.name, measure.unit, *written, labels[place] if measure.level == "head" else "")


def survey_data(survey: Survey) -> Mapping[str, object]:
    """Everything that is known of each head."""
    info, labels, counts = survey.info, label_survey_heads(survey), survey.statistics.counts
    found: dict[str, list[object]] = {measure.name: [] for measure in info.measures}
    for measure, numbers, _, column in _numbers(survey):
        texts = [
            {
                "end": side,
                "index": text.text,
                "name": text.name,
                "tokens": text.n_tokens,
                "words": text.words,
                "value": value,
            }
            for side, text, value in extreme_texts(survey, column, N_EXTREMES)
        ]
        found[measure.name].append({**numbers, "texts": texts})
    return {
        "model": info.model,
        "revision": info.revision,
        "status": info.status,
        "texts": {"name": info.corpus, "number": survey.n_texts, "tokens": survey.n_queries},
        "heads": [
            {"layer": layer, "head": head, "label": label or None}
            for (layer, head), label in zip(info.heads, labels, strict=True)
        ],
        "measures": {
            measure.name: {
                "unit": measure.unit,
                "level": measure.level,
                "n_texts": int(counts[info.columns[measure.name].start]),
                "numbers": found[measure.name],
            }
            for measure in info.measures
        },
        "by_distance": (survey.offsets.mass.T / 2**MASS_BITS / survey.n_queries).tolist(),
        "facts": None if survey.facts is None else vars(survey.facts),
        "skipped": list(survey.skipped),
    }


def _numbers(survey: Survey) -> Iterator[tuple[SurveyMeasure, dict[str, float | None], int, int]]:
    """Of each column: the measure, its numbers by name, the place among its heads or layers, and the column.

    A number is None where no text has one.
    """
    of = survey.statistics
    names = ("mean", "low", "high", "smallest", *(f"quantile {share:g}" for share in QUANTILES), "largest")
    rows = np.stack(
        [of.means, of.means - of.halves, of.means + of.halves, of.smallest, *of.quantiles, of.largest], axis=1
    )
    numbers = [[value if np.isfinite(value) else None for value in row] for row in rows.tolist()]
    for measure in survey.info.measures:
        columns = survey.info.columns[measure.name]
        for place, column in enumerate(range(columns.start, columns.stop)):
            yield measure, dict(zip(names, numbers[column], strict=True)), place, column
