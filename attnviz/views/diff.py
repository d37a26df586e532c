"""What changed from one record, or batch, to another. Knows records, `differences` and `report`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from attnviz.differences import JSD, TOP_KEY, BatchDiff, Difference, HeadChange, Thresholds, head_beyond, is_beyond
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
    n_tokens = len(before.queries)
    sides = [
        f"{name}: {_path(f'{maps.provenance.model}, {status(maps.provenance)}')}"
        for name, maps in (("A", before), ("B", after))
    ]
    subtitle = " · ".join((*sides, f"{n_tokens} {pluralize(n_tokens, 'tokens')}"))
    data = {
        "heads": [_head_data(change, thresholds) for change in changes],
        "compared": {"heads": len(changes), "of_a": _n_heads(before), "of_b": _n_heads(after)},
    }
    return _report(spec, thresholds, subtitle, blocks, data)


def batches_report(diff: BatchDiff, thresholds: Thresholds, spec: DiffSpec) -> Report:
    """For each measure, the numbers that changed most; and what only one batch has."""
    changed: dict[str, list[Difference]] = {number.measure: [] for number in diff.numbers}
    for number in sorted(diff.numbers, key=lambda number: -abs(number.change)):
        changed[number.measure] += [number] if number.expected != number.actual else []
    only = [list(dict.fromkeys(_only(diff, side))) for side in "AB"]
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


def _head_data(change: HeadChange, thresholds: Thresholds) -> Mapping[str, object]:
    measures = {each.measure: dict(zip(("a", "b", "change"), each.numbers, strict=True)) for each in change.measures}
    values = {
        JSD: change.jsd,
        "top_changed": change.top_changed,
        "queries": change.n_queries,
        TOP_KEY: change.top_share,
    }
    beyond = list(head_beyond(change, thresholds))
    return {"layer": change.layer, "head": change.head, **values, "measures": measures, "beyond": beyond}


def _number_data(number: Difference, thresholds: Thresholds) -> Mapping[str, object]:
    where = {name: getattr(number, name) for name in ("measure", "layer", "head", "of")}
    values = {"before": number.expected, "after": number.actual}
    return {**where, **values, "job": number.job, "text": number.text, "beyond": is_beyond(number, thresholds)}


def _only(diff: BatchDiff, side: str) -> Iterator[str]:
    """What only A, or only B, has: jobs, texts, measures and heads."""
    which = "missing" if side == "A" else "new"
    for each in diff.differences:
        text = f"{each.text} of {each.job}"
        if each.kind == f"{which} job":
            yield f"job {each.job}"
        elif each.kind == f"{which} numbers":
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
        numbers = [number for each in change.measures for number in each.numbers]
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
    yield from _unlisted(len(changes) - MAX_HEADS, "more heads")
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
    columns = [Column(header, digits=DIGITS) for header in ("job", "text", "of", "A", "B", "change")]
    columns += [Column("beyond")] if name in thresholds else []
    rows: list[Row] = []
    for each in alike[:MAX_ROWS]:
        over = ("yes" if is_beyond(each, thresholds) else "",) if name in thresholds else ()
        places = (escape_for_display(place, MAX_NAME_LENGTH) for place in (each.job, each.text, each.where))
        rows.append((*places, *each.numbers, *over))
    unit = f" ({UNITS[name]})" if name in UNITS else ""
    return Table(f"changes-{name}", f"{escape_for_display(name)}{unit}", "compared", tuple(columns), tuple(rows))


def _batch_notes(changed: Mapping[str, Sequence[Difference]], only: Sequence[Sequence[str]]) -> Iterator[str]:
    for name, alike in changed.items():
        yield from _unlisted(len(alike) - MAX_ROWS, "more numbers", f" of {escape_for_display(name)}")
    for side, names in zip("AB", only, strict=True):
        if names:
            yield f"Only in {side}: {first_of(names, MAX_NAMED, _path, '; ')}."
    if not any(changed.values()):
        yield "No number changed."


def _unlisted(number: int, many: str, of: str = "") -> Iterator[str]:
    """How many have no row."""
    if number > 0:
        yield f"{quantity(number, many)}{of} changed less; --json lists {'it' if number == 1 else 'them'}."


def _n_heads(maps: AttentionMaps) -> str:
    return f"{maps.n_layers} × {maps.n_heads}"


def _path(text: str) -> str:
    return escape_for_display(text, MAX_PATH_LENGTH)
