"""What a survey knows of each head, for machines: means and intervals, quantiles, extreme texts, labels, tests."""

from __future__ import annotations

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
from attnviz.measures import PATTERNS
from attnviz.numbers.intervals import MIN_TEXTS, correct_p_values, p_value
from attnviz.records import is_mostly_unknown
from attnviz.records.head_names import MIN_SHARE, HeadPattern, choose_names, name_offset, write_share
from attnviz.report import Row

MIN_SUPPORT = 20  # times that a word stands in the texts: of rarer ones a mean says little
ON_REPEATS = " on repeats"
PROBED = ("induction", "duplicate token")  # scores that name heads; the previous token names one over all texts
# Measures that are places from the query, of which each names a head like any other place.
OF_OFFSETS = frozenset({"to_self", "to_previous", "to_next"})
FOR_LABELS = frozenset(PATTERNS) - {"to_sink"}  # what a survey measures to name heads, and lists apart


def choose_survey_names(survey: Survey) -> list[HeadPattern]:
    """Return what each head looks at over the texts, by the rule of `choose_names`; without a null no head has a name.

    Shares are of all texts. The null is of a few, and each head's share on these has to be as far beyond it again as
    it is beyond an equal one.
    """
    facts, info = survey.facts or ModelFacts(), survey.info
    if not facts.chance or is_mostly_unknown(count_unknown(survey), survey.n_queries):
        return [HeadPattern()] * info.n_places
    found: list[list[HeadPattern]] = [[] for _ in range(info.n_places)]
    for name, pattern, shares, equal in pattern_shares(survey):
        if name in facts.chance and equal > 0:
            for place, (share, on_few) in enumerate(zip(shares, facts.plain[name], strict=True)):
                is_beyond = on_few > 2 * facts.chance[name] - equal
                found[place].append(HeadPattern(pattern, float(share), 0.0 if is_beyond else 1.0))
    return choose_names(found, facts.named)


def label_survey_heads(survey: Survey) -> list[str]:
    """Return of each head its name and share, such as "2 after 40 %"; "" for none."""
    return [f"{each.pattern} {write_share(each.share)}".strip() for each in choose_survey_names(survey)]


def name_survey_heads(survey: Survey) -> list[tuple[tuple[str, str], ...]]:
    """Return what each head was found to do, each with how strongly: over the texts, and with tokens that come twice.

    Scores of repeated tokens name a head where they are large, and beyond those of all random models.
    """
    facts, found = survey.facts or ModelFacts(), []
    for place, name in enumerate(choose_survey_names(survey)):
        probed = ((score, facts.probes[score][place]) for score in PROBED if facts.probes)
        large = (each for each in probed if MIN_SHARE <= each[1] > facts.probe_chance.get(each[0], 1.0))
        names = [(name.pattern, write_share(name.share))] if name.pattern else []
        found.append((*names, *((f"{score}{ON_REPEATS}", write_share(share)) for score, share in large)))
    return found


def find_telling(survey: Survey, n: int) -> list[int]:
    """Return up to `n` heads in order: of each pattern the strongest, the rarest first, then the second of each.

    Where none has a name, those with the largest share of any pattern.
    """
    by_pattern: dict[str, list[tuple[float, int]]] = {}
    for place, names in enumerate(name_survey_heads(survey)):
        for pattern, strength in names:
            by_pattern.setdefault(pattern, []).append((-float(strength.partition(" ")[0] or 0), place))
    ranked = sorted((sorted(of_pattern) for of_pattern in by_pattern.values()), key=len)
    if not ranked:
        largest = sorted((-float(shares.max()), int(shares.argmax())) for _, _, shares, _ in pattern_shares(survey))
        return sorted([*dict.fromkeys(place for _, place in largest)][:n])
    turns = chain.from_iterable(zip_longest(*ranked))
    return sorted([*dict.fromkeys(turn[1] for turn in turns if turn)][:n])


def count_unknown(survey: Survey) -> int:
    """Return how many tokens of the texts the vocabulary does not hold."""
    words = survey.words
    return int(words.n[words.names.index(UNKNOWN)]) if UNKNOWN in words.names else 0


def pattern_shares(survey: Survey) -> Iterator[tuple[str, str, Float64[np.ndarray, " place"], float]]:
    """Yield of each pattern its name in the facts, what it is called, each head's share, and what an equal share is.

    What is a place from the query is a mean over all queries, else a mean over texts.
    """
    info, means = survey.info, survey.statistics.means
    for name, pattern in PATTERNS.items():
        if name in info.columns and name not in OF_OFFSETS:
            equal = float(means[info.columns[f"{EQUAL}{name}"]].item())
            if np.isfinite(equal):
                yield name, pattern, means[info.columns[name]], equal
    n_queries = max(1, survey.n_queries) * 2.0**MASS_BITS
    for offset in sorted(range(-info.reach, info.reach + 1), key=abs):
        place, name = info.reach + offset, name_offset(offset)
        yield name, name, survey.offsets.mass[place] / n_queries, float(survey.offsets.equal[place] / n_queries)


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
