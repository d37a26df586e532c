"""Hostile texts, full disks and broken pipes against `attnviz compare`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.endings import RunHere, check_whole, document, refused, worked
from tests.made import HOSTILE

UNTRAINED = ("compare", "random:1", "random:2", "--no-time")


def test_every_hostile_token_in_every_picture_and_format(run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "hostile.txt").write_text(" ".join(piece for piece in HOSTILE if piece != "\ud800"), encoding="utf-8")
    worked(run_here(*UNTRAINED, "--text-file", "hostile.txt", "--format", "png,svg,pdf", "--theory"))
    assert len(check_whole(tmp_path / "comparison")) == 4 * 3  # pictures × formats


@pytest.mark.parametrize("form", ["json", "csv", "markdown"])
def test_one_token(form: str, run_here: RunHere, tmp_path: Path) -> None:
    """Nothing to choose, so nothing to differ in."""
    run = worked(run_here(*UNTRAINED, "--text", "yes", "--print", form))
    if form == "json":
        found = document(run)["measures"]
        assert found["effective_keys"]["means"] == [1.0, 1.0]
        assert found["vendi_score"]["means"] == [1.0, 1.0]
    check_whole(tmp_path)


def test_a_long_text_is_cut_and_that_is_said(run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("word " * 3000 + "end", encoding="utf-8")
    run = worked(run_here(*UNTRAINED, "--text-file", "long.txt", "--max-tokens", "40"))
    assert "Of the texts' 3,001 tokens 40 are compared" in " ".join(run.stdout.split())


def test_too_long_a_text_is_refused_before_anything_is_made(run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("word " * 40_000, encoding="utf-8")
    refused(run_here(*UNTRAINED, "--text-file", "long.txt", "--max-tokens", "100000"), "GiB", "--max-tokens")
    assert not (tmp_path / "comparison").exists()


def test_one_blank_text_among_many_is_named(run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text('text\nfine\n"  "\nbad\n', encoding="utf-8")
    refused(run_here(*UNTRAINED, "--dataset", "texts.csv"), "no tokens")
    assert not (tmp_path / "comparison").exists()
