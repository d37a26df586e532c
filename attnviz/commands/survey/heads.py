"""What is read out of the tables of a survey head by head: names, words, and all of it for machines.

The atlas shows them to be looked at one by one: numbers, names, words and moments of each.
"""

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from attnviz.commands.survey.effects import COST, is_beyond_chance, list_costs, write_cost, write_head_cost
from attnviz.commands.survey.files import Survey
from attnviz.commands.survey.moments import KINDS
from attnviz.commands.survey.survey import ABLATION, ON_REPEATS, PLACES, WORD, ModelFacts
from attnviz.commands.survey.tables import ALPHA, KEYS, PROBES, SPREAD, TEXTS, list_curves
from attnviz.display import escape_for_display, name_measure
from attnviz.measures import MEASURES
from attnviz.records.head_names import write_share
from attnviz.report import Atlas, Cell, Chart, Charts
from attnviz.table.intervals import write_p_value
from attnviz.table.numbers import Numbers

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
            "differences": [row for row in differences.rows() if row["p_value"] < ALPHA],
        },
    }


N_WORDS = 8  # of each head
OF_MOMENT = ("kind", "query", "keys", "weights", "n_keys", "to_first", "effective_keys")
DESCRIPTIONS = {measure.name: measure.help for measure in MEASURES}


def survey_atlas(survey: Survey) -> Atlas:
    """Gather what a page shows of each head."""
    info, numbers = survey.info, survey.tables.numbers
    measures, moments = [*_list_measures(numbers)], survey.moments.rows()
    texts = _describe_texts(survey, moments)
    places = {text: place for place, text in enumerate(texts)}
    names, words, facts = name_heads(survey), top_words(survey, N_WORDS, MIN_SUPPORT), _list_facts(survey)
    curves, equal = list_curves(numbers)
    ranked = sorted(moments, key=lambda row: (KINDS.index(row["kind"]), -row["rank"]))
    # What tells heads apart at first sight: induction and the previous token, where they are measured.
    titles, telling = [measure["title"] for measure in measures], ("to previous", f"induction{ON_REPEATS}", "to first")
    axes = [*dict.fromkeys([*(titles.index(name) for name in telling if name in titles), *range(len(titles))])]
    return {
        "measures": measures,
        "axes": (axes[0], axes[min(1, len(axes) - 1)]),
        "letters": choose_letters([pattern for of_head in names.values() for pattern, _ in of_head]),
        "heads": [
            {
                "layer": head[0],
                "head": head[1],
                "names": names[head],
                "curve": curve.tolist(),
                "words": [(escape_for_display(word, 24), lift, n) for word, lift, n in of_head if lift > 1],
                "facts": facts[head],
                "moments": [
                    {name: row[name] for name in OF_MOMENT} | {"text": places[row["text"]]}
                    for row in ranked
                    if (row["layer"], row["head"]) == head
                ],
            }
            for head, curve, of_head in zip(info.heads, curves, words, strict=True)
        ],
        "texts": [*texts.values()],
        "equal": equal.tolist(),
        "commands": [*_commands(survey)],
        "first": "{}.{}".format(*find_telling(survey, 1)[0]),
    }


def draw_heads(atlas: Atlas, named: Sequence[tuple[int, int]]) -> Charts:
    """Draw the heads of an atlas by the measures that a reader sees first; `named` ones are labelled in any case."""
    x, y = (atlas["measures"][place] for place in atlas["axes"])
    letters, rows = atlas["letters"], []
    for of_x, of_y, head in zip(x["values"], y["values"], atlas["heads"], strict=True):
        pattern, at = head["names"][-1][0] if head["names"] else "", (head["layer"], head["head"])
        rows.append((of_x, of_y, pattern, letters.get(pattern, ""), "{}.{}".format(*at), at in named))
    x_axis, y_axis = (name_measure(of["title"], of["unit"]) for of in (x, y))
    columns = ("x", "y", "group", "letter", "label", "leads")
    chart = Chart("point", "", x_axis, y_axis, columns, tuple(rows), groups=("", *letters))
    return Charts("atlas", "all heads", (chart,))


