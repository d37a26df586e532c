"""Read files; every failure is an error of one line. Knows bytes and lines, no formats."""

from __future__ import annotations

import codecs
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from attnviz.bounded import exists, format_bytes, open_input
from attnviz.errors import InvalidSource
from attnviz.text.source import MAX_TEXT


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for its bytes. Raises InvalidSource where it cannot be opened or read."""
    try:
        with open_input(path) as file:
            yield file
    except FileNotFoundError as error:
        raise InvalidSource(f"no file {path}") from error
    except OSError as error:
        raise InvalidSource(f"{path} cannot be read: {summarize_error(error)}") from error


def read_content(path: Path) -> bytes:
    """Read a whole file of at most MAX_TEXT bytes. Raises InvalidSource."""
    if not exists(path):
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


def read_lines(path: Path) -> Generator[str, None, None]:
    """Yield the lines of a UTF-8 file with their ends. Only a newline ends a line: texts hold U+0085, U+2028 and such.

    Raises InvalidSource with `file:line` where bytes are not UTF-8, and for an empty file. The file stays open until
    the generator ends or is closed.
    """
    with open_file(path) as file:
        number = 0
        for number, line in enumerate(iter(lambda: file.readline(MAX_TEXT + 1), b""), 1):
            check_size(line, f"{path}:{number}")
            yield decode_strictly(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line, f"{path}:{number}")
        if number == 0:
            raise InvalidSource(f"{path}:1: the file is empty")


def decode_strictly(raw: bytes, where: str) -> str:
    """Decode UTF-8 without replacing characters, which would change the data set. Raises InvalidSource."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte 0x{raw[error.start]:02x} at position {error.start}"
        raise InvalidSource(f"{where}: {found} is not UTF-8", hint="Save the file as UTF-8.") from error


def summarize_error(error: BaseException) -> str:
    """Return the first line of a library's error: stack traces and advice follow it."""
    message = (error.strerror if isinstance(error, OSError) else "") or str(error).strip() or type(error).__name__
    return message.splitlines()[0].strip().rstrip(".")
