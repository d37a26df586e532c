"""Names, titles and folders that a terminal would obey: written out wherever they are said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.endings import RunHere, refused, worked


@pytest.mark.parametrize(
    "given",
    [
        ("heatmap", "--text-file", "no\x1b[31m such\u202e.txt"),
        ("heatmap", "--dataset", "./no\nsuch\x07.csv"),
        ("heatmap", "--model", "\x1b]0;x\x07"),
        ("heatmap", "--split", "train\u2028[:5"),
        ("heatmap", "--device", "cpu\ufeff", "--text", "a"),
        ("heatmap", "--no-such\x1b[31m"),
        ("heatmap", "--head", "x" * 100_000, "--text", "a"),
        ("render", "no\x1b such"),
        ("vocab", "--dataset", "x" * 100_000),
        ("\x1b[31m",),
    ],
    ids=ascii,
)
def test_names_reach_the_terminal_written_out(given: tuple[str, ...], run_here: RunHere) -> None:
    assert len(refused(run_here(*given)).err) < 2000


def test_a_hostile_title_folder_and_file_name(run_here: RunHere, tmp_path: Path) -> None:
    name = "re\x1b[31mview\u202e\n.txt"
    (tmp_path / name).write_bytes(b"a b")
    title = "[/] $\\frac$ \x1b[31m\u202e\n" + "x" * 5000
    given = ("heatmap", "--text-file", name, "--model", "dot", "--format", "png,svg,pdf")
    for more in ((), ("--title", title), ("--title", title, "--json")):
        worked(run_here(*given, *more, "--out", "a\x1b[31m\u202eb"))
