"""Batches in small, as `attnviz batch` leaves them, that tests of what judges them share."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from attnviz.commands.batch import run
from attnviz.commands.batch.jobs import Job
from attnviz.commands.batch.manifests import from_file, to_bytes
from attnviz.commands.batch.spec import BatchSpec
from attnviz.commands.batch.workers import describe_file, run_job
from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.options import build
from attnviz.running import Progress, Result
from attnviz.store.manifest import NAME, Entry, File, Manifest

TEXT = "not a good film, but the acting saves it"
SPEC = build(HeatmapSpec, model="multi:2", text=(TEXT,), format=("png", "svg"), dpi=60)


def batch(folder: Path, *specs: HeatmapSpec) -> Manifest:
    """One job for each spec, called first, second and third, with everything that a batch writes."""
    names = zip(("first", "second", "third"), specs, strict=False)
    jobs = tuple(run_job(Job(name, "heatmap", spec), folder) for name, spec in names)
    manifest = Manifest({"figures.yaml": "0" * 64}, {"torch": "2.13.0"}, jobs)
    write(folder, manifest)
    return manifest


def run_batch(config: Path, **options: object) -> tuple[dict[str, str], Result]:
    """How each job of a config ended, in the order in which they did, and the end."""
    *middle, last = run.batch(build(BatchSpec, configs=(str(config),), **options))
    assert isinstance(last, Result)
    jobs = [each for each in middle if isinstance(each, Progress)]
    return {each.latest: "failed" if each.error else each.line.split()[0] for each in jobs}, last


def write(folder: Path, manifest: Manifest) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_bytes(to_bytes(manifest))


def read(folder: Path) -> Manifest:
    return from_file(folder / NAME)


def change(folder: Path, name: str, how: Callable[[Entry], Entry | None]) -> None:
    """Another manifest, in which one job is not what it was, or is not at all."""
    manifest = read(folder)
    jobs = [how(entry) if entry.name == name else entry for entry in manifest.jobs]
    write(folder, replace(manifest, jobs=tuple(entry for entry in jobs if entry is not None)))


def put(folder: Path, path: str, data: bytes) -> None:
    """A file of the first job and what the manifest says of it, as if the batch had made it."""
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(data)
    made = describe_file(folder / path, folder)
    change(folder, "first", lambda entry: replace(entry, files=(*_without(entry, path), made)))


def shifted(entry: Entry, measure: str, layer: int, head: int, by: float) -> Entry:
    """One number is another."""
    (of,) = entry.numbers
    there = zip(of.layer, of.head, of.values[measure], strict=True)
    values = [value + by * ([layer, head] == at) for *at, value in there]
    return replace(entry, numbers=(replace(of, values={**of.values, measure: values}),))


def without(entry: Entry, path: str) -> Entry:
    return replace(entry, files=tuple(_without(entry, path)))


def _without(entry: Entry, path: str) -> list[File]:
    return [file for file in entry.files if file.path != path]
