"""Folders for what is half-written, and locks of the system on folders. Knows nothing of what is written.

A run that is killed leaves half-written files behind, and a later one takes them away. Which are left and which are
being written now, the number of a process in their names cannot say: containers that share a disk, and machines that
do, count processes each for itself. So whatever is half-written lies in a folder under a lock of the operating system,
which ends with the process, however that ends. Who can take that lock has found what a killed run left.

The lock is on a hidden file: network disks know such locks, which do not know those on folders. On a disk without any
locks nothing is ever taken for left. On Windows, where an open file cannot be removed, an empty folder stays.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from attnviz.bounded import describe_os_error
from attnviz.errors import OutputError, raising

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK = ".attnviz.lock"
SUFFIX = ".attnviz.part"
NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def lock(folder: Path, *, wait: bool = False) -> int | None:
    """Lock a folder, as long as the descriptor is open that is returned; None where another run holds the lock.

    Raises OSError.
    """
    while True:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | NO_LINK, 0o666)
        if _take(descriptor, wait) is False:
            os.close(descriptor)
            return None
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # of a run that has just ended and taken it away


def _take(descriptor: int, wait: bool) -> bool | None:
    """Take the lock on a file and return whether it is ours now; None where the disk knows no locks."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # or ten seconds
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return None
    return True


@contextmanager
def part_folder(place: Path) -> Iterator[Path]:
    """Make an empty folder within a hidden one of `place`; at the end both go. Raises OSError.

    What killed runs left in `place` goes first.
    """
    sweep(place)
    part, held = _make_locked(place)
    owner = os.getpid()
    try:
        path = part / "new"  # beside the lock: whoever is given it may lock it for himself
        path.mkdir()
        yield path
    finally:
        if os.getpid() == owner:  # a fork has this context, too, and ends it when it ends
            try:
                if held is not None:
                    os.close(held)  # first: where there are too few descriptors, to remove takes this one
                _remove_all(part)
            except KeyboardInterrupt:  # in the middle of it
                _remove_all(part)
                raise


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make an empty folder in the temporary folder of the system; at the end it goes.

    Raises OutputError where the disk refuses.
    """
    problem, hint = "cannot make a temporary folder:", "Set TMPDIR to a folder with room."
    with ExitStack() as stack:
        with raising(OutputError, problem, hint, (OSError,), describe_os_error):
            path = stack.enter_context(part_folder(Path(tempfile.gettempdir())))
        yield path


def sweep(place: Path) -> None:
    """Remove what runs of this user that were killed left half-written in a folder."""
    with suppress(OSError):
        for part in place.glob(f".*{SUFFIX}"):
            with suppress(OSError):
                if part.is_symlink() or (sys.platform != "win32" and part.stat().st_uid != os.geteuid()):
                    continue
                try:
                    descriptor = os.open(part / LOCK, os.O_RDWR | NO_LINK)
                except FileNotFoundError:
                    part.rmdir()  # it was killed before it had a lock, or is about to lock it: then it makes another
                    continue
                try:
                    if _take(descriptor, wait=False):
                        _remove_all(part)
                finally:
                    os.close(descriptor)


def _make_locked(place: Path) -> tuple[Path, int | None]:
    while True:
        part = Path(tempfile.mkdtemp(SUFFIX, ".", place))
        try:
            return part, lock(part, wait=True)
        except FileNotFoundError:  # a sweep came between the two, and took it for left
            continue
        except BaseException:
            _remove_all(part)
            raise


def _remove_all(folder: Path) -> None:
    """Remove a folder, as far as that can be, by one descriptor at a time; `shutil.rmtree` takes one for each level."""
    with suppress(OSError):
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink()
        folder.rmdir()
