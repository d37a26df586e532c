"""Read untrusted files within bounds: paths, bytes, JSON and the lists that archives begin or end with.

Every failure becomes one line of an error class that the caller chooses. Knows no format beyond these.
"""

import codecs
import errno
import hashlib
import json
import math
import os
import stat
import sys
import threading
import zipfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, Literal, get_args, get_origin, get_type_hints

from attnviz.errors import InputError, InvalidOption, TooLarge, raising

MAX_JSON = 2**26  # bytes of a configuration, an index or metrics; the largest that are in use have 10 MB
MAX_VOCABULARY = 2**28  # bytes of a tokenizer.json; the largest that are in use have 40 MB
JSON_SIZES = {",": 64, ":": 64, "[": 64, "{": 192}  # bytes for each in memory, of short texts and numbers
GIB = 2**30
UTF_8 = "utf-8"
MARKS = {codecs.BOM_UTF8: UTF_8, codecs.BOM_UTF32_LE: "utf-32"}  # the latter begins as UTF-16 does
MARKS |= dict.fromkeys((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "utf-16")
MAX_WAIT = 5.0  # seconds to wait for a writer to open a named pipe
NO_FILE = "No file can have this name"


class Budget:
    """Memory that what is read may hold, made from `--max-memory`: each part is drawn before it is parsed.

    What is drawn under a name replaces what was drawn under it before: a table may be read again and again. Raises
    InvalidOption for no memory.
    """

    def __init__(self, max_gib: float = 4.0) -> None:
        check_room("", 0, max_gib)
        self.max_gib = max_gib
        self._held: dict[str, int] = {}

    def draw(self, what: str, n_bytes: int) -> None:
        """Hold so many bytes for `what`, a plural. Raises TooLarge where all that is held has no room."""
        self._held[what] = n_bytes
        check_room(what, sum(self._held.values()), self.max_gib)

    def draw_json(self, what: str, written: str) -> None:
        """Hold what JSON becomes, by the signs in it: a `{}` of two characters becomes 64 bytes, with a name 184."""
        self.draw(what, 4 * len(written) + sum(size * written.count(sign) for sign, size in JSON_SIZES.items()))


def check_room(what: str, needed: int, max_gib: float, hint: str = "") -> None:
    """Raise TooLarge when `what`, a plural, would take more bytes than `max_gib` GiB, before anything is allocated.

    `hint` says what takes less. Raises InvalidOption for a --max-memory that is no number above 0.
    """
    if not max_gib > 0:  # NaN is not either
        raise InvalidOption(f"--max-memory {max_gib:g} leaves no memory", hint="Give GiB, such as 4 or 0.5.")
    if needed > max_gib * GIB:
        said = f"{needed / GIB:.2g}" if needed < 99 * GIB else f"{needed / GIB:,.0f}"
        least = f"{hint}--max-memory {math.ceil(100 * needed / GIB) / 100:.6g} allows it."
        raise TooLarge(f"{what} need {said} GiB, allowed are {max_gib:g}", hint=least)


def expand_path(name: str, invalid: type[InputError]) -> Path:
    """Return the path of `name` with `~` expanded, as no shell does it in configs. Raises `invalid` without a home."""
    with raising(invalid, f"{name}: there is no home folder", "Write the whole path.", (RuntimeError,)):
        return Path(name).expanduser() if name == "~" or name.startswith("~/") else Path(name)


def is_folder(path: Path) -> bool:
    """Return whether a folder stands there; False also for an impossible name: too long, a loop of links, a NUL."""
    return exists(path) and path.is_dir()


def is_file(path: Path) -> bool:
    """Return whether a regular file stands there, as `is_folder` does for folders."""
    return exists(path) and path.is_file()


def exists(path: Path) -> bool:
    """Return whether anything stands there, as `is_folder` does for folders."""
    return os.path.exists(path)  # noqa: PTH110  # which raises nothing


def list_folder(path: Path, invalid: type[InputError]) -> list[Path]:
    """List what is in a folder, by name. Raises `invalid` for one that cannot be listed, or listed and not entered."""
    with _reading(path, invalid):
        (path / "..").stat()  # needs what entering needs, which listing does not
        return sorted(path.iterdir(), key=lambda each: each.name)


def resolve_links(path: Path) -> Path:
    """Return the path without links; a loop of them, and what no file can be called, stay as they are."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path.absolute()


def check_file_size(path: Path, largest: float, invalid: type[InputError], hint: str = "") -> int:
    """Return the bytes of a regular file. Raises `invalid` for all else (a device never ends) and above `largest`."""
    with _reading(path, invalid, hint):
        state = path.stat()
    if stat.S_ISDIR(state.st_mode):
        raise invalid(f"cannot read {path}: Is a directory", hint=hint)
    if not stat.S_ISREG(state.st_mode):
        raise invalid(f"cannot read {path}: not a regular file", hint=hint)
    if state.st_size > largest:
        problem = f"{path} is {format_bytes(state.st_size)} long, at most {format_bytes(largest)} are read"
        raise invalid(problem, hint=hint)
    return state.st_size


def open_input(path: Path) -> BinaryIO:
    """Open a file, a device or a pipe to be read. Raises OSError, also for a named pipe that nobody writes to."""
    if not path.is_fifo():
        return path.open("rb")
    timed_out = threading.Event()

    def give_up() -> None:
        timed_out.set()
        with suppress(OSError):  # a writer came after all, or the pipe is gone
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))  # unblocks the open below

    timer = threading.Timer(MAX_WAIT, give_up)
    timer.daemon = True
    timer.start()
    file = path.open("rb")
    timer.cancel()
    timer.join()  # else the next to open this pipe may take it for a writer
    if timed_out.is_set():
        file.close()
        raise OSError(errno.ENXIO, "nobody writes to this pipe")
    return file


class HeaderBytes:
    """A file of which only so many bytes are read while the headers of an archive are. Raises BadZipFile for more."""

    def __init__(self, opener: Callable[[], Any], left: float) -> None:
        self.file, self.left = opener(), left

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __del__(self) -> None:
        self.file.close()

    def read(self, size: int = -1) -> Any:
        """Read from the file. Once `left` is infinite, as many bytes as there are."""
        data = self.file.read(size if 0 <= size <= self.left or self.left == math.inf else int(self.left) + 1)
        self.left -= len(data)
        if self.left < 0:
            raise zipfile.BadZipFile("what it says of its files is too long")
        return data


def open_zip(path: Path, largest: float) -> zipfile.ZipFile:
    """Open a .zip whose list of members has at most `largest` bytes. Raises OSError, and what zipfile raises."""
    headers: Any = HeaderBytes(lambda: open_input(path), largest)
    archive = zipfile.ZipFile(headers)
    headers.left, archive.filename = math.inf, str(path)
    return archive


def read_bytes(path: Path, largest: float, invalid: type[InputError], hint: str = "") -> bytes:
    """Read a regular file of at most `largest` bytes. Raises `invalid`."""
    check_file_size(path, largest, invalid, hint)
    with _reading(path, invalid, hint), path.open("rb") as file:
        return file.read()


def compute_sha256(file: Path) -> str:
    """Return the sha256 of a file. Raises OSError."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def find_mark(start: bytes) -> str:
    """Return the encoding that the byte order mark at the start of a file says, else UTF-8."""
    return next((name for mark, name in MARKS.items() if start.startswith(mark)), UTF_8)


def parse_json(data: str | bytes) -> Any:
    """Parse JSON without NaN, Infinity and numbers beyond float64. Raises ValueError or RecursionError."""
    return json.loads(data, parse_constant=_parse_finite, parse_float=_parse_finite)


def decode_json(kind: Any, found: Any, name: str) -> Any:
    """Decode JSON, `found`, as what the annotation `kind` says; an object may leave out what has a default.

    Raises ValueError naming the first value that is none by the way to it from `name`.
    """
    if isinstance(kind, UnionType):
        kind = next((one for one in get_args(kind) if _matches(one, found)), get_args(kind)[0])
    origin, called = get_origin(kind), name or "the whole"
    if not _matches(kind, found):
        choices = " or ".join(get_args(kind)) if origin is Literal else f"of type {getattr(kind, '__name__', kind)}"
        raise ValueError(f"{called} is not {choices}")
    if is_dataclass(kind):
        kinds = get_type_hints(kind)
        needed = {each.name for each in fields(kind) if each.default is each.default_factory is MISSING}
        if not needed <= set(found) <= set(kinds):
            raise ValueError(f"{called} holds other names than {', '.join(kinds)}")
        return kind(**_decode_members(kinds, found, name))  # type: ignore[operator]
    if origin is dict:
        return _decode_members(dict.fromkeys(found, get_args(kind)[1]), found, name)
    if origin in (tuple, list):
        inner, *others = get_args(kind)
        if others and others != [...] and len(found) != len(get_args(kind)):
            raise ValueError(f"{called} are not {len(get_args(kind))}")
        if inner in (float, str, bool) and {*map(type, found)} <= {inner}:  # there may be millions
            return origin(found)
        return origin(decode_json(inner, value, f"{name}[{place}]") for place, value in enumerate(found))
    return float(found) if kind is float else found


def decode_versioned(kind: Any, data: bytes, schema: int, name: str) -> Any:
    """Decode an object as this version writes it, by the schema that it says it is of. Raises as `decode_json`."""
    found = parse_json(data)
    if not isinstance(found, dict) or found.pop("schema", None) != schema:
        raise ValueError(f"schema {schema} expected, as this version writes it")
    return decode_json(kind, found, name)


def _decode_members(kinds: Mapping[str, Any], found: Mapping[str, Any], name: str) -> dict[str, Any]:
    ways = {inner: f"{name}.{inner}" if name else inner for inner in found}
    return {inner: decode_json(kinds[inner], value, ways[inner]) for inner, value in found.items()}


def _matches(kind: Any, found: Any) -> bool:
    """Check that `found` is written as JSON writes a `kind`."""
    if kind is float:
        return type(found) in (float, int) and abs(found) <= sys.float_info.max
    if kind is int:
        return type(found) is int and abs(found) < 2**63  # as a table holds them
    if is_dataclass(kind) or get_origin(kind) is dict:
        return type(found) is dict
    if get_origin(kind) is Literal:
        return found in get_args(kind)
    return kind is object or type(found) is (list if get_origin(kind) in (tuple, list) else kind)


def _reading(path: Path, invalid: type[InputError], hint: str = "") -> AbstractContextManager[None]:
    """Raise `invalid` for what the system refuses: an OSError, and a ValueError for a NUL in the name."""
    return raising(invalid, f"cannot read {path}:", hint, (OSError, ValueError), describe_os_error)


def describe_os_error(error: Exception) -> str:
    """Return what an OSError says, without its number and file."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else NO_FILE


def format_bytes(number: float) -> str:
    """Write a number of bytes as 1.5 GiB, 64 MiB or 300 bytes."""
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if number >= 0.9765 * size:  # else it has four digits in the unit below
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} bytes"


def _parse_finite(digits: str) -> float:
    if math.isfinite(number := float(digits)):
        return number
    raise ValueError(f"{digits[:40]} is not a finite number")
