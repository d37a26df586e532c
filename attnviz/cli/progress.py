"""How far drawing is, on standard error: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, Timer
from typing import TYPE_CHECKING

from attnviz.cli import show

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE = 1.0  # seconds without a bar
MANY = 50  # pictures, which take seconds
NOTE_EVERY = 10.0  # seconds between two lines about long work

Follow = Callable[[int, int, Path], None]


@contextmanager
def followed() -> Iterator[Follow]:
    """What shows how many pictures of a text are written; on a terminal also that the model is being read."""
    if not sys.stderr.isatty():
        yield _noting()
        return
    bar = DelayedBar()

    def follow(done: int, total: int, file: Path) -> None:
        nonlocal bar
        if bar.closed:  # of the text before
            bar = DelayedBar()
        bar.move(done, total)
        if done == total:  # now results are printed
            bar.close()

    try:
        yield follow
    finally:
        bar.close()


def _noting() -> Follow:
    told = time.monotonic()

    def follow(done: int, total: int, file: Path) -> None:
        nonlocal told
        if total > MANY and time.monotonic() - told > NOTE_EVERY:
            show.note(f"picture {done:,} of {total:,}: {file}")
            told = time.monotonic()

    return follow


class DelayedBar:
    """A bar that appears where work takes longer than a second, also before the first picture: by an own thread."""

    def __init__(self) -> None:
        self.closed = False
        self._done = 0
        self._total: int | None = None
        self._shown: Progress | None = None
        self._lock = Lock()
        self._timer = Timer(PATIENCE, self._show)
        self._timer.daemon = True
        self._timer.start()

    def move(self, done: int, total: int) -> None:
        """Say how much of the work is done."""
        with self._lock:
            self._done, self._total = done, total
            if self._shown is not None:
                self._shown.update(self._shown.task_ids[0], completed=done, total=total)

    def close(self) -> None:
        """Take it away, or see to it that it never appears."""
        self._timer.cancel()
        with self._lock:
            self.closed = True
            if self._shown is not None:
                self._shown.stop()
                self._shown = None

    def _show(self) -> None:
        shown = show.transient_bar("pictures")
        with self._lock:
            if not self.closed:
                shown.add_task("pictures", total=self._total, completed=self._done)
                shown.start()
                self._shown = shown
