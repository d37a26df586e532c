"""Read files; every failure is an error of one line. Knows bytes and lines, no formats."""

from __future__ import annotations

import codecs
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import BinaryIO

from attnviz.bounded import exists, format_bytes, open_input
from attnviz.errors import InvalidOption, InvalidSource
from attnviz.text.archives import DAMAGED, Member, Place
from attnviz.text.source import MAX_TEXT

UTF_8 = "utf-8"
READ_AT_ONCE = 2**20  # bytes
MARKS = {codecs.BOM_UTF8: UTF_8, codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
COMPRESSED = {b"\x1f\x8b": ".gz", b"PK\x03\x04": ".zip", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz"}
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
ENCODING_HINT = "Save the file as UTF-8, or name what it is in: --encoding latin-1, say."


def check_encoding(name: str | None) -> None:
    """Raises InvalidOption where --encoding names none that Python knows."""
    try:
        " ".encode(name or UTF_8)
    except (LookupError, ValueError) as error:  # ValueError: such as `undefined`, or a NUL
        raise InvalidOption(
            f"--encoding {name!r} is not known", hint="Try latin-1, cp1252, utf-16, gb18030 or shift_jis."
        ) from error


def find_mark(start: bytes) -> str:
    """Return the encoding that the byte order mark at the start of a file says, else UTF-8."""
    return next((name for mark, name in MARKS.items() if start.startswith(mark)), UTF_8)


@contextmanager
def open_file(path: Place) -> Iterator[BinaryIO]:
    """Open a file for its bytes. Raises InvalidSource where it cannot be opened or read."""
    try:
        with path.open() if isinstance(path, Member) else open_input(path) as file:
            yield file
    except FileNotFoundError as error:
        raise InvalidSource(f"no file {path}") from error
    except OSError as error:
        raise InvalidSource(f"{path} cannot be read: {summarize_error(error)}") from error
    except DAMAGED as error:
        if not isinstance(path, Member):
            raise
        raise InvalidSource(f"{path} cannot be unpacked: {summarize_error(error)}") from error


def read_content(path: Place) -> bytes:
    """Read a whole file of at most MAX_TEXT bytes. Raises InvalidSource."""
    if not isinstance(path, Member) and not exists(path):
        raise InvalidSource(f"no file {path}")
    with open_file(path) as file:
        return check_size(file.read(MAX_TEXT + 1), str(path))


def check_size(raw: bytes, name: str) -> bytes:
    """Return `raw`. Raises InvalidSource for more bytes than one text may have: a device never ends."""
    if len(raw) > MAX_TEXT:
        raise InvalidSource(
            f"{name} is longer than the {format_bytes(MAX_TEXT)} of one text",
            hint="A data set (--dataset) may hold many texts, such as a .txt with one a line.",
        )
    return raw


def read_lines(path: Place, encoding: str | None = None) -> Generator[str, None, None]:
    """Yield the lines of a file with their ends. Only a newline ends a line: texts hold U+0085, U+2028 and such.

    It is in `encoding`, else in that of its byte order mark, else in UTF-8. Raises InvalidSource with `file:line` where
    bytes are not, and for an empty file. The file stays open until the generator ends or is closed.
    """
    with open_file(path) as file:
        first = file.readline(MAX_TEXT + 1)
        found = codecs.lookup(encoding).name if encoding is not None else find_mark(first)
        if not first:
            raise InvalidSource(f"{path}:1: the file is empty")
        _check_kind(first, path)
        if found != UTF_8:
            yield from _decode_lines(path, first, file, found)
            return
        check_size(first, f"{path}:1")
        if len(first) > 1 and 4 * first.count(0) > len(first):  # as in UTF-16 without a mark; any text may hold a few
            raise InvalidSource(f"{path}:1: many bytes are NUL, as in UTF-16", hint="Try --encoding utf-16-le.")
        number, line = 1, first.removeprefix(codecs.BOM_UTF8)
        if b"\n" not in line and b"\r" in line.rstrip(b"\r"):  # there is no newline at all: as old Macs ended lines
            line = line.replace(b"\r", b"\n")
            file = BytesIO(line)
            line = file.readline()
        while line or number == 1:
            check_size(line, f"{path}:{number}")
            yield decode_strictly(line, f"{path}:{number}")
            number, line = number + 1, file.readline(MAX_TEXT + 1)


def _check_kind(start: bytes, path: Place) -> None:
    """Raises InvalidSource for what is no text, though it is called one."""
    if start.startswith(LFS_POINTER):
        raise InvalidSource(f"{path} is a pointer of Git LFS, not the file", hint="git lfs pull brings the file.")
    if ending := next((ending for magic, ending in COMPRESSED.items() if start.startswith(magic)), None):
        raise InvalidSource(f"{path} is compressed", hint=f"Let its name end in {ending}, as it was called before.")


def _decode_lines(path: Place, first: bytes, file: BinaryIO, encoding: str) -> Iterator[str]:
    """Yield lines in any encoding: in UTF-16 a byte of a newline is half of one, so that bytes have no lines."""
    decoder = codecs.getincrementaldecoder(encoding)()
    number, held, raw = 1, "", first
    while True:
        try:
            held += decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            found = f"byte 0x{error.object[error.start]:02x} is not {encoding}"
            where = number + held.count("\n")
            raise InvalidSource(f"{path}: from line {where} on {found}", hint=ENCODING_HINT) from error
        *lines, held = held.split("\n")
        for line in lines:
            yield f"{line}\n"
        number += len(lines)
        if len(held) > MAX_TEXT:
            raise InvalidSource(f"{path}:{number} is longer than the {format_bytes(MAX_TEXT)} of one text")
        if not raw:
            break
        raw = file.read(READ_AT_ONCE)
    if held:
        yield held


def decode_whole(raw: bytes, where: str, encoding: str | None) -> str:
    """Decode a text that is a whole file, without replacing characters. Raises InvalidSource."""
    found = encoding or find_mark(raw)
    if found == UTF_8:
        return decode_strictly(raw.removeprefix(codecs.BOM_UTF8), where)
    try:
        return raw.decode(found)
    except UnicodeDecodeError as error:
        raise InvalidSource(f"{where}: bytes are not {found}", hint=ENCODING_HINT) from error


def decode_strictly(raw: bytes, where: str) -> str:
    """Decode UTF-8 without replacing characters, which would change the data set. Raises InvalidSource."""
    try:
        return raw.decode(UTF_8)
    except UnicodeDecodeError as error:
        found = f"byte 0x{raw[error.start]:02x} at position {error.start}"
        raise InvalidSource(f"{where}: {found} is not UTF-8", hint=ENCODING_HINT) from error


def summarize_error(error: BaseException) -> str:
    """Return the first line of a library's error: stack traces and advice follow it."""
    message = (error.strerror if isinstance(error, OSError) else "") or str(error).strip() or type(error).__name__
    return message.splitlines()[0].strip().rstrip(".")
