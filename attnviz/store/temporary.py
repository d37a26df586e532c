"""Folders in the temporary one of the system, which go away with the run, and at the next run where it was killed."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attnviz.errors import OutputError

if sys.platform != "win32":
    import fcntl

PREFIX = ".attnviz-temporary-"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder that goes away. Raises OutputError where the disk refuses."""
    path, remove = make_temporary_folder()
    try:
        yield path
    finally:
        remove()


def make_temporary_folder() -> tuple[Path, Callable[[], None]]:
    """Make a folder, and return it with what removes it; remove first what this user's runs left that were killed.

    A run holds a lock on its folder, which ends with the process, however that ends: the number of a process says
    nothing where containers share a disk. Raises OutputError where the disk refuses.
    """
    try:
        place = Path(tempfile.gettempdir())
    except OSError as error:
        raise OutputError(str(error), hint="Set TMPDIR to a folder.") from error
    if sys.platform == "win32":
        path = _make(place)
        return path, lambda: shutil.rmtree(path, ignore_errors=True)
    for left in place.glob(f"{PREFIX}*"):
        if (descriptor := _lock(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(descriptor)
    path = _make(place)
    held = _lock(path)

    def remove() -> None:
        shutil.rmtree(path, ignore_errors=True)
        if held is not None:
            os.close(held)

    return path, remove


def _make(place: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    except OSError as error:
        raise OutputError(
            f"cannot make a folder in {place}: {error.strerror}", hint="Set TMPDIR to another."
        ) from error


def _lock(folder: Path) -> int | None:
    """Lock a folder of this user; return None where another process holds it, and of all that is no such folder."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = os.fstat(descriptor)
        if found.st_uid == os.geteuid() and found.st_nlink:
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None
