"""What comes out otherwise when a batch is made again, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attnviz.differences import BatchDiff, Difference
from attnviz.views.verify import describe, first_differences

NUMBER = Difference("number", "a", "", "a text", "peak", 0, 1, 0.1, 0.30000000000000004)
FILE = Difference("changed file", "a", "a/x.png", said="in the baseline is gone")


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (NUMBER, "a, a text, peak, layer 0, head 1: 0.30000000000000004, in the manifest 0.1"),
        (
            Difference("heads", "a", "", "t", "peak", expected="one", actual="two"),
            "a, t, peak: two, in the manifest one",
        ),
        (Difference("missing numbers", "a", "", "t"), "a, t is not made any more"),
        (Difference("new file", "a", "a/x"), "a/x is made and is not in the manifest"),
        (Difference("failed job", "a", expected="", actual="no text"), "a: no text, and was made before"),
        (Difference("failed job", "a", expected="no text", actual=""), "a: is made, and failed before"),
        (
            Difference("picture", "a", "a/x.png", expected=0.0, actual=2.5, said="7 pixels"),
            "a/x.png: 7 pixels differ, by 2.5 of 255 (root mean square)",
        ),
        (FILE, "a/x.png is gone from figures"),
        (replace(FILE, said="in the baseline is a link out of its folder"), "a/x.png is a link out of figures"),
        (replace(FILE, said="in the baseline cannot be read (no)"), "a/x.png cannot be read (no)"),
        (replace(FILE, said="in the baseline has another size"), "a/x.png was changed after it was made"),
    ],
)
def test_each_kind_in_words(difference: Difference, said: str) -> None:
    assert describe(difference, "figures") == said
    lines, same = first_differences(BatchDiff(("a",), (difference,)), "figures", "1 job")
    kind, other = ("bytes", "numbers") if difference.file else ("numbers", "bytes")
    assert sorted(lines) == sorted([f"first difference in {kind}: {said}", f"{other}: the same"])
    assert not same
    lines, _ = first_differences(BatchDiff(("a",), (difference,)), "figures", "1 job", exact=False)
    assert any(line.startswith(("first difference in files: ", "files: ")) for line in lines)
