"""`attnviz diff`: whether two records of one text, batches, surveys, pictures or files of weights are the same."""

import filecmp
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path

from attnviz import store
from attnviz.bounded import exists, is_file, is_folder, list_folder
from attnviz.commands import COMMANDS
from attnviz.commands.batch.diff_batches import check_sizes, compare_batches, compare_contents
from attnviz.commands.batch.manifests import from_file, job_from_manifest
from attnviz.commands.batch.spec import PAGES, DiffSpec
from attnviz.commands.batch.workers import run_jobs
from attnviz.errors import DifferencesFound, InputError, InvalidOption, InvalidSource, raising
from attnviz.measures import ALL, split_names
from attnviz.records import AttentionMaps
from attnviz.records.differences import JSD, OTHER_BYTES, TOP_KEY, WEIGHT, Diff, Difference, Tolerances
from attnviz.records.walk import count_cores
from attnviz.registry import load, suggest_name
from attnviz.renderers import PAGE_FORMAT, choose_renderers
from attnviz.report import FigureStyle, Report, Table
from attnviz.running import Events, Progress, Result
from attnviz.running.executors import open_executor
from attnviz.running.versions import read_versions
from attnviz.store.manifest import NAME, Entry, Manifest
from attnviz.store.parts import temporary_folder
from attnviz.store.weights import find_kind
from attnviz.views.differences import MAX_ROWS, diff_report, group_differences, list_differences
from attnviz.views.record_changes import compare_records

DEFAULT = "entropy"
MAX_SHOWN = 40  # the first of a page that are shown; a picture beside the other takes about 60 kB
COMPARED = dict(command.compares for command in COMMANDS if command.compares)  # by the name of the file


def diff(spec: DiffSpec) -> Events:
    """Compare two sides of one kind, or a batch with itself made again. Its failure is that anything differs.

    Raises InvalidOption for options that do not belong together and names that are not known; InvalidSource,
    InvalidRecord or InvalidConfig for what cannot be read.
    """
    tolerances = _tolerances(spec)
    before = _find_file(Path(spec.before))
    if spec.again:
        if spec.after is not None:
            raise InvalidOption("--again compares BEFORE with itself", hint=f"Leave out {spec.after}.")
        return _again(spec, before, from_file(before), tolerances)
    if spec.after is None:
        raise InvalidOption("nothing to compare with", hint="Name it: attnviz diff BEFORE AFTER; or --again.")
    if spec.root != ".":
        raise InvalidOption("--root is where --again starts from", hint="Leave it out.")
    files = before, _find_file(Path(spec.after))
    kind, other_kind = map(_find_kind, files)
    if kind != other_kind:
        raise InvalidOption(
            f"{files[0]} and {files[1]} are not of one kind",
            hint="Give two records, manifests, surveys, pictures or files of weights.",
        )
    if spec.pixels is not None and kind not in (".json", ".png"):
        raise InvalidOption("--pixels is of pictures, and of the pictures of batches", hint="Leave it out.")
    if kind == ".json":
        folders = [file.parent for file in files]
        found = compare_batches(folders, [from_file(file) for file in files], tolerances)
        return iter((_report(found, spec, tolerances, folders),))
    compare = load(COMPARED[kind]) if kind in COMPARED else partial(_compare_files, spec)
    found = compare(*files, tolerances)
    if not (found.differences or filecmp.cmp(*files, shallow=False)):  # they say the same, and have other bytes
        of_bytes = [Difference("bytes", said="not the same, though what the files say is")]
        found = replace(found, differences=of_bytes) if spec.exact else replace(found, counts={OTHER_BYTES: 1})
    return iter((_report(found, spec, tolerances, files),))


def _tolerances(spec: DiffSpec) -> Tolerances:
    """Parse --tolerance: "1e-4" holds for all numbers, "jsd=0.01" for one. Raises InvalidOption."""
    if spec.exact and (spec.tolerance or spec.pixels is not None):
        raise InvalidOption("--exact leaves no tolerance", hint="Leave out --exact, or --tolerance and --pixels.")
    found: dict[str, float] = {}
    for each in split_names(spec.tolerance):
        name, _, value = (part.strip() for part in each.rpartition("="))
        if name in found:
            raise InvalidOption(f"two tolerances of {name or 'all numbers'}", hint="Give one of each.")
        with raising(InvalidOption, f"--tolerance {each!r:.80} is not a number or NAME=N", "Such as 1e-4 or jsd=0.01."):
            found[name] = float(value)
    exact = spec.exact or (spec.again and not spec.tolerance and spec.pixels is None)
    return Tolerances(found.pop("", 0.0), found, spec.pixels or 0.0, exact, spec.max_memory)


def _find_file(path: Path) -> Path:
    """Find the file to compare: a file itself, or a folder's manifest, record or survey.

    Raises InvalidSource for neither.
    """
    if not is_folder(path):
        if not exists(path):
            raise InvalidSource(f"cannot read {path}: No such file or directory", hint="Name a file or a folder.")
        return path
    for name in (NAME, store.RECORD, *COMPARED):
        if is_file(path / name):
            return path / name
    list_folder(path, InvalidSource)
    names = ", no ".join((NAME, store.RECORD, *COMPARED))
    raise InvalidSource(f"{path} holds no {names}", hint="Name a file, or another folder.")


def _find_kind(file: Path) -> str:
    """Find what a file is compared as, by its name or ending; "" for records and other files of weights."""
    if file.name in COMPARED:
        return file.name
    ending = file.suffix.lower()
    return ending if ending in (".json", ".png") else ""


