"""Shards of a batch put together: the files and the manifest that one run would have left."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from attnviz import store
from attnviz.configs.manifests import check_names, from_file, to_bytes
from attnviz.display import pluralize
from attnviz.errors import ExecutionError, InvalidOption, InvalidSource
from attnviz.inputs import read_bytes
from attnviz.manifest import NAME, File, Manifest, Shard
from attnviz.options import changed_values
from attnviz.specs.survey import LOOK, MergeSpec
from attnviz.views.batch import batch_report
from attnviz.workflows import Events, Progress, Result
from attnviz.workflows.batch import write_page
from attnviz.workflows.batch_diff.files import paired

MAX_LISTED = 5  # parts that are missing
AGAIN = "Make it again: attnviz batch … --shard {} goes on where it was."


@dataclass(frozen=True)
class _Part:
    """One shard: its manifest, whose folder its files are in."""

    file: Path
    manifest: Manifest
    shard: Shard


def merge_batches(spec: MergeSpec, files: Sequence[Path]) -> Events:
    """Copy what the shards made into a new folder, in the order of the configs, and write the manifest of all.

    Raises InvalidConfig for a manifest that cannot be read, InvalidOption for parts that are not all of one batch, for
    an `--out` that is there, InvalidSource for a file that is not as its manifest says.
    """
    if look := [name for name in changed_values(spec) if name in ("top", *LOOK) and name != "out"]:
        option = f"--{look[0].replace('_', '-')}"
        raise InvalidOption(f"{option} is about surveys, and {files[0]} is of a batch", hint="Leave it out.")
    parts = [_part(file) for file in files]
    _check_whole(parts)
    for part in parts:
        _check_complete(part)
    folder = store.output_folder(spec.figure.out)
    store.refuse_existing(folder)
    return _merged(sorted(parts, key=lambda part: part.shard.number), folder)


def _part(file: Path) -> _Part:
    manifest = from_file(file)
    if manifest.shard is None:
        raise InvalidOption(f"{file} is of a whole batch", hint="Parts come of attnviz batch --shard I/N.")
    return _Part(file, manifest, manifest.shard)


def _check_whole(parts: Sequence[_Part]) -> None:
    """Raises InvalidOption unless these are all the parts of one batch, each once."""
    first, there = parts[0], dict[int, _Part]()
    for part in parts:
        if other := _other(first, part):
            raise InvalidOption(f"{part.file} and {first.file} are of different batches: {other}")
        if part.shard.number in there:
            one = there[part.shard.number]
            raise InvalidOption(f"{one.file} and {part.file} are both part {part.shard}", hint="Leave one of them out.")
        there[part.shard.number] = part
    if n_missing := first.shard.of - len(parts):
        numbers = (number for number in range(1, first.shard.of + 1) if number not in there)
        listed = ", ".join(str(number) for number, _ in zip(numbers, range(MAX_LISTED), strict=False))
        more = f" and {n_missing - MAX_LISTED:,} more" if n_missing > MAX_LISTED else ""
        raise InvalidOption(
            f"of {first.shard.of:,} parts {pluralize(n_missing, 'parts')} {listed}{more} "
            f"{'is' if n_missing == 1 else 'are'} missing",
            hint="Name all of them.",
        )


def _other(first: _Part, part: _Part) -> str:
    """What shows that two parts are not of one batch."""
    mine, theirs = first.manifest, part.manifest
    if config := next((name for name, one, other in paired(theirs.configs, mine.configs) if one != other), None):
        return f"other configs ({config!r:.80})"
    if (part.shard.of, part.shard.n_jobs) != (first.shard.of, first.shard.n_jobs):
        return f"part {part.shard} of {part.shard.n_jobs} jobs and {first.shard} of {first.shard.n_jobs}"
    for package, one, other in paired(theirs.versions, mine.versions):
        if one != other:
            return f"{package} {one or 'none'} and {other or 'none'}"[:120]
    return ""


def _check_complete(part: _Part) -> None:
    """Raises InvalidOption where jobs are missing, as where a run ended at the first that failed."""
    expected = (part.shard.n_jobs - part.shard.number) // part.shard.of + 1
    if (found := len(part.manifest.jobs)) != expected:
        raise InvalidOption(
            f"{part.file} holds {found} of the {expected} jobs of part {part.shard}", hint=AGAIN.format(part.shard)
        )


def _merged(parts: Sequence[_Part], folder: Path) -> Events:
    in_order = zip_longest(*(part.manifest.jobs for part in parts))  # each of them every n-th
    entries = tuple(entry for entries in in_order for entry in entries if entry is not None)
    check_names(folder / NAME, entries)
    manifest = replace(parts[0].manifest, jobs=entries, shard=None)
    with store.new_folder(folder) as new:
        done = 0
        for part in parts:
            for entry in part.manifest.jobs:
                for path, data in _files(part, entry.files):
                    store.make_folder((new / path).parent)
                    store.write(new / path, data)
                done += 1
                yield Progress(done, len(entries), "jobs", entry.name)
        store.write(new / NAME, to_bytes(manifest))
        write_page(from_file(new / NAME), new)
    ended = {entry.name: "failed" if entry.error else "merged" for entry in entries}
    yield Result(batch_report(manifest, ended, str(folder)), files=(folder / NAME,), failure=_failure(manifest))


def _files(part: _Part, files: Sequence[File]) -> Iterator[tuple[str, bytes]]:
    """Each file by its path. Raises InvalidSource for one that is not there, or not as the manifest says."""
    for file in files:
        path, hint = part.file.parent / file.path, AGAIN.format(part.shard)
        data = read_bytes(path, math.inf, InvalidSource, hint)
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise InvalidSource(f"{path} is not what {part.file} says was made", hint=hint)
        yield file.path, data


def _failure(manifest: Manifest) -> ExecutionError | None:
    """As the batch itself ends."""
    failed, total = sum(bool(entry.error) for entry in manifest.jobs), len(manifest.jobs)
    if not failed:
        return None
    return ExecutionError(f"{failed} of {total} {pluralize(total, 'jobs')} failed", hint="The manifest says why.")
