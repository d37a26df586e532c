"""What is read out of the tables of a survey head by head: names, words, and all of it for machines."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from attnviz.commands.survey.files import Survey
from attnviz.commands.survey.survey import PLACES, WORD, ModelFacts
from attnviz.commands.survey.tables import ALPHA, KEYS, SPREAD, TEXTS, list_curves
from attnviz.records.head_names import write_share
from attnviz.report import Cell

STRONG = 0.5  # share of attention
MIN_SUPPORT = 20  # times that a word stands in the texts: of rarer ones a mean says little
Head = tuple[int, int]


def name_heads(survey: Survey) -> dict[Head, tuple[tuple[str, str], ...]]:
    """Return what each head does over the texts and with tokens that come twice, each with how strongly."""
    found: dict[Head, tuple[tuple[str, str], ...]] = dict.fromkeys(survey.info.heads, ())
    for row in survey.tables.names.rows():
        found[row["layer"], row["head"]] += ((row["pattern"], write_share(row["share"])),)
    return found


def label_heads(survey: Survey) -> dict[Head, str]:
    """Return the name of each head over the texts and its share, such as "2 after 40 %"; "" for none."""
    named = survey.tables.names.select(over=TEXTS).rows()
    said = {(row["layer"], row["head"]): f"{row['pattern']} {write_share(row['share'])}".strip() for row in named}
    return dict.fromkeys(survey.info.heads, "") | said


def find_telling(survey: Survey, n: int) -> list[Head]:
    """Return up to `n` heads in order: of each pattern the strongest, then the second of each. The first are those of
    the rarest pattern that any head follows by half of its attention.

    Where none has a name, those with the largest share of any pattern.
    """
    numbers, names = survey.tables.numbers, survey.tables.names
    ranked = [sorted(of.rows(), key=lambda row: -np.nan_to_num(row["share"])) for _, of in names.group("pattern")]
    if not ranked:
        patterns = (of.rows() for _, of in numbers.having("pattern").group("pattern"))
        leaders = (max(rows, key=lambda row: row["mean"]) for rows in patterns)
        ranked = [[row] for row in sorted(leaders, key=lambda row: -row["mean"])]
    ranked.sort(key=lambda rows: (not rows[0].get("share", 1.0) >= STRONG, len(rows)))
    turns = chain.from_iterable(zip_longest(*ranked))
    return sorted([*dict.fromkeys((row["layer"], row["head"]) for row in turns if row)][:n])


def top_words(survey: Survey, top: int, min_support: int) -> Iterator[list[tuple[str, float, int]]]:
    """Yield of each head the words that receive most, each with how often it stands in the texts and, as a multiple of
    what attention gives its places that favours no key, what they receive. Words that are rare are left out.
    """
    words = survey.attended.select(kind=WORD)
    n, equal = words.integers(["n", "equal"]).T
    often = np.flatnonzero((n >= min_support) & (equal > 0))
    words = words.take(often)
    names, lifts = words.array("name").tolist(), words.integers(words.values[2:]) / equal[often, None]
    for of_head in lifts.T:
        best = np.argsort(-of_head, kind="stable")[:top].tolist()
        yield [(names[place], float(of_head[place]), int(n[often[place]])) for place in best]


def survey_rows(survey: Survey) -> Iterator[tuple[Cell | None, ...]]:
    """Yield the rows for a spreadsheet: one per head or layer and measure."""
    columns, labels = ("layer", "head", "measure", "unit", *SPREAD), label_heads(survey)
    yield (*columns, "label")
    for row in survey.tables.numbers.select(over=TEXTS).rows():
        yield (*(row[name] for name in columns), labels.get((row["layer"], row["head"])))


def list_heads(survey: Survey) -> Iterator[dict[str, Any]]:
    """Yield of each head its label over the texts, its kind, its share and the null, and nats lost without it."""
    facts, names = survey.facts or ModelFacts(), survey.tables.names.rows()
    kinds = {(row["layer"], row["head"]): row for row in names}  # of two names the one on repeats, which is the last
    chances = {row["pattern"]: row["chance"] for row in survey.tables.numbers.having("pattern").rows()}
    lost = defaultdict[Head, dict[str, float]](dict)
    for cost in (each for each in facts.costs if len(each.heads) == 1):
        lost[cost.heads[0]] |= cost.lost
    for head, label in label_heads(survey).items():
        kind = kinds.get(head)
        yield {
            "layer": head[0],
            "head": head[1],
            "label": label or None,
            "kind": kind and kind["pattern"],
            "share": kind and (None if np.isnan(kind["share"]) else kind["share"]),  # no text has any of the kind
            "null": kind and chances.get(kind["pattern"]),
            **{f"lost_on_{place}": lost[head].get(place) for place in PLACES},
        }


def survey_data(survey: Survey) -> Mapping[str, object]:
    """Return everything that is known of each head."""
    info, (numbers, _, extremes, differences, classes) = survey.info, survey.tables
    texts = {at: of.table.drop_columns([*KEYS, "rank"]).to_pylist() for at, of in extremes.group(*KEYS)}
    measures = dict[str, dict[str, Any]]()
    for row in numbers.select(over=TEXTS).rows():
        level = "text" if row["layer"] is None else "layer" if row["head"] is None else "head"
        said = {"unit": row["unit"], "level": level, "n_texts": row["n"], "numbers": []}
        of_place = {name: row[name] for name in (*SPREAD, "equal")}
        of_place["texts"] = texts.get(tuple(row[name] for name in KEYS), [])
        measures.setdefault(row["measure"], said)["numbers"].append(of_place)
    beyond = [row for row in differences.rows() if row["p_value"] < ALPHA]
    return {
        "model": info.model,
        "revision": info.revision,
        "status": info.status,
        "texts": {"name": info.corpus, "number": len(survey.texts), "tokens": survey.n_queries},
        "heads": [*list_heads(survey)],
        "measures": measures,
        "by_distance": list_curves(numbers)[0].tolist(),
        "facts": None if survey.facts is None else asdict(survey.facts),
        "skipped": survey.skipped,
        "classes": {
            "labels": {str(label): size for label, size in classes.sizes.items()},
            "matched": classes.n_matched,
            "tested": len(differences),
            "differences": beyond,
        },
    }
