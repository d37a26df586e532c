"""The only room that writes files, each one whole or not at all; records and other arrays in and out.

Single files are here: written, added to, taken away.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.errors import OutputError
from attnviz.store.parts import part_folder

if TYPE_CHECKING:  # see `__getattr__`
    from attnviz.store.folders import *  # noqa: F403  # names are looked up there
    from attnviz.store.records import *  # noqa: F403


def write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. What stands there is replaced only if it is a regular file.

    Raises OutputError when the disk refuses, or where a pipe stands that nobody reads; nothing half-written stays.
    """
    with writing(path):
        if path.exists() and not path.is_file():  # a device or a pipe: replacing it would destroy it
            with open(path, "wb", opener=_open_without_waiting) as device:  # Path.open takes no opener
                device.write(data)
            return
        make(path, lambda part: part.write_bytes(data))


def make(path: Path, fill: Callable[[Path], object]) -> None:
    """Write a regular file whole or not at all: `fill` writes to the path that it is given, in a folder of its own.

    Raises OutputError when the disk refuses.
    """
    with writing(path), part_folder(path.parent) as folder:
        part = folder / path.name
        fill(part)
        sync(part)
        part.replace(path)


def fill(folder: Path, save: Callable[[Path], object]) -> None:
    """Let a library `save` what it has into a folder, in files of its own. Raises OutputError where it cannot."""
    with writing(folder):
        try:
            save(folder)
        except OSError:
            raise
        except Exception as error:  # of safetensors, say
            raise OutputError(f"cannot write {shorten_path(folder)}: {error}") from error


def sync(path: Path) -> None:
    """Wait until what was written is on the disk. Raises OSError."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a device or a pipe; a pipe that nobody reads is an error instead of a wait without end."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(descriptor, True)
    return descriptor


def remove(path: Path) -> None:
    """Take away a file of ours that is done with, if it is there. Raises OutputError when the disk refuses."""
    with writing(path, "remove"):
        path.unlink(missing_ok=True)


@contextmanager
def writing(path: Path, doing: str = "write") -> Iterator[None]:
    """Make an OutputError of what the operating system says while `path` is written, or what else is done with it."""
    try:
        yield
    except OSError as error:
        reason = "nobody reads this pipe" if error.errno == errno.ENXIO else error.strerror
        raise OutputError(f"cannot {doing} {shorten_path(path)}: {reason}") from error


def shorten_path(path: Path) -> str:
    """Shorten a path so that an error stays one line long."""
    text = str(path)
    return text if len(text) <= 120 else f"{text[:60]}…{text[-40:]}"


def __getattr__(name: str) -> Any:
    """Import folders, and what concerns arrays, on first use: numpy comes with these; a folder is refused without."""
    for room in map(import_module, ("attnviz.store.folders", "attnviz.store.records")):
        if hasattr(room, name):  # the next is imported where it is needed
            return getattr(room, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
