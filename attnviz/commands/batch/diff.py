"""`attnviz diff`: whether two records of one text, two batches or two surveys are the same, and what differs."""

from __future__ import annotations

import filecmp
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from math import inf, isfinite
from pathlib import Path

from attnviz import store
from attnviz.bounded import exists, is_file, is_folder, list_folder
from attnviz.commands import COMMANDS
from attnviz.commands.batch.diff_batches import LoadedBatch, compare_batches, load_batch
from attnviz.commands.batch.diff_report import diff_report, heads_table, means_table, numbers_table
from attnviz.commands.batch.job_from_manifest import job_from_manifest
from attnviz.commands.batch.spec import DiffSpec
from attnviz.commands.batch.workers import run_jobs
from attnviz.errors import DifferencesFound, InvalidOption, InvalidSource
from attnviz.measures import ALL, DEFAULT_MEASURES, MEASURES, choose_measures, split_names
from attnviz.models.sizes import BASE, ONE_HEAD, ONE_TOKEN, check_room
from attnviz.records.arithmetic import count_cores
from attnviz.records.differences import JSD, TOP_KEY, WEIGHT, Diff, Difference, Tolerances, find_version_changes
from attnviz.records.walk import MIN_ROWS
from attnviz.registry import load, suggest_name
from attnviz.report import Report
from attnviz.running import Events, Progress, Result
from attnviz.running.executors import open_executor
from attnviz.running.versions import read_versions
from attnviz.store.manifest import NAME, Entry, Manifest
from attnviz.store.parts import temporary_folder
from attnviz.views.record_changes import compare_heads

DEFAULT = "entropy"
COMPARED = dict(command.compares for command in COMMANDS if command.compares)  # by the name of the file


def diff(spec: DiffSpec) -> Events:
    """Compare two sides of one kind, or a batch with itself made again. Its failure is that anything differs.

    Raises InvalidOption for options that do not belong together and names that are not known; InvalidSource,
    InvalidRecord or InvalidConfig for what cannot be read.
    """
    tolerances = _tolerances(spec)
    before = _file(Path(spec.before))
    if spec.again:
        if spec.after is not None:
            raise InvalidOption("--again compares BEFORE with itself", hint=f"Leave out {spec.after}.")
        if before.suffix != ".json":
            raise InvalidOption(f"{before} is not of a batch", hint="--again makes batches.")
        return _again(spec, before, tolerances)
    if spec.after is None:
        raise InvalidOption(
            "nothing to compare with", hint="Name it: attnviz diff BEFORE AFTER; or --again of a batch."
        )
    if spec.root != ".":
        raise InvalidOption("--root is where --again starts from", hint="Leave it out.")
    after = _file(Path(spec.after))
    kinds = [file.name if file.name in COMPARED else file.suffix for file in (before, after)]
    if kinds[0] != kinds[1] and {*COMPARED, ".json"} & {*kinds}:
        raise InvalidOption(
            f"{before} and {after} are not of one kind", hint="Give two records, two manifests or two surveys."
        )
    if kinds[0] == ".json":
        batches = load_batch(before), load_batch(after)
        return iter((_diff_batches(spec, *batches, tolerances),))
    if spec.pixels is not None:
        raise InvalidOption("--pixels is of the pictures of batches", hint="Leave it out.")
    of_kind = _diff_means if kinds[0] in COMPARED else _diff_records
    return iter((of_kind(spec, before, after, tolerances),))


def _tolerances(spec: DiffSpec) -> Tolerances:
    """ "1e-4" of all numbers, "jsd=0.01" of one. Raises InvalidOption."""
    if spec.exact and (spec.tolerance or spec.pixels is not None):
        raise InvalidOption("--exact leaves no tolerance", hint="Leave out --exact, or --tolerance and --pixels.")
    found: dict[str, float] = {}
    for each in split_names(spec.tolerance):
        name, _, value = (part.strip() for part in each.rpartition("="))
        if name in found:
            raise InvalidOption(f"two tolerances of {name or 'all numbers'}", hint="Give one of each.")
        try:
            found[name] = float(value)
        except ValueError:
            raise InvalidOption(
                f"--tolerance {each!r:.80} is not a number or NAME=N", hint="Such as 1e-4 or jsd=0.01."
            ) from None
    exact = spec.exact or (spec.again and not spec.tolerance and spec.pixels is None)
    return Tolerances(found.pop("", 0.0), found, spec.pixels or 0.0, exact, spec.max_memory)


def _file(path: Path) -> Path:
    """A file as it is; of a folder its manifest, its record or its survey. Raises InvalidSource for neither."""
    if not is_folder(path):
        if not exists(path):
            raise InvalidSource(f"cannot read {path}: No such file or directory", hint="Name a file or a folder.")
        return path
    for name in (NAME, store.RECORD, *COMPARED):
        if is_file(path / name):
            return path / name
    list_folder(path, InvalidSource)
    *names, last = (NAME, store.RECORD, *COMPARED)
    raise InvalidSource(f"{path} holds no {', no '.join(names)} and no {last}", hint="Name a file, or another folder.")


