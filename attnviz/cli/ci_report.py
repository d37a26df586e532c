"""What a run on a server leaves for who reads it later: a summary, annotations, test results."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.cli import show
from attnviz.inputs import is_file
from attnviz.specs.batch import CIReportOptions

if TYPE_CHECKING:
    from attnviz.report import CaseResult, Report


def write_ci_report(report: Report, cases: Sequence[CaseResult], suite: str, spec: CIReportOptions) -> None:
    """Add to the summary, say the annotations, write the test results: whatever was asked for.

    Raises OutputError when the disk refuses.
    """
    from attnviz import store

    if spec.annotations == "github":
        from attnviz.renderers.github import lines

        # GitHub reads both streams, and on standard output they would stand in the midst of a document.
        sys.stderr.writelines(lines(finding for case in cases for finding in case.findings))
        sys.stderr.flush()
    if spec.junit:
        from attnviz.renderers.junit import document

        store.write(Path(spec.junit), document(suite, cases))
    if spec.summary:
        from attnviz.renderers.summary import summary

        file = Path(spec.summary)
        if added := summary(report, file.stat().st_size if is_file(file) else 0):
            store.append(file, added.encode())
        else:
            show.note(f"{file} is full: nothing was added to it")
