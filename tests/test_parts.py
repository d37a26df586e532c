"""What is half-written or made once: whole or not at all, gone with its run, and no other run touches it before."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from attnviz import store
from attnviz.errors import InvalidOption, OutputError
from attnviz.store import folders
from attnviz.store.folders import find_cache, making
from attnviz.store.parts import temporary_folder
from tests.made import content, known
from tests.process import ROOT, bare_environment, leave_part, said_by

HOLD = """
import sys, time
from attnviz.store.parts import temporary_folder
with temporary_folder() as path:
    print(path.parent, flush=True)
    time.sleep(600)
"""
FORK = """
import os, sys
from attnviz.store.parts import temporary_folder
context = temporary_folder()
path = context.__enter__()
if os.fork() == 0:
    sys.exit()
os.wait()
print(path.is_dir())
"""


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_run(tmp_path: Path) -> None:
    with temporary_folder() as path:
        (path / "inner").mkdir()
        (path / "inner" / "file").write_text("a", encoding="utf-8")
        assert path.parent.parent == tmp_path
    assert [*tmp_path.iterdir()] == []


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks")
def test_what_a_killed_run_left_goes_at_the_next_one_and_nothing_else_does(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    runs = [
        subprocess.Popen([sys.executable, "-c", HOLD], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    lives, killed = (Path(str(run.stdout and run.stdout.readline().strip())) for run in runs)
    (killed / "new" / "half").write_bytes(b"half")
    try:
        runs[1].kill()
        runs[1].wait()
        assert killed.is_dir()
        (own := tmp_path / "attnviz-mine").mkdir()
        (elsewhere := tmp_path / "elsewhere").mkdir()
        leave_part(elsewhere).rename(elsewhere / "a")
        (link := tmp_path / ".a.attnviz.part").symlink_to(elsewhere / "a")
        with temporary_folder():
            pass
        assert [*(elsewhere / "a" / "new").iterdir()] == [elsewhere / "a" / "new" / "half"]
        assert sorted(tmp_path.iterdir()) == sorted([lives, own, elsewhere, link])
    finally:
        runs[0].kill()
        for run in runs:
            run.communicate()


def test_a_run_that_numbers_processes_otherwise_takes_nothing_of_one_that_is_at_work(tmp_path: Path) -> None:
    """As in a container on the same disk: it is refused, and what the first one wrote is there at the end."""
    spaces = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
    if shutil.which("unshare") is None or subprocess.run([*spaces, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets no user have processes of their own")
    heatmap = (sys.executable, "-m", "attnviz", "heatmap", "a b", "--model", "dot", "--out", "out")
    with store.locked(tmp_path / "out"), store.replacing(tmp_path / "out") as new:
        new.write("result", b"hours of work")
        second = said_by([*spaces, *heatmap], cwd=tmp_path, env=bare_environment(tmp_path))
        assert second.returncode == 2, second.stderr
        assert "another run of attnviz is writing to out" in second.stderr
    assert content(tmp_path / "out") == {"result": b"hours of work"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_fork_that_ends_takes_no_folder_of_its_parent(tmp_path: Path) -> None:
    environment = bare_environment(ROOT) | {"TMPDIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", FORK], env=environment, capture_output=True, check=True)
    assert run.stdout == b"True\n", run.stderr
    assert [*tmp_path.iterdir()] == []


# --- What is made once: by one process, whole or not at all ---


MAKER = """
import sys
from pathlib import Path
from tests.test_parts import make
make(Path(sys.argv[1]), sys.argv[3], float(sys.argv[2]))
print("done", flush=True)
"""


def is_whole(folder: Path) -> bool:
    return (folder / "b").is_file()


def make(folder: Path, text: str = "text", wait: float = 0) -> bool:
    """Whether there was anything to make, which is said, and waits before it is whole."""
    with making(folder, is_whole) as part:
        if part is not None:
            for name in ("a", "b"):
                (part / name).write_text(text, encoding="utf-8")
            print("filled", flush=True)
            time.sleep(wait)
        return part is not None


def start_maker(folder: Path, wait: float, text: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", MAKER, str(folder), str(wait), text]
    return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=bare_environment(folder.parent))


def test_it_is_made_once_and_again_where_something_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "model"
    assert make(folder)
    assert not make(folder, "another")
    assert (folder / "a").read_text(encoding="utf-8") == "text"
    (folder / "b").unlink()
    assert make(folder, "again")
    assert [(folder / name).read_text(encoding="utf-8") for name in "ab"] == ["again"] * 2
    assert [file.name for file in folder.parent.iterdir()] == ["model"]


def test_where_it_fails_nothing_is_left(tmp_path: Path) -> None:
    def break_off() -> None:
        with making(tmp_path / "cache" / "model", is_whole) as part:
            (known(part) / "a").write_text("half", encoding="utf-8")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert list(tmp_path.iterdir()) == []


def test_killed_it_leaves_nothing_half_and_the_next_takes_its_rest_away(tmp_path: Path) -> None:
    maker = start_maker(tmp_path / "model", 60, "half")
    assert known(maker.stdout).readline() == b"filled\n"
    maker.kill()
    maker.communicate()
    assert not (tmp_path / "model").exists()
    assert [file for file in tmp_path.iterdir() if file.name.endswith(".part")]
    assert make(tmp_path / "model")
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_others_wait_and_take_what_the_first_made(tmp_path: Path) -> None:
    first = start_maker(tmp_path / "model", 1.5, "first")
    assert known(first.stdout).readline() == b"filled\n"
    others = [start_maker(tmp_path / "model", 0, "other") for _ in range(2)]
    assert [maker.communicate()[0] for maker in (first, *others)] == [b"done\n"] * 3  # "filled" is read above
    assert (tmp_path / "model" / "a").read_text(encoding="utf-8") == "first"


def test_a_disk_that_refuses_is_told_with_what_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InvalidOption, match=r"file is not a folder\. ATTNVIZ_CACHE may name another"):
        make(tmp_path / "file" / "model")
    monkeypatch.setattr(folders, "sync", lambda path: (tmp_path / "nowhere").read_bytes())
    with pytest.raises(OutputError, match=r"cannot write .*model: No such file .*ATTNVIZ_CACHE"):
        make(tmp_path / "model")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("ATTNVIZ_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert find_cache() == Path("/home/me/.cache/attnviz")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert find_cache() == Path("/elsewhere/attnviz")
    monkeypatch.setenv("ATTNVIZ_CACHE", "~/mine")
    assert find_cache() == Path("/home/me/mine")
