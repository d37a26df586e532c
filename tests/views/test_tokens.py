"""What tokens are called beside a map."""

from __future__ import annotations

import pytest

from attnviz.records import Tokens
from attnviz.views.tokens import label_token, label_tokens, name_token


def cut(text: str, *spans: tuple[int, int], special: tuple[int, ...] = ()) -> Tokens:
    pieces = tuple(text[start:end] for start, end in spans)
    return Tokens(pieces, spans, tuple(place in special for place in range(len(spans))))


def test_a_token_is_its_characters_without_the_space_before_it() -> None:
    tokens = cut("the  cat\n", (0, 3), (3, 4), (4, 8), (8, 9))
    assert label_tokens(tokens) == ("the", "␣", "cat", "⏎")
    assert name_token(tokens, 2) == "2 cat"


def test_only_one_space_is_left_out() -> None:
    assert label_token(cut("   cat", (0, 6)), 0) == "␣␣cat"


def test_bytes_of_one_character_are_counted() -> None:
    tokens = cut("a 猫坐", (0, 1), (1, 3), (2, 3), (2, 3), (3, 4))
    assert label_tokens(tokens) == ("a", "猫 1/3", "猫 2/3", "猫 3/3", "坐")
    assert [label_token(tokens, position) for position in range(5)] == list(label_tokens(tokens))


@pytest.mark.parametrize("spans", [((0, 0), (0, 2)), ((0, 2), (2, 2), (2, 4))])
def test_markers_share_nothing(spans: tuple[tuple[int, int], ...]) -> None:
    assert not any("/" in each for each in label_tokens(cut("abcd", *spans)))
