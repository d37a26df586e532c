"""Results as one document on standard output, in the writing that was asked for."""

from collections.abc import Iterator, Sequence
from itertools import chain

from attnviz.renderers.documents import csv, json, latex, markdown
from attnviz.running import Result
from attnviz.specs import PrintKind


def write_documents(results: Sequence[Result], kind: PrintKind, *, full: bool) -> Iterator[str]:
    """Write all results as one document, in LaTeX with the tables of queries if `full`.

    Only when all results are there: a text that fails must not leave half a document behind.
    """
    told = [(result, result.report) for result in results if result.report is not None]
    reports = [report for _, report in told]
    match kind:
        case "json":
            of_texts = bool(told) and told[0][0].is_text
            yield from json.chunks(reports) if of_texts else chain.from_iterable(map(json.write_alone, reports))
        case "brief":
            yield json.render_brief(reports)
        case "csv":
            yield from csv.document((report, result.rows) for result, report in told)
        case "markdown":
            for number, (result, report) in enumerate(told):
                pictures = {file.stem: str(file) for file in result.files if file.suffix == ".png"}
                yield "\n" * (number > 0) + markdown.document(report, pictures)
        case "latex":
            yield latex.fragment(*reports, full=full)
