"""Folders in this user's cache, each made once: whole or not at all, by one process while the others wait."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attnviz.bounded import expand_path, format_bytes, is_folder
from attnviz.errors import InvalidOption, OutputError
from attnviz.store import describe_failure, shorten_path, sync
from attnviz.store.folders import locked
from attnviz.store.parts import part_folder

PLACE = "ATTNVIZ_CACHE"  # of the environment: another folder for all of it
ELSEWHERE = f"{PLACE} may name another folder."


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
def making(folder: Path, is_whole: Callable[[Path], bool], n_bytes: int) -> Iterator[Path | None]:
    """Give an empty folder to fill, which takes the place of `folder` at the end; None where that is whole already.

    Waits while another process makes it. Where anything is raised, or the process is killed, nothing stands there;
    what lies there and is not whole is replaced. `n_bytes` are needed. Raises OutputError when the disk refuses.
    """
    if is_whole(folder):  # also where nothing can be written
        yield None
        return
    try:
        with locked(folder.parent, wait=True):
            if is_whole(folder):  # by now
                yield None
                return
            if (free := shutil.disk_usage(folder.parent).free) < n_bytes:
                needed, there = format_bytes(n_bytes), format_bytes(free)
                raise OutputError(f"{needed} are needed in {shorten_path(folder.parent)}, and {there} are free")
            with part_folder(folder.parent) as part:
                yield part
                for file in part.rglob("*"):
                    sync(file)
                if is_folder(folder):
                    shutil.rmtree(folder)
                part.replace(folder)
    except OSError as error:
        raise OutputError(describe_failure(folder, error).problem, hint=ELSEWHERE) from error
    except (OutputError, InvalidOption) as error:
        raise type(error)(error.problem, hint=ELSEWHERE) from error