def _list_measures(numbers: Numbers) -> Iterator[dict[str, Any]]:
    """Yield what is measured of heads over the texts, and on repeated tokens."""
    for (measure,), of in numbers.having("head").select(over=[TEXTS, PROBES]).group("measure"):
        name, first, means = str(measure), of.rows()[0], of.array("mean")
        kind, of_texts = name.removeprefix(ABLATION), first["over"] == TEXTS
        about = DESCRIPTIONS.get(name, "what the right answer loses without it")
        yield {
            "title": name_measure(name) if kind == name else COST.format(kind),
            "unit": first["unit"],
            "about": about if of_texts else "share of attention, on what the probe reads",
            "values": means.tolist(),
            "halves": (of.array("high") - means).tolist() if of_texts else [],
            "equal": of.array("equal")[0].item(),
            "chance": of.array("chance")[0].item(),
        }


def choose_letters(patterns: list[str]) -> dict[str, str]:
    """Return a letter or digit for each pattern, the most common first: its first one that no other has."""
    order = sorted(dict.fromkeys(patterns), key=lambda pattern: (-patterns.count(pattern), pattern))
    found: dict[str, str] = {}
    for pattern in order:
        own = [sign for sign in pattern.upper() if sign.isalnum()]
        free = (sign for sign in (*own, *"ABCDEFGHIJKLMNOPQRSTUVWXYZ") if sign not in found.values())
        found[pattern] = next(free, "+")
    return found


def _describe_texts(survey: Survey, moments: Sequence[Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return by text, in order, the stretches that any moment shows: tokens or, without words, their positions."""
    info, shown, found = survey.info, defaultdict[int, dict[int, str]](dict), dict[int, dict[str, Any]]()
    for row in moments:
        tokens = row["tokens"] or [f" {position}" for position in row["keys"]]
        shown[row["text"]].update(zip(row["keys"], tokens, strict=True))
    names = {row["text"]: row["name"] for row in survey.texts.choose(["text", "name"]).rows()}
    for text in sorted(shown):
        positions, pieces = zip(*sorted(shown[text].items()), strict=True)
        tokens = [" " * piece.startswith(" ") + escape_for_display(piece.strip(" "), 24) for piece in pieces]
        read = f"--index {text} --max-tokens {info.max_tokens} --keep {shlex.quote(info.keep)}"
        options = f"{info.dataset} {read}" if info.dataset else ""
        title = escape_for_display(names[text], 60)
        found[text] = {"title": title, "options": options, "positions": [*positions], "tokens": tokens}
    return found


def _list_facts(survey: Survey) -> Mapping[Head, list[tuple[str, str]]]:
    """Return what was tested of each head: what its absence costs, and in what its texts of one class differ."""
    found = defaultdict[Head, list[tuple[str, str]]](list)
    for kind, costs in list_costs(survey.tables.numbers).items():
        for row in costs:
            tested = f", p {write_p_value(row['p_value'])} (Holm)" if row["p_value"] is not None else ""
            said = f"{write_cost(row)} of the right answer{tested}"
            found[row["layer"], row["head"]].append((COST.format(kind), said))
    for cost in (survey.facts or ModelFacts()).costs:
        if len(cost.heads) == 1:
            found[cost.heads[0]].append((f"lost without it ({cost.kind})", write_head_cost(cost)))
    for row in filter(is_beyond_chance, survey.tables.differences.rows()):
        measure, p_value = name_measure(row["measure"]), f"p {write_p_value(row['p_value'])} (Holm)"
        change = f"{row['change']:+.3g} ± {row['half']:.2g} {measure}, {p_value}"
        found[row["layer"], row["head"]].append((f"in texts of class {row['class']}", change))
    return found


def _commands(survey: Survey) -> Iterator[tuple[str, str]]:
    """Yield what more can be asked of a moment, and of the model; nothing where texts cannot be opened again."""
    info = survey.info
    if not info.dataset:
        return
    model = f"--model {shlex.quote(info.option)}"
    yield "Draw this", f"attnviz heatmap {{options}} {model} --pick {{head}} --query {{query}}"
    if "explain" in info.can:
        yield "Who wrote what it reads", f"attnviz explain {{options}} {model} --head {{head}} --query {{query}}"
    again = f"attnviz survey {info.dataset} {model} --max-tokens {info.max_tokens} --keep {shlex.quote(info.keep)}"
    if "ablate" in info.can and not info.has_costs:
        yield "What it costs to do without each head", f"{again} --ablate zero --out ablated"
    if info.causal and not (survey.facts or ModelFacts()).probes:
        yield "Which are induction heads", f"{again} --probe repeat --out probed"