def _again(spec: DiffSpec, file: Path, batch: Manifest, tolerances: Tolerances) -> Events:
    """Make all jobs of a manifest once more, in a folder that goes away, and compare."""
    jobs = [job_from_manifest(entry, Path(spec.root), str(file)) for entry in batch.jobs]
    if not jobs:
        raise InvalidSource(f"{file} holds no jobs", hint="attnviz batch fills it.")
    olds, made = {entry.name: entry for entry in batch.jobs}, dict[str, Entry]()
    with temporary_folder() as place, open_executor(min(count_cores(), len(jobs))) as (executor, _):
        for done in run_jobs(jobs, place, {}, executor, fail_fast=False):
            # The defaults that a fingerprint holds are those of this version: what counts is what came of them.
            old = olds[done.entry.name]
            made[old.name] = replace(done.entry, fingerprint=old.fingerprint)
            yield Progress(len(made), len(jobs), "jobs", old.name)
        remade = Manifest(batch.configs, read_versions(), tuple(made[job.name] for job in jobs))
        found = compare_batches((file.parent, place), (batch, remade), tolerances)
        yield _report(found, spec, tolerances, (file.parent, place))


def _compare_files(spec: DiffSpec, before: Path, after: Path, tolerances: Tolerances) -> Diff:
    """Compare two pictures, two records, or files of weights that other programs have written."""
    check_sizes(after.name, [path.stat().st_size for path in (before, after)], tolerances)
    if _find_kind(after) == ".png":
        one, other = (path.read_bytes() for path in (before, after))
        place = Difference("file", file=after.name)
        return Diff([*compare_contents(place, one, other, tolerances)] if one != other else [])
    names = [*split_names(spec.measure or (DEFAULT,)), *tolerances.named]
    chosen = [name for name in names if name not in (WEIGHT, JSD, TOP_KEY)]
    return compare_records(_read_maps(before), _read_maps(after), chosen, tolerances)


def _read_maps(path: Path) -> AttentionMaps:
    """Load a record as it is.

    Of weights that another program wrote, the file's name and bytes are not compared.
    """
    if find_kind(path) == "record":
        return store.load(path, inf)
    from attnviz.models.attentions.attentions import make_maps  # torch comes with it
    from attnviz.models.attentions.weights_file import COMMAND, WeightsRequest, read_weights

    asked = WeightsRequest(door={name: f"attnviz render {option}" for name, option in COMMAND.items()})
    maps = make_maps(read_weights(path, asked), asked)
    return replace(maps, provenance=replace(maps.provenance, model="", revision=""))


def _check_names(names: Iterable[str], known: Sequence[str]) -> None:
    """Check that both sides have all names. Raises InvalidOption for one that they do not."""
    for name in names:
        if name not in known:
            raise InvalidOption(f"no measure {name!r} in what is compared", hint=suggest_name(name, known))


def _report(found: Diff, spec: DiffSpec, tolerances: Tolerances, sides: Sequence[Path]) -> Result:
    """Report the differences, or where --measure asks for numbers these; and what is always said of two records.

    `sides` are folders or files.
    """
    formats = [plugin.name for plugin in choose_renderers(spec.figure.format, spec.figure.open)]
    if drawn := [name for name in formats if name != PAGE_FORMAT]:
        raise InvalidOption(f"diff draws no {drawn[0]}", hint="--format html is a page of what differs.")
    asked = split_names(spec.measure)
    _check_names(tolerances.named, [WEIGHT, *found.measures])
    _check_names([name for name in asked if name != ALL], found.measures)
    shown = found.measures if ALL in asked else [JSD, TOP_KEY, *asked] if asked else []
    report = diff_report(found, (spec.before, spec.after or "the same, made again"), shown)
    after = "what is made again" if spec.after is None else spec.after
    failure = DifferencesFound(f"{report.title} between {spec.before} and {after}") if found.differences else None
    # Whoever names a folder asks for the page, which is all that stands in it.
    files = (_write_page(report, found, spec.figure.out, sides),) if formats or spec.figure.out != PAGES else ()
    return Result(report, files=files, failure=failure)


def _write_page(report: Report, found: Diff, out: str, sides: Sequence[Path]) -> Path:
    """Write the report as a page that begins with settings that differ, then has the pictures that differ most."""
    from attnviz.renderers.page.html import html  # only now, as what draws takes a while

    def place(each: Difference) -> tuple[bool, ...]:
        return not each.what.startswith("setting"), not each.is_picture, each.kind != "differs"

    chosen = sorted((each for kind in group_differences(found.differences) for each in kind), key=place)[:MAX_ROWS]
    thumbs = tuple(_show(each, sides) if at < MAX_SHOWN else "" for at, each in enumerate(chosen))
    table = list_differences(chosen, len(found.differences), thumbs if any(thumbs) else ())
    others = (block for block in report.blocks if not isinstance(block, Table) or block.name != table.name)
    ((_, page),) = html(replace(report, blocks=(table, *others)), FigureStyle())
    with store.locked(folder := store.check_output_folder(out)):
        store.write(folder / "diff.html", page)
    return folder / "diff.html"


def _show(difference: Difference, sides: Sequence[Path]) -> str:
    """Return two pictures that differ and where they do, as a data: address; "" of all else."""
    from attnviz.renderers.figure.image import show_difference  # only now, as what draws takes a while

    if difference.is_picture:
        with suppress(InputError, OSError):  # what is no picture, or too large: its line says so
            one, other = (side / difference.file if is_folder(side) else side for side in sides)
            return show_difference(one.read_bytes(), other.read_bytes())
    return ""
