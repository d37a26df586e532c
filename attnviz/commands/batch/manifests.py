"""Manifests as JSON and back, and their entries as the jobs that they came of."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath

from attnviz.bounded import decode_json, parse_json, read_bytes
from attnviz.commands.batch import naming
from attnviz.commands.batch.configs import read_settings, report_missing
from attnviz.commands.batch.jobs import JOBS, Job, from_folder
from attnviz.commands.batch.reading import SourceFile
from attnviz.display import replace_surrogates
from attnviz.errors import InvalidConfig, InvalidSource
from attnviz.options import build, shorten
from attnviz.store.manifest import SCHEMA, Entry, Manifest

UNSAFE = re.compile(r"[\\:\x00-\x1f]")  # in a path
MAX_PART = 255  # bytes of a name in a path: what file systems take
MAX_MANIFEST = 2**27  # bytes: all measures of 2,200 texts through 144 heads; ten times that in memory
SORTED = frozenset({"configs", "versions", "settings", "inputs"})  # of the numbers the order is that of the texts


def to_bytes(manifest: Manifest) -> bytes:
    """Encode the manifest as JSON in ASCII. A lone surrogate, which no parser takes back, becomes U+FFFD.

    Raises ValueError for a number that JSON does not have.
    """
    whole = {"schema": manifest.schema, **asdict(manifest)}
    for part in (whole, *whole["jobs"]):
        part |= {name: dict(sorted(part[name].items())) for name in SORTED & part.keys()}
    written = replace_surrogates(json.dumps(whole, ensure_ascii=False, allow_nan=False))
    return (json.dumps(json.loads(written), indent=1) + "\n").encode("ascii")


def from_file(path: Path) -> Manifest:
    """Read the manifest in a file.

    Raises InvalidConfig where it cannot be read, or is not one that this version writes.
    """
    try:
        data = parse_json(read_bytes(path, MAX_MANIFEST, InvalidSource).decode("utf-8"))
        json.dumps(data, ensure_ascii=False).encode()  # raises where a text holds half a character
        found = data.get("schema", SCHEMA) if isinstance(data, dict) else SCHEMA
        if found != SCHEMA:  # told first: of a later schema all the rest may look wrong
            raise ValueError(f"schema: this attnviz reads {SCHEMA}, not {found!r:.40}; make the batch again")
        manifest: Manifest = decode_json(Manifest, data, "")
    except InvalidSource as error:
        raise InvalidConfig([error.problem]) from error
    except (json.JSONDecodeError, UnicodeError, RecursionError) as error:
        raise InvalidConfig([f"{path}: is not JSON in UTF-8: {error}"]) from error
    except ValueError as error:
        raise InvalidConfig([f"{path}: {error}"]) from error
    _check_entries(path, manifest.jobs)
    return manifest


def _check_entries(path: Path, entries: Sequence[Entry]) -> None:
    """Check that jobs have names of jobs, files lie in the folders of theirs, and columns of numbers are of one length.

    A manifest may be anybody's. Raises InvalidConfig with everything that is not so.
    """
    problems: list[str] = []
    names: set[str] = set()
    for entry in entries:
        if wrong := naming.name_error(entry.name):
            problems.append(f"{path}: {wrong}")
        if entry.name.lower() in names:
            problems.append(f"{path}: the name {shorten(entry.name)} is there twice, whatever the case")
        names.add(entry.name.lower())
        outside = (file.path for file in entry.files if not _is_within(file.path, entry.name))
        problems += [f"{path}: {shorten(name)} is not a path within {shorten(entry.name)}" for name in outside]
        for of in entry.numbers:
            if {*map(len, of.values.values())} - {max(len(of.layer), len(of.head), len(of.of))}:
                problems.append(f"{path}: the columns of numbers of {shorten(of.text)} are of several lengths")
    if problems:
        raise InvalidConfig(problems)


def _is_within(path: str, folder: str) -> bool:
    """Check that a path is written as a manifest writes it, and leads to what lies below `folder`."""
    first, *below = PurePosixPath(path).parts or ("",)
    plain = str(PurePosixPath(path)) == path and not UNSAFE.search(path)
    plain &= all(len(part.encode("utf-8", "surrogatepass")) <= MAX_PART for part in below)
    return plain and first == folder and bool(below) and ".." not in below


def job_from_manifest(entry: Entry, root: Path, where: str) -> Job:
    """Rebuild the job of an entry. Relative paths in its settings start from `root`, as from a config's folder.

    Raises InvalidConfig for a command or a setting that this version does not know.
    """
    if entry.command not in JOBS:
        raise InvalidConfig([f"{where}: {entry.name}: no command {entry.command!r}"])
    source = SourceFile(f"{where}: {entry.name}", values={(): ()})
    read = read_settings(source, entry.settings, entry.command, ())
    report_missing(source, entry.command, entry.settings, ())
    if source.problems:
        raise InvalidConfig([*source.problems.values()])
    found, written = from_folder(root, read)
    return Job(entry.name, entry.command, build(JOBS[entry.command], **found), written)
