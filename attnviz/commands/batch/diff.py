"""`attnviz diff`: whether two records of one text, batches, surveys, pictures or files of weights are the same."""

import filecmp
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path

from attnviz import store
from attnviz.bounded import GIB, check_room, exists, is_file, is_folder, list_folder, read_bytes
from attnviz.commands import COMMANDS
from attnviz.commands.batch.diff_batches import compare_batches, compare_contents
from attnviz.commands.batch.manifests import from_file, job_from_manifest
from attnviz.commands.batch.spec import DiffSpec
from attnviz.commands.batch.workers import run_jobs
from attnviz.errors import DifferencesFound, InputError, InvalidOption, InvalidSource
from attnviz.measures import ALL, choose_measures, split_names
from attnviz.models.sizes import BASE, ONE_HEAD, ONE_TOKEN
from attnviz.records import AttentionMaps
from attnviz.records.arithmetic import count_cores
from attnviz.records.differences import JSD, OTHER_BYTES, TOP_KEY, WEIGHT, Diff, Difference, Tolerances
from attnviz.records.walk import MIN_ROWS
from attnviz.registry import load, suggest_name
from attnviz.renderers import PAGE_FORMAT, choose_renderers
from attnviz.report import FigureStyle, Report, Table
from attnviz.running import Events, Progress, Result
from attnviz.running.executors import open_executor
from attnviz.running.versions import read_versions
from attnviz.store.manifest import NAME, Entry, Manifest
from attnviz.store.parts import temporary_folder
from attnviz.store.weights import FileKind, find_kind
from attnviz.views.differences import diff_report, list_differences
from attnviz.views.record_changes import RECORD_MEASURES, compare_records

DEFAULT = "entropy"
MAX_SHOWN = 40  # differences on a page; a picture beside the other takes about 60 kB
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
        if before.suffix != ".json":
            raise InvalidOption(f"{before} is not of a batch", hint="--again makes batches.")
        return _again(spec, before, tolerances)
    if spec.after is None:
        raise InvalidOption(
            "nothing to compare with", hint="Name it: attnviz diff BEFORE AFTER; or --again of a batch."
        )
    if spec.root != ".":
        raise InvalidOption("--root is where --again starts from", hint="Leave it out.")
    files = before, _find_file(Path(spec.after))
    one, other = (_find_kind(file) for file in files)
    if one != other:
        raise InvalidOption(
            f"{files[0]} and {files[1]} are not of one kind",
            hint="Give two records, manifests, surveys, pictures or files of weights.",
        )
    if spec.pixels is not None and one not in (".json", ".png"):
        raise InvalidOption("--pixels is of pictures, and of the pictures of batches", hint="Leave it out.")
    if one == ".json":
        folders = [file.parent for file in files]
        found = compare_batches(folders, [from_file(file) for file in files], tolerances)
        return iter((_report(found, spec, tolerances, folders),))
    if one:  # pictures, or means over texts by the command that wrote them
        compare = _compare_pictures if one == ".png" else load(COMPARED[one])
        found = compare(*files, tolerances)
    else:
        found = _compare_weights(spec, *files, tolerances)
    if not (found.differences or filecmp.cmp(*files, shallow=False)):  # they say the same, and have other bytes
        of_bytes = (Difference("differs", "bytes", said="what the files say is the same"),)
        found = replace(found, differences=of_bytes) if spec.exact else replace(found, counts={OTHER_BYTES: 1})
    return iter((_report(found, spec, tolerances, files, () if one else (JSD, TOP_KEY)),))


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


def _find_file(path: Path) -> Path:
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


def _find_kind(file: Path) -> str:
    """What a file is compared as: by the name or the ending; "" of records and other files of weights."""
    if file.name in COMPARED:
        return file.name
    ending = file.suffix.lower()
    return ending if ending in (".json", ".png") else ""


def _again(spec: DiffSpec, file: Path, tolerances: Tolerances) -> Events:
    """Make all jobs of a manifest once more, in a folder that goes away, and compare."""
    batch = from_file(file)
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


def _compare_weights(spec: DiffSpec, before: Path, after: Path, tolerances: Tolerances) -> Diff:
    """Two records, or files of weights that other programs have written."""
    _check_names(tolerances.named, [WEIGHT, *RECORD_MEASURES])
    for measure in choose_measures(spec.measure):
        if measure.level == "layer" and ALL not in split_names(spec.measure):
            raise InvalidOption(f"{measure.name} is of all heads together", hint="This compares head by head.")
    kinds = [find_kind(path) for path in (before, after)]
    needed = map(_count_needed, (before, after), kinds)
    check_room("the two records" if set(kinds) == {"record"} else "the weights", BASE + sum(needed), spec.max_memory)
    names = [*(spec.measure or (DEFAULT,)), *(name for name in tolerances.named if name not in (WEIGHT, JSD, TOP_KEY))]
    one, other = (_read_maps(*each) for each in zip((before, after), kinds, strict=True))
    return compare_records(one, other, names, tolerances)


