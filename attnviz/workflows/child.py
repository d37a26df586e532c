"""Processes that others start: what they are forked from, and what they do about the other's end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Sequence
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerContext, SpawnContext

PRELOADED = [
    *("attnviz.workflows.drawing", "attnviz.models.encoder_model", "attnviz.workflows.run_job"),
    "attnviz.workflows.survey_texts",
]
MEASURING = ["attnviz.models.classifier_model", "attnviz.workflows.survey_run"]  # nothing that draws


def end_with_parent() -> None:
    """From now on, end at once when the process that shares out the work does, however that ends.

    Another run may come after it, and what is left of this one would write between its files.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def process_context(preloaded: Sequence[str] = PRELOADED) -> ForkServerContext | SpawnContext:
    """Processes that are forked from one without threads, which has imported once what all of them need.

    A fork of this process, with threads of torch or a progress bar, may hang; and each fresh interpreter imports torch
    and matplotlib anew: two seconds. What is `preloaded` counts when the first process is asked for. Elsewhere they are
    fresh: libraries of macOS do not live through forks.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*preloaded])
    resource_tracker.ensure_running()  # which the next starts too, and which unblocks what is blocked here
    before = os.environ.get("OMP_NUM_THREADS")
    # Torch reads it once: several processes are quicker with a thread each, and no bit depends on how many there are.
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited: Ctrl-C is not theirs to understand
    try:
        forkserver.ensure_running()
    except OSError:  # such as a TMPDIR whose name is too long for a socket
        return multiprocessing.get_context("spawn")
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        del os.environ["OMP_NUM_THREADS"]
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before
    return context