def _again(spec: DiffSpec, file: Path, tolerances: Tolerances) -> Events:
    """Make all jobs of a manifest once more, in a folder that goes away, and compare."""
    batch = load_batch(file)
    jobs = [job_from_manifest(entry, Path(spec.root), str(file)) for entry in batch.manifest.jobs]
    if not jobs:
        raise InvalidSource(f"{file} holds no jobs", hint="attnviz batch fills it.")

    def events() -> Events:
        made: dict[str, Entry] = {}
        with (
            temporary_folder() as place,
            open_executor(min(count_cores(), len(jobs))) as (executor, _),
        ):
            for done in run_jobs(jobs, place, {}, executor, fail_fast=False):
                # The defaults that a fingerprint holds are those of this version: what counts is what came of them.
                old = batch.entries[done.entry.name]
                made[old.name] = replace(done.entry, fingerprint=old.fingerprint)
                yield Progress(len(made), len(jobs), "jobs", old.name)
            remade = Manifest(batch.manifest.configs, read_versions(), tuple(made[job.name] for job in jobs))
            yield _diff_batches(spec, batch, LoadedBatch(place, remade), tolerances)

    return events()


def _diff_batches(spec: DiffSpec, before: LoadedBatch, after: LoadedBatch, tolerances: Tolerances) -> Result:
    numbers = (of_text for of in (before, after) for entry in of.manifest.jobs for of_text in entry.numbers.values())
    known = list(dict.fromkeys(name for of_text in numbers for name in of_text))
    _check_names(tolerances.named, [WEIGHT, *known])
    _check_names(shown := [name for name in split_names(spec.measure) if name != ALL], known)
    found = compare_batches(before, after, tolerances)
    return _result(found, diff_report(found, spec, [*numbers_table(found, shown)]), spec)


def _diff_records(spec: DiffSpec, before: Path, after: Path, tolerances: Tolerances) -> Result:
    needed = BASE
    for path in (before, after):
        *_, n_queries, n_keys = store.read_record_shape(path)
        # of factors no more rows of a head than are walked over at once are ever there
        several = min(n_queries, 2 * MIN_ROWS) if store.is_factored(path) else n_queries
        needed += store.count_record_bytes(path) + ONE_TOKEN * (n_queries + n_keys) + ONE_HEAD // 2 * several * n_keys
    check_room("the two records", needed, tolerances.max_memory)
    known = [measure.name for measure in MEASURES if measure.level == "head"]
    _check_names(tolerances.named, [WEIGHT, JSD, TOP_KEY, *known])
    for measure in choose_measures(spec.measure):
        if measure.level == "layer" and ALL not in split_names(spec.measure):
            raise InvalidOption(f"{measure.name} is of all heads together", hint="This compares head by head.")
    names = [*(spec.measure or (DEFAULT,)), *(name for name in tolerances.named if name in known)]
    one, other = store.load(before, inf), store.load(after, inf)
    differences, heads = compare_heads(one, other, names, tolerances)
    sides = (dict(maps.provenance.versions) for maps in (one, other))
    found = _with_bytes(Diff(tuple(differences), versions=find_version_changes(*sides)), before, after, tolerances)
    return _result(
        found,
        diff_report(found, spec, [*heads_table(heads)], {"heads": [asdict(each) for each in heads]}),
        spec,
    )


def _diff_means(spec: DiffSpec, before: Path, after: Path, tolerances: Tolerances) -> Result:
    """Files of means over texts, by the command that wrote them."""
    means = load(COMPARED[before.name])(before, after, tolerances)
    _check_names(tolerances.named, means.measures)
    asked = split_names(spec.measure)
    _check_names([name for name in asked if name != ALL], means.measures)
    found = _with_bytes(Diff(means.differences, versions=means.versions), before, after, tolerances)
    shown = means.measures if ALL in asked else asked or DEFAULT_MEASURES
    data = [asdict(of) | {"interval": half if isfinite(half) else None} for of, half in means.changes]
    report = diff_report(found, spec, [means_table(means.changes, shown)], {"changes": data})
    return _result(found, report, spec)


def _with_bytes(found: Diff, before: Path, after: Path, tolerances: Tolerances) -> Diff:
    """That files which say the same have other bytes is a difference where that is asked, and told where it is not."""
    if found.differences or filecmp.cmp(before, after, shallow=False):
        return found
    if tolerances.exact:
        return replace(found, differences=(Difference("differs", "bytes", said="what the files say is the same"),))
    return replace(found, n_other_bytes=1)


def _check_names(names: Iterable[str], known: Sequence[str]) -> None:
    """Raises InvalidOption for a name that both sides do not have."""
    for name in names:
        if name not in known:
            raise InvalidOption(f"no measure {name!r} in what is compared", hint=suggest_name(name, known))


def _result(found: Diff, report: Report, spec: DiffSpec) -> Result:
    after = "what is made again" if spec.after is None else spec.after
    failure = DifferencesFound(f"{report.title} between {spec.before} and {after}") if found.differences else None
    return Result(report, failure=failure)