def _count_needed(path: Path, kind: FileKind) -> int:
    if kind != "record":
        return 4 * path.stat().st_size  # read, as float32, a copy, and the masks
    (*_, n_queries, n_keys), is_factored = store.read_record_shape(path)
    # of factors no more rows of a head than are walked over at once are ever there
    several = min(n_queries, 2 * MIN_ROWS) if is_factored else n_queries
    return path.stat().st_size + ONE_TOKEN * (n_queries + n_keys) + ONE_HEAD // 2 * several * n_keys


def _read_maps(path: Path, kind: FileKind) -> AttentionMaps:
    """A record as it is. Of weights that another program wrote the name of the file and its bytes are none of what they
    say.
    """
    if kind == "record":
        return store.load(path, inf)
    from attnviz.models.attentions.attentions import make_maps  # torch comes with it
    from attnviz.models.attentions.weights_file import COMMAND, WeightsRequest, read_weights

    asked = WeightsRequest(door={name: f"attnviz render {option}" for name, option in COMMAND.items()})
    maps = make_maps(read_weights(path, asked), asked)
    return replace(maps, provenance=replace(maps.provenance, model="", revision=""))


def _compare_pictures(before: Path, after: Path, tolerances: Tolerances) -> Diff:
    one, other = (read_bytes(path, tolerances.max_memory * GIB, InvalidSource) for path in (before, after))
    place = Difference("differs", "file", file=after.name)
    return Diff([] if one == other else list(compare_contents(place, one, other, tolerances)))


def _check_names(names: Iterable[str], known: Sequence[str]) -> None:
    """Raises InvalidOption for a name that both sides do not have."""
    for name in names:
        if name not in known:
            raise InvalidOption(f"no measure {name!r} in what is compared", hint=suggest_name(name, known))


def _report(
    found: Diff, spec: DiffSpec, tolerances: Tolerances, sides: Sequence[Path], always: Sequence[str] = ()
) -> Result:
    """Where --measure asks for a table of numbers, it has those of `always`, too. `sides` are two folders or files."""
    formats = [plugin.name for plugin in choose_renderers(spec.figure.format, spec.figure.open)]
    if drawn := [name for name in formats if name != PAGE_FORMAT]:
        raise InvalidOption(f"diff draws no {drawn[0]}", hint="--format html is a page of what differs.")
    asked = split_names(spec.measure)
    _check_names(tolerances.named, [WEIGHT, *found.measures])
    _check_names([name for name in asked if name != ALL], found.measures)
    shown = found.measures if ALL in asked else [*always, *asked] if asked else []
    report = diff_report(found, (spec.before, spec.after or "the same, made again"), shown)
    after = "what is made again" if spec.after is None else spec.after
    failure = DifferencesFound(f"{report.title} between {spec.before} and {after}") if found.differences else None
    files = (_write_page(report, found, store.check_output_folder(spec.figure.out), sides),) if formats else ()
    return Result(report, files=files, failure=failure)


def _write_page(report: Report, found: Diff, folder: Path, sides: Sequence[Path]) -> Path:
    """Write the report as a page that begins with settings that differ, then has the pictures that differ most."""
    from attnviz.renderers.figure.image import compare, show_difference  # only now, as what draws takes a while
    from attnviz.renderers.page.html import html

    differing = []
    for each in found.differences:
        by, both = -1.0, tuple[bytes, ...]()
        if each.what == "file" and each.kind == "differs" and each.file.lower().endswith(".png"):
            with suppress(InputError, OSError):  # what is no picture, or too large: its line says so
                one, other = ((side / each.file if is_folder(side) else side).read_bytes() for side in sides)
                by, both = compare(one, other).rms or inf, (one, other)  # no number: of another size
        differing.append((by, each, both))
    chosen = sorted(differing, key=lambda each: (not each[1].what.startswith("setting"), -each[0]))[:MAX_SHOWN]
    thumbs = tuple(show_difference(*both) if both else "" for *_, both in chosen)
    table = list_differences([each for _, each, _ in chosen], len(differing), thumbs if any(thumbs) else ())
    others = (block for block in report.blocks if not isinstance(block, Table) or block.name != table.name)
    ((_, page),) = html(replace(report, blocks=(table, *others)), FigureStyle())
    with store.locked(folder):
        store.write(folder / "diff.html", page)
    return folder / "diff.html"
