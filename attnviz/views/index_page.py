"""A batch as a page to explore: its jobs, their numbers, and how heads differ over the texts. Knows manifests.

All of it follows from the manifest: the same batch, the same page. Several texts of one command have such a page, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from attnviz.display import escape_for_display, pluralize
from attnviz.measures import LAYER_MEASURES, MEASURES
from attnviz.records import Provenance
from attnviz.report import Chart, Charts, Column, Report, Table
from attnviz.selection import MEAN
from attnviz.store.manifest import Entry, File, Manifest
from attnviz.views import captions
from attnviz.views.measure_order import MAX_CHARTS, MAX_SAMPLES, rank

MAX_TEXT_LENGTH = 300
MODEL_SETTINGS = ("model", "heads", "layers", "d_model", "seed", "causal", "vocab", "tokenizer", "attention", "merge")
UNITS = {measure.name: measure.unit for measure in MEASURES}
# A job's name links to the first file with the first of these endings that it has.
LINK_ENDINGS = ("/index.html", ".html", "overview.png", ".png", ".svg", ".pdf", ".md")


class TextNumbers(NamedTuple):
    """What was measured of one text by one job; `whole` if of all layers and heads.

    [layer][head] for each measure, [layer][0] for one of all heads of a layer together.
    """

    job: str
    name: str
    model: str
    measures: dict[str, list[list[float]]]
    layers: tuple[int, ...]  # their numbers
    whole: bool

    @property
    def n_heads(self) -> tuple[int, ...]:
        """Of each layer; of none where no head was measured by itself."""
        of_heads = (values for name, values in self.measures.items() if name not in LAYER_MEASURES)
        return tuple(len(layer) for layer in next(of_heads, ()))


def batch_page(manifest: Manifest) -> Report:
    """Report a batch: tables of jobs and of numbers, and charts where one model saw several texts."""
    texts = list(_collect_texts(manifest.jobs))
    return Report(
        title=batch_title(manifest),
        subtitle=", ".join(escape_for_display(name, MAX_TEXT_LENGTH) for name in manifest.configs),
        blocks=(_jobs_table(manifest), *_numbers_table(texts), *_draw_charts(texts)),
        facts=(
            *(
                (f"sha256 of {escape_for_display(name, MAX_TEXT_LENGTH)}", digest)
                for name, digest in manifest.configs.items()
            ),
            *manifest.versions.items(),
        ),
    )


def texts_page(provenance: Provenance, title: str | None, entries: Sequence[Entry]) -> Report:
    """Report several texts of one model: a table that leads to the page of each, with its numbers, and charts.

    An entry is one text.
    """
    texts = list(_collect_texts(entries))
    numbers = (replace(each, columns=each.columns[1:2] + each.columns[3:]) for each in _numbers_table(texts))
    return Report(
        title=captions.compose_title(provenance, title, len(entries)),
        subtitle=escape_for_display(captions.describe_status(provenance), MAX_TEXT_LENGTH),
        blocks=(
            *(
                replace(
                    each,
                    name="texts",
                    title="Texts, with means over the heads",
                    rows=tuple((row[1], *row[3:]) for row in each.rows),
                    links=tuple(_choose_link(entry.files) for entry in entries),
                )
                for each in numbers
            ),
            *_draw_charts(texts),
        ),
    )


def batch_title(manifest: Manifest) -> str:
    """Count the jobs of a batch: "3 jobs, 1 failed"."""
    n_jobs, failed = len(manifest.jobs), sum(bool(entry.error) for entry in manifest.jobs)
    return f"{n_jobs} {pluralize(n_jobs, 'jobs')}, {f'{failed} failed' if failed else 'all done'}"


def format_settings(settings: Mapping[str, object]) -> str:
    """Write settings as "model=multi:2 format=png,svg"."""
    return " ".join(f"{name}={_write_value(value)}" for name, value in settings.items())


def _jobs_table(manifest: Manifest) -> Table:
    columns = (Column("job"), Column("command"), Column("settings"), Column("files"), Column("what to know"))
    rows = [
        (
            entry.name,
            entry.command,
            _describe([format_settings(entry.settings)]),
            len(entry.files),
            _describe([*([f"failed: {entry.error}"] if entry.error else []), *entry.warnings]),
        )
        for entry in manifest.jobs
    ]
    return Table(
        "jobs", "Jobs", "facts", columns, tuple(rows), tuple(_choose_link(entry.files) for entry in manifest.jobs)
    )


def _describe(parts: Sequence[str]) -> str:
    whole = "; ".join(parts)
    return escape_for_display(whole, MAX_TEXT_LENGTH) if whole else ""


def _choose_link(files: Sequence[File]) -> str:
    for ending in LINK_ENDINGS:
        for file in files:
            if file.path.endswith(ending):
                return file.path
    return ""


def _write_value(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _collect_texts(entries: Sequence[Entry]) -> Iterator[TextNumbers]:
    """Yield the texts of commands that draw attention: others have numbers of other kinds."""
    for entry in entries:
        if entry.command == "heatmap":
            for name, measures in entry.numbers.items():
                n_layers = max(map(len, measures.values()), default=0)
                layers = tuple(entry.layers.get(name) or range(n_layers))
                whole = not {"layer", "head"} & set(entry.settings) and len(layers) == n_layers
                whole = whole and name not in entry.heads
                measures = _leave_out_means(measures, entry.heads.get(name, ()))
                yield TextNumbers(entry.name, name, _name_model(entry), measures, layers, whole)


def _leave_out_means(
    measures: dict[str, list[list[float]]], heads: Sequence[int | str]
) -> dict[str, list[list[float]]]:
    """Leave out numbers of the mean over heads, which is none of the heads that numbers are averaged over."""
    places = [place for place, head in enumerate(heads) if head != MEAN]
    if len(places) == len(heads):
        return measures
    return {
        name: values if name in LAYER_MEASURES else [[row[place] for place in places] for row in values]
        for name, values in measures.items()
    }


def _name_model(entry: Entry) -> str:
    """Name the model by the settings that say whose heads they are, in the words of the config."""
    given = {name: entry.settings[name] for name in MODEL_SETTINGS if name in entry.settings}
    if given.get("seed") == 0:
        del given["seed"]
    named = [str(value) if name == "model" else f"{name} {_write_value(value)}" for name, value in given.items()]
    return escape_for_display(", ".join(named), 60) if named else "as it comes"


def _numbers_table(texts: Sequence[TextNumbers]) -> Iterator[Table]:
    """List the mean over the heads, text by text; a measure of a whole layer is one number already."""
    measures = list(dict.fromkeys(name for text in texts for name in text.measures))
    if measures:
        columns = (
            Column("job"),
            Column("text"),
            Column("model"),
            *(Column(name, UNITS.get(name, "")) for name in measures),
        )
        rows = tuple(_numbers_row(text, measures) for text in texts)
        yield Table("numbers", "Mean over the heads, by text", "facts", columns, rows)


def _numbers_row(text: TextNumbers, measures: Sequence[str]) -> tuple[str | float, ...]:
    means = (_compute_mean(text.measures.get(name)) for name in measures)
    return text.job, escape_for_display(text.name, MAX_TEXT_LENGTH), text.model, *means


def _compute_mean(values: list[list[float]] | None) -> float:
    """Average over layers and heads; NaN of what was not measured."""
    numbers = [number for layer in values or () for number in layer]
    return sum(numbers) / len(numbers) if numbers else float("nan")


def _draw_charts(texts: Sequence[TextNumbers]) -> Iterator[Charts]:
    """Chart each of up to four measures, with a sample for each head of each model that saw several texts."""
    seen = defaultdict(list)
    for text in texts:
        if text.whole:  # otherwise places in the list are not head numbers
            seen[text.model, text.n_heads, text.layers].append(text)
    groups = [group for group in seen.values() if len(group) > 1]
    n_samples = sum(sum(group[0].n_heads) for group in groups)
    if not 0 < n_samples <= MAX_SAMPLES:
        return
    shared = [
        name
        for name in groups[0][0].measures
        if name not in LAYER_MEASURES and all(name in text.measures for group in groups for text in group)
    ]
    measures = sorted(shared, key=rank)[:MAX_CHARTS]
    charts = tuple(
        Chart(
            kind="box",
            title=name,
            x_axis="head",
            y_axis=f"{name} ({UNITS[name]})" if name in UNITS else name,  # a manifest may be of another version
            columns=("x", "y", "group"),
            rows=tuple(_list_numbers(groups, name)),
            names=tuple(name for group in groups for name, _, _ in _list_heads(group[0])),
        )
        for name in measures
    )
    if charts:
        yield Charts("distributions", "each head over the texts", charts, 2 if len(charts) > 1 else 1)


def _list_heads(first: TextNumbers) -> Iterator[tuple[str, int, int]]:
    for layer, (number, n_heads) in enumerate(zip(first.layers, first.n_heads, strict=True)):
        for head in range(n_heads):
            yield f"{number}.{head}" if len(first.n_heads) > 1 else str(head), layer, head


def _list_numbers(groups: Sequence[Sequence[TextNumbers]], measure: str) -> Iterator[tuple[int, float, str]]:
    """Yield for each head of each model, in their order, the numbers of its texts."""
    heads = [(group, layer, head) for group in groups for _, layer, head in _list_heads(group[0])]
    for place, (group, layer, head) in enumerate(heads):
        for text in group:
            yield place, text.measures[measure][layer][head], f"{text.model}, {len(group)} texts"
