"""One job of a batch, performed: its files, its numbers, and a fingerprint of all that they follow from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from attnviz import store
from attnviz.jobs import NOT_IN_CONFIGS, Job
from attnviz.manifest import Entry, File, Numbers
from attnviz.models.loading import ModelReference, find_model
from attnviz.options import flat_values, with_values
from attnviz.selection import numbers
from attnviz.specs.compare import CompareSpec
from attnviz.specs.explain import ExplainSpec
from attnviz.specs.heatmap import HeatmapSpec
from attnviz.specs.predict import PredictSpec
from attnviz.text import load_corpus
from attnviz.text.document import Corpus, Document

if TYPE_CHECKING:
    import numpy as np

    from attnviz.report import Report

PACKAGES = ("attnviz", "matplotlib", "numpy", "seaborn", "tokenizers", "torch")
REPORT = "report.md"


@dataclass(frozen=True, eq=False)
class JobResult:
    """What came of a job, its files by their whole paths."""

    files: tuple[Path, ...]
    numbers: Numbers
    warnings: tuple[str, ...]
    layers: dict[str, list[int]] = field(default_factory=dict)  # as in a manifest
    heads: dict[str, list[int]] = field(default_factory=dict)


def versions() -> dict[str, str]:
    """Of all packages that the bytes of a figure follow from."""
    return {package: version(package) for package in PACKAGES}


def inputs_of(job: Job) -> dict[str, str]:
    """sha256 of the texts that the job reads and of the weights that it uses; reads them. Raises as the job would."""
    spec = job.spec
    if isinstance(spec, ExplainSpec) and spec.example:
        return {}
    corpus, models = load_corpus(spec.text), _models(job)
    texts = hashlib.sha256()
    for document in _read(job, corpus, whole=any(model.learns_from_texts for model in models)):
        texts.update(json.dumps([document.name, document.text, document.label]).encode())
    found = {"texts": texts.hexdigest()}
    for model in models:
        found |= model.inputs()
    return found


def fingerprint(job: Job, inputs: dict[str, str]) -> str:
    """Of everything that the job's files follow from: two jobs with the same one make the same files."""
    # Paths as they are written: where a config lies on this machine changes nothing.
    settings = {
        name: value for name, value in (flat_values(job.spec) | job.written).items() if name not in NOT_IN_CONFIGS
    }
    whole = {"command": job.command, "settings": settings, "versions": versions(), "inputs": inputs}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def run_job(job: Job, folder: Path) -> Entry:
    """Make the job's files in a folder of its own name within `folder`. Raises what its command raises."""
    inputs = inputs_of(job)
    made = _made(job, folder / job.name)
    return Entry(
        name=job.name,
        command=job.command,
        settings=job.settings
        | {name: value for name, value in flat_values(job.spec).items() if name == "seed"},  # also if 0
        fingerprint=fingerprint(job, inputs),
        inputs=inputs,
        numbers=made.numbers,
        warnings=made.warnings,
        files=tuple(written(path, folder) for path in made.files),
        layers=made.layers,
        heads=made.heads,
    )


def written(path: Path, folder: Path) -> File:
    """A file as it lies on the disk."""
    data = path.read_bytes()
    return File(path.relative_to(folder).as_posix(), hashlib.sha256(data).hexdigest(), len(data))


def _made(job: Job, out: Path) -> JobResult:
    match job.spec:
        case HeatmapSpec():
            return _heatmap(job.spec, out)
        case CompareSpec():
            return _compare(job.spec, out)
        case ExplainSpec():
            return _explain(job.spec, out)
        case PredictSpec():
            return _predict(job.spec, out)
        case _:
            assert_never(job.spec)


