"""What the terminal sees: results on standard output, everything else on standard error, such as how far work is."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from threading import Timer
from typing import TYPE_CHECKING, Any

from attnviz.display import escape_for_display
from attnviz.words import say

if TYPE_CHECKING:
    from attnviz.renderers.terminal.show import Screen
    from attnviz.running import Progress
    from attnviz.words import Language

WIDTH_OFF_TERMINAL = 80
MAX_LINE_LENGTH = 500  # of an error or a note: a path or a token in it may be of any length
BAR_DELAY = 1.0  # seconds without a bar
MIN_LOGGED_TOTAL = 50  # of whatever is counted, which take seconds
LOG_INTERVAL = 10.0  # seconds between two lines about long work


def line(text: str) -> None:
    """Write one line of results."""
    sys.stdout.write(text + "\n")


def note(text: str, language: Language = "en") -> None:
    """Write one line on standard error that is not an error."""
    tell(f"note: {say(text, language)}")


def error(text: str) -> None:
    """Write one line on standard error that says what went wrong."""
    tell(f"error: {text}")


def tell(text: str) -> None:
    """Write one line on standard error, with nothing in it that a terminal would obey."""
    with suppress(OSError, ValueError):
        sys.stderr.write(escape_for_display(text, MAX_LINE_LENGTH) + "\n")
        sys.stderr.flush()


def detect_screen(language: Language) -> Screen:
    """Detect the terminal; a pipe or file counts as 80 columns, and without FORCE_COLOR has no colour."""
    from attnviz.renderers.terminal.show import Screen  # numpy comes with it

    terminal, written = sys.stdout.isatty(), os.environ.get("COLUMNS", "")
    wanted = bool(os.environ.get("FORCE_COLOR")) or (terminal and os.environ.get("TERM") != "dumb")
    colour = wanted and "NO_COLOR" not in os.environ
    width = int(written) if written.isdecimal() and int(written) > 0 else WIDTH_OFF_TERMINAL
    if terminal:
        width = shutil.get_terminal_size((WIDTH_OFF_TERMINAL, 24)).columns
    true_colour = os.environ.get("COLORTERM") in ("truecolor", "24bit")
    return Screen(width, colour, sys.stdout.encoding or "utf-8", true_colour, language)


class ProgressLog:
    """For a log, where no bar can be: a line now and then."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def show(self, progress: Progress) -> None:
        """Say what is new."""
        if progress.line:
            line(progress.line)
            sys.stdout.flush()
        elif progress.latest and progress.total > MIN_LOGGED_TOTAL and time.monotonic() - self._told > LOG_INTERVAL:
            note(f"{progress.done:,} of {progress.total:,} {progress.what}: {progress.latest}")
            self._told = time.monotonic()

    def note(self, text: str) -> None:
        """Write a line that stays."""
        tell(text)

    def close(self) -> None:
        """Close the log; nothing is to be taken away."""


class ProgressBar:
    """A bar that appears where work takes longer than a second, also before the first of it: by an own thread."""

    def __init__(self) -> None:
        self._state: dict[str, Any] = {"total": None, "description": "working"}
        self._wait()

    def _wait(self) -> None:
        self._shown: Any = None
        self._closed = False
        self._timer = Timer(BAR_DELAY, self._appear)
        self._timer.daemon = True
        self._timer.start()

    def show(self, progress: Progress) -> None:
        """Say how much of the work is done."""
        label = progress.label or progress.what
        self._state = {"completed": progress.done, "total": progress.total, "description": label}
        if self._shown is not None:
            self._shown.update(self._shown.task_ids[0], **self._state)
        if self._closed:  # of the text before
            self._wait()

    def note(self, text: str) -> None:
        """Write a line that stays, above the bar."""
        if self._shown is None:
            tell(text)
        else:  # else a narrow terminal gets digits on several lines
            self._shown.print(escape_for_display(text, MAX_LINE_LENGTH), soft_wrap=True)

    def close(self) -> None:
        """Take it away, or see to it that it never appears."""
        self._timer.cancel()
        self._timer.join()  # it may be about to appear
        self._closed = True
        if self._shown is not None:
            self._shown.stop()

    def _appear(self) -> None:
        from rich.console import Console  # most work is done before a bar appears
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True, markup=False, emoji=False, highlight=False)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        shown = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
        shown.add_task(**self._state)
        self._shown = shown  # first: from its start on, what is written on standard error is broken at the width
        shown.start()


def create_progress_view() -> ProgressBar | ProgressLog:
    """Create the progress view that fits standard error."""
    return ProgressBar() if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else ProgressLog()
