"""The program where a system has neither what Linux alone has nor what Unix has."""

import sys
from pathlib import Path

from tests.process import bare_environment, said_by

# Libraries are loaded as this system has them; then attnviz alone begins anew, as on Windows.
SCRIPT = """
import os, signal, sys, types
from attnviz.cli import app

words = ["heatmap", "a fine film", "--pick", "0.0", "--format", "png,html", "--table", "none", "--out"]
assert app.run([*words, "here"]) == 0
for name in [name for name in sys.modules if name.partition(".")[0] == "attnviz"]:
    del sys.modules[name]
sys.modules |= dict.fromkeys(("fcntl", "termios", "resource", "pwd", "grp"))  # to import one is an error
sys.modules["msvcrt"] = types.SimpleNamespace(LK_LOCK=1, LK_NBLCK=2, locking=lambda *_: None)
for name in ("geteuid", "getuid", "fork", "O_NOFOLLOW", "O_NONBLOCK", "sched_getaffinity", "sysconf"):
    vars(os).pop(name, None)
for name in ("SIGHUP", "SIGPIPE", "pthread_sigmask", "SIG_BLOCK"):
    vars(signal).pop(name, None)
sys.platform = "win32"
from attnviz.cli import app

assert app.run([*words, "there"]) == 0
"""


def test_a_heatmap_is_the_same_without_what_windows_has_not(tmp_path: Path) -> None:
    run = said_by([sys.executable, "-c", SCRIPT], cwd=tmp_path, env=bare_environment(tmp_path))
    assert run.returncode == 0, run.stderr
    here, there = (
        {path.name: path.read_bytes() for path in (tmp_path / folder).glob("*.*") if not path.name.startswith(".")}
        for folder in ("here", "there")
    )
    assert len(here) == 3
    assert [name for name in here if here[name] != there.get(name)] == []
