"""Read files; every failure is an error of one line. Knows bytes and lines, no formats."""

import codecs
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from io import BufferedReader, TextIOWrapper
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar, cast

from attnviz.bounded import UTF_8, exists, find_mark, format_bytes, open_input
from attnviz.errors import InvalidOption, InvalidSource
from attnviz.text.archives import COMPRESSED, DAMAGED, SIGNS, Place
from attnviz.text.source import MAX_TEXT

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
ENCODING_HINT = "Save the file as UTF-8, or name what it is in: --encoding latin-1, say."


def is_image(name: str) -> bool:
    """Return whether a file is called as images are."""
    return name.lower().endswith((".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"))


def check_encoding(name: str | None) -> None:
    """Check that Python knows the encoding of --encoding. Raises InvalidOption where it does not."""
    try:
        " ".encode(name or UTF_8)
    except (LookupError, ValueError) as error:  # ValueError: such as `undefined`, or a NUL
        problem = f"--encoding {name!r} is not known"
        raise InvalidOption(problem, hint="Try latin-1, cp1252, utf-16, gb18030 or shift_jis.") from error


def check_kind(start: bytes, name: str, encoding: str | None = None) -> None:
    """Refuse what is no text, by its first bytes. Raises InvalidSource: it says what that is, and what would read it.

    What only looks like it, such as a text that begins with "BZh", has neither NUL nor bytes that are not UTF-8.
    """
    if start.startswith(LFS_POINTER):
        raise InvalidSource(f"{name} is a pointer of Git LFS, not the file", hint="git lfs pull brings the file.")
    start = start[:LOOKED_AT]
    kind = next((KINDS[magic] for magic in KINDS if start.startswith(magic)), None)
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
        with open_input(path) if isinstance(path, Path) else path.open("rb") as file:
            yield file if unpack is None else unpack(file)  # type: ignore[misc]
    except FileNotFoundError as error:
        raise InvalidSource(f"no file {path}") from error
    except OSError as error:
        raise InvalidSource(f"{path} cannot be read: {summarize_error(error)}") from error
    except DAMAGED as error:
        if unpack is None and isinstance(path, Path):
            raise
        raise InvalidSource(f"{path} cannot be unpacked: {summarize_error(error)}") from error


def read_content(path: Place) -> bytes:
    """Read a whole file of at most MAX_TEXT bytes. Raises InvalidSource."""
    if isinstance(path, Path) and not exists(path):
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
                        raise InvalidSource(problem, hint=ENCODING_HINT)
                    ends = number == 1 and "\n" not in line and "\r" in line.rstrip("\r")  # as old Macs ended lines
                    yield from line.replace("\r", "\n").splitlines(keepends=True) if ends else (line,)
                    number += 1
        except UnicodeError as error:
            problem = f"{path}: from line {number} on bytes are not {found.upper()}"
            raise InvalidSource(problem, hint=ENCODING_HINT) from error


def decode(raw: bytes, where: str, encoding: str | None = None, errors: str = "strict") -> str:
    """Decode a text that is a whole file or line: in `encoding`, else that of its mark, else UTF-8.

    Raises InvalidSource, unless `errors` are replaced: that would change a data set.
    """
    found = encoding or find_mark(raw)
    try:
        return raw.decode(WITH_MARK.get(found, found), errors)
    except UnicodeError as error:
        raise InvalidSource(f"{where}: bytes are not {found.upper()}", hint=ENCODING_HINT) from error


def summarize_error(error: BaseException) -> str:
    """Return the first line of a library's error: stack traces and advice follow it."""
    message = (error.strerror if isinstance(error, OSError) else "") or str(error).strip() or type(error).__name__
    return message.splitlines()[0].strip().rstrip(".")
