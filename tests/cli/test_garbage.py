"""Nothing that is imported is looked through for garbage, and everything later is, as ever."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.process import ROOT, bare_environment, said_by

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
