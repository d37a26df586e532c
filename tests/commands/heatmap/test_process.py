"""`attnviz heatmap` and `render` as commands: what goes where, and that the same input gives the same bytes."""

import io
import json
import sys
import time
from pathlib import Path

import pytest

from attnviz.cli import app, show
from attnviz.commands.heatmap import inputs as heatmap
from attnviz.running import Progress
from tests.attacks.endings import ONE_AFTER_ANOTHER, RunHere, run_in, worked
from tests.made import content

TEXT = "the film was not good but the acting saved the film"


# All formats, and what has tables of two models
REPEATED = (
    ("heatmap", "--heads", "2", "--pick", "0.1", "--format", "png,svg,pdf,html"),
    ("compare", "single", "multi:2", "--layer", "0", "--format", "svg,html"),
)


@pytest.mark.slow
def test_same_input_same_bytes_in_two_processes(run_here: RunHere, tmp_path: Path) -> None:
    """This one, and another with other hashes in another zone of time."""
    asked = [[*command, "--text", "the film was not good 猫 😀 שלום", "--json", "--out"] for command in REPEATED]
    here = [worked(run_here(*words, f"here/{words[0]}")) for words in asked]
    again = [json.dumps([*words, f"there/{words[0]}"]) for words in asked]
    python = (sys.executable, "-c", ONE_AFTER_ANOTHER, *again)
    there = worked(run_in(tmp_path, "env", "PYTHONHASHSEED=2", "TZ=UTC+2", *python)).stdout.splitlines()
    assert [json.loads(line)[1] for line in there] == [run.stdout for run in here]
    of_here, of_there = (content(tmp_path / where) for where in ("here", "there"))
    assert len(of_here) == 5 + 7
    assert [name for name in {**of_here, **of_there} if of_here.get(name) != of_there.get(name)] == []


def test_debugging_shows_where(run_here: RunHere, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Traceback" not in run_here("heatmap", "--heads", "7").stderr
    monkeypatch.setenv("ATTNVIZ_DEBUG", "1")
    assert "Traceback" in run_here("heatmap", "--heads", "7").stderr


def test_a_bug_of_ours_is_called_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("off by one")

    monkeypatch.setattr(heatmap, "find_model", broken)
    assert app.run(["heatmap", "--text", TEXT]) == 70
    assert capsys.readouterr().err.startswith("error: this is a bug of attnviz (RuntimeError: off by one).")


def test_ctrl_c_while_a_class_is_made_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Modules are imported when they are needed, and until Python 3.12 a RuntimeError comes of it."""

    class Interrupting:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(heatmap, "find_model", lambda *_: type("Made", (), {"made": Interrupting()}))
    assert app.run(["heatmap", "--text", TEXT]) == 130
    assert capsys.readouterr().err == ""


def test_a_text_in_its_place_and_short_flags(run_here: RunHere, tmp_path: Path) -> None:
    asked = ("a film", "-t", "not good", "-m", "dot", "-o", "short", "--dpi", "40")
    short = worked(run_here("heatmap", *asked))
    long = worked(run_here("heatmap", "--text", "a film", "--text", "not good", "--model", "dot", "--dpi", "40"))
    assert short.stdout == long.stdout
    assert content(tmp_path / "short") == content(tmp_path / "attention")
    assert worked(run_here("heatmap", *asked, "-q")).stdout == ""


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": ""}, False),
    ],
)
def test_colour_off_a_terminal(environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert show.detect_screen("en").colour == coloured


def test_a_bar_appears_only_where_work_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "BAR_DELAY", 0.2)
    for work, expected in ((0.0, False), (1.0, True)):
        stderr = io.StringIO()
        monkeypatch.setattr(stderr, "isatty", lambda: True)
        monkeypatch.setattr(sys, "stderr", stderr)
        bar = show.create_progress_view()
        time.sleep(work)
        bar.show(Progress(1, 2, "pictures", "a.png"))
        bar.close()
        assert ("pictures" in stderr.getvalue()) == expected
