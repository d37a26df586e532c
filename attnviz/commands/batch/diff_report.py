"""What differs between two records, batches or surveys, in words. Knows `differences` and `report`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isfinite

from attnviz.commands.batch.spec import DiffSpec
from attnviz.display import format_count, list_first
from attnviz.measures import MEASURES
from attnviz.records.differences import TOP_KEY, Diff, Difference, HeadChange
from attnviz.report import Column, Note, Report, Row, Table
from attnviz.views.differences import describe_difference, shorten_name, shorten_text

MAX_ROWS, MAX_HEADS, MAX_NAMED = 20, 64, 5
DIGITS = 4  # one more than elsewhere: a change is smaller than what changes
UNITS = {measure.name: measure.unit for measure in MEASURES}


def diff_report(
    diff: Diff, spec: DiffSpec, tables: Sequence[Table] = (), data: Mapping[str, object] | None = None
) -> Report:
    """Tables of numbers, and a sentence for everything else that differs."""
    notes = [describe_difference(each) for each in diff.differences if each.what != "number"]
    if len(notes) > MAX_ROWS:
        notes = [*notes[:MAX_ROWS], f"And {len(notes) - MAX_ROWS:,} more: see --json."]
    notes += _remarks(diff)
    compared = {"jobs": list(diff.jobs), "numbers": diff.n_numbers, "files": diff.n_files}
    return Report(
        title=format_count(len(diff.differences), "differences") if diff.differences else "No difference",
        subtitle=f"BEFORE {shorten_text(spec.before)} · AFTER {shorten_text(spec.after or 'the same, made again')}",
        blocks=(*tables, *map(Note, notes)),
        data={
            "same": not diff.differences,
            "before": spec.before,
            "after": spec.after,
            "compared": {**compared, "other_bytes": diff.n_other_bytes},
            "failed_alike": list(diff.failed_alike),
            "versions": [list(each) for each in diff.versions],
            "differences": [asdict(each) for each in diff.differences],
            **(data or {}),
        },
    )


def numbers_table(diff: Diff, shown: Sequence[str]) -> Iterator[Table]:
    """The numbers of batches that differ, the largest change first; of some measures, or of all."""
    found = [each for each in diff.differences if each.what == "number" and each.measure in (shown or [each.measure])]
    shown_rows = sorted(found, key=lambda each: -abs(each.change))[:MAX_ROWS]
    rows: list[Row] = [
        (*map(shorten_name, (each.job, each.text, each.measure, each.where)), *_numbers(each)) for each in shown_rows
    ]
    headers = ("job", "text", "measure", "of", "before", "after", "change")
    if rows:
        more = f", {len(rows)} of {len(found):,}" if len(found) > MAX_ROWS else ""
        yield _table("numbers", f"Numbers that differ, the largest change first{more}", headers, rows)


def heads_table(heads: Sequence[HeadChange]) -> Iterator[Table]:
    """A line per head of two records, the most different first."""
    if not heads:
        return
    columns = [Column("layer"), Column("head"), Column("JSD", "nats", DIGITS), Column("top key changed")]
    for each in heads[0].measures:
        name, unit = each.measure.replace("_", " "), UNITS[each.measure]
        columns += [Column(f"{name} {what}", unit, DIGITS) for what in ("before", "after", "change")]
    rows: list[Row] = []
    for head in heads[:MAX_HEADS]:
        turned = f"{head.top_changed} of {head.n_queries} ({head.values[TOP_KEY]:.0%})"
        rows.append(
            (head.layer, head.head, head.jsd, turned, *(number for of in head.measures for number in _numbers(of)))
        )
    more = f", {MAX_HEADS} of {len(heads):,}" if len(heads) > MAX_HEADS else ""
    name = f"Heads by Jensen-Shannon divergence, the most different first{more}"
    yield Table("heads", name, "heads", tuple(columns), tuple(rows))


def means_table(changes: Sequence[tuple[Difference, float]], shown: Sequence[str]) -> Table:
    """Means over the texts of two surveys, and half of the 95 % interval of each change, NaN of too few texts."""
    rows: list[Row] = []
    for number, half in changes:
        if number.measure in shown:
            interval = half if isfinite(half) else "-"
            rows.append(
                (shorten_name(number.measure), shorten_name(number.where or "texts"), *_numbers(number), interval)
            )
    headers = ("measure", "of", "before", "after", "change", "± 95 %")
    return _table("changes", "Means over texts, the surest change first", headers, rows)


def _table(name: str, heading: str, headers: Sequence[str], rows: Sequence[Row]) -> Table:
    columns = tuple(Column(header, digits=6 if header == "change" else DIGITS) for header in headers)
    return Table(name, heading, "compared", columns, tuple(rows))


def _numbers(number: Difference) -> tuple[float, float, float]:
    assert isinstance(number.before, float)
    assert isinstance(number.after, float)
    return number.before, number.after, number.change


def _remarks(diff: Diff) -> Iterator[str]:
    """What was compared, and what is told and is no difference."""
    if diff.versions:
        listed = list_first([f"{name} {old} → {new}" for name, old, new in diff.versions], MAX_NAMED)
        yield f"Made by other versions: {shorten_text(listed)}."
    if diff.failed_alike:
        yield f"Failed on both sides with the same error: {list_first(diff.failed_alike, MAX_NAMED, shorten_name)}."
    if diff.jobs:
        numbers, files = format_count(diff.n_numbers, "numbers"), format_count(diff.n_files, "files")
        yield f"Compared: {format_count(len(diff.jobs), 'jobs')}, {numbers}, {files}."
    if diff.n_other_bytes:
        yield f"Other bytes that say the same: {format_count(diff.n_other_bytes, 'files')}."
