"""Folders that a command writes: one run at a time, a set of files replaced as a set, and what is made once."""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TypeVar

from attnviz.bounded import expand_path, is_file, is_folder
from attnviz.errors import InvalidOption, OutputError
from attnviz.store import remove, shorten_path, sync, write, writing
from attnviz.store.parts import LOCK, lock, part_folder, sweep

Event = TypeVar("Event")
PLACE = "ATTNVIZ_CACHE"  # of the environment: another folder for all of it
ELSEWHERE = f"{PLACE} may name another folder."


def check_output_folder(out: str) -> Path:
    """Check the folder that `--out` names, ~/ being the home folder, and return it. Makes nothing.

    Raises InvalidOption where something that is not a folder stands there or above it.
    """
    path = Path(os.path.expanduser(out) if out == "~" or out.startswith("~/") else out)  # noqa: PTH111  # never raises
    _check_folder(path)
    return path


def _check_folder(path: Path) -> None:
    with suppress(OSError):  # a name that is too long, say: `make_folder` tells what is wrong
        # also a link that leads nowhere or to itself
        standing = next(place for place in (path, *path.parents) if place.exists() or place.is_symlink())
        if not standing.is_dir():
            raise InvalidOption(f"{standing} is not a folder", hint="Choose another --out.")


def make_folder(path: Path) -> None:
    """Make `path` and what is above it.

    Raises InvalidOption where something that is not a folder stands in the way, OutputError where the disk refuses.
    """
    _check_folder(path)
    with writing(path, "make the folder"):
        path.mkdir(parents=True, exist_ok=True)


def remove_folder(path: Path) -> None:
    """Take away a folder of ours if it is there and empty."""
    with suppress(OSError):
        path.rmdir()


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Make a folder and keep it from all other runs; one that was made for nothing goes away again.

    Raises InvalidOption where another run writes to it, unless it is to `wait`; else what `make_folder` raises. Until
    the lock is held nothing in the folder is touched; at the end goes what workers that were killed left.
    """
    made = list[Path]()
    with suppress(OSError):
        made = [place for place in (folder, *folder.parents) if not place.exists()]
    make_folder(folder)
    try:
        with writing(folder, "write to"):
            descriptor = lock(folder, wait=wait)
        if descriptor is None:
            problem = f"another run of attnviz is writing to {shorten_path(folder)}"
            raise InvalidOption(problem, hint="Wait for it, or choose another --out.")
        try:
            yield
        finally:
            try:
                sweep(folder)
            finally:
                if sys.platform == "win32":
                    os.close(descriptor)
                    (folder / LOCK).unlink(missing_ok=True)
                else:
                    with suppress(OSError):
                        (folder / LOCK).unlink()  # first: whoever opened it meanwhile sees that it is gone
                    os.close(descriptor)
    finally:
        for place in made:
            remove_folder(place)


class OutputFolder:
    """A set of files on their way into a folder: until all are complete, they lie in `path`, which is within it.

    `names` are those that there must be at the end.
    """

    def __init__(self, folder: Path, path: Path) -> None:
        self.folder, self.path = folder, path
        self.names: set[str] = set()
        self._old: list[Path] = []

    def write(self, name: str, data: bytes) -> Path:
        """Write a file and return where it will be. Raises OutputError when the disk refuses."""
        return self.make(name, lambda path: path.write_bytes(data))

    def make(self, name: str, make: Callable[[Path], object]) -> Path:
        """Write a file by `make`, which is given the path to write to, and return where it will be.

        Raises OutputError where it cannot.
        """
        path = self.path / name
        self.names.add(name)
        with writing(path):
            make(path)
            sync(path)
        return self.folder / name

    def discard(self, names: Iterable[str]) -> None:
        """Discard files of an earlier run when the new ones come; those behind links stay."""
        self._old += [self.folder / name for name in names if not _find_link(self.folder, str(Path(name).parent))]

    def commit(self) -> None:
        """Put the new files into their places, then take the old ones away. Nothing is moved where one cannot be.

        Raises OutputError also where one is gone.
        """
        if gone := sorted(name for name in self.names if not (self.path / name).is_file()):
            problem = f"cannot write {shorten_path(self.folder / gone[0])}: it was removed while this run was at work"
            raise OutputError(problem)
        names = [file.relative_to(self.path) for file in sorted(self.path.rglob("*")) if file.is_file()]
        places = [self.folder / name for name in names]
        for name, place in zip(names, places, strict=True):
            refuse_links(self.folder, str(name.parent))
            if place.is_dir():
                raise OutputError(f"cannot write {shorten_path(place)}: Is a directory")
        for name, place in sorted(zip(names, places, strict=True), key=lambda both: both[1].is_file()):
            with writing(place):  # devices first: they may refuse
                if place.exists() and not place.is_file():
                    write(place, (self.path / name).read_bytes())
                else:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    (self.path / name).replace(place)
        for old in set(self._old) - set(places):
            remove(old)
            if old.parent != self.folder:
                remove_folder(old.parent)


@contextmanager
def replacing(folder: Path) -> Iterator[OutputFolder]:
    """Replace a set of files in a folder as a whole, at the end; where anything is raised, nothing changes.

    Raises OutputError when the disk refuses, InvalidOption where a link leads out of the folder.
    """
    make_folder(folder)
    with ExitStack() as stack:
        with writing(folder):
            path = stack.enter_context(part_folder(folder))
        new = OutputFolder(folder, path)
        try:
            yield new
            new.commit()
        except OutputError as error:  # told by the place that is meant
            raise OutputError(error.problem.replace(str(path), str(folder)), hint=error.hint) from error


def refuse_links(folder: Path, name: str) -> None:
    """Refuse symbolic links in a path within `folder`.

    Raises InvalidOption where the folder `name`, or one on the way to it, is one.
    """
    if link := _find_link(folder, name):
        raise InvalidOption(f"{shorten_path(link)} is a symbolic link, which is not followed", hint="Remove it.")


def refuse_others(folder: Path, *names: str) -> None:
    """Refuse to write over files of others. Raises InvalidOption where one stands there that names attnviz nowhere."""
    for place in (folder / name for name in names):
        if is_file(place) and not is_from_attnviz(place):
            raise InvalidOption(f"{shorten_path(place)} was not written by attnviz", hint="Choose another --out.")


def is_from_attnviz(path: Path) -> bool:
    """Check whether a file says that attnviz made it, a comparison's PNG which models it shows; False if unreadable."""
    try:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:  # it may be of any size
            return any(data.find(mark) >= 0 for mark in (b"attnviz", b"TXtstatus of "))
    except (OSError, ValueError):  # ValueError: it is empty
        return False


