"""What differs between two records, batches or surveys, in words: kinds of change first. Knows no files."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from attnviz.display import escape_for_display, format_count, list_first
from attnviz.records.differences import FILES, NUMBER, NUMBERS, OTHER_BYTES, WEIGHT, Diff, Difference, Value
from attnviz.report import Column, Note, Report, Row, Table

MAX_TEXT_LENGTH = 200
MAX_KINDS, MAX_NAMED = 4, 5
MAX_ROWS = 200  # of a table
DIGITS = 4  # one more than elsewhere: a change is smaller than what changes
CAUSES = ("setting", "texts", "weights of")  # what a job was made from, by how each begins
SHA256 = re.compile("[0-9a-f]{64}")
NOUNS = {".png": "pictures", ".safetensors": "records", NUMBER: "numbers", WEIGHT: "weights of heads", "job": "jobs"}
NOUNS |= {"text": "texts", "changed file": "files that were changed later"}


def diff_report(diff: Diff, sides: tuple[str, str], shown: Sequence[str]) -> Report:
    """Report the kinds of change, the most frequent first, each with its largest; then numbers of both sides.

    A screen has only those of the measures that are asked for. Documents have the room for many more, and JSON has all.
    """
    kinds = group_differences(diff.differences)
    notes = [_describe_kind(each) for each in kinds[:MAX_KINDS]]
    if more := kinds[MAX_KINDS:]:
        n_more = format_count(sum(map(len, more)), "differences")
        notes.append(f"And {n_more} of {format_count(len(more), 'kinds')}: --print markdown lists them.")
    numbers = [each for each in diff.changes if not shown or each.measure in shown]
    others = [each for kind in kinds for each in kind if each.what != NUMBER or each.kind != "differs"]
    counts = {name: diff.counts.get(name, 0) for name in (NUMBERS, FILES, OTHER_BYTES)}
    return Report(
        title=format_count(len(diff.differences), "differences") if diff.differences else "No difference",
        subtitle=f"BEFORE {shorten_text(sides[0])} · AFTER {shorten_text(sides[1])}",
        blocks=(
            *(Note(note, leads=True) for note in notes),
            *([_list_numbers(numbers, is_detail=not shown)] if numbers else []),
            *([list_differences(others[:MAX_ROWS], len(others))] if len(others) > len(notes) else []),
            *map(Note, _remarks(diff)),
        ),
        data={
            "same": not diff.differences,
            "before": sides[0],
            "after": sides[1],
            "compared": {"jobs": list(diff.jobs), **counts},
            "failed_alike": list(diff.failed_alike),
            "versions": [list(each) for each in diff.versions],
            "differences": [{"kind": each.kind, **vars(each)} for each in diff.differences],
            "changes": [{"kind": each.kind, **vars(each)} for each in diff.changes],
        },
        max_lines=15,
    )


def group_differences(differences: Sequence[Difference]) -> list[list[Difference]]:
    """Put what is alike together: settings, texts and models first, why all else may have changed, then the most
    frequent kind.

    Within each the largest change comes first.
    """
    kinds: dict[tuple[object, ...], list[Difference]] = {}
    for each in differences:
        kinds.setdefault((each.kind, each.what, each.ending, bool(each.said)), []).append(each)
    largest = (sorted(kind, key=lambda each: -abs(each.change)) for kind in kinds.values())
    return sorted(largest, key=lambda kind: (not kind[0].what.startswith(CAUSES), -len(kind)))


def _describe_kind(kind: Sequence[Difference]) -> str:
    """Write a kind of change as one sentence: how many there are, and the largest, or the first."""
    first = kind[0]
    if len(kind) == 1:
        return describe_difference(first)
    if first.what.startswith("setting"):
        is_one = len({(each.before, each.after) for each in kind}) == 1
        alike = replace(first, job="") if is_one else first
        return f"{len(kind):,} jobs{': ' if is_one else ', such as '}{describe_difference(alike)}"
    files = f"{first.ending.removeprefix('.') or 'other'} files"
    noun = files if first.what == "file" else f"facts ({shorten_text(first.what)})"
    they = f"{len(kind):,} {NOUNS.get(first.ending or first.what, noun)}"
    if first.kind != "differs":
        said = f" ({shorten_text(first.said)})" if first.said else ""
        return f"{they} are {_name_side(first)}, such as {_name_subject(first)}{said}."
    if first.is_picture:
        return f"{they} have {'other pixels' if first.said else 'another size'}, such as {describe_difference(first)}"
    if first.change:
        return f"{they} differ by up to {abs(first.change):.3g}: {_name_subject(first)}."
    return f"{they} differ, such as {describe_difference(first)}"


def describe_difference(difference: Difference) -> str:
    """Write one difference as a sentence."""
    subject, said = _name_subject(difference), shorten_text(difference.said)
    before, after = (_format_value(value) for value in (difference.before, difference.after))
    if difference.what.startswith("setting"):
        before, after = (f"“{value}”" if " " in value else value or "not set" for value in (before, after))
        return f"{subject}: {before} became {after}."
    if difference.kind != "differs":
        value = "; ".join(filter(None, (before or after, said)))
        return f"{subject} is {_name_side(difference)}{f' ({value})' if value else ''}."
    if said and (before == after or difference.is_picture):
        return f"{subject}: {said}."
    return f"{subject}: {before} became {after}{f' ({said})' if said else ''}."


def _name_side(difference: Difference) -> str:
    """Return "only in BEFORE" or "only in AFTER"."""
    return f"only in {'AFTER' if difference.before is None else 'BEFORE'}"


def _name_subject(difference: Difference) -> str:
    """Name what differs: "film: attention.safetensors: weight of layer 0, head 1"; of a whole file just its name."""
    what, parts = difference.what, [difference.job, difference.file.removeprefix(f"{difference.job}/")]
    if what == "job":
        return f"job {shorten_text(difference.job)}"
    if not what.endswith("file"):
        name = difference.measure if what == NUMBER else what.replace("_", " ")
        name += f" of {difference.where}" if difference.where else ""
        name += f"{' ' if what == 'text' else ' in '}{difference.text}" if difference.text else ""
        parts.append(name)
    return ": ".join(shorten_text(part) for part in parts if part)


def _format_value(value: Value | None) -> str:
    """Write a value in few characters; "" of none, and of what is only there or not."""
    if isinstance(value, str) and SHA256.fullmatch(value):
        return f"sha256 {value[:8]}…"
    return f"{value:.9g}" if isinstance(value, float) else shorten_text(value or "")


def list_differences(differences: Sequence[Difference], total: int, thumbs: tuple[str, ...] = ()) -> Table:
    """List differences, which are the first of `total`; `thumbs` are pictures of before, after and where."""
    more = f", {len(differences)} of {total:,}: --json has all" if len(differences) < total else ""
    rows: list[Row] = [(describe_difference(each),) for each in differences]
    column = Column("difference", "of pictures: before, after, where" if thumbs else "")
    return Table("differences", f"What differs{more}", "compared", (column,), rows, thumbs=thumbs, is_detail=True)


def _list_numbers(changes: Sequence[Difference], is_detail: bool) -> Table:
    """List numbers of both sides in their order, and half of the 95 % interval of a change where one has that."""
    rows: list[Row] = []
    for each in changes[:MAX_ROWS]:
        change = each.change if each.kind == "differs" else None
        numbers = (each.before, each.after, change, each.interval)
        rows.append((_name_subject(each), *("-" if number is None else number for number in numbers)))
    has_intervals = any(each.interval is not None for each in changes)
    headers = ("number", "before", "after", "change", "± 95 %")[: 5 if has_intervals else 4]
    columns = tuple(Column(header, digits=6 if header == "change" else DIGITS) for header in headers)
    more = f", {MAX_ROWS} of {len(changes):,}" if len(changes) > MAX_ROWS else ""
    title = f"Numbers of both sides{more}"
    return Table("numbers", title, "compared", columns, [row[: len(headers)] for row in rows], is_detail=is_detail)


def _remarks(diff: Diff) -> Iterator[str]:
    """Yield what was compared, and what is told and is no difference."""
    if diff.versions:
        listed = list_first([f"{name} {old} → {new}" for name, old, new in diff.versions], MAX_NAMED)
        yield f"Made by other versions: {shorten_text(listed)}."
    if diff.failed_alike:
        yield f"Failed on both sides with the same error: {list_first(diff.failed_alike, MAX_NAMED, shorten_text)}."
    if diff.jobs and not diff.differences:
        numbers, files = (format_count(diff.counts.get(name, 0), name) for name in (NUMBERS, FILES))
        yield f"Compared: {format_count(len(diff.jobs), 'jobs')}, {numbers}, {files}."
    if n_files := diff.counts.get(OTHER_BYTES):
        yield f"Other bytes that say the same: {format_count(n_files, 'files')}."


def shorten_text(text: str) -> str:
    """Return any text in few characters, safe to show; "" for none."""
    return escape_for_display(text, MAX_TEXT_LENGTH) if text else ""
