"""What methods that explain answers are worth: numbers beside chance, and a verdict that goes no further."""

from collections.abc import Iterable, Iterator, Mapping
from math import isnan

import numpy as np
from jaxtyping import Float64

from attnviz.display import escape_for_display, format_count
from attnviz.records import Provenance
from attnviz.records.answers import AnswerKind
from attnviz.report import Block, Column, Note, Report, Row, Table
from attnviz.table.intervals import MIN_TEXTS, PairedDifference, compare_pairs, summarize
from attnviz.table.numbers import Numbers
from attnviz.views import captions

READING = (
    "Comprehensiveness is what the answer loses of its probability, or of its number, as a mean, when the first 5, 10, "
    "20 and 50 % of the tokens are deleted (of short texts no step of less than one); sufficiency what it loses when "
    "only these are left, below 0 where it gains (DeYoung et al. 2020). ± is half of a 95 % interval over texts.",
    "τ (Kendall) compares the sizes of all scores with those of leave-one-out and of the gradient (Jain & Wallace "
    "2019), deleting counts the few that are ranked first: the two may disagree.",
    "A difference counts as more than chance where its p-value is at most .05 after a correction for all methods, "
    "and against the best for all pairs of methods (Holm 1979): an interval above 0 alone does not do.",
)


NUMBERS = ("comprehensiveness", "sufficiency", "tau_leave_one_out", "tau_gradient", "n_passes")
CHANCE = "random"  # the method that others are compared with


def card_report(methods: Numbers, provenance: Provenance, corpus: str, kind: AnswerKind = "label") -> Report:
    """Show a row per method, chance first, and what follows. `methods` has a row for each text and method.

    The data hold model, texts, and by method each mean with its interval and the numbers of every text.
    """
    by_method = {str(name): rows for (name,), rows in methods.group("method")}
    names = by_method[CHANCE].array("text").tolist()
    of = escape_for_display(corpus if len(names) != 1 else names[0], captions.MAX_NAME_LENGTH)
    blocks: list[Block] = [_table(by_method)]
    lost = {name: rows.array("comprehensiveness") for name, rows in by_method.items()}
    blocks += map(Note, (*write_verdicts(lost), *READING))
    return Report(
        title=f"what explains the answers of {captions.name_model(provenance)}, tested on {of}",
        subtitle=f"{captions.describe_status(provenance)} · {format_count(len(names), 'texts')}",
        blocks=tuple(blocks),
        facts=captions.list_facts(provenance),
        data={
            "model": provenance.model,
            "revision": provenance.revision,
            **({} if kind == "label" else {"answers": kind}),
            "corpus": corpus,
            "texts": names,
            "methods": {name: _data(rows) for name, rows in by_method.items()},
        },
    )


def write_mean(value: float, low: float, high: float) -> str:
    """Write a mean with half of its 95 % interval: "0.612 ±.013"; without one where there is none, "-" for no mean."""
    half = "" if isnan(low) else f" ±{(high - low) / 2:.3f}".replace("±0.", "±.")
    return "-" if isnan(value) else f"{value:.3f}{half}"


def write_verdicts(lost: Mapping[str, Float64[np.ndarray, " text"]]) -> Iterator[str]:
    """Yield what methods lose by text that chance does not, and which is ahead; no more than is beyond chance.

    Who asks of k methods which are better than chance asks k times, and who looks at the best one has looked at every
    pair. Of eight equal methods, on 12 texts, one was "ahead" of another in half of all runs without a correction.
    """
    if (n_texts := len(lost[CHANCE])) < MIN_TEXTS:
        yield f"Over {format_count(n_texts, 'texts')} there is no interval, and so no verdict: it takes {MIN_TEXTS}."
        return
    beyond = compare_pairs(lost, [(name, CHANCE) for name in lost if name != CHANCE])
    better = sorted((each for each in beyond if each.is_ahead), key=lambda each: -each.value)
    nothing = [each for each in beyond if each not in better]
    if nothing:
        yield (
            "Not shown to cost the answer more than deleting tokens of the same texts at random (paired difference): "
            f"{_list_differences(nothing)}."
        )
    if not better:
        return
    listed = _list_differences(better, "+")
    yield f"More than by chance is lost by deleting what is ranked first (paired difference) by: {listed}."
    best, *others = (each.one for each in better)
    pairs = compare_pairs({each.one: lost[each.one] for each in (*better, *nothing)})
    behind = [each for each in pairs if each.one == best and each.other in others]
    if equal := [each.other for each in behind if not each.is_ahead]:
        yield f"Paired, these texts do not tell {best} and {', '.join(equal)} apart."
    if apart := [f"{each.other} by {write_mean(each.value, each.low, each.high)}" for each in behind if each.is_ahead]:
        yield f"Paired, {best} is ahead of {', '.join(apart)}."


def _list_differences(pairs: Iterable[PairedDifference], sign: str = "") -> str:
    return ", ".join(f"{each.one} {sign}{write_mean(each.value, each.low, each.high)}" for each in pairs)


def _table(by_method: Mapping[str, Numbers]) -> Table:
    headers = ("tokens ranked by", "comprehens. ↑", "sufficiency ↓", "τ left out", "τ gradient", "passes")
    rows: list[Row] = []
    for name, table in by_method.items():
        found = summarize(table.matrix(NUMBERS))
        deleted = map(write_mean, found.mean[:2], found.low[:2], found.high[:2])
        taus = (f"{mean:.3f}" for mean in found.mean[2:4])
        rows.append(("chance" if name == CHANCE else name, *deleted, *taus, f"{found.mean[4]:.0f}"))
    return Table("card", "methods, tested", "facts", tuple(map(Column, headers)), tuple(rows))


def _data(rows: Numbers) -> dict[str, object]:
    found = summarize(rows.matrix())
    data: dict[str, object] = {}
    for name, mean, low, high in zip(rows.values, *map(np.ndarray.tolist, found[1:4]), strict=True):
        texts = [None if isnan(value) else value for value in rows.array(name).tolist()]
        interval = None if isnan(low) else [low, high]
        data[name] = {"mean": None if isnan(mean) else mean, "interval": interval, "texts": texts}
    return data
