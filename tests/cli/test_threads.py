"""What the command line sets for the process: its threads, when garbage is looked for, and how it is asked to end."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from attnviz.cli import process
from tests.process import ROOT, bare_environment, said_by

# Bits prove nothing here: on some processors two threads add in the same order as one.
COUNT_THREADS = """
import atexit, sys
from attnviz.cli.app import main
atexit.register(lambda: print(sys.modules["torch"].get_num_threads(), file=sys.stderr))
sys.argv = ["attnviz", "predict", "--text", "the film"]
main()
"""


@pytest.mark.parametrize(("asked", "found"), [(None, 1), ("2", 2)])
def test_one_thread_unless_the_environment_says_otherwise(asked: str | None, found: int, tmp_path: Path) -> None:
    environment = bare_environment(tmp_path)
    environment.pop("OMP_NUM_THREADS", None)
    if asked is not None:
        environment["OMP_NUM_THREADS"] = asked
    done = said_by([sys.executable, "-c", COUNT_THREADS], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.split()[-1]) == found


def test_torch_has_the_threads_of_the_environment() -> None:
    """Not so where a conftest imports it too early; then tests take long, and processes give other bytes."""
    assert str(torch.get_num_threads()) == os.environ["OMP_NUM_THREADS"]


# --- Nothing that is imported is looked through for garbage, and everything later is, as ever ---


LATER = """
import gc
from attnviz.cli.process import pause_gc, resume_gc
usual = gc.get_threshold()
resume_gc()
assert gc.get_freeze_count() == 0
pause_gc()
assert gc.get_threshold() != usual
resume_gc()
assert gc.get_threshold() == usual
assert gc.get_freeze_count() > 1000
assert gc.callbacks == []
class Loop: pass
for _ in range(10):
    loop = Loop()
    loop.itself = loop
assert gc.collect() >= 9
"""


def test_after_the_imports_garbage_is_looked_for_as_ever(tmp_path: Path) -> None:
    done = said_by([sys.executable, "-c", LATER], cwd=ROOT, env=bare_environment(tmp_path))
    assert done.returncode == 0, done.stderr


# --- Signals that ask for the end ---


def test_an_end_that_python_dropped_is_heeded_when_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it drops what is raised while an object is destroyed. Asked twice at once is asked once."""
    handlers: dict[int, Any] = {}
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    monkeypatch.setattr(process, "AT_IT", 0.2)
    process.interrupt_on_end_signals()
    with pytest.raises(KeyboardInterrupt):
        handlers[signal.SIGTERM](signal.SIGTERM, None)
    handlers[signal.SIGTERM](signal.SIGTERM, None)
    time.sleep(0.3)
    with pytest.raises(KeyboardInterrupt):
        handlers[signal.SIGTERM](signal.SIGTERM, None)
