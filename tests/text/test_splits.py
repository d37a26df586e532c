"""The grammar of --split is Python's slicing, with percent and plus."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.errors import InvalidOption
from attnviz.text.dataset import parse

BOUNDS = st.none() | st.integers(-60, 60)


def written(start: int | None, stop: int | None) -> str:
    return f"train[{'' if start is None else start}:{'' if stop is None else stop}]"


@given(BOUNDS, BOUNDS, st.integers(0, 50))
def test_a_slice_is_pythons(start: int | None, stop: int | None, count: int) -> None:
    (part,) = parse(written(start, stop))
    assert list(part.positions(count)) == list(range(count))[start:stop]


@given(BOUNDS, BOUNDS, st.integers(0, 50))
def test_what_is_needed_is_enough(start: int | None, stop: int | None, count: int) -> None:
    """To read only the first texts gives the same positions as to read all of them."""
    (part,) = parse(written(start, stop))
    read = count if part.needed is None else min(count, part.needed)
    assert list(part.positions(read)) == list(part.positions(count))


@given(st.lists(st.integers(0, 100), min_size=1).map(sorted), st.integers(0, 1000))
def test_neighbouring_shares_meet_without_overlapping(cuts: list[int], count: int) -> None:
    ends = [0, *cuts, 100]
    parts = parse("+".join(f"train[{a}%:{b}%]" for a, b in pairwise(ends)))
    assert [position for part in parts for position in part.positions(count)] == list(range(count))


@pytest.mark.parametrize(
    ("asked", "count", "positions"),
    [
        ("train", 3, [0, 1, 2]),
        ("train[:10%]", 40, [0, 1, 2, 3]),
        ("train[25%:75%]", 4, [1, 2]),
        ("train[-50%:]", 4, [2, 3]),
        ("train[1:50%]", 4, [1]),
        ("unsupervised.v1[:1]", 4, [0]),
    ],
)
def test_examples(asked: str, count: int, positions: list[int]) -> None:
    (part,) = parse(asked)
    assert list(part.positions(count)) == positions


@pytest.mark.parametrize(
    "asked",
    ["", " ", "+", "train+", "train[:10", "train:10]", "train[5]", "train[]", "train[::2]", "train[a:]", "train[1.5:]",
     "train[:1e3]", "[:5]", "train test", "train[:5][:2]", "train[:-]", "train[:%]", f"train[:{'9' * 5000}]", "../x",
     "train[:\u0663]"],
)  # fmt: skip
def test_anything_else_is_answered_with_the_grammar(asked: str) -> None:
    with pytest.raises(InvalidOption, match="is not a split") as error:
        parse(asked)
    assert "train[:1000]" in error.value.hint


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("test[-5]", r"One text is --split test --index -5\. "),
        ("train[:101%]", "more than 100%"),
        ("train[-200%:]", "more than 100%"),
    ],
)
def test_one_text_and_more_than_everything_are_answered_by_themselves(asked: str, said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        parse(asked)
