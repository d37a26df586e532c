"""What heads do over many texts: attention by distance, a row per head, extreme texts, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnviz.commands.survey.atlas import survey_atlas
from attnviz.commands.survey.exact import N_SAMPLED
from attnviz.commands.survey.heads import (
    LARGE,
    MIN_SUPPORT,
    ablation_tests,
    count_unknown,
    describe_heads,
    extreme_texts,
    mean_intervals,
    pattern_shares,
    survey_data,
    top_words,
)
from attnviz.commands.survey.survey import ABLATION, ModelFacts, Survey, SurveyMeasure
from attnviz.commands.survey.words import MASS_BITS
from attnviz.display import escape_for_display, format_count
from attnviz.measures import DEFAULT_MEASURES, SOME_TEXTS_MEASURES
from attnviz.measures.intervals import MIN_TEXTS
from attnviz.records import is_mostly_unknown
from attnviz.records.training_metrics import LARGE_MULTIPLE, MIN_SHARE, name_offset
from attnviz.report import Column, Curve, Curves, Line, Note, Report, Row, Table
from attnviz.views.captions import MAX_TITLE_LENGTH
from attnviz.views.patterns import FOR_LABELS, LABELS

MAX_LINES = 12  # of one chart
MAX_LISTED = 32  # heads of which extreme texts are listed one by one in a report
SHOWN = 20  # characters of a text
LISTED_PLACES = {name_offset(offset) for offset in range(-3, 4)}  # farther ones only name heads
N_WORDS = 3  # listed of each head
ALPHA = 0.05


def survey_report(survey: Survey, top: int, title: str | None = None) -> Report:
    """Show a survey of all its texts. `top` says how many extreme texts are listed on either side."""
    info, n = survey.info, survey.summary.n_texts
    blocks = [
        _distance(survey),
        _means_table(survey, "head"),
        _patterns_table(survey),
        _means_table(survey, "layer"),
        _probes_table(survey),
        *_ablations(survey),
        *_extremes(survey, top),
        _words_table(survey),
        *map(Note, _notes(survey)),
    ]
    named = f"{info.model} over {info.corpus}"
    texts = f"{format_count(n, 'texts')}, {format_count(survey.n_queries, 'tokens')}"
    parts = [info.status, texts] if title is None else [info.model, info.status, info.corpus, texts]
    return Report(
        title=escape_for_display(named if title is None else title, MAX_TITLE_LENGTH),
        subtitle=escape_for_display(" · ".join([*parts, *(["causal"] if info.causal else [])]), MAX_TITLE_LENGTH),
        blocks=tuple(block for block in blocks if not isinstance(block, Table) or block.rows),
        facts=tuple((name, escape_for_display(value, MAX_TITLE_LENGTH)) for name, value in _facts(survey)),
        data=survey_data(survey),
        caveat=info.status if info.trained is False else "",
        atlas=survey_atlas(survey),
    )


def choose_shown_measures(survey: Survey, level: str) -> tuple[SurveyMeasure, ...]:
    """Measures that were asked for: those that only name heads have a table of their own."""
    found = [each for each in survey.info.measures if each.level == level and not each.name.startswith(ABLATION)]
    return tuple(measure for measure in found if measure.name not in FOR_LABELS) or tuple(found)


def _distance(survey: Survey) -> Curves:
    """A chart per layer, a line per head. Of many heads those are drawn that have the highest peaks."""
    info = survey.info
    shares = survey.distances.reshape(-1, info.n_heads, 2 * info.reach + 1) / 2**MASS_BITS / max(1, survey.n_queries)
    at = tuple(map(float, range(-info.reach, info.reach + 1)))
    curves = []
    for number, of_layer in zip(info.layer_numbers, shares, strict=True):
        drawn = np.sort(np.argsort(-of_layer.max(axis=1), kind="stable")[:MAX_LINES])
        lines = tuple(Line(f"head {head}", at, tuple(of_layer[head].tolist())) for head in drawn)
        curves.append(Curve(f"layer {number}", "key minus query (tokens)", "share of attention", lines))
    return Curves("distance", "attention by distance", tuple(curves))


def _means_table(survey: Survey, level: str) -> Table:
    """A row per head with its label, or one per layer: the mean over texts of each measure with its interval."""
    info, measures, of_heads = survey.info, choose_shown_measures(survey, level), level == "head"
    means, halves = mean_intervals(survey)
    columns = [Column("layer"), *([Column("head"), Column("what it attends to")] if of_heads else [])]
    columns += [
        Column(f"{measure.title} ({measure.unit})", minor=of_heads and measure.name not in DEFAULT_MEASURES)
        for measure in measures
    ]
    labelled = [(*of, label) for of, label in zip(info.heads, describe_heads(survey), strict=True)]
    places: list[Row] = [*labelled] if of_heads else [(layer,) for layer in info.layer_numbers]
    starts = [info.columns[measure.name].start for measure in measures]
    rows = [
        (*of, *(_interval(means[start + place], halves[start + place]) for start in starts))
        for place, of in enumerate(places if starts else ())
    ]
    title = "Each head, mean over texts" if of_heads else "All heads of a layer together"
    title += " ± half of its 95 % interval" if survey.summary.n_texts >= MIN_TEXTS else ""
    return Table(f"{level}s", title, "heads" if of_heads else "facts", tuple(columns), tuple(rows))


def _interval(mean: float, half: float) -> str:
    """ "3.214 ± 0.012"."""
    if np.isnan(mean):
        return "-"
    return f"{mean:.3f} ± {half:.3f}" if np.isfinite(half) else f"{mean:.3f}"


def _patterns_table(survey: Survey) -> Table:
    """Of each pattern the head that follows it most, and what it is held against."""
    info, facts = survey.info, survey.facts or ModelFacts()
    columns = ["pattern", "layer", "head", "share", "equal share"]
    if facts.chance or facts.shuffled:
        columns.append(f"share on {format_count(facts.n_texts, 'texts')}")
    columns += [*(["first weights, at most"] if facts.chance else []), *(["words shuffled"] if facts.shuffled else [])]
    rows: list[Row] = []
    for name, pattern, shares, equal in pattern_shares(survey):
        place = int(shares.argmax())
        if equal > 0 and (name in LABELS or name in LISTED_PLACES):
            compared = (
                [facts.plain[name][place] if name in facts.plain else "-"] if facts.chance or facts.shuffled else []
            )
            compared += [facts.chance.get(name, "-")] if facts.chance else []
            compared += [facts.shuffled[name][place] if name in facts.shuffled else "-"] if facts.shuffled else []
            rows.append((pattern, *info.heads[place], float(shares[place]), equal, *compared))
    title = "The head that follows each pattern most"
    return Table("patterns", title, "facts", tuple(map(Column, columns)), tuple(rows))


def _probes_table(survey: Survey) -> Table:
    """A row per head: induction, duplicate and previous token, on random tokens that come twice."""
    probes = survey.facts.probes if survey.facts is not None else {}
    rows = [(*of, *scores) for of, *scores in zip(survey.info.heads, *probes.values(), strict=True)] if probes else []
    title = "Random tokens that come twice: shares of attention"
    columns = tuple(map(Column, ("layer", "head", *probes)))
    return Table("probes", title, "facts", columns, tuple(rows), in_atlas=True)


def _ablations(survey: Survey) -> Iterator[Table | Note]:
    """A row per head: what the right answer's probability loses without it, and whether that is more than chance.

    Of each column over the texts that have a number there: queries of another text need one beside it.
    """
    info, n = survey.info, survey.summary.n_texts
    kinds = {name.removeprefix(ABLATION): of for name, of in info.columns.items() if name.startswith(ABLATION)}
    if not kinds:
        return
    means, counts, p_values = survey.summary.means(info.bounds), survey.summary.counts, ablation_tests(survey)
    columns = [Column("layer"), Column("head")]
    for kind in kinds:
        columns += [Column(kind), Column("p (Holm)", minor=True)]
    rows: list[Row] = []
    differing: list[tuple[float, str]] = []
    for place, (layer, head) in enumerate(info.heads):
        cells: list[str | float] = []
        for kind, of in kinds.items():
            column = of.start + place
            lost = f"{means[column]:+.4f}"
            cells += [lost if counts[column] else "-", p_values.get(column, "-")]
            if p_values.get(column, 1.0) < ALPHA:
                differing.append((-abs(means[column]), f"{layer}.{head} {kind} {lost}"))
        rows.append((layer, head, *cells))
    title = "Probability that the right answer loses without a head"
    yield Table("ablations", title, "facts", tuple(columns), tuple(rows))
    yield Note("Of a text whose label is missing, or none that the model knows, it is the model's own answer.")
    for kind, of in kinds.items():
        if (n_having := int(counts[of].max())) < n:
            yield Note(f"{kind}: over the texts that have another beside them, {n_having:,} of {n:,}.")
    if "mean" in kinds:
        n_sampled = len(survey.summary.hashes)
        drawn = "" if n == n_sampled else ", drawn at random by a hash of each text"
        yield Note(f"mean: what a head gives on average over the tokens of {n_sampled:,} texts{drawn}.")
    if not p_values:
        yield Note(f"Tests of heads need {MIN_TEXTS} texts.")
        return
    least, most = counts[[*p_values]].min(), counts[[*p_values]].max()
    tested = f"Of {len(p_values)} paired differences, corrected for their number (Holm 1979),"
    texts = f"over {'' if least == most else f'{least:,} to '}{most:,} texts"
    if differing:
        largest = ", ".join(said for _, said in sorted(differing)[:5])
        yield Note(f"{tested} {len(differing)} differ from 0 {texts}; the largest: {largest}.")
    else:
        yield Note(f"{tested} none is shown to differ from 0 {texts}: no single head is seen to matter here.")


def _extremes(survey: Survey, top: int) -> Iterator[Table]:
    """Which texts to open, by their numbers. Of very many heads only the data lists them."""
    columns = (Column("layer"), Column("head"), Column("largest"), Column("smallest"))
    for measure in choose_shown_measures(survey, "head") if survey.info.n_places <= MAX_LISTED else ():
        first, rows = survey.info.columns[measure.name].start, list[Row]()
        for place, of in enumerate(survey.info.heads):
            found: dict[str, list[str]] = {"largest": [], "smallest": []}
            for side, text, value in extreme_texts(survey, first + place, top):
                number = f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"  # no 1e+02
                words = escape_for_display(text.words, SHOWN)
                found[side].append(f"{text.text} ({number}, {text.n_tokens} tokens) “{words}”")
            rows.append((*of, *map(", ".join, found.values())))
        title = f"Texts of extreme {measure.title} for their length: number for --index, value, first words"
        yield Table(f"extremes-{measure.name}", title, "facts", columns, tuple(rows))


def _words_table(survey: Survey) -> Table:
    """The words that receive most beyond an equal share."""
    rows = []
    for of, found in zip(survey.info.heads, top_words(survey, N_WORDS, MIN_SUPPORT), strict=True):
        words = (f"{escape_for_display(word, 16)} {lift:.1f} × ({support:,})" for word, lift, support in found)
        rows.append((*of, ", ".join(words) or "-"))
    title = "What is attended to: × what equal attention gives the same places (times in the texts)"
    columns = (Column("layer"), Column("head"), Column("words"))
    return Table("words", title, "facts", columns, tuple(rows), in_atlas=True)


def _notes(survey: Survey) -> Iterator[str]:
    info, n, facts = survey.info, survey.summary.n_texts, survey.facts or ModelFacts()
    if info.trained is False:
        yield "The model is untrained: its heads have learned nothing."
    if info.n_heads > MAX_LINES:
        yield f"Lines are of the {MAX_LINES} heads of a layer with the highest peaks; --json has all {info.n_heads}."
    if info.n_places > MAX_LISTED:
        yield f"Texts of extreme numbers are listed for up to {MAX_LISTED} heads; --json has those of all."
    if n_unknown := count_unknown(survey):
        half = ": heads get no labels" if is_mostly_unknown(n_unknown, survey.n_queries) else ""
        yield f"{n_unknown:,} of {survey.n_queries:,} tokens are not in the vocabulary (read as [UNK]){half}."
    yield from _describe_labels(facts)
    for measure in info.measures:
        if measure.name in SOME_TEXTS_MEASURES:
            n_having = int(survey.summary.counts[info.columns[measure.name].start])
            over = f"means over the {n_having:,} of {format_count(n, 'texts')} that have such tokens"
            yield f"{measure.title}: {over if n_having else 'no text has such tokens'}."
    if n >= MIN_TEXTS:
        yield "Intervals are of texts (Student's t): they say what other texts of this kind would give."
    if n > N_SAMPLED:
        yield "Quantiles of so many texts are within 1/128 of what a measure can be."
    if info.dataset:
        read = f"--max-tokens {info.max_tokens} --keep {info.keep}"
        yield f"A text by its number: attnviz heatmap {info.dataset} --index N {read}, with the same --model."
    if survey.skipped:
        n_skipped = len(survey.skipped)
        verb = "is" if n_skipped == 1 else "are"
        named = escape_for_display(next(iter(survey.skipped.values())), 80)
        yield f"{format_count(n_skipped, 'texts')} without tokens {verb} left out, such as {named}."


def _describe_labels(facts: ModelFacts) -> Iterator[str]:
    if not facts.chance:
        yield "Heads are not labelled: that takes --null random, which says what chance gives."
    else:
        yield (
            f"A label needs a share of at least {LARGE:g}, or of {MIN_SHARE:g} and {LARGE_MULTIPLE:g} × an equal one, "
            f"over all texts; and on {facts.n_texts} of them, drawn at random by a hash of each text, more than "
            f"the largest share of any head in {facts.n_random} models of first weights."
        )
        if facts.shuffled:
            yield (
                "A share that stays where words are shuffled is one of places, not of language: that was measured on "
                f"the same {facts.n_texts} texts."
            )


def _facts(survey: Survey) -> Iterator[tuple[str, str]]:
    info = survey.info
    yield from (("model", info.model), ("status", info.status), ("revision", info.revision), ("texts", info.corpus))
    yield "number of texts", f"{survey.summary.n_texts}"
    yield from ((name, str(value)) for name, value in info.settings.items())
    yield from ((f"version of {name}", version) for name, version in info.versions.items())
