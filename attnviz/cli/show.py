"""What the terminal sees: results on standard output, everything else on standard error."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from attnviz.display import escape_for_display

if TYPE_CHECKING:
    from attnviz.renderers.terminal import Screen

WIDTH_OFF_TERMINAL = 80
MAX_LINE_LENGTH = 500  # of an error or a note: a path or a token in it may be of any length


def line(text: str) -> None:
    """One line of results."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """One line on standard error that is no error."""
    tell(f"note: {text}")


def error(text: str) -> None:
    """One line on standard error that says what went wrong."""
    tell(f"error: {text}")


def tell(text: str) -> None:
    """One line on standard error, with nothing in it that a terminal would obey."""
    with suppress(OSError, ValueError):
        sys.stderr.write(escape_for_display(text, MAX_LINE_LENGTH) + "\n")
        sys.stderr.flush()


def screen() -> Screen:
    """The terminal as it is; a pipe or file counts as 80 columns, and without FORCE_COLOR has no colour."""
    from attnviz.renderers.terminal import Screen

    terminal = sys.stdout.isatty()
    wanted = bool(os.environ.get("FORCE_COLOR")) or (terminal and os.environ.get("TERM") != "dumb")
    colour = wanted and "NO_COLOR" not in os.environ
    width = shutil.get_terminal_size((WIDTH_OFF_TERMINAL, 24)).columns if terminal else _columns()
    true_colour = os.environ.get("COLORTERM") in ("truecolor", "24bit")
    return Screen(width, colour, sys.stdout.encoding or "utf-8", true_colour)


def _columns() -> int:
    written = os.environ.get("COLUMNS", "")
    return int(written) if written.isdecimal() and int(written) > 0 else WIDTH_OFF_TERMINAL
