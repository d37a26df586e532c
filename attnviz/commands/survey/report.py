"""What heads do over many texts: attention by distance, a row per head, extreme texts, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from attnviz.commands.survey.atlas import draw_heads, survey_atlas
from attnviz.commands.survey.card import draw_cards
from attnviz.commands.survey.effects import draw_ablations, list_differences, show_ablations, show_classes
from attnviz.commands.survey.heads import (
    FOR_LABELS,
    MIN_SUPPORT,
    ON_REPEATS,
    PROBED,
    extreme_texts,
    find_telling,
    label_survey_heads,
    name_survey_heads,
    pattern_shares,
    survey_data,
    top_words,
)
from attnviz.commands.survey.notes import list_facts, write_notes
from attnviz.commands.survey.survey import ABLATION, ModelFacts, Survey, SurveyMeasure
from attnviz.commands.survey.words import MASS_BITS
from attnviz.display import escape_for_display, format_count
from attnviz.measures import DEFAULT_MEASURES, PATTERNS
from attnviz.numbers.intervals import MIN_TEXTS
from attnviz.records.head_names import NO_NAME, name_offset
from attnviz.report import Chart, Charts, Column, Note, Report, Row, Table
from attnviz.views import captions
from attnviz.views.captions import MAX_TITLE_LENGTH
from attnviz.views.distance import N_COLUMNS

MAX_LINES = 12  # of one chart
MAX_LISTED = 32  # heads of which extreme texts are listed one by one in a report
MAX_SHOWN, N_TELLING, N_LISTED, N_EXTREME = 16, 5, 3, 2  # heads on a screen: all; or some, with words, and with texts
MORE = "All {} heads, all measures: --table full, or the page that --open shows."
SHOWN = 16  # characters of a text, which may take two columns each
LISTED_PLACES = {name_offset(offset) for offset in range(-3, 4)}  # farther ones only name heads
N_WORDS = 3  # listed of each head
N_NAMED = 3  # heads that are listed of each pattern


def survey_report(survey: Survey, top: int, title: str | None = None, cards: Sequence[int] = ()) -> Report:
    """Show a survey of all its texts. `top` says how many extreme texts are listed on either side, and `cards` are
    heads that have pictures of their own.
    """
    info, n = survey.info, survey.n_texts
    telling, atlas = find_telling(survey, N_TELLING), survey_atlas(survey)
    is_long = info.n_places > MAX_SHOWN
    blocks = [
        _distance(survey),
        draw_heads(atlas, [info.heads[place] for place in telling]),
        *draw_ablations(survey),
        *draw_cards(atlas, cards),
        _patterns_table(survey),
        _list_first(_means_table(survey, "head"), telling, is_long, MORE.format(info.n_places)),
        _list_first(_words_table(survey), telling[:N_LISTED], is_long),
        *_extremes(survey, top, telling),
        *show_classes(survey),
        *show_ablations(survey),
        _means_table(survey, "layer"),
        replace(_probes_table(survey), is_detail=is_long),
        *map(Note, write_notes(survey, MAX_LINES)),
    ]
    named = f"{info.model} over {info.corpus}"
    texts = f"{format_count(n, 'texts')}, {format_count(survey.n_queries, 'tokens')}"
    status = captions.drop_hash(info.status)
    parts = [part for part in ([status, texts] if title is None else [info.model, status, info.corpus, texts]) if part]
    return Report(
        title=escape_for_display(named if title is None else title, MAX_TITLE_LENGTH),
        subtitle=escape_for_display(" · ".join([*parts, *(["causal"] if info.causal else [])]), MAX_TITLE_LENGTH),
        blocks=tuple(block for block in blocks if not isinstance(block, Table) or block.rows),
        facts=tuple((name, escape_for_display(value, MAX_TITLE_LENGTH)) for name, value in list_facts(survey)),
        data={**survey_data(survey), "classes": list_differences(survey)},
        caveat=info.status if info.trained is False else "",
        atlas=atlas,
    )


def _list_first(table: Table, places: Sequence[int], is_long: bool, more: str = "") -> Table:
    """Let a screen list some of many heads; those of the table's beginning where none is named."""
    first = tuple(places) or tuple(range(min(len(table.rows), N_LISTED)))
    return replace(table, first=first, more=more) if table.rows and is_long else table


