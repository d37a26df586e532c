"""The heads of a survey to be looked at one by one: numbers, names, words and moments of each. Knows `report`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from math import nan
from typing import Any

import numpy as np

from attnviz.commands.survey.effects import ALPHA, COST, describe_column, find_costs
from attnviz.commands.survey.heads import MIN_SUPPORT, ON_REPEATS, name_survey_heads, top_words
from attnviz.commands.survey.moments import KINDS
from attnviz.commands.survey.survey import ABLATION, EQUAL, ModelFacts, Survey
from attnviz.commands.survey.words import MASS_BITS
from attnviz.display import escape_for_display
from attnviz.measures import MEASURES
from attnviz.report import Atlas, AtlasHead, AtlasMeasure, AtlasText, AttentionMoment, Chart, Charts

N_WORDS = 8  # of each head
N_FOUND, N_HEADS_OF_WORD = 300, 3  # words that can be searched for, and heads listed of each
MIN_LIFT = 1.5  # × an equal share, from which on a head is said to look at a word
DESCRIPTIONS = {measure.name: measure.help for measure in MEASURES}


def survey_atlas(survey: Survey) -> Atlas:
    """Gather what a page shows of each head."""
    info = survey.info
    measures = tuple(_measures(survey))
    moments = survey.moments.rows()
    shown = _list_texts(moments)
    places = {text: place for place, text in enumerate(shown)}
    names = name_survey_heads(survey)
    n_queries = max(1, survey.n_queries) * 2.0**MASS_BITS
    words = tuple(top_words(survey, N_WORDS, MIN_SUPPORT))
    facts = _facts(survey)
    heads = tuple(
        AtlasHead(
            layer=layer,
            head=head,
            names=names[place],
            by_offset=tuple((survey.offsets.mass[:, place] / n_queries).tolist()),
            words=tuple((escape_for_display(word, 24), lift, n) for word, lift, n in words[place] if lift > 1),
            moments=tuple(_moments(moments, (layer, head), places)),
            facts=facts[place],
        )
        for place, (layer, head) in enumerate(info.heads)
    )
    return Atlas(
        measures=measures,
        axes=_choose_axes([measure.title for measure in measures]),
        heads=heads,
        letters=tuple(choose_letters([pattern for of_head in names for pattern, _ in of_head]).items()),
        texts=tuple(_describe_texts(survey, shown)),
        equal_by_offset=tuple((survey.offsets.equal / n_queries).tolist()),
        words=tuple(_words(survey)),
        commands=tuple(_commands(survey)),
    )


def draw_heads(atlas: Atlas, named: Sequence[tuple[int, int]]) -> Charts:
    """Draw the heads of an atlas by the measures that a reader sees first; `named` ones are labelled in any case."""
    x, y = (atlas.measures[place] for place in atlas.axes)
    letters = dict(atlas.letters)
    rows = []
    for place, head in enumerate(atlas.heads):
        pattern = head.names[-1][0] if head.names else ""
        label, leads = f"{head.layer}.{head.head}", (head.layer, head.head) in named
        rows.append((x.values[place], y.values[place], pattern, letters.get(pattern, ""), label, leads))
    axes, columns = (f"{x.title} ({x.unit})", f"{y.title} ({y.unit})"), ("x", "y", "group", "letter", "label", "leads")
    chart = Chart("point", "", *axes, columns, tuple(rows), groups=("", *letters))
    return Charts("atlas", "all heads", (chart,))


def _measures(survey: Survey) -> Iterator[AtlasMeasure]:
    """Yield what is measured of heads over the texts, and on repeated tokens."""
    info, facts = survey.info, survey.facts or ModelFacts()
    means, halves = survey.statistics.means, survey.statistics.halves
    for measure in info.measures:
        if measure.level == "head":
            of, equal = info.columns[measure.name], info.columns.get(f"{EQUAL}{measure.name}")
            is_cost = measure.name.startswith(ABLATION)
            yield AtlasMeasure(
                COST.format(measure.name.removeprefix(ABLATION)) if is_cost else measure.title,
                measure.unit,
                DESCRIPTIONS.get(measure.name, "what the right answer's probability loses without the head"),
                tuple(means[of].tolist()),
                tuple(halves[of].tolist()),
                nan if equal is None else float(means[equal].item()),
                facts.chance.get(measure.name, nan),
            )
    for name, shares in facts.probes.items():
        chance = facts.probe_chance.get(name, nan)
        description = "share of attention, on random tokens that come twice"
        yield AtlasMeasure(f"{name}{ON_REPEATS}", "share", description, shares, (), nan, chance)


def _choose_axes(titles: list[str]) -> tuple[int, int]:
    """Choose what tells heads apart at first sight: induction and the previous token, where they are measured."""
    known = [titles.index(name) for name in ("to previous", f"induction{ON_REPEATS}", "to first") if name in titles]
    found = [*known, *(place for place in range(len(titles)) if place not in known)]
    return found[0], found[min(1, len(found) - 1)]


def choose_letters(patterns: list[str]) -> dict[str, str]:
    """Return a letter or digit for each pattern, the most common first: its first one that no other has."""
    order = sorted(dict.fromkeys(patterns), key=lambda pattern: (-patterns.count(pattern), pattern))
    found: dict[str, str] = {}
    for pattern in order:
        own = [sign for sign in pattern.upper() if sign.isalnum()]
        free = (sign for sign in (*own, *"ABCDEFGHIJKLMNOPQRSTUVWXYZ") if sign not in found.values())
        found[pattern] = next(free, "+")
    return found


def _list_texts(moments: Sequence[Mapping[str, Any]]) -> dict[int, dict[int, str]]:
    """Return by text, in order, the positions that any moment shows, with their tokens or, without words, numbers."""
    found = dict[int, dict[int, str]]()
    for row in moments:
        tokens = row["tokens"] or [f" {position}" for position in row["keys"]]
        found.setdefault(row["text"], {}).update(zip(row["keys"], tokens, strict=True))
    return {text: dict(sorted(found[text].items())) for text in sorted(found)}


def _moments(
    moments: Sequence[Mapping[str, Any]], head: tuple[int, int], places: Mapping[int, int]
) -> Iterator[AttentionMoment]:
    own = (row for row in moments if (row["layer"], row["head"]) == head)
    for row in sorted(own, key=lambda row: (KINDS.index(row["kind"]), -row["rank"])):
        yield AttentionMoment(
            row["kind"],
            places[row["text"]],
            row["query"],
            tuple(row["keys"]),
            tuple(row["weights"]),
            row["n_keys"],
            row["to_first"],
            row["effective_keys"],
        )


def _describe_texts(survey: Survey, shown: Mapping[int, Mapping[int, str]]) -> Iterator[AtlasText]:
    """Yield the stretches of the texts that moments show."""
    info = survey.info
    names = dict(zip(survey.texts.array("text").tolist(), survey.texts.array("name"), strict=True))
    for text, tokens in shown.items():
        pieces = (" " * piece.startswith(" ") + escape_for_display(piece.strip(" "), 24) for piece in tokens.values())
        read = f"--index {text} --max-tokens {info.max_tokens} --keep {shlex.quote(info.keep)}"
        options = f"{info.dataset} {read}" if info.dataset else ""
        yield AtlasText(escape_for_display(names[text], 60), options, tuple(tokens), tuple(pieces))


def _words(survey: Survey) -> Iterator[tuple[str, int, tuple[tuple[int, float], ...]]]:
    """Yield the most frequent words, each with the heads that look at it most."""
    words = survey.words
    often = np.flatnonzero((words.n >= MIN_SUPPORT) & (words.equal > 0))
    for n in often[np.argsort(-words.n[often], kind="stable")][:N_FOUND].tolist():
        lifts = words.mass[n] / words.equal[n]
        best = [place for place in np.argsort(-lifts, kind="stable")[:N_HEADS_OF_WORD] if lifts[place] >= MIN_LIFT]
        heads = tuple((int(place), float(lifts[place])) for place in best)
        yield escape_for_display(words.names[n], 24), int(words.n[n]), heads


def _facts(survey: Survey) -> list[tuple[tuple[str, str], ...]]:
    """Return what was tested of each head: what its absence costs, and in what its texts of one class differ."""
    info = survey.info
    found: list[list[tuple[str, str]]] = [[] for _ in range(info.n_places)]
    for costs in find_costs(survey):
        for place, p_value in enumerate(costs.p_values):
            tested = f", p {p_value:.2g} (Holm)" if p_value is not None else ""
            found[place].append((COST.format(costs.kind), f"{costs.write(place)} of the right answer{tested}"))
    for each in survey.differences:
        if each.p_value < ALPHA:
            layer, head, measure = describe_column(survey, each.column)
            change = f"{each.change:+.3g} ± {each.half:.2g} {measure}, p {each.p_value:.2g} (Holm)"
            found[info.heads.index((layer, head))].append((f"in texts of class {each.label}", change))
    return [tuple(of_head) for of_head in found]


def _commands(survey: Survey) -> Iterator[tuple[str, str]]:
    """Yield what more can be asked of a moment, and of the model; nothing where texts cannot be opened again."""
    info, facts = survey.info, survey.facts or ModelFacts()
    if not info.dataset:
        return
    model = f"--model {shlex.quote(info.option)}"
    yield "Draw this", f"attnviz heatmap {{options}} {model} --pick {{head}} --query {{query}}"
    if "explain" in info.can:
        yield "Who wrote what it reads", f"attnviz explain {{options}} {model} --head {{head}} --query {{query}}"
    again = f"attnviz survey {info.dataset} {model} --max-tokens {info.max_tokens} --keep {shlex.quote(info.keep)}"
    if "ablate" in info.can and not any(name.startswith(ABLATION) for name in info.columns):
        yield "What it costs to do without each head", f"{again} --ablate zero --out ablated"
    if info.causal and not facts.probes:
        yield "Which are induction heads", f"{again} --probe repeat --out probed"
