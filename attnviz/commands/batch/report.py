"""A batch as a report, for those who read of it on a server. Knows jobs, manifests and `report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from attnviz.commands.batch.jobs import Job
from attnviz.display import escape_for_display
from attnviz.report import Column, Note, Report, Table
from attnviz.store.manifest import Manifest
from attnviz.views.index_page import batch_title, format_settings

MAX_MESSAGE_LENGTH = 500


def batch_report(manifest: Manifest, ended: Mapping[str, str], folder: str) -> Report:
    """How each job ended; `ended` says by its name whether it was made, unchanged or failed."""
    rows = []
    for entry in manifest.jobs:
        why = escape_for_display(entry.error, MAX_MESSAGE_LENGTH) if entry.error else ""
        rows.append((entry.name, entry.command, ended[entry.name], len(entry.files), why))
    columns = (Column("job"), Column("command"), Column("how it ended"), Column("files"), Column("why it failed"))
    warned = [(entry, warning) for entry in manifest.jobs for warning in entry.warnings]
    warnings = [Note(f"{entry.name}: {escape_for_display(warning, MAX_MESSAGE_LENGTH)}") for entry, warning in warned]
    configs = ", ".join(escape_for_display(name, MAX_MESSAGE_LENGTH) for name in manifest.configs)
    table = Table("jobs", "Jobs", "facts", columns, tuple(rows))
    data = {"jobs": [dict(zip(("job", "command", "ended", "files", "error"), row, strict=True)) for row in rows]}
    subtitle = f"{configs}, made in {escape_for_display(folder, MAX_MESSAGE_LENGTH)}"
    return Report(batch_title(manifest), subtitle, (table, *warnings), data=data)


def plan_report(jobs: Sequence[Job], folder: str) -> Report:
    """List the jobs that would be made, with the settings of each."""
    columns = (Column("job"), Column("command"), Column("settings"))
    rows = tuple(
        (job.name, job.command, escape_for_display(format_settings(job.settings), MAX_MESSAGE_LENGTH)) for job in jobs
    )
    data = {"jobs": [{"job": job.name, "command": job.command, "settings": dict(job.settings)} for job in jobs]}
    subtitle = f"would be made in {escape_for_display(folder, MAX_MESSAGE_LENGTH)}"
    return Report("Jobs of a batch", subtitle, (Table("jobs", "Jobs", "facts", columns, rows),), data=data)


def command_line(job: Job) -> str:
    """One job, as it would be written."""
    said = f"{job.name}: {job.command} {format_settings(job.settings)}"
    return escape_for_display(said.rstrip(), MAX_MESSAGE_LENGTH)


def how_ended(ended: Iterable[str], total: int) -> str:
    """ "2 made, 1 failed, 3 not begun"; `ended` says of each job that was begun how it ended."""
    counts = Counter(ended)
    left = total - counts.total()
    said = [f"{counts[how]} {how}" for how in ("made", "unchanged", "failed") if counts[how]]
    return ", ".join([*said, *([f"{left} not begun"] if left else [])])
