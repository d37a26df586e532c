"""Files within .gz, .bz2, .xz, .zip and .tar.gz, as the standard library's `zipfile.Path` shows them.

Nothing is unpacked onto the disk. A .gz and a member of a .zip are read as streams; a .tar has no index, so that its
texts are read once and held, as a .zip in memory. What says how long names are, and how many, is read within bounds
before it is parsed. Knows no file format.
"""

import bz2
import gzip
import lzma
import math
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias, cast

from attnviz.bounded import GIB, Budget, HeaderBytes, describe_os_error, is_file, list_folder, open_input, open_zip
from attnviz.errors import InvalidSource

DAMAGED = (EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, tarfile.TarError, NotImplementedError, MemoryError)
COMPRESSED: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
SIGNS = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz"}  # what such files begin with
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
MAX_NAME, MAX_DEPTH = 2**12, 64  # characters of a member's path, and folders in it
MAX_HEADERS = 2**16  # bytes before one member of a .tar: its long name, and what else is said of it
HEADER_COPIES = 4  # of these bytes, as numbers and texts
ENTRY_BYTES = 46  # at least, of a member in the list of them that a .zip has
ENCRYPTED = 1  # a flag of a member of a .zip
MEMBER_BYTES = 2_000  # of memory for one, beside what it holds

Place: TypeAlias = Path | zipfile.Path


def find_name(place: Place) -> PurePosixPath:
    """Return the last part of a path; of a.csv.gz it is a.csv."""
    name = PurePosixPath(place.name)
    return name.with_suffix("") if name.suffix.lower() in COMPRESSED else name


def find_ending(place: Place) -> str:
    """Return the ending of a name in lower case, with its dot; of a.csv.gz it is .csv."""
    return find_name(place).suffix.lower()


def list_entries(folder: Place) -> list[Place]:
    """List what is in a folder but hidden files, by name. Raises InvalidSource where it cannot be read."""
    if isinstance(folder, Path):
        return [each for each in list_folder(folder, InvalidSource) if not each.name.startswith(".")]
    return sorted((each for each in folder.iterdir() if not _is_hidden(each.name)), key=lambda each: each.name)


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "__MACOSX"))  # the latter as macOS adds them


def is_archive(path: Path) -> bool:
    """Return whether a file's ending is that of an archive."""
    return path.name.lower().endswith(ARCHIVES)


def open_archive(path: Path, budget: Budget) -> zipfile.Path:
    """Open an archive as a folder. Raises InvalidSource where it is damaged, TooLarge."""
    try:
        archive = _read_zip(path, budget) if path.suffix.lower() == ".zip" else _read_tar(path, budget)
        for name in archive.namelist():
            if len(name) > MAX_NAME or name.count("/") > MAX_DEPTH:
                found = f"{path} holds a file in {name.count('/'):,} folders, with a path of {len(name):,} characters"
                raise InvalidSource(found, hint=f"At most {MAX_DEPTH} and {MAX_NAME:,} are read.")
        return zipfile.Path(archive)
    except OSError as error:
        raise InvalidSource(f"{path} cannot be read: {describe_os_error(error)}") from error
    except DAMAGED as error:  # without its frames, which would hold the file open
        raise InvalidSource(f"{path} is not a readable archive: {error}") from error.with_traceback(None)


def find_member(path: Path, budget: Budget) -> zipfile.Path | None:
    """Find what a path into an archive names, archive.zip/reviews.csv; None where no archive is on the way.

    Raises InvalidSource where the archive is damaged or has no such file.
    """
    archive = next((each for each in path.parents if is_archive(each) and is_file(each)), None)
    if archive is None:
        return None
    inner = path.relative_to(archive).as_posix()
    found = open_archive(archive, budget) / inner
    if not found.exists():
        raise InvalidSource(f"{archive} holds no {inner}")
    return found


def _read_zip(path: Path, budget: Budget) -> zipfile.ZipFile:
    archive = open_zip(path, budget.max_gib * GIB / MEMBER_BYTES * ENTRY_BYTES)
    if any(info.flag_bits & ENCRYPTED for info in archive.infolist()):
        raise InvalidSource(f"{path} is encrypted", hint="Unpack it, and give the folder.")
    return archive


def _read_tar(path: Path, budget: Budget) -> zipfile.ZipFile:
    held, written = 0, BytesIO()
    with open_input(path) as file, zipfile.ZipFile(written, "w") as copy:
        start = file.peek(8)  # type: ignore[attr-defined]
        unpack = next((COMPRESSED[SIGNS[sign]] for sign in SIGNS if start.startswith(sign)), None)
        headers = HeaderBytes(lambda: file if unpack is None else unpack(file), MAX_HEADERS)
        with tarfile.TarFile(fileobj=cast(Any, headers)) as archive:
            for info in archive:
                n_read, headers.left = MAX_HEADERS - int(headers.left), math.inf
                parts = [part for part in PurePosixPath(info.name).parts if part not in ("/", ".", "..")]
                is_read = info.isfile() and parts and not any(map(_is_hidden, parts))
                held += HEADER_COPIES * n_read + MEMBER_BYTES + (info.size if is_read else 0)
                budget.draw(f"the files in {path}", held)
                if is_read and "/".join(parts) not in copy.NameToInfo:
                    copy.writestr("/".join(parts), archive.extractfile(info).read())  # type: ignore[union-attr]
                headers.left = MAX_HEADERS
    found = zipfile.ZipFile(written)
    found.filename = str(path)
    return found
