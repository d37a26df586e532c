"""A check of a batch as a report and as cases. Knows `differences` and `report`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from attnviz.differences import Checked, Found, Kind, Unlike
from attnviz.report import Block, Case, Column, Finding, Note, Report, Table
from attnviz.views.labels import visible
from attnviz.views.tables import Cell

MOST_JOBS = 20  # in the table
LONGEST_NAME, LONGEST_TEXT = 64, 200
ONE: Mapping[Kind, str] = {
    "missing job": "job is missing",
    "new job": "job is new",
    "failed job": "job failed, or no longer fails as in the baseline",
    "number": "number differs",
    "heads": "measure has another number of layers or heads",
    "missing numbers": "text or measure is missing",
    "new numbers": "text or measure is new",
    "picture": "picture differs",
    "record": "record differs",
    "file": "file has other bytes",
    "missing file": "file is missing",
    "new file": "file is new",
    "changed file": "file was changed after it was made",
}
SEVERAL: Mapping[Kind, str] = {
    "missing job": "jobs are missing",
    "new job": "jobs are new",
    "failed job": "jobs failed, or no longer fail as in the baseline",
    "number": "numbers differ",
    "heads": "measures have another number of layers or heads",
    "missing numbers": "texts or measures are missing",
    "new numbers": "texts or measures are new",
    "picture": "pictures differ",
    "record": "records differ",
    "file": "files have other bytes",
    "missing file": "files are missing",
    "new file": "files are new",
    "changed file": "files were changed after they were made",
}
COUNTED: tuple[tuple[str, tuple[Kind, ...]], ...] = (
    ("numbers", ("number", "heads", "missing numbers", "new numbers")),
    ("pictures", ("picture",)),
    ("other files", ("record", "file", "missing file", "new file", "changed file")),
)
STATES: Mapping[Kind, str] = {"missing job": "missing", "new job": "new", "failed job": "failed"}


def check_report(checked: Checked) -> Report:
    """Which jobs differ, in how many numbers and pictures, one example of each kind, and what may be why."""
    blocks: list[Block] = [_jobs(checked)] if checked.differences else []
    blocks += [Note(sentence) for sentence in (*_kinds(checked), *_remarks(checked))]
    return Report(
        title=outcome(checked),
        subtitle=f"{_path(checked.folder)} against the baseline {_path(checked.baseline)}",
        blocks=tuple(blocks),
        data=_data(checked),
    )


def outcome(checked: Checked) -> str:
    """ "2 of 12 jobs differ from the baseline"."""
    n_jobs, n_unlike = len(checked.jobs), len(checked.unlike_jobs)
    if not n_unlike:
        return f"{_count(n_jobs, 'job')}, none differs from the baseline"
    return f"{n_unlike} of {_count(n_jobs, 'job')} {'differs' if n_unlike == 1 else 'differ'} from the baseline"


def check_cases(checked: Checked) -> tuple[Case, ...]:
    """One per job, with a finding for each kind of difference: the worst first, and how many more."""
    found = []
    file = _path(checked.config) if checked.config else ""
    for job in checked.jobs:
        differences = checked.of(job)
        name = visible(job, LONGEST_NAME)
        findings = [
            Finding(f"{name}: {_headline(kind, alike)}", _told_with_more(alike), file=file)
            for kind, alike in _by_kind(differences)
        ]
        if job in checked.failed_alike:
            findings.append(Finding(f"{name}: failed", "the job failed, as in the baseline", "warning", file))
        found.append(Case(name, tuple(findings)))
    return tuple(found)


def told(unlike: Unlike) -> str:
    """One difference in words, without its job."""
    file, said = (
        _path(unlike.file.removeprefix(f"{unlike.job}/")),
        visible(unlike.said, LONGEST_TEXT) if unlike.said else "",
    )
    expected, actual = _value(unlike.expected), _value(unlike.actual)
    match unlike.kind:
        case "missing job" | "new job":
            return "it is in the baseline only" if unlike.kind == "missing job" else "it is not in the baseline"
        case "failed job":
            return f"it failed: {actual}" if unlike.actual else f"in the baseline it failed: {expected}"
        case "number" | "heads":
            return f"{_place(unlike)}: {expected} became {actual}"
        case "missing numbers" | "new numbers":
            where = "is in the baseline only" if unlike.kind == "missing numbers" else "is not in the baseline"
            return f"{_place(unlike)} {where}"
        case "picture" if isinstance(unlike.actual, float):
            return f"{file}: {said} differ, by {unlike.actual:.3g} of 255 (root mean square)"
        case "record" if unlike.measure:
            at = f"layer {unlike.layer}, head {unlike.head}, {said}"
            return f"{file}: weights differ, most at {at}: {expected} became {actual}"
        case "picture" | "record":
            change = f"{expected} became {actual}" if unlike.actual else ""
            return f"{file}: {', '.join(part for part in (said, change) if part)}"
        case "file":
            return f"{file} has other bytes" + (f" ({said})" if said else "")
        case "missing file":
            return f"{file} is in the baseline only"
        case "new file":
            return f"{file} is not in the baseline"
        case "changed file":
            return f"{file} {said}"


def _jobs(checked: Checked) -> Table:
    unlike = checked.unlike_jobs
    rows = [_row(checked, job) for job in unlike[:MOST_JOBS]]
    headers = ("job", "state", "numbers", "largest", *(name for name, _ in COUNTED[1:]))
    return Table("jobs", "Jobs that differ", "compared", tuple(Column(h, digits=6) for h in headers), tuple(rows))


def _row(checked: Checked, job: str) -> tuple[Cell, ...]:
    found = checked.of(job)
    states = [STATES[each.kind] for each in found if each.kind in STATES] or ["differs"]
    numbers, *files = (sum(each.kind in kinds for each in found) for _, kinds in COUNTED)
    sizes = [size(each) for each in found if each.kind == "number"]
    return (visible(job, LONGEST_NAME), ", ".join(states), numbers, max(sizes) if sizes else "", *files)


def size(unlike: Unlike) -> float:
    """How far a number or a picture is from what was expected; of the other kinds 0."""
    if isinstance(unlike.expected, float | int) and isinstance(unlike.actual, float | int):
        return abs(float(unlike.actual) - float(unlike.expected))
    return 0.0


def _by_kind(differences: Sequence[Unlike]) -> Iterator[tuple[Kind, list[Unlike]]]:
    """The largest first, else in order."""
    for kind in ONE:
        if alike := [each for each in differences if each.kind == kind]:
            yield kind, sorted(alike, key=size, reverse=True)


def _kinds(checked: Checked) -> Iterator[str]:
    """A sentence for each kind, with the largest of its differences."""
    for kind, alike in _by_kind(checked.differences):
        if kind in ("missing job", "new job"):
            yield f"{_headline(kind, alike)}: {_listed([each.job for each in alike])}."
        else:
            example = f"in {visible(alike[0].job, LONGEST_NAME)}, {told(alike[0])}"
            yield f"{_headline(kind, alike)}{':' if len(alike) == 1 else ', such as'} {example}."


def _remarks(checked: Checked) -> Iterator[str]:
    hidden = len(checked.unlike_jobs) - MOST_JOBS
    if hidden > 0:
        yield f"{_count(hidden, 'more job')} {'differs' if hidden == 1 else 'differ'} and {_is(hidden)} not listed."
    why = [(job, checked.causes[job]) for job in checked.unlike_jobs if job in checked.causes]
    for job, causes in why[:MOST_JOBS]:
        yield f"{visible(job, LONGEST_NAME)} was made otherwise: {visible(', '.join(causes), LONGEST_TEXT)}."
    if checked.versions:
        yield f"Made by other versions: {visible(', '.join(checked.versions), LONGEST_TEXT)}."
    if checked.failed_alike:
        failed = len(checked.failed_alike)
        jobs = f"{_count(failed, 'job')} failed as in the baseline"
        yield f"{jobs}, and {'is' if failed == 1 else 'are'} not compared: {_listed(checked.failed_alike)}."
    yield (
        f"Compared: {_count(checked.n_numbers, 'number')} (may differ by {checked.tolerance:g}) and "
        f"{_count(checked.n_files, 'file')} (pictures by {checked.pixels:g} of 255)."
    )
    if checked.n_other_bytes:
        verb = "has" if checked.n_other_bytes == 1 else "have"
        yield f"{_count(checked.n_other_bytes, 'file')} of them {verb} other bytes and the same content."


def _headline(kind: Kind, alike: Sequence[Unlike]) -> str:
    return f"{len(alike):,} {ONE[kind] if len(alike) == 1 else SEVERAL[kind]}"


def _told_with_more(alike: Sequence[Unlike]) -> str:
    return told(alike[0]) + (f" (and {len(alike) - 1:,} more)" if len(alike) > 1 else "")


def _place(unlike: Unlike) -> str:
    """ "entropy of layer 0, head 1 in sample train[0]"."""
    head = f" of layer {unlike.layer}, head {unlike.head}" if unlike.layer is not None else ""
    measure = f"{visible(unlike.measure, LONGEST_NAME)}{head}" if unlike.measure else ""
    text = visible(unlike.text, LONGEST_NAME) if unlike.text else ""
    return " in ".join(part for part in (measure, text) if part)


def _value(value: Found) -> str:
    return f"{value:.6f}" if isinstance(value, float) else visible(str(value), LONGEST_TEXT)


def _path(path: str) -> str:
    return visible(path, LONGEST_TEXT)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_JOBS} more" if len(names) > MOST_JOBS else ""
    return ", ".join(visible(name, LONGEST_NAME) for name in names[:MOST_JOBS]) + more


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _data(checked: Checked) -> Mapping[str, object]:
    """Everything, as it was found."""
    return {
        "same": not checked.differences,
        "folder": checked.folder,
        "baseline": checked.baseline,
        "tolerance": checked.tolerance,
        "pixels": checked.pixels,
        "jobs": list(checked.jobs),
        "unlike_jobs": list(checked.unlike_jobs),
        "compared": {"numbers": checked.n_numbers, "files": checked.n_files, "other_bytes": checked.n_other_bytes},
        "failed_alike": list(checked.failed_alike),
        "causes": {job: list(causes) for job, causes in checked.causes.items()},
        "versions": list(checked.versions),
        "differences": [asdict(each) for each in checked.differences],
    }
