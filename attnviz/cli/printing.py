"""Results as one document on standard output, in the writing that was asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import assert_never

from attnviz.renderers.documents import csv, json, latex, markdown
from attnviz.running import Result
from attnviz.specs import PrintKind


def print_documents(results: Sequence[Result], kind: PrintKind, *, full: bool) -> None:
    """All results as one document, in LaTeX with the tables of queries if `full`.

    Only when all results are there: a text that fails must not leave half a document behind.
    """
    for chunk in _write_chunks([result for result in results if result.report is not None], kind, full):
        sys.stdout.write(chunk)


def _write_chunks(results: Sequence[Result], kind: PrintKind, full: bool) -> Iterator[str]:
    reports = [result.report for result in results if result.report is not None]
    match kind:
        case "json":
            texts = (
                json.chunks(reports)
                if results and results[0].is_text
                else chain.from_iterable(map(json.write_alone, reports))
            )
            yield from (chunk.decode("ascii") for chunk in texts)
        case "csv":
            yield from csv.document((result.report, result.rows) for result in results if result.report is not None)
        case "markdown":
            for number, (result, report) in enumerate(zip(results, reports, strict=True)):
                pictures = {file.stem: str(file) for file in result.files if file.suffix == ".png"}
                yield "\n" * (number > 0) + markdown.document(report, pictures)
        case "latex":
            yield latex.fragment(*reports, full=full)
        case "table" | "none":
            pass
        case _:
            assert_never(kind)
