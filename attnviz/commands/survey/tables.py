"""What a survey says, as rows: numbers by measure, layer and head, extreme texts, and differences between classes.

Whatever is shown of a survey is selected from these tables, which are computed once. A number is a mean over texts (a
measure or a pattern), over all queries (the place from a query that receives attention, such as "previous token"), or
over random tokens that come twice ("induction on repeats"). Beside it stands what it is held against: what attention
gives that favours no key, the same head on a few texts as they are and with their words in random order, and the
largest mean of any head of random models on those texts. Means and quantiles are of all texts; intervals, and whatever
is tested, take a text that stands several times once: copies are no further evidence.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from attnviz.commands.survey import survey
from attnviz.commands.survey.measure import MASS_BITS, UNKNOWN
from attnviz.measures import PATTERNS
from attnviz.measures.class_differences import ClassSizes, compare_classes, correct_differences, find_strata
from attnviz.records import is_mostly_unknown
from attnviz.records.head_names import MIN_SHARE, HeadPattern, choose_names, name_offset
from attnviz.table.intervals import MIN_TEXTS, compute_quantiles, correct_p_values, p_value, summarize
from attnviz.table.numbers import Numbers, concat
from attnviz.table.parquet import INTEGER, NUMBER, TEXT

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SPREAD = ("mean", "low", "high", "smallest", *(f"quantile {share:g}" for share in QUANTILES), "largest")
N_EXTREMES = 10  # texts kept on either side of each number
ALPHA = 0.05
# Measures that are places from the query, of which each names a head like any other place.
OF_OFFSETS = frozenset({"to_self", "to_previous", "to_next"})
FOR_LABELS = frozenset(PATTERNS) - {"to_sink"}  # what a survey measures to name heads, and lists apart

TEXTS, QUERIES, PROBES = "texts", "queries", "probes"  # what a number is a mean over
KEYS = {"measure": TEXT, "layer": INTEGER, "head": INTEGER}
COLUMNS = {
    **KEYS,
    "unit": TEXT,
    "over": TEXT,
    "pattern": TEXT,  # that the number is a share of attention for, such as "punctuation"
    "n": INTEGER,  # texts that have the number
    "n_once": INTEGER,  # that differ
    **dict.fromkeys(SPREAD, NUMBER),
    "error": NUMBER,  # of the mean over texts that differ
    "slope": NUMBER,  # by how much it changes with the log of a text's length
    "p_value": NUMBER,  # of what an answer loses without a head, for no loss; corrected for all heads and ways (Holm)
    **dict.fromkeys(("equal", "plain", "chance", "shuffled"), NUMBER),  # what it is held against
}
NAMES = {"layer": INTEGER, "head": INTEGER, "over": TEXT, "pattern": TEXT, "share": NUMBER}
DIFFERENCES = KEYS | {"class": INTEGER, "change": NUMBER, "half": NUMBER, "p_value": NUMBER}
ENDS = ("largest", "smallest")
EXCERPT = {"index": "text", "name": "name", "tokens": survey.TOKENS, "words": "words"}  # columns of texts, in extremes
Values = Float64[np.ndarray, "text place"]


class Tables(NamedTuple):
    """What a survey says."""

    numbers: Numbers  # see `COLUMNS`; of one measure the rows are in the order of its places
    names: Numbers  # what each head looks at, where that is enough for a name; NaN: no text has anything of the kind
    extremes: Numbers  # a row per measure, layer, head, end and rank: which text
    differences: Numbers  # those of classes that were tested, the surest first
    classes: ClassSizes


def tabulate(
    info: survey.SurveyInfo,
    texts: Numbers,
    attended: Numbers,
    facts: survey.ModelFacts,
    read_values: Callable[[survey.SurveyMeasure], Values],
) -> Tables:
    """Compute all rows, one measure after the other, so that memory holds no more than that.

    `texts` are those with tokens, and `read_values` gives their numbers of a measure.
    """
    lengths, labels = texts.array(survey.TOKENS), texts.array("label")
    is_first = np.zeros(len(texts), dtype=bool)
    is_first[np.unique(texts.array("hash"), return_index=True)[1]] = True
    labels, strata, logs = labels[is_first], find_strata(lengths)[is_first], np.log(lengths)
    classes, heads = ClassSizes.count(labels, strata), [{"layer": layer, "head": head} for layer, head in info.heads]
    rows, extremes, compared = dict[str, dict[str, Any]](), list[Numbers](), list[dict[str, Any]]()
    for measure in info.measures:
        values = read_values(measure)
        slopes = np.zeros(values.shape[1])
        if measure.level != "text":
            slopes = fit_slopes(values[is_first], logs[is_first])
        rest = values - slopes * logs[:, None]
        where = _state_places(measure.name, info.list_places(measure.level))
        rows[measure.name] = where | {"unit": measure.unit, "slope": slopes} | _describe(values, is_first)
        extremes.append(_find_extremes(where, texts, values, rest))
        if measure.name.startswith(survey.ABLATION):
            lost = summarize(values[is_first])  # a paired t-test of no loss; t is 0 where nothing changes at all
            tested = zip(lost.n.tolist(), lost.mean.tolist(), lost.error.tolist(), strict=True)
            rows[measure.name]["p_value"] = np.array(
                [p_value(mean / e if e > 0 else 0.0, n - 1) if n >= MIN_TEXTS else np.nan for n, mean, e in tested]
            )
        elif measure.level == "head":
            found = compare_classes(rest[is_first], labels, strata, classes)
            compared += ({"measure": measure.name, **heads[row["column"]], **row} for row in found)
    for name, of in (_list_shares(info, attended) | _list_probes(info, facts)).items():
        rows[name] = of | rows.get(name, {})
    for name, of in rows.items():
        known = ((key, getattr(facts, key).get(name)) for key in ("plain", "shuffled", "chance"))
        of |= {key: np.array(value) if isinstance(value, tuple) else value for key, value in known if value is not None}
    costs = [of for name, of in rows.items() if name.startswith(survey.ABLATION)]
    p_values = np.array([of["p_value"] for of in costs])
    p_values[~np.isnan(p_values)] = correct_p_values(p_values[~np.isnan(p_values)].tolist())
    for of, corrected in zip(costs, p_values, strict=True):
        of["p_value"] = corrected
    n_unknown = attended.select(kind=survey.WORD, name=UNKNOWN).integers(["n"]).sum()
    is_readable = not is_mostly_unknown(int(n_unknown), int(lengths.sum()))
    names = _name_heads(info, [of for of in rows.values() if "pattern" in of], facts, is_readable)
    numbers = concat([Numbers.from_columns(of, [*KEYS], COLUMNS) for of in rows.values()])
    differences = Numbers.from_rows(correct_differences(compared), [*KEYS, "class"], DIFFERENCES).choose([*DIFFERENCES])
    return Tables(numbers, names, concat(extremes), differences, classes)


def _state_places(measure: str, places: Sequence[tuple[int | None, int | None]]) -> dict[str, Any]:
    layers, heads = map(list, zip(*places, strict=True))
    return {"measure": measure, "layer": layers, "head": heads, "over": TEXTS}


def _describe(values: Values, is_first: Bool[np.ndarray, " text"]) -> dict[str, np.ndarray]:
    """Return what is said of the numbers of each place over the texts that have one; NaN where that cannot be said."""
    every = summarize(values)
    once = every if is_first.all() else summarize(values[is_first])
    half = once.high - once.mean
    bounds = (every.mean, every.mean - half, every.mean + half, every.smallest)
    spread = dict(zip(SPREAD, (*bounds, *compute_quantiles(values, QUANTILES), every.largest), strict=True))
    return {"n": every.n, "n_once": once.n, "error": once.error, **spread}


def _find_extremes(where: Mapping[str, Any], texts: Numbers, values: Values, rest: Values) -> Numbers:
    """Return the texts whose numbers are the largest and the smallest for their length, of equal ones the first."""
    order = np.argsort(np.stack([-rest, rest]), axis=1, kind="stable")[:, :N_EXTREMES]  # NaN stands last
    rows = order.transpose(2, 0, 1)  # [place, end, rank]
    place, end, rank = (axis.ravel() for axis in np.indices(rows.shape))
    found = values[rows.ravel(), place]
    kept = np.flatnonzero(~np.isnan(found))
    place, end, text = place[kept], end[kept], rows.ravel()[kept]
    columns: dict[str, object] = {name: [where[name][n] for n in place] for name in ("layer", "head")}
    columns |= {"end": [ENDS[n] for n in end], "rank": rank[kept]}
    columns |= {new: texts.table[old].take(text).to_pylist() for new, old in EXCERPT.items()}
    columns |= {"measure": where["measure"], "value": found[kept]}
    return Numbers.from_columns(columns, [*KEYS, "end", "rank"], KEYS)


def fit_slopes(values: Values, logs: Float64[np.ndarray, " text"]) -> Float64[np.ndarray, " place"]:
    """Return how the numbers of each place change with the log of a text's length, by least squares.

    0 where the texts are too few or of one length.
    """
    there = ~np.isnan(values)
    n = np.maximum(there.sum(axis=0), 1)
    off_mean = there * (logs[:, None] - (there * logs[:, None]).sum(axis=0) / n)
    spread = (off_mean * off_mean).sum(axis=0)
    # A smaller spread of the logs of lengths is rounding, of texts of one length.
    enough = (there.sum(axis=0) >= MIN_TEXTS) & (spread > 1e-9)
    slopes = (off_mean * np.where(there, values, 0.0)).sum(axis=0) / np.where(enough, spread, 1.0)
    return np.where(enough, slopes, 0.0)


def _list_shares(info: survey.SurveyInfo, attended: Numbers) -> dict[str, dict[str, Any]]:
    """Return what each pattern receives of each head, over the texts that have such keys, and each place from the
    query, the nearest first, over all queries.
    """
    found, rows = attended.select(kind=[survey.PATTERN, survey.OFFSET]), {}
    counts = dict(zip(found.array("name"), found.integers(found.values), strict=True))
    offsets = sorted(range(-info.reach, info.reach + 1), key=abs)
    named = {name: (TEXTS, name) for name in PATTERNS if name in counts}
    for key, (over, name) in (named | {str(offset): (QUERIES, name_offset(offset)) for offset in offsets}).items():
        n, *sums = counts[key].tolist()
        equal, *shares = (share / (n * 2.0**MASS_BITS) for share in sums)
        said = {"unit": "share", "over": over, "mean": np.array(shares), "equal": equal}
        said |= {"n": n} if over == TEXTS else {}
        said |= {} if name in OF_OFFSETS else {"pattern": PATTERNS.get(name, name)}
        rows[name] = _state_places(name, info.heads) | said
    return rows


def _list_probes(info: survey.SurveyInfo, facts: survey.ModelFacts) -> dict[str, dict[str, Any]]:
    """Return the scores of random tokens that come twice, and of lists out of order, some of which name heads."""
    rows = {}
    for name, shares in facts.probes.items():
        said = {"unit": "share", "over": PROBES, "mean": np.array(shares), "chance": facts.probe_chance[name]}
        rows[name] = _state_places(name, info.heads) | said | {"pattern": name}
    return rows


def _name_heads(
    info: survey.SurveyInfo, patterns: Sequence[Mapping[str, Any]], facts: survey.ModelFacts, is_readable: bool
) -> Numbers:
    """Return a row for each name of a head: what it looks at over the texts, and does with tokens that come twice.

    Scores of probes name a head where they are large, and beyond those of any head at any wrong place. Where it was
    measured what goes without the head, any name has to stand that as well: see `HeadCost.stands`.
    """
    # Over the texts by the rule of `choose_names`; without a null no head has a name. Shares are of all texts, the null
    # is of a few, and each head's share on these has to be as far beyond it again as it is beyond an equal one.
    # What only some texts have, such as brackets, names a head where enough have it: one pair named 207 of 270 heads.
    least = min(MIN_TEXTS, max((np.max(of.get("n", 0)) for of in patterns), default=0))
    held = [of for of in patterns if is_readable and of["over"] != PROBES and "chance" in of and of["equal"] > 0]
    found: list[list[HeadPattern]] = [[] for _ in info.heads]
    for of in held:
        for place, (share, on_few) in enumerate(zip(of["mean"], of["plain"], strict=True)):
            is_beyond = on_few > 2 * of["chance"] - of["equal"] and np.max(of.get("n", least)) >= least
            found[place].append(HeadPattern(of["pattern"], float(share), 0.0 if is_beyond else 1.0))
    chosen = choose_names(found, facts.named if held else [])
    fallen = {(cost.kind, *cost.heads) for cost in facts.costs if not cost.stands}
    probed, rows = [of for of in patterns if of["over"] == PROBES], list[dict[str, object]]()
    for place, ((layer, head), name) in enumerate(zip(info.heads, chosen, strict=True)):
        names = [(TEXTS, name.pattern, name.share)] if name.pattern else []
        scores = ((of["pattern"], float(of["mean"][place]), of["chance"]) for of in probed)
        names += ((PROBES, kind, share) for kind, share, chance in scores if MIN_SHARE <= share > chance)
        standing = (said for said in names if (said[1], (layer, head)) not in fallen)
        rows += (dict(zip(NAMES, (layer, head, *said), strict=True)) for said in standing)
    return Numbers.from_rows(rows, ["layer", "head", "over"], NAMES)


def list_curves(numbers: Numbers) -> tuple[Float64[np.ndarray, "place offset"], Float64[np.ndarray, " offset"]]:
    """Return the share of attention that each head gives, from as far before the query to as far after it, and what
    attention gives that favours no key.
    """
    found = [(of.array("mean"), of.array("equal")[0]) for _, of in numbers.select(over=QUERIES).group("measure")]
    order = np.argsort(sorted(range(-(len(found) // 2), len(found) // 2 + 1), key=abs))
    shares, equal = zip(*(found[place] for place in order), strict=True)
    return np.stack(shares, axis=1), np.array(equal)
