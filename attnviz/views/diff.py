"""What changed from one record, or batch, to another. Knows records, `differences` and `report`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from attnviz.differences import JSD, BatchDiff, Difference, HeadChange, Thresholds, head_beyond, is_beyond
from attnviz.display import escape_for_display, first_of, pluralize, quantity
from attnviz.measures import MEASURES
from attnviz.measures.changes import per_query
from attnviz.records import AttentionMaps
from attnviz.records.walk import stretches
from attnviz.report import Block, Column, Note, Report, Row, Table
from attnviz.specs.batch import DiffSpec
from attnviz.views.captions import status
from attnviz.views.tables import largest
from attnviz.views.tokens import token

MAX_HEADS, MAX_QUERIES, MAX_ROWS, MAX_NAMED = 64, 10, 20, 5
MAX_NAME_LENGTH, MAX_PATH_LENGTH = 48, 100
DIGITS = 4  # one more than elsewhere: a change is smaller than what changes
UNITS = {measure.name: measure.unit for measure in MEASURES}


def records_report(
    before: AttentionMaps, after: AttentionMaps, changes: Sequence[HeadChange], thresholds: Thresholds, spec: DiffSpec
) -> Report:
    """One line per head, the most different first, and the queries of the first that changed most."""
    blocks: list[Block] = [_heads(changes, thresholds)]
    if changes[0].jsd > 0:
        blocks.append(_queries(before, after, changes[0], spec.top_k))
    blocks += map(Note, (*_extent(before, after, changes), *_conditions(before, after)))
    names = [f"{name}: {_made(maps)}" for name, maps in (("A", before), ("B", after))]
    subtitle = " · ".join((*names, f"{len(before.queries)} {pluralize(len(before.queries), 'tokens')}"))
    data = {
        "heads": [_head_data(change, thresholds) for change in changes],
        "compared": {"heads": len(changes), "of_a": _n_heads(before), "of_b": _n_heads(after)},
    }
    return _report(spec, thresholds, subtitle, blocks, data)


def batches_report(diff: BatchDiff, thresholds: Thresholds, spec: DiffSpec) -> Report:
    """For each measure, the numbers that changed most; and what only one batch has."""
    measures = dict.fromkeys(number.measure for number in diff.numbers)
    changed = {name: _changed(diff.numbers, name) for name in measures}
    only = [list(dict.fromkeys(_only(diff, side))) for side in ("A", "B")]
    blocks: list[Block] = [_measure(name, alike, thresholds) for name, alike in changed.items() if alike]
    blocks += map(Note, _batch_notes(changed, only))
    subtitle = f"{sum(map(len, changed.values())):,} of {quantity(len(diff.numbers), 'numbers')} changed"
    listed = [_number_data(each, thresholds) for each in diff.numbers]
    data = {"changes": listed, "only_in_a": only[0], "only_in_b": only[1]}
    return _report(spec, thresholds, subtitle, blocks, data)


def _report(
    spec: DiffSpec, thresholds: Thresholds, subtitle: str, blocks: Sequence[Block], data: Mapping[str, object]
) -> Report:
    """With what every report of a diff says: what was compared, and what is beyond."""
    limits = ", ".join(f"{name} {limit:g}" for name, limit in thresholds.items())
    beyond = (Note(f"Beyond: changed by more than {limits}, up or down."),) if limits else ()
    title = f"{_path(spec.before)} (A) to {_path(spec.after)} (B)"
    compared = {"a": spec.before, "b": spec.after, "thresholds": thresholds}
    return Report(title, subtitle, (*blocks, *beyond), data={**compared, **data})


def _number_data(number: Difference, thresholds: Thresholds) -> Mapping[str, object]:
    where = {name: getattr(number, name) for name in ("measure", "layer", "head", "of")}
    values = {"before": number.expected, "after": number.actual}
    return {**where, **values, "job": number.job, "text": number.text, "beyond": is_beyond(number, thresholds)}


def _only(diff: BatchDiff, side: str) -> Iterator[str]:
    """What only A, or only B, has: jobs, texts, measures and heads."""
    jobs, numbers = ("missing job", "missing numbers") if side == "A" else ("new job", "new numbers")
    for each in diff.differences:
        text = f"{each.text} of {each.job}"
        if each.kind == jobs:
            yield f"job {each.job}"
        elif each.kind == numbers:
            yield f"{each.measure} of {text}" if each.measure else f"text {text}"
        elif each.kind == "heads":
            yield f"{text} with {each.expected if side == 'A' else each.actual}"


def _heads(changes: Sequence[HeadChange], thresholds: Thresholds) -> Table:
    columns = [Column("layer"), Column("head"), Column("JSD", "nats", DIGITS), Column("top key changed")]
    for each in changes[0].measures:
        name, unit = each.measure.replace("_", " "), UNITS[each.measure]
        columns += [Column(f"{name} {what}", unit, DIGITS) for what in ("A", "B", "change")]
    rows: list[Row] = []
    for change in changes[:MAX_HEADS]:
        numbers = [number for one in change.measures for number in (*one.numbers, one.change)]
        turned = f"{change.top_changed} of {change.n_queries} ({change.top_share:.0%})"
        over = (", ".join(head_beyond(change, thresholds)) or "-",) if thresholds else ()
        rows.append((change.layer, change.head, change.jsd, turned, *numbers, *over))
    columns += [Column("beyond")] if thresholds else []
    return Table("heads", "Heads, the most different first", "heads", tuple(columns), tuple(rows))


def _queries(before: AttentionMaps, after: AttentionMaps, change: HeadChange, top_k: int) -> Table:
    """The queries of one head that changed most, and the keys that each attends to most."""
    apart = per_query(before, after, change.layer, change.head)
    real = np.flatnonzero(before.real_queries)
    rows: list[Row] = []
    for place in np.argsort(-apart, kind="stable")[:MAX_QUERIES]:
        query = int(real[place])
        keys = (_keys(maps, change, query, top_k) for maps in (before, after))
        rows.append((token(before.queries, query), float(apart[place]), *keys))
    top = "top key" if top_k == 1 else f"top {top_k} keys"
    columns = (Column("query"), Column("JSD", "nats", DIGITS), Column(f"{top} A"), Column(f"{top} B"))
    title = f"layer {change.layer}, head {change.head}: the queries that changed most"
    return Table("queries", title, "compared", columns, tuple(rows))


def _keys(maps: AttentionMaps, change: HeadChange, query: int, top_k: int) -> str:
    layer, head = maps.place(change.layer, change.head)
    alone = slice(query, query + 1)
    weights, allowed = maps.rows(layer, head, alone)[0], maps.allowed(layer, alone)[0]
    found = largest(weights, np.flatnonzero(allowed), top_k)
    return ", ".join(f"{token(maps.keys, key)} {weights[key]:.2f}" for key in found)


def _extent(before: AttentionMaps, after: AttentionMaps, changes: Sequence[HeadChange]) -> Iterator[str]:
    if before.head_numbers != after.head_numbers or before.layer_numbers != after.layer_numbers:
        layers, heads = (len({getattr(change, what) for change in changes}) for what in ("layer", "head"))
        yield (
            f"A has {_n_heads(before)} and B {_n_heads(after)} (layers × heads): only the {layers} × {heads} that both "
            "have are compared, and heads of one number need not be of one kind."
        )
    if len(changes) > MAX_HEADS:
        more = len(changes) - MAX_HEADS
        yield f"{more} more {pluralize(more, 'heads')} changed less; --json lists {'it' if more == 1 else 'them'}."
    if all(change.jsd == 0 for change in changes):
        yield "Nothing changed: every head attends to the same keys."
    else:
        yield "JSD: Jensen-Shannon divergence, mean over the queries; 0 is the same attention, 0.6931 none in common."


def _conditions(before: AttentionMaps, after: AttentionMaps) -> Iterator[str]:
    several = stretches(np.arange(len(before.queries)), len(before.keys))
    masks = ((before.allowed_anywhere(queries), after.allowed_anywhere(queries)) for queries in several)
    if not all(np.array_equal(one, other) for one, other in masks):
        yield "A and B do not allow the same attention: one of them is causal, or hides other keys."
    if before.queries.unknown != after.queries.unknown:
        yield "The vocabularies of A and B do not know the same tokens."


def _measure(name: str, alike: Sequence[Difference], thresholds: Thresholds) -> Table:
    columns = [Column(header) for header in ("job", "text", "of")]
    columns += [Column(header, digits=DIGITS) for header in ("A", "B", "change")]
    flagged = name in thresholds
    columns += [Column("beyond")] if flagged else []
    rows: list[Row] = []
    for each in alike[:MAX_ROWS]:
        over = (("yes" if is_beyond(each, thresholds) else ""),) if flagged else ()
        places = (escape_for_display(place, MAX_NAME_LENGTH) for place in (each.job, each.text, each.where))
        rows.append((*places, *each.numbers, each.change, *over))
    unit = f" ({UNITS[name]})" if name in UNITS else ""
    return Table(f"changes-{name}", f"{escape_for_display(name)}{unit}", "compared", tuple(columns), tuple(rows))


def _changed(numbers: Sequence[Difference], measure: str) -> list[Difference]:
    """The largest change first."""
    alike = [number for number in numbers if number.measure == measure and number.expected != number.actual]
    return sorted(alike, key=lambda number: -abs(number.change))


def _batch_notes(changed: Mapping[str, Sequence[Difference]], only: Sequence[Sequence[str]]) -> Iterator[str]:
    for name, alike in changed.items():
        if len(alike) > MAX_ROWS:
            rest = len(alike) - MAX_ROWS
            numbers = f"{rest:,} more {pluralize(rest, 'numbers')} of {escape_for_display(name)}"
            yield f"{numbers} changed less; --json lists {'it' if rest == 1 else 'them'}."
    for side, names in zip("AB", only, strict=True):
        if names:
            yield f"Only in {side}: {first_of(names, MAX_NAMED, _path, '; ')}."
    if not any(changed.values()):
        yield "No number changed."


def _head_data(change: HeadChange, thresholds: Thresholds) -> Mapping[str, object]:
    measures = {each.measure: {"a": each.expected, "b": each.actual, "change": each.change} for each in change.measures}
    return {
        "layer": change.layer,
        "head": change.head,
        JSD: change.jsd,
        "top_changed": change.top_changed,
        "queries": change.n_queries,
        "top_key": change.top_share,
        "measures": measures,
        "beyond": list(head_beyond(change, thresholds)),
    }


def _made(maps: AttentionMaps) -> str:
    return _path(f"{maps.provenance.model}, {status(maps.provenance)}")


def _n_heads(maps: AttentionMaps) -> str:
    return f"{maps.n_layers} × {maps.n_heads}"


def _path(text: str) -> str:
    return escape_for_display(text, MAX_PATH_LENGTH)
