"""`attnviz check`."""

from __future__ import annotations

from attnviz.cli import show, show_on_server
from attnviz.errors import DifferencesFound
from attnviz.specs.batch import CheckSpec


def check(spec: CheckSpec) -> None:
    """Compare what a batch made with a baseline: numbers first, then pictures pixel by pixel. Exit code 3: it differs.

    Example: attnviz check figures --baseline baseline --summary summary.md
    """
    from attnviz.workflows.check import check as run

    found = run(spec)
    for notice in found.notices:
        show.note(notice)
    show.report(found.report, spec.json)
    if found.files:
        show.note(f"wrote {show.listed(found.files)}")
    show_on_server.left(found.report, found.cases, "attnviz check", spec.server)
    if found.diff.differences:
        raise DifferencesFound(found.report.title, hint=f"{spec.out} holds what differs.")
