"""Read files; every failure is an error of one line. Knows bytes and lines, no formats.

Files within .gz, .bz2, .xz, .zip and .tar.gz are as the standard library's `zipfile.Path` shows them. Nothing is
unpacked onto the disk. A .gz and a member of a .zip are read as streams; a .tar has no index, so that its texts are
read once and held, as a .zip in memory. What says how long names are, and how many, is read within bounds before it is
parsed. Knows no file format.
"""

import bz2
import codecs
import gzip
import lzma
import math
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeAlias, TypeVar, cast

from attnviz import bounded
from attnviz.bounded import GIB, UTF_8, Budget, HeaderBytes, find_mark, format_bytes
from attnviz.errors import InvalidOption, InvalidSource, raising
from attnviz.text.source import MAX_TEXT

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
        return [each for each in bounded.list_folder(folder, InvalidSource) if not each.name.startswith(".")]
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
        raise InvalidSource(f"{path} cannot be read: {bounded.describe_os_error(error)}") from error
    except DAMAGED as error:  # without its frames, which would hold the file open
        raise InvalidSource(f"{path} is not a readable archive: {error}") from error.with_traceback(None)


def find_member(path: Path, budget: Budget) -> zipfile.Path | None:
    """Find what a path into an archive names, archive.zip/reviews.csv; None where no archive is on the way.

    Raises InvalidSource where the archive is damaged or has no such file.
    """
    archive = next((each for each in path.parents if is_archive(each) and bounded.is_file(each)), None)
    if archive is None:
        return None
    inner = path.relative_to(archive).as_posix()
    found = open_archive(archive, budget) / inner
    if not found.exists():
        raise InvalidSource(f"{archive} holds no {inner}")
    return found


def _read_zip(path: Path, budget: Budget) -> zipfile.ZipFile:
    archive = bounded.open_zip(path, budget.max_gib * GIB / MEMBER_BYTES * ENTRY_BYTES)
    if any(info.flag_bits & ENCRYPTED for info in archive.infolist()):
        raise InvalidSource(f"{path} is encrypted", hint="Unpack it, and give the folder.")
    return archive


def _read_tar(path: Path, budget: Budget) -> zipfile.ZipFile:
    held, written = 0, BytesIO()
    with bounded.open_input(path) as file, zipfile.ZipFile(written, "w") as copy:
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


Data = TypeVar("Data", bytes, str)
# What files that are no texts begin with, what they are, and what to do. Of a .zip its first members say what it is.
NUMBERS = ("holds numbers, not a text", "attnviz render draws weights.")
IMAGE = ("is a picture or a sound", "attnviz heatmap photo.jpg --model dinov2 draws a .png, .jpg, .gif, .webp or .bmp.")
OFFICE = ("is a document of an office program", "Save a table as CSV, and a text as .txt.")
KINDS = {
    b"%PDF-": ("is a PDF", "Save its words as .txt."),
    b"PAR1": ("is a Parquet table", "Let its name end in .parquet."),
    **dict.fromkeys((b"\x93NUMPY", b"\x89HDF"), NUMBERS),
    **dict.fromkeys((b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"II*\0", b"MM\0*"), IMAGE),
    b"{\\rtf1\\": OFFICE,
    **dict.fromkeys((b"(lp0\n", b"(dp0\n"), ("is a pickle, which is never read", "Save its words as .txt.")),
    **{
        sign: ("is compressed", f"Let its name end in {ending}, as it was called before.")
        for sign, ending in {**SIGNS, b"PK\x03\x04": ".zip"}.items()
    },
}
MEMBERS = {b"[Content_Types].xml": OFFICE, b"mimetypeapplication/": OFFICE, b".npy": NUMBERS, b"data.pkl": NUMBERS}
# NUL, bytes that are not UTF-8, an object of a PDF, or how RTF and a pickle begin
NO_TEXT = re.compile("[\0\ufffd]|[0-9] [0-9]+ obj\\b|\\A(?:{\\\\rtf1\\\\|\\([ld]p0\n)")
CONTROL = re.compile("[\0-\x06\x0e-\x19\x1c-\x1f]")  # what no text has, but for the odd one
WORDLESS = re.compile(  # names of files that hold no words
    r"(?i).+\.(?:np[yz]|pth?|ckpt|safetensors|onnx|gguf|h5|hdf5|pkl|mat|feather|arrow|sqlite|db|pdf|epub|rtf|docx?|xlsx?"
    r"|pptx?|od[tsp]|png|jpe?g|gif|webp|bmp|tiff?|svg|mp[34]|wav)"
)
WITH_MARK = {UTF_8: "utf-8-sig"}  # it may begin with one
ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
LOOKED_AT = 2**12  # bytes that say what a file is
DECODE_HINT = "Save the file as UTF-8, or name what it is in: --encoding latin-1, say."


def is_image(name: str) -> bool:
    """Return whether a file is called as images are."""
    return name.lower().endswith((".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"))


def check_encoding(name: str | None) -> None:
    """Check that Python knows the encoding of --encoding. Raises InvalidOption where it does not."""
    hint = "Try latin-1, cp1252, utf-16, gb18030 or shift_jis."
    with raising(InvalidOption, f"--encoding {name!r} is not known", hint, (LookupError, ValueError)):  # a NUL, say
        " ".encode(name or UTF_8)


