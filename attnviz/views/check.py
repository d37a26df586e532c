"""What differs between two batches, for `check` and `verify`, in words. Knows `differences` and `report`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice

from attnviz.differences import BASELINE, IN_BASELINE, BatchDiff, Difference, Kind, Value
from attnviz.display import escape_for_display, first_of, quantity
from attnviz.report import Block, CaseResult, Column, Diagnostic, Note, Report, Row, Table
from attnviz.specs.batch import CheckSpec

MAX_JOBS = 20  # in the table
MAX_NAME_LENGTH, MAX_TEXT_LENGTH = 64, 200
KINDS: Mapping[Kind, tuple[str, str]] = {  # one of them, and several
    "missing job": ("job is missing", "jobs are missing"),
    "new job": ("job is new", "jobs are new"),
    "failed job": (
        "job failed, or no longer fails as in the baseline",
        "jobs failed, or no longer fail as in the baseline",
    ),
    "number": ("number differs", "numbers differ"),
    "heads": ("measure has another number of layers or heads", "measures have another number of layers or heads"),
    "missing numbers": ("text or measure is missing", "texts or measures are missing"),
    "new numbers": ("text or measure is new", "texts or measures are new"),
    "picture": ("picture differs", "pictures differ"),
    "record": ("record differs", "records differ"),
    "file": ("file has other bytes", "files have other bytes"),
    "missing file": ("file is missing", "files are missing"),
    "new file": ("file is new", "files are new"),
    "changed file": ("file was changed after it was made", "files were changed after they were made"),
}
COUNTED: tuple[tuple[str, tuple[Kind, ...]], ...] = (
    ("numbers", ("number", "heads", "missing numbers", "new numbers")),
    ("pictures", ("picture",)),
    ("other files", ("record", "file", "missing file", "new file", "changed file")),
)


def check_report(diff: BatchDiff, spec: CheckSpec) -> Report:
    """Which jobs differ, in how many numbers and pictures, one example of each kind, and what may be why."""
    blocks: list[Block] = [_jobs(diff)] if diff.differences else []
    blocks += [Note(sentence) for sentence in (*_kinds(diff), *_remarks(diff, spec))]
    return Report(
        title=_title(diff),
        subtitle=f"{_text(spec.folder)} against the baseline {_text(spec.baseline)}",
        blocks=tuple(blocks),
        data=_data(diff, spec),
    )


def _title(diff: BatchDiff) -> str:
    """ "2 of 12 jobs differ from the baseline"."""
    jobs, n_unlike = quantity(len(diff.jobs), "jobs"), len(diff.by_job)
    if not n_unlike:
        return f"{jobs}, none differs from the baseline"
    return f"{n_unlike} of {jobs} {'differs' if n_unlike == 1 else 'differ'} from the baseline"


def check_cases(diff: BatchDiff) -> tuple[CaseResult, ...]:
    """One per job, with a finding for each kind of difference: the worst first, and how many more."""
    return tuple(CaseResult(_name(job), tuple(_findings(diff, job))) for job in diff.jobs)


def _findings(diff: BatchDiff, job: str) -> Iterator[Diagnostic]:
    file = _text(diff.config) if diff.config else ""
    for kind, alike in _by_kind(diff.by_job.get(job, ())):
        more = f" (and {len(alike) - 1:,} more)" if len(alike) > 1 else ""
        yield Diagnostic(f"{_name(job)}: {_headline(kind, alike)}", describe(alike[0]) + more, file=file)
    if job in diff.failed_alike:
        yield Diagnostic(f"{_name(job)}: failed", "the job failed, as in the baseline", "warning", file)


def first_differences(diff: BatchDiff, what: str) -> tuple[str, ...]:
    """The first difference in numbers and the first in files, a line each; `what` was compared: "2 jobs, 20 files"."""
    if not diff.differences:
        within = f"within the tolerances ({quantity(diff.n_other_bytes, 'files')} of other bytes)"
        return (f"{what}: made again, {within if diff.n_other_bytes else 'the same byte for byte'}",)
    first = {"files" if each.file else "numbers": each for each in reversed(diff.differences)}
    said = {kind: f"in {_name(each.job)}, {describe(each, 'the manifest', '')}" for kind, each in first.items()}
    return tuple(
        f"first difference in {kind}: {said[kind]}" if kind in said else f"{kind}: the same"
        for kind in ("numbers", "files")
    )


def describe(difference: Difference, baseline: str = BASELINE, digits: str = ".6f") -> str:
    """One difference in words, without its job. `digits` is how numbers are written; "": all digits."""
    file = _text(difference.file.removeprefix(f"{difference.job}/")) if difference.file else ""
    said = _text(difference.said) if difference.said else ""
    expected, actual = _value(difference.expected, digits), _value(difference.actual, digits)
    became = f"{expected} became {actual}"
    match difference.kind:
        case "failed job":
            return f"it failed: {actual}" if difference.actual else f"in {baseline} it failed: {expected}"
        case "number" | "heads":
            return f"{_place(difference)}: {became}"
        case "picture" if isinstance(difference.actual, float):
            return f"{file}: {said} differ, by {difference.actual:.3g} of 255 (root mean square)"
        case "record" if difference.measure:
            return f"{file}: weights differ, most at {difference.where}, {said}: {became}"
        case "picture" | "record":
            return f"{file}: {', '.join(part for part in (said, became if difference.actual else '') if part)}"
        case "file":
            return f"{file} has other bytes" + (f" ({said})" if said else "")
        case "changed file":
            return f"{file} {said.removeprefix(IN_BASELINE) if baseline != BASELINE else said}"
    where = f"is in {baseline} only" if difference.kind.startswith("missing") else f"is not in {baseline}"
    return f"{file or _place(difference) or 'it'} {where}"


def _jobs(diff: BatchDiff) -> Table:
    rows = tuple(_row(job, alike) for job, alike in islice(diff.by_job.items(), MAX_JOBS))
    headers = ("job", "state", "numbers", "largest", *(name for name, _ in COUNTED[1:]))
    return Table("jobs", "Jobs that differ", "compared", tuple(Column(h, digits=6) for h in headers), rows)


def _row(job: str, differences: Sequence[Difference]) -> Row:
    states = [each.kind.removesuffix(" job") for each in differences if each.kind.endswith(" job")] or ["differs"]
    numbers, *files = (sum(each.kind in kinds for each in differences) for _, kinds in COUNTED)
    largest = max((abs(each.change) for each in differences if each.kind == "number"), default="")
    return (_name(job), ", ".join(states), numbers, largest, *files)


def _by_kind(differences: Sequence[Difference]) -> Iterator[tuple[Kind, list[Difference]]]:
    """The largest first, else in order."""
    for kind in KINDS:
        if alike := [each for each in differences if each.kind == kind]:
            yield kind, sorted(alike, key=lambda each: -abs(each.change))


def _kinds(diff: BatchDiff) -> Iterator[str]:
    """A sentence for each kind, with the largest of its differences."""
    for kind, alike in _by_kind(diff.differences):
        if kind in ("missing job", "new job"):
            yield f"{_headline(kind, alike)}: {first_of([each.job for each in alike], MAX_JOBS, _name)}."
        else:
            example = f"in {_name(alike[0].job)}, {describe(alike[0])}"
            yield f"{_headline(kind, alike)}{':' if len(alike) == 1 else ', such as'} {example}."


def _remarks(diff: BatchDiff, spec: CheckSpec) -> Iterator[str]:
    """What is not listed, what may be why, and what was compared."""
    hidden = len(diff.by_job) - MAX_JOBS
    if hidden > 0:
        verbs = "differs and is" if hidden == 1 else "differ and are"
        yield f"{quantity(hidden, 'more jobs')} {verbs} not listed."
    why = [(job, diff.causes[job]) for job in diff.by_job if job in diff.causes]
    for job, causes in why[:MAX_JOBS]:
        yield f"{_name(job)} was made otherwise: {_text(', '.join(causes))}."
    if diff.versions:
        yield f"Made by other versions: {_text(', '.join(_versions(diff)))}."
    if failed := diff.failed_alike:
        jobs = f"{quantity(len(failed), 'jobs')} failed as in the baseline"
        yield f"{jobs}, and {'is' if len(failed) == 1 else 'are'} not compared: {first_of(failed, MAX_JOBS, _name)}."
    yield (
        f"Compared: {quantity(diff.n_numbers, 'numbers')} (may differ by {spec.tolerance:g}) and "
        f"{quantity(diff.n_files, 'files')} (pictures by {spec.pixels:g} of 255)."
    )
    if diff.n_other_bytes:
        verb = "has" if diff.n_other_bytes == 1 else "have"
        yield f"{quantity(diff.n_other_bytes, 'files')} of them {verb} other bytes and the same content."


def _headline(kind: Kind, alike: Sequence[Difference]) -> str:
    return f"{len(alike):,} {KINDS[kind][len(alike) > 1]}"


def _place(difference: Difference) -> str:
    """ "entropy of layer 0, head 1 in sample train[0]"."""
    of = f" of {_name(difference.where)}" if difference.where else ""
    measure = f"{_name(difference.measure)}{of}" if difference.measure else ""
    return " in ".join(part for part in (measure, _name(difference.text) if difference.text else "") if part)


def _value(value: Value, digits: str) -> str:
    return f"{value:{digits}}" if isinstance(value, float) else _text(str(value))


def _name(name: str) -> str:
    return escape_for_display(name, MAX_NAME_LENGTH)


def _text(text: str) -> str:
    return escape_for_display(text, MAX_TEXT_LENGTH)


def _versions(diff: BatchDiff) -> list[str]:
    return [f"{package} {before} → {after}" for package, before, after in diff.versions]


def _data(diff: BatchDiff, spec: CheckSpec) -> Mapping[str, object]:
    """Everything, as it was found."""
    return {
        "same": not diff.differences,
        "folder": spec.folder,
        "baseline": spec.baseline,
        "tolerance": spec.tolerance,
        "pixels": spec.pixels,
        "jobs": list(diff.jobs),
        "unlike_jobs": list(diff.by_job),
        "compared": {"numbers": diff.n_numbers, "files": diff.n_files, "other_bytes": diff.n_other_bytes},
        "failed_alike": list(diff.failed_alike),
        "causes": {job: list(causes) for job, causes in diff.causes.items()},
        "versions": _versions(diff),
        "differences": [asdict(each) for each in diff.differences],
    }
