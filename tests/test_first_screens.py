"""The first screen of a command holds the answer and no more: so many lines and numbers at 80 columns."""

from __future__ import annotations

import re

import pytest

from tests.attacks.endings import RunHere, worked

NUMBER = re.compile(r"(?<![\w:.])[-+~]?(\d+(,\d{3})*)?\.?\d+(?![\w:])")  # none within a name such as multi:8
REVIEW = "This movie was boring but my sister loved it, and the acting (the whole cast) saved the rest of it."
LONG = " ".join([REVIEW] * 12)
UNKNOWN = " ".join(["zyx qwop blorf , snarg glimp drax"] * 36)


@pytest.mark.parametrize(
    ("asked", "n_lines", "n_numbers"),
    [
        (("heatmap", LONG), 25, 60),
        (("heatmap", LONG, "--max-tokens", "64"), 25, 60),
        (("heatmap", UNKNOWN), 25, 60),
        (("heatmap", UNKNOWN, "--max-tokens", "64"), 25, 60),
        (("heatmap", REVIEW, "--model", "random"), 25, 60),
        (("heatmap", "这部电影很好看", "--model", "multi-zh"), 25, 60),
        (("heatmap", REVIEW, "--query", "boring"), 25, 60),
        (("heatmap", LONG, "--head", "mean"), 25, 60),
        (("compare", "single", "multi", "--text", REVIEW), 18, 25),
        (("compare", "single", "multi", "--dataset", "sample", "--split", "test"), 18, 25),
        (("compare", "multi", "--text", REVIEW), 18, 25),
        (("survey", "--dataset", "sample", "--split", "test"), 30, 60),
        (("predict", REVIEW), 15, 20),
    ],
)
def test_lines_and_numbers_of_a_first_screen(
    run_here: RunHere, asked: tuple[str, ...], n_lines: int, n_numbers: int
) -> None:
    ran = worked(run_here(*asked))
    shown = ran.stdout
    beside = ran.stderr.splitlines() if asked[0] == "heatmap" else []  # notes on how long it takes, and what is written
    assert len(shown.splitlines() + beside) <= n_lines
    assert len(NUMBER.findall(shown)) <= n_numbers
    assert max(map(len, shown.splitlines())) <= 80