def _heatmap(spec: HeatmapSpec, out: Path) -> JobResult:
    from attnviz.workflows.heatmap import heatmap

    files: list[Path] = []
    found: Numbers = {}
    warnings: list[str] = []
    places: dict[str, dict[str, list[int]]] = {"layers": {}, "heads": {}}
    for drawn in heatmap(with_values(spec, out=str(out))):
        data: Any = drawn.report.data
        found[data["text"]["name"]] = {name: _rows(each["values"]) for name, each in data["measures"].items()}
        for axis, of_texts in places.items():
            if data[axis] != list(range(len(data[axis]))):
                of_texts[data["text"]["name"]] = data[axis]
        files += [*drawn.files, _report(drawn.report, drawn.files, drawn.files[0].parent)]
        warnings += drawn.notices
    return JobResult(tuple(files), found, tuple(warnings), **places)


def _rows(values: np.ndarray) -> list[list[float]]:
    """[layer][head] as a manifest has it; a number of all heads of a layer stands alone in its row."""
    rows: list[list[float]] = values.reshape(len(values), -1).tolist()
    return rows


def _compare(spec: CompareSpec, out: Path) -> JobResult:
    from attnviz.renderers.csv import lines
    from attnviz.workflows.compare import Comparing, Outcome, compare

    warnings: list[str] = []
    for event in compare(with_values(spec, out=str(out), time=False)):  # a time would be another number each time
        if isinstance(event, Comparing):
            warnings += event.notices
        elif isinstance(event, Outcome):
            table = out / "measures.csv"
            store.write(table, "".join(lines(event.rows)).encode())
            data: Any = event.report.data
            means = {name: [each["means"]] for name, each in data["measures"].items()}
            files = (*event.files, table, _report(event.report, event.files, out))
            return JobResult(files, {data["texts"]["name"]: means}, (*warnings, *event.notices))
    raise AssertionError("a comparison ends with an outcome")


def _explain(spec: ExplainSpec, out: Path) -> JobResult:
    from attnviz.renderers.json import alone
    from attnviz.renderers.latex import document
    from attnviz.workflows.explain import explain

    explained = explain(spec)
    store.make_folder(out)
    report = _report(explained.report, (), out)
    latex, data = out / "report.tex", out / "numbers.json"
    store.write(latex, document(explained.report).encode())
    store.write(data, b"".join(alone(explained.report)))
    return JobResult((report, latex, data), {}, explained.notices)


def _predict(spec: PredictSpec, out: Path) -> JobResult:
    from attnviz.renderers.csv import lines
    from attnviz.workflows.predict import Classifying, Drew, Predicted, predict

    files: list[Path] = []
    warnings: list[str] = []
    found: Numbers = {}
    for event in predict(with_values(spec, out=str(out))):
        match event:
            case Classifying():
                warnings += event.notices
            case Drew():
                files += event.files
                warnings += event.notices
            case Predicted():
                store.make_folder(out)
                table = out / "predictions.csv"
                store.write(table, "".join(lines(event.rows)).encode())
                files += [table, _report(event.report, (), out)]
            case _:
                found[event.text_name] = {"probabilities": [list(event.probabilities)]}
    return JobResult(tuple(files), found, tuple(warnings))


def _report(report: Report, files: Sequence[Path], folder: Path) -> Path:
    """The report as a document that shows the PNGs beside it."""
    from attnviz.renderers.markdown import document

    pictures = {file.stem: file.relative_to(folder).as_posix() for file in files if file.suffix == ".png"}
    store.write(folder / REPORT, document(report, pictures).encode())
    return folder / REPORT


def _read(job: Job, corpus: Corpus, whole: bool) -> Sequence[Document]:
    """The documents that a job's files follow from: all where a model learns from them, else those it is about."""
    spec = job.spec
    if whole:
        return corpus.documents
    if spec.text.index:
        return [corpus.documents[place] for place in numbers(spec.text.index, len(corpus.documents), "text")]
    first = isinstance(spec, HeatmapSpec | ExplainSpec) or not (spec.text.dataset or spec.text.split)
    return corpus.documents[:1] if first and not spec.text.inline else corpus.documents


def _models(job: Job) -> list[ModelReference]:
    spec = job.spec
    names = spec.models if isinstance(spec, CompareSpec) else (spec.model.model,)
    return [find_model(replace(spec.model, model=name)) for name in names]
