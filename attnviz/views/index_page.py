"""A batch as a page: a picture of each job, what failed and what changed first, and numbers. Knows manifests.

Several texts of one command have such a page, too, without the pictures.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import nan

from attnviz.display import escape_for_display, list_first, pluralize
from attnviz.measures import MEASURES
from attnviz.records import AttentionMaps
from attnviz.report import Column, Report, Row, Table
from attnviz.selection import MEAN
from attnviz.store.manifest import Entry, File, Manifest
from attnviz.views import captions
from attnviz.views.tables import measure_column

MAX_TEXT_LENGTH = 300
MAX_LISTED = 8  # of one setting
UNITS = {"tokens": "tokens, of images patches"}  # a manifest does not say which of the two a text is
COLUMNS = {each.name: measure_column(each.name, UNITS.get(each.unit, each.unit)) for each in MEASURES}
# A job's name links to the first file with the first of these endings that it has.
LINK_ENDINGS = ("/index.html", ".html", "overview.png", ".png", ".svg", ".pdf", ".md")


def batch_page(manifest: Manifest, thumbs: Mapping[str, str] | None = None, changed: Collection[str] = ()) -> Report:
    """Report a batch: a picture and a line of each job, those that failed first, then those that changed, and numbers.

    `thumbs` are pictures as data: addresses, by the job's name.
    """
    configs = [escape_for_display(name, MAX_TEXT_LENGTH) for name in manifest.configs]
    digests = [f"sha256 of {name}" for name in configs]
    jobs = sorted(manifest.jobs, key=lambda entry: (not entry.error, entry.name not in changed))
    return Report(
        title=batch_title(manifest),
        subtitle=", ".join(configs),
        blocks=(_jobs_table(jobs, thumbs or {}, changed), *_numbers_table(manifest.jobs)),
        facts=(*zip(digests, manifest.configs.values(), strict=True), *manifest.versions.items()),
    )


def texts_page(maps: AttentionMaps, title: str | None, entries: Sequence[Entry]) -> Report:
    """Report several texts or images of one model: a table that leads to the page of each, with its numbers.

    An entry is one, and `maps` are of the last.
    """
    many, unit = ("texts", "tokens") if maps.grid is None else ("images", "patches")
    known = {Column("text"): Column(many[:-1]), COLUMNS["distance"]: replace(COLUMNS["distance"], unit=unit)}
    return Report(
        title=captions.compose_title(maps.provenance, title, f"{len(entries)} {many}"),
        subtitle=escape_for_display(captions.describe_status(maps.provenance), MAX_TEXT_LENGTH),
        blocks=tuple(
            replace(
                each,
                name=many,
                title=f"{many.capitalize()}, with means over the heads",
                columns=tuple(known.get(column, column) for column in each.columns[1:]),
                rows=tuple(row[1:] for row in each.rows),
                links=tuple(_choose_link(entry.files) for entry in entries),
            )
            for each in _numbers_table(entries)
        ),
    )


def batch_title(manifest: Manifest) -> str:
    """Count the jobs of a batch: "3 jobs, 1 failed"."""
    n_jobs, failed = len(manifest.jobs), sum(bool(entry.error) for entry in manifest.jobs)
    return f"{n_jobs} {pluralize(n_jobs, 'jobs')}, {f'{failed} failed' if failed else 'all done'}"


def format_settings(settings: Mapping[str, object]) -> str:
    """Write settings as "model=multi:2 format=png,svg"."""
    written = {name: value if isinstance(value, list | tuple) else [value] for name, value in settings.items()}
    return " ".join(f"{name}={list_first(several, MAX_LISTED, between=',')}" for name, several in written.items())


def _jobs_table(jobs: Sequence[Entry], thumbs: Mapping[str, str], changed: Collection[str]) -> Table:
    rows = []
    for entry in jobs:
        ended = [f"failed: {entry.error}"] if entry.error else ["changed"] if entry.name in changed else []
        settings = _describe([format_settings(entry.settings)])
        said = _describe(filter(None, [*ended, entry.said, *entry.warnings]))
        rows.append((entry.name, entry.command, settings, len(entry.files), said))
    return Table(
        name="jobs",
        title="Jobs",
        role="facts",
        columns=(Column("job"), Column("command"), Column("settings"), Column("files"), Column("what to know")),
        rows=tuple(rows),
        links=tuple(_choose_link(entry.files) for entry in jobs),
        thumbs=tuple(thumbs.get(entry.name, "") for entry in jobs),
    )


def _describe(parts: Iterable[str]) -> str:
    whole = "; ".join(parts)
    return escape_for_display(whole, MAX_TEXT_LENGTH) if whole else ""


def _choose_link(files: Sequence[File]) -> str:
    return next((file.path for ending in LINK_ENDINGS for file in files if file.path.endswith(ending)), "")


def _numbers_table(entries: Sequence[Entry]) -> Iterator[Table]:
    """Yield the means over the heads, text by text, of commands that draw attention: others have other numbers."""
    means = defaultdict[tuple[str, str], dict[str, float]](dict)
    for entry in (each for each in entries if each.command == "heatmap"):
        for of in entry.numbers:
            kept = [place for place, head in enumerate(of.head) if head != MEAN]  # which is none of the heads
            text = escape_for_display(of.text, MAX_TEXT_LENGTH)
            means[entry.name, text] |= {
                name: sum(values[place] for place in kept) / len(kept) if kept else nan
                for name, values in of.values.items()
            }
    if names := list(dict.fromkeys(name for found in means.values() for name in found)):
        columns = (*map(Column, ("job", "text")), *(COLUMNS.get(name, Column(name)) for name in names))
        rows: tuple[Row, ...] = tuple((*said, *(of.get(name, nan) for name in names)) for said, of in means.items())
        yield Table("numbers", "Mean over the heads, by text", "facts", columns, rows)