def choose_shown_measures(survey: Survey, level: str) -> tuple[SurveyMeasure, ...]:
    """Measures that were asked for: those that only name heads have a table of their own."""
    found = [each for each in survey.info.measures if each.level == level and not each.name.startswith(ABLATION)]
    return tuple(measure for measure in found if measure.name not in FOR_LABELS) or tuple(found)


def _distance(survey: Survey) -> Charts:
    """A chart per layer, a line per head. Of many heads those are drawn that have the highest peaks."""
    info = survey.info
    shares = (
        survey.offsets.mass.T.reshape(-1, info.n_heads, 2 * info.reach + 1) / 2**MASS_BITS / max(1, survey.n_queries)
    )
    at, highest = tuple(map(float, range(-info.reach, info.reach + 1))), float(shares.max())
    charts = []
    for number, of_layer in zip(info.layer_numbers, shares, strict=True):
        drawn = np.sort(np.argsort(-of_layer.max(axis=1), kind="stable")[:MAX_LINES])
        rows = tuple((x, y, f"head {head}") for head in drawn for x, y in zip(at, of_layer[head].tolist(), strict=True))
        axes = f"layer {number}", "key minus query (tokens)", "share of attention"
        charts.append(Chart("line", *axes, ("x", "y", "group"), rows, y_range=(0.0, highest)))
    return Charts("distance", "attention by distance", tuple(charts), N_COLUMNS)


def _means_table(survey: Survey, level: str) -> Table:
    """A row per head with its label, or one per layer: the mean over texts of each measure with its interval."""
    info, measures, of_heads = survey.info, choose_shown_measures(survey, level), level == "head"
    means, halves = survey.statistics.means, survey.statistics.halves
    prominent = DEFAULT_MEASURES if info.n_places <= MAX_SHOWN else DEFAULT_MEASURES[:3]  # which a screen has room for
    is_labelled = of_heads and survey.facts is not None and bool(survey.facts.chance)  # held against something
    columns = [Column("layer"), *([Column("head")] if of_heads else [])]
    columns += [Column("what it attends to")] if is_labelled else []
    columns += [
        Column(f"{measure.title} ({measure.unit})", minor=of_heads and measure.name not in prominent)
        for measure in measures
    ]
    places: list[Row] = [(layer,) for layer in info.layer_numbers]
    if of_heads:
        labels = [[label or NO_NAME] * is_labelled for label in label_survey_heads(survey)]
        places = [(*of, *label) for of, label in zip(info.heads, labels, strict=True)]
    starts = [info.columns[measure.name].start for measure in measures]
    rows = [
        (*of, *(_interval(means[start + place], halves[start + place]) for start in starts))
        for place, of in enumerate(places if starts else ())
    ]
    title = "Each head, mean over texts" if of_heads else "All heads of a layer together"
    title += " ± half of its 95 % interval" if survey.n_texts >= MIN_TEXTS else ""
    return Table(f"{level}s", title, "heads" if of_heads else "facts", tuple(columns), tuple(rows))


def _interval(mean: float, half: float) -> str:
    """ "3.214 ± 0.012"."""
    if np.isnan(mean):
        return "-"
    return f"{mean:.3f} ± {half:.3f}" if np.isfinite(half) else f"{mean:.3f}"


def _patterns_table(survey: Survey) -> Table:
    """List of each pattern the heads that it names, the one with the largest share, and what that is held against."""
    facts = survey.facts or ModelFacts()
    columns = [*map(Column, ("pattern", "names heads", "largest", "share")), Column("equal", minor=True)]
    if facts.chance or facts.shuffled:
        columns.append(Column(f"share on {format_count(facts.n_texts, 'texts')}", minor=True))
    columns += [Column("chance")] if facts.chance else []
    columns += [Column("words shuffled", minor=True)] if facts.shuffled else []
    rows: list[Row] = []
    names = [[name for name, _ in of_head] for of_head in name_survey_heads(survey)]
    for name, pattern, shares, equal in pattern_shares(survey):
        place = int(shares.argmax())
        if equal > 0 and (name in PATTERNS or name in LISTED_PLACES):
            compared = (
                [facts.plain[name][place] if name in facts.plain else "-"] if facts.chance or facts.shuffled else []
            )
            compared += [facts.chance.get(name, "-")] if facts.chance else []
            compared += [facts.shuffled[name][place] if name in facts.shuffled else "-"] if facts.shuffled else []
            rows.append(
                (pattern, *_name_leaders(survey, names, pattern, shares), float(shares[place]), equal, *compared)
            )
    for name in PROBED if facts.probes else ():
        pattern, place = f"{name}{ON_REPEATS}", int(np.argmax(facts.probes[name]))
        compared = ["-"] if facts.chance or facts.shuffled else []
        compared += [facts.probe_chance.get(name, "-")] if facts.chance else []
        compared += ["-"] if facts.shuffled else []
        leaders = _name_leaders(survey, names, pattern, facts.probes[name])
        rows.append((pattern, *leaders, facts.probes[name][place], "-", *compared))
    title = "Patterns: the heads that each names, and the head with the largest share of it"
    named = tuple(number for number, row in enumerate(rows) if row[1] != "-")
    if not facts.chance and not named:  # nothing names a head that is held against nothing
        title, columns = "The head with the largest share of each pattern", [columns[0], *columns[2:]]
        rows = [(row[0], *row[2:]) for row in rows]
    return Table("patterns", title, "facts", tuple(columns), tuple(rows), first=named)