def check_kind(start: bytes, name: str, encoding: str | None = None) -> None:
    """Refuse what is no text, by its first bytes. Raises InvalidSource: it says what that is, and what would read it.

    What only looks like it, such as a text that begins with "BZh", has neither NUL nor bytes that are not UTF-8.
    """
    if start.startswith(LFS_POINTER):
        raise InvalidSource(f"{name} is a pointer of Git LFS, not the file", hint="git lfs pull brings the file.")
    start = start[:LOOKED_AT]
    kind = next((KINDS[magic] for magic in KINDS if start.startswith(magic)), None)
    if start[4:8] == b"ftyp":  # HEIC, as telephones write photographs, and MP4
        kind = IMAGE
    if start[257:262] == b"ustar":
        raise InvalidSource(f"{name} is an archive", hint="Let its name end in .tar: --dataset reads such.")
    if start.startswith(b"PK\x03\x04"):
        kind = next((MEMBERS[sign] for sign in MEMBERS if sign in start), kind)
    shown = start.decode(UTF_8, "replace")[:-1]  # the last character may be cut
    if kind and NO_TEXT.search(shown):
        raise InvalidSource(f"{name} {kind[0]}", hint=kind[1])
    if encoding is not None or find_mark(start) != UTF_8:
        return
    has_nul = 4 * start.count(0) > len(start)  # any text may hold a few
    if has_nul or ("\ufffd" in shown and CONTROL.search(shown)):
        found = "utf-16-le" if start[1::2].count(0) > start[::2].count(0) else "utf-16-be"
        if has_nul and not CONTROL.search(start[: len(start) // 2 * 2].decode(found, "replace")):
            raise InvalidSource(f"{name}: many of its bytes are NUL, as in UTF-16", hint=f"Try --encoding {found}.")
        raise InvalidSource(f"{name} is not a text: it holds bytes that no text has", hint=NUMBERS[1])


@contextmanager
def open_file(path: Place) -> Iterator[BinaryIO]:
    """Open a file for its bytes, unpacked. Raises InvalidSource where it cannot be opened or read."""
    unpack = COMPRESSED.get(PurePosixPath(path.name).suffix.lower())
    try:
        with bounded.open_input(path) if isinstance(path, Path) else path.open("rb") as file:
            yield file if unpack is None else unpack(file)  # type: ignore[misc]
    except OSError as error:
        raise InvalidSource(f"{path} cannot be read: {summarize_error(error)}") from error
    except DAMAGED as error:
        if unpack is None and isinstance(path, Path):
            raise
        raise InvalidSource(f"{path} cannot be unpacked: {summarize_error(error)}") from error


def read_content(path: Place) -> bytes:
    """Read a whole file of at most MAX_TEXT bytes. Raises InvalidSource."""
    if isinstance(path, Path) and not bounded.exists(path):
        raise InvalidSource(f"no file {path}")
    with open_file(path) as file:
        return check_size(file.read(MAX_TEXT + 1), str(path))


def check_size(raw: Data, name: str, before: int = 0) -> Data:
    """Return `raw`. Raises InvalidSource for more than one text may have: a device never ends. `before`: of a row."""
    if before + len(raw) > MAX_TEXT:
        problem = f"{name} is longer than the {format_bytes(MAX_TEXT)} of one text"
        raise InvalidSource(problem, hint="A data set (--dataset) may hold many texts, such as a .txt with one a line.")
    return raw


def read_lines(path: Place, encoding: str | None = None) -> Generator[str, None, None]:
    """Yield the lines of a file with their ends. Only a newline ends a line: texts hold U+0085, U+2028 and such.

    It is in `encoding`, else in that of its byte order mark, else in UTF-8. Raises InvalidSource with `file:line` where
    bytes are not, and for an empty file. The file stays open until the generator ends or is closed.
    """
    number = 1
    with open_file(path) as raw, BufferedReader(cast(Any, raw)) as file:
        start = file.peek()
        found = codecs.lookup(encoding).name if encoding is not None else find_mark(start)
        if not start:
            raise InvalidSource(f"{path}:1: the file is empty")
        check_kind(start, str(path), encoding)
        try:  # wrong bytes are let through, so that the lines before them are read
            with TextIOWrapper(file, WITH_MARK.get(found, found), "surrogateescape", newline="\n") as text:
                while line := check_size(text.readline(MAX_TEXT + 1), f"{path}:{number}"):
                    if not line.isascii() and (wrong := ESCAPED.search(line)):
                        problem = f"{path}:{number}: byte 0x{ord(wrong[0]) - 0xDC00:02x} is not {found.upper()}"
                        raise InvalidSource(problem, hint=DECODE_HINT)
                    ends = number == 1 and "\n" not in line and "\r" in line.rstrip("\r")  # as old Macs ended lines
                    yield from line.replace("\r", "\n").splitlines(keepends=True) if ends else (line,)
                    number += 1
        except UnicodeError as error:
            problem = f"{path}: from line {number} on bytes are not {found.upper()}"
            raise InvalidSource(problem, hint=DECODE_HINT) from error


def decode(raw: bytes, name: str, encoding: str | None = None, errors: str = "strict", hint: str = DECODE_HINT) -> str:
    """Decode a text that is a whole file or line: in `encoding`, else that of its mark, else UTF-8.

    Raises InvalidSource, unless `errors` are replaced: that would change a data set.
    """
    found = encoding or find_mark(raw)
    with raising(InvalidSource, f"{name}: bytes are not {found.upper()}", hint, (UnicodeError,)):
        return raw.decode(WITH_MARK.get(found, found), errors)


def summarize_error(error: BaseException) -> str:
    """Return the first line of a library's error: stack traces and advice follow it."""
    message = (error.strerror if isinstance(error, OSError) else "") or str(error).strip() or type(error).__name__
    return message.splitlines()[0].strip().rstrip(".")
