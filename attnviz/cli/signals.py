"""Signals that end a run: all do what Ctrl-C does."""

from __future__ import annotations

import signal
from types import FrameType

ASKED = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def end_as_ctrl_c() -> None:
    """When the run is asked to end, or the terminal leaves, nothing half-written stays, no process and no folder."""
    for number in ASKED:
        if signal.getsignal(number) is signal.SIG_DFL:  # not where nohup has it ignored
            signal.signal(number, _end)


def heeded() -> list[int]:
    """Those that end a run."""
    return [signal.SIGINT, *(number for number in ASKED if signal.getsignal(number) is not signal.SIG_IGN)]


def _end(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # asked twice, it is at it
    raise KeyboardInterrupt