def _find_link(folder: Path, name: str) -> Path | None:
    steps = Path(name).parts
    places = (folder.joinpath(*steps[: n + 1]) for n in range(len(steps)))
    return next((place for place in places if place.is_symlink()), None)


def find_cache() -> Path:
    """Return the folder of what is made once: $ATTNVIZ_CACHE, else `attnviz` where the system keeps caches.

    Raises InvalidOption where this user has no home folder.
    """
    if chosen := os.environ.get(PLACE):
        return expand_path(chosen, InvalidOption)
    if sys.platform == "win32":
        caches = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        caches = "~/Library/Caches"
    else:
        caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return expand_path(caches, InvalidOption) / "attnviz"


@contextmanager
def making(folder: Path, is_whole: Callable[[Path], bool]) -> Iterator[Path | None]:
    """Give an empty folder to fill, which takes the place of `folder` at the end; None where that is whole already.

    Waits while another process makes it. Where anything is raised, or the process is killed, nothing stands there;
    what lies there and is not whole is replaced. Raises OutputError when the disk refuses.
    """
    if is_whole(folder):  # also where nothing can be written
        yield None
        return
    try:
        with writing(folder), locked(folder.parent, wait=True):
            if is_whole(folder):  # by now
                yield None
                return
            with part_folder(folder.parent) as part:
                yield part
                for file in part.rglob("*"):
                    sync(file)
                if is_folder(folder):
                    shutil.rmtree(folder)
                part.replace(folder)
    except (OutputError, InvalidOption) as error:
        raise type(error)(error.problem, hint=ELSEWHERE) from error