def _name_leaders(
    survey: Survey, names: Sequence[Sequence[str]], pattern: str, shares: Sequence[float] | np.ndarray
) -> tuple[str, str]:
    """Write the heads that a pattern names, those with the largest shares first, and the head with the largest."""
    order = ["{}.{}".format(*survey.info.heads[place]) for place in np.argsort(-np.asarray(shares), kind="stable")]
    having = {
        "{}.{}".format(*head) for head, of_head in zip(survey.info.heads, names, strict=True) if pattern in of_head
    }
    named = [head for head in order if head in having]
    more = f" + {len(named) - N_NAMED} more" if len(named) > N_NAMED else ""
    return (", ".join(named[:N_NAMED]) or "-") + more, order[0]


def _probes_table(survey: Survey) -> Table:
    """A row per head: induction, duplicate and previous token, on random tokens that come twice."""
    probes = survey.facts.probes if survey.facts is not None else {}
    rows = [(*of, *scores) for of, *scores in zip(survey.info.heads, *probes.values(), strict=True)] if probes else []
    title = "Random tokens that come twice: shares of attention"
    columns = tuple(map(Column, ("layer", "head", *probes)))
    return Table("probes", title, "facts", columns, tuple(rows), in_atlas=True)


def _extremes(survey: Survey, top: int, telling: Sequence[int]) -> Iterator[Table]:
    """Which texts to open, by their numbers. Of many heads those that have a name, by one measure and one text each."""
    info, measures = survey.info, choose_shown_measures(survey, "head")
    is_short = info.n_places > MAX_LISTED
    others = ", ".join(measure.title for measure in measures[1:])
    for measure in measures[:1] if is_short else measures:
        first, rows, seen = info.columns[measure.name].start, list[Row](), list[int]()
        for place in telling[:N_EXTREME] if is_short else range(info.n_places):
            of = info.heads[place]
            for side, text, value in extreme_texts(survey, first + place, 1 if is_short else top):
                if is_short or place in (telling[:N_EXTREME] or (0,)):
                    seen.append(len(rows))
                number = f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"  # no 1e+02
                words = f"“{escape_for_display(text.words, SHOWN)}”"
                rows.append((*of, side, text.text, number, text.n_tokens, words))
        title = f"Extreme texts by {measure.title} ({measure.unit})"
        title += " for their length" if survey.statistics.slopes[info.columns[measure.name]].any() else ""
        title += " (all heads: --json)" if is_short else ""
        headers = map(Column, ("layer", "head", "extreme", "--index", "value"))
        columns = (*headers, Column("tokens", minor=True), Column("first words"))
        table = Table(f"extremes-{measure.name}", title, "facts", columns, tuple(rows))
        more = "" if is_short or not others else f"Of the other heads, and by {others}: --table full."
        yield replace(table, first=tuple(seen), more=more, is_detail=measure is not measures[0])


def _words_table(survey: Survey) -> Table:
    """The words that receive most beyond an equal share."""
    rows = []
    for of, found in zip(survey.info.heads, top_words(survey, N_WORDS, MIN_SUPPORT), strict=True):
        beyond = (each for each in found if each[1] > 1)
        words = (f"{escape_for_display(word, 16)} {lift:.1f} × ({support:,})" for word, lift, support in beyond)
        rows.append((*of, ", ".join(words) or "-"))
    rows = rows if any(row[2] != "-" for row in rows) else []  # too few texts have words often enough
    title = "Words attended to: × what equal attention gives them (times in the texts)"
    columns = (Column("layer"), Column("head"), Column("words"))
    return Table("words", title, "facts", columns, tuple(rows), in_atlas=True)
