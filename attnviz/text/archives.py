"""Files within .gz, .bz2, .xz, .zip and .tar.gz, with as much of a path's manners as readers of data sets need.

Nothing is unpacked onto the disk. A .gz and a member of a .zip are read as streams; a .tar has no index, so that its
texts are read once and held. Knows no file format.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeAlias

from attnviz.bounded import describe_os_error, format_bytes, is_file, list_folder
from attnviz.errors import InvalidSource
from attnviz.text.source import MAX_TEXTS

DAMAGED = (EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, tarfile.TarError, NotImplementedError, MemoryError)
COMPRESSED: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
MAX_MEMBERS = 1_000_000
ENCRYPTED = 1  # a flag of a member of a .zip
MEMBER_BYTES = 1_000  # of memory for one, beside what it holds


@dataclass(frozen=True, eq=False)
class Member:
    """A file or a folder within an archive."""

    place: str  # for messages: reviews.zip/train/a.csv
    children: dict[str, Member] | None = None  # of a folder
    opener: Callable[[], BinaryIO] = field(default=BytesIO, repr=False)

    @property
    def name(self) -> str:
        """The last part of its path."""
        return PurePosixPath(self.place).name

    @property
    def stem(self) -> str:
        """Its name without the ending."""
        return PurePosixPath(self._unpacked).stem

    @property
    def suffix(self) -> str:
        """The ending of its name, with the dot; of a.csv.gz it is that of a.csv."""
        return PurePosixPath(self._unpacked).suffix

    @property
    def _unpacked(self) -> str:
        place, dot, ending = self.place.rpartition(".")
        return place if f"{dot}{ending.lower()}" in COMPRESSED else self.place

    def __str__(self) -> str:
        return self.place

    def __truediv__(self, name: str) -> Member:
        return (self.children or {}).get(name) or Member(f"{self.place}/{name}")

    def is_dir(self) -> bool:
        """Return whether it is a folder."""
        return self.children is not None

    def is_file(self) -> bool:
        """Return whether it is a file."""
        return self.children is None and self.opener is not BytesIO

    def open(self) -> BinaryIO:
        """Open a file for its bytes."""
        return self.opener()


Place: TypeAlias = Path | Member


def list_entries(folder: Place) -> list[Place]:
    """List what is in a folder but hidden files, by name; a compressed file is listed as what it holds.

    Raises InvalidSource where it cannot be read.
    """
    if isinstance(folder, Member):
        return sorted((folder.children or {}).values(), key=lambda each: each.name)
    found = (each for each in list_folder(folder, InvalidSource) if not each.name.startswith("."))
    return [open_archive(each) if each.suffix.lower() in COMPRESSED and not _is_tar(each) else each for each in found]


def is_archive(path: Path) -> bool:
    """Return whether a file's ending is that of an archive or of a file that was compressed."""
    return path.suffix.lower() in (*COMPRESSED, ".zip") or _is_tar(path)


def _is_tar(path: Path) -> bool:
    return path.name.lower().endswith(TARS)


def open_archive(path: Path) -> Member:
    """Open an archive as a folder, or a compressed file as the file. Raises InvalidSource where it is damaged."""
    try:
        if _is_tar(path):
            return _grow(path, _read_tar(path))
        if path.suffix.lower() in COMPRESSED:
            return Member(str(path), opener=partial(COMPRESSED[path.suffix.lower()], path))
        archive = zipfile.ZipFile(path)
        if any(info.flag_bits & ENCRYPTED for info in archive.infolist()):
            raise InvalidSource(f"{path} is encrypted", hint="Unpack it, and give the folder.")
        files = (info for info in archive.infolist() if not info.is_dir())
        return _grow(path, ((info.filename, partial(archive.open, info)) for info in files))  # type: ignore[misc]
    except OSError as error:
        raise InvalidSource(f"{path} cannot be read: {describe_os_error(error)}") from error
    except DAMAGED as error:
        raise InvalidSource(f"{path} is not a readable archive: {error}") from error


def find_member(path: Path) -> Member | None:
    """Find what a path into an archive names, archive.zip/reviews.csv; None where no archive is on the way.

    Raises InvalidSource where the archive is damaged or has no such file.
    """
    archive = next((each for each in path.parents if is_archive(each) and is_file(each)), None)
    if archive is None:
        return None
    found = open_archive(archive)
    for part in path.relative_to(archive).parts:
        found = found / part
    if not (found.is_dir() or found.is_file()):
        raise InvalidSource(f"{archive} holds no {path.relative_to(archive)}")
    return found


def _read_tar(path: Path) -> Iterator[tuple[str, Callable[[], BinaryIO]]]:
    left = MAX_TEXTS
    with tarfile.open(path, "r|*") as archive:
        for info in archive:
            if not info.isfile() or _is_hidden(info.name):
                continue
            left -= info.size + MEMBER_BYTES
            file = archive.extractfile(info)
            if left < 0 or file is None:
                raise InvalidSource(
                    f"{path} holds more than the {format_bytes(MAX_TEXTS)} that are read of a .tar",
                    hint="Unpack it, and give the folder.",
                )
            yield info.name, partial(BytesIO, file.read())


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) and part not in (".", "..") for part in PurePosixPath(name).parts)


def _grow(path: Path, members: Iterable[tuple[str, Callable[[], BinaryIO]]]) -> Member:
    """Make a tree of folders of names with slashes; hidden files, as macOS adds them, are left out."""
    root = Member(str(path), {})
    for number, (name, opener) in enumerate(members):
        if number == MAX_MEMBERS:
            raise InvalidSource(f"{path} holds more than {MAX_MEMBERS:,} files")
        parts = [part for part in PurePosixPath(name).parts if part not in ("/", ".", "..")]
        if _is_hidden(name) or not parts:
            continue
        folder = root
        for part in parts[:-1]:
            assert folder.children is not None
            inner = folder.children.setdefault(part, Member(f"{folder}/{part}", {}))
            folder = inner if inner.children is not None else Member(f"{folder}/{part}", {})
        assert folder.children is not None
        unpack = COMPRESSED.get(PurePosixPath(name).suffix.lower())
        unpacked = opener if unpack is None else lambda unpack=unpack, opener=opener: unpack(opener())
        folder.children[parts[-1]] = Member(f"{folder}/{parts[-1]}", opener=unpacked)
    return root
