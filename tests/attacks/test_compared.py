"""Hostile texts, full disks and broken pipes against `attnviz compare`."""

from __future__ import annotations

from pathlib import Path

from tests.attacks.endings import RunHere, check_whole, refused, worked
from tests.made import HOSTILE

UNTRAINED = ("compare", "random:1", "random:2")


def test_every_hostile_token_in_every_picture_and_format(run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "hostile.txt").write_text(" ".join(piece for piece in HOSTILE if piece != "\ud800"), encoding="utf-8")
    worked(run_here(*UNTRAINED, "--text-file", "hostile.txt", "--format", "png,svg,pdf", "--theory"))
    assert len(check_whole(tmp_path / "comparison")) == 4 * 3  # pictures × formats


def test_too_long_a_text_is_refused_before_anything_is_made(run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("word " * 40_000, encoding="utf-8")
    refused(run_here(*UNTRAINED, "--text-file", "long.txt", "--max-tokens", "100000"), "GiB", "--max-tokens")
    assert not (tmp_path / "comparison").exists()
