"""What comes out otherwise when a batch is made again, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attnviz.differences import BatchDiff, Difference
from attnviz.views.check import first_differences

NUMBER = Difference("number", "a", "", "a text", "peak", 0, 1, 0.1, 0.30000000000000004)
FILE = Difference("changed file", "a", "a/x.png", said="in the baseline is gone")


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (NUMBER, "peak of layer 0, head 1 in a text: 0.1 became 0.30000000000000004"),
        (Difference("heads", "a", "", "t", "peak", expected="one", actual="two"), "peak in t: one became two"),
        (Difference("missing numbers", "a", "", "t"), "t is in the manifest only"),
        (Difference("new file", "a", "a/x"), "x is not in the manifest"),
        (Difference("failed job", "a", expected="", actual="no text"), "it failed: no text"),
        (Difference("failed job", "a", expected="no text", actual=""), "in the manifest it failed: no text"),
        (
            Difference("picture", "a", "a/x.png", expected=0.0, actual=2.5, said="7 pixels"),
            "x.png: 7 pixels differ, by 2.5 of 255 (root mean square)",
        ),
        (FILE, "x.png is gone"),
        (replace(FILE, kind="file", said="1 became 2"), "x.png has other bytes (1 became 2)"),
    ],
)
def test_the_first_difference_in_words(difference: Difference, said: str) -> None:
    lines = first_differences(BatchDiff(("a",), (difference, NUMBER, FILE)), "1 job")
    place, kind = (1, "files") if difference.file else (0, "numbers")
    assert lines[place] == f"first difference in {kind}: in a, {said}"
    lines = first_differences(BatchDiff(("a",), (difference,)), "1 job")
    assert lines[1 - place] == f"{'numbers' if place else 'files'}: the same"


def test_where_nothing_differs_it_says_what_was_compared() -> None:
    assert first_differences(BatchDiff(("a",), ()), "1 job") == ("1 job: made again, the same byte for byte",)
    (line,) = first_differences(BatchDiff(("a",), (), n_other_bytes=2), "1 job")
    assert line == "1 job: made again, within the tolerances (2 files of other bytes)"
