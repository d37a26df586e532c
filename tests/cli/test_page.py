"""The page to explore, from every command that draws, and `--open`."""

import webbrowser
from pathlib import Path

import pytest

from tests.attacks.endings import RunHere, worked
from tests.made import unpack_page

TEXT = "not a good film , but the acting saves it"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser was asked to show."""
    asked: list[str] = []

    def show(address: str) -> bool:
        asked.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", show)
    return asked


@pytest.mark.parametrize(
    "command",
    [
        ("heatmap", "--text", TEXT, "--heads", "2"),
        ("survey", "--model", "multi:2", "--dataset", "sample", "--split", "train[:3]", "--null", "none"),
        ("compare", "single", "multi", "--text", TEXT),
        ("attribute", "--text", TEXT),
        ("explain", "--text", TEXT),
        ("explain", "--text", TEXT, "--by-hand"),
    ],
    ids=lambda command: command[0],
)
def test_every_command_with_a_page_opens_it(
    command: tuple[str, ...], attnviz: RunHere, tmp_path: Path, opened: list[str]
) -> None:
    """Beside pictures."""
    worked(attnviz(*command, "--out", "a", "--open"))
    assert opened == [(tmp_path / "a" / "attention.html").as_uri()]
    assert any((tmp_path / "a").glob("*.png"))


def test_what_writes_no_page_opens_none(attnviz: RunHere, opened: list[str]) -> None:
    part = ("--dataset", "sample", "--split", "train[:3]", "--null", "none", "--shard", "1/2")
    run = worked(attnviz("survey", "--model", "multi:2", *part, "--open"))
    assert "no page was written that --open could show" in run.stderr
    assert opened == []


def test_of_several_texts_the_index_is_shown(attnviz: RunHere, tmp_path: Path, opened: list[str]) -> None:
    worked(attnviz("heatmap", "--text", TEXT, "--text", "the film", "--heads", "2", "--out", "a", "--open"))
    pages = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html"))
    assert pages == ["a/index.html", "a/text-0/attention.html", "a/text-1/attention.html"]
    assert opened == [(tmp_path / "a" / "index.html").as_uri()]


def test_no_browser_is_told_and_no_failure(attnviz: RunHere, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    run = worked(attnviz("heatmap", "--text", TEXT, "--heads", "2", "--open", "--table", "none"))
    assert "no browser could be opened; the page is attention/attention.html" in run.stderr


def test_a_comparison_of_many_texts_has_its_charts_on_the_page(attnviz: RunHere, tmp_path: Path) -> None:
    command = ("compare", "single", "multi", "--dataset", "sample", "--split", "train+test", "--index", "0-5")
    worked(attnviz(*command, "--format", "html", "--out", "one"))
    page = unpack_page(tmp_path / "one" / "attention.html")["content"]
    assert '"kind":"box"' in page
    assert "not on this page" not in page
    assert "a map is a query" not in page  # its only map says how alike heads are
