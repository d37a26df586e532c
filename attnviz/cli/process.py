"""The process: its streams, its garbage collector, and the signals that end it."""

import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

DEFAULT_THRESHOLDS = gc.get_threshold()
AT_IT = 5.0  # seconds in which a run ends that was asked to
END_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def prepare_streams() -> None:
    """Write a character that the terminal's encoding lacks as an escape instead of ending the program.

    A stream that the caller closed, as in `attnviz … >&-`, leads nowhere.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        else:
            with suppress(AttributeError, ValueError):
                stream.reconfigure(errors="backslashreplace")


def flush_stderr() -> None:
    """Write what is still to be said or, where nobody reads, drop it: else Python ends with a code of its own."""
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        abandon(sys.stderr)


def abandon(stream: TextIO) -> None:
    """Redirect a failed stream to nowhere, so that what it still buffers does not fail the exit once more."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def pause_gc() -> None:
    """Look through everything for garbage not before all is imported.

    Nothing that is imported is garbage, and there is so much of it that looking took a tenth of the time of a picture.
    """
    # Torch and matplotlib come to 40 looks through what is younger, by default to 4.
    gc.set_threshold(*DEFAULT_THRESHOLDS[:2], 60)


def resume_gc() -> None:
    """Resume garbage collection once all is imported, but not of that. To be called wherever work goes on and on.

    This is not left to `gc.callbacks`: Ctrl-C that comes while torch is imported would end the callback and no more.
    """
    if gc.get_threshold() != DEFAULT_THRESHOLDS:
        gc.freeze()
        gc.set_threshold(*DEFAULT_THRESHOLDS)


def interrupt_on_end_signals() -> None:
    """Interrupt the run when it is asked to end, or the terminal leaves.

    Nothing half-written stays, no process and no folder. Asked again at once, as by whoever ends a group of processes,
    it is at it. Asked again later it may have heard nothing: Python drops what is raised while an object is destroyed.
    """
    asked = float("-inf")

    def interrupt(number: int, _: FrameType | None) -> None:
        nonlocal asked
        if time.monotonic() - asked > AT_IT:
            asked = time.monotonic()
            raise KeyboardInterrupt

    for number in END_SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:  # not where nohup has it ignored
            signal.signal(number, interrupt)


@contextmanager
def collect_interrupts() -> Iterator[list[int]]:
    """Collect the first Ctrl-C, so that a step is never broken off; the second one does it."""
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    ending = (number for number in END_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN)
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, *ending)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
