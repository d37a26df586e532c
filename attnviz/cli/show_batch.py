"""A batch on the terminal: a bar while it is made, a line a job elsewhere, and how it ended."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING

from attnviz.cli import show, show_on_server
from attnviz.display import escape_for_display
from attnviz.errors import DifferencesFound, ExecutionError, OutputError
from attnviz.specs.batch import BatchSpec
from attnviz.views.plurals import pluralize

if TYPE_CHECKING:
    from attnviz.workflows.batch import Event, Finished, Planned
    from attnviz.workflows.verify import Event as Verification
    from attnviz.workflows.workers import Done


def made(events: Iterator[Event], spec: BatchSpec) -> None:
    """Show each job as it is done.

    Raises ExecutionError at the end where one failed, OutputError where the disk did.
    """
    from attnviz.workflows.batch import Planned

    planned = next(events)
    assert isinstance(planned, Planned)
    if spec.dry_run:
        _list(planned)
        return
    on_terminal = sys.stderr.isatty()
    bar = show.bar("jobs", len(planned.plan.jobs)) if on_terminal else nullcontext(lambda: None)
    finished, ended = None, dict[str, str]()
    with bar as advance:
        for event in events:
            finished = _one(event, quiet=on_terminal)
            if finished is None:
                ended[event.entry.name] = event.how  # type: ignore[union-attr]  # not finished: it is a job
                advance()
    assert finished is not None
    for notice in finished.notices:
        show.note(notice)
    _end(planned, finished, ended, spec)


def _one(event: Event, quiet: bool) -> Finished | None:
    from attnviz.workflows.workers import Done

    if not isinstance(event, Done):
        return event  # type: ignore[return-value]  # planned came first
    if event.how == "failed":
        show.error(f"{event.entry.name}: {event.entry.error}")
    elif not quiet:
        show.line(_told(event))
        sys.stdout.flush()
    for warning in event.entry.warnings if event.how == "made" else ():
        show.note(f"{event.entry.name}: {warning}")
    return None


def _told(done: Done) -> str:
    n = len(done.entry.files)
    return f"{done.how} {escape_for_display(done.entry.name)} ({n} file{'' if n == 1 else 's'})"


def _list(planned: Planned) -> None:
    for job in planned.plan.jobs:
        settings = " ".join(f"{name}={_written(value)}" for name, value in job.settings.items())
        show.line(escape_for_display(f"{job.name}: {job.command} {settings}".rstrip(), show.MAX_LINE_LENGTH))
    n = len(planned.plan.jobs)
    show.note(f"would make {n} job{'' if n == 1 else 's'} in {planned.folder}/ with {planned.n_workers} at a time")


def _written(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _end(planned: Planned, finished: Finished, ended: Mapping[str, str], spec: BatchSpec) -> None:
    from attnviz.views.batch import batch_cases, batch_report

    counts = Counter(ended.values())
    said = ", ".join(f"{counts[how]} {how}" for how in ("made", "unchanged", "failed") if counts[how])
    left = len(planned.plan.jobs) - counts.total()
    and_page = f" and {finished.page}" if finished.page else ""
    show.note(f"{said}{f', {left} not begun' if left else ''}; wrote {finished.file}{and_page}")
    report = batch_report(finished.manifest, ended, str(planned.folder))
    show_on_server.left(report, batch_cases(finished.manifest, planned.plan.jobs), "attnviz batch", spec.server)
    if finished.failed:
        n, of = len(finished.failed), len(planned.plan.jobs)
        kind = OutputError if finished.disk_failed else ExecutionError
        others = "The others are made; the" if n < of else "The"
        raise kind(f"{n} of {of} {pluralize(of, 'jobs')} failed", hint=f"{others} manifest says why.")


def verified(events: Iterator[Verification]) -> None:
    """Show how a batch came out when it was made again. Raises DifferencesFound where it did not come out the same."""
    from attnviz.workflows.verify import Verified, Verifying

    first = next(events)
    assert isinstance(first, Verifying)
    with show.bar("jobs", first.n_jobs) if sys.stderr.isatty() else nullcontext(lambda: None) as advance:
        last: Verification = first
        for event in events:
            last = event
            advance()
    assert isinstance(last, Verified)
    for notice in last.notices:
        show.note(notice)
    files = f"{last.n_jobs} {pluralize(last.n_jobs, 'jobs')}, {last.n_files:,} {pluralize(last.n_files, 'files')}"
    if not (last.number or last.bytes):
        show.line(f"{files}: made again, the same byte for byte")
        return
    for what, found in (("numbers", last.number), ("bytes", last.bytes)):
        show.line(
            escape_for_display(
                f"first difference in {what}: {found}" if found else f"{what}: the same", show.MAX_LINE_LENGTH
            )
        )
    raise DifferencesFound(
        f"what is made again differs from {files} of the manifest", hint="The first differences are above."
    )
