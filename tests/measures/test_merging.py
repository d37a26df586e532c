"""Tokens joined into units that models have in common, by hand."""

from collections.abc import Sequence

import numpy as np
import pytest

from attnviz.errors import InvalidOption
from attnviz.measures.merging import find_common_units, merge_tokens
from attnviz.records import Tokens
from tests.made import cross_maps, random_maps, record, tokens

CLS, SEP = "[CLS]", "[SEP]"


def cut(text: str, *pieces: str, special: Sequence[str] = ()) -> Tokens:
    """The pieces where they next stand in the text; markers take none of it, and nor does an empty piece."""
    offsets, at = [], 0
    for piece in pieces:
        start = at if piece in special else text.index(piece, at)
        at = start if piece in special else start + len(piece)
        offsets.append((start, at))
    return Tokens(pieces, tuple(offsets), tuple(piece in special for piece in pieces))


MARKED = (CLS, SEP, "<s>", "</s>")


@pytest.mark.parametrize(
    ("text", "cuts", "units"),
    [
        ("unbelievable ending", ["unbelievable|ending", "un|believ|able| end|ing"], ["0 1", "012 34"]),
        ("abcdef g", ["abc|def|g", "ab|cd|ef|g"], ["01 2", "012 3"]),  # a chain of pieces that overlap
        ("ab<br />cd", ["ab|cd", "ab|c|d"], ["0 1", "0 12"]),  # a gap that all leave out
        ("hello you", [f"{CLS}|hel|lo|you|{SEP}", "<s>|hello|you|</s>"], ["0 12 3 4", "0 1 2 3"]),
        ("x a \nb", ["x|a|b", "x|a| |\n|b"], ["0 1 2", "0 123 4"]),  # white space belongs to the unit before
        (" a", [f"{CLS}|a", f"{CLS}| |a"], ["0 1", "0 12"]),  # to the one after, where only a marker is before
        ("猫坐在", ["猫|坐|在"], ["0 1 2"]),
    ],
)
def test_units_by_hand(text: str, cuts: list[str], units: list[str]) -> None:
    found = find_common_units([cut(text, *each.split("|"), special=MARKED) for each in cuts])
    assert [" ".join("".join(map(str, unit)) for unit in of_one) for of_one in found] == units


def test_tokens_without_characters_belong_to_the_unit_before_or_stand_alone() -> None:
    empty = Tokens(("ab", "", "c"), ((0, 2), (2, 2), (3, 4)), (False,) * 3)
    assert find_common_units([cut("ab c", "a", "b", "c"), empty]) == (((0, 1), (2,)), ((0, 1), (2,)))
    assert find_common_units([tokens("a", "", "b")] * 2) == (((0,), (1,), (2,)),) * 2


def test_bytes_of_one_character_have_its_span() -> None:
    words = Tokens(("a", "猫"), ((0, 1), (1, 2)), (False, False))
    in_bytes = Tokens(("a", "猫", "猫", "猫"), ((0, 1), (1, 2), (1, 2), (1, 2)), (False,) * 4)
    assert find_common_units([words, in_bytes]) == (((0,), (1,)), ((0,), (1, 2, 3)))
    assert merge_tokens(random_maps("abcd"), [(0,), (1, 2, 3)]).queries.pieces == ("a", "b c d")
    joined = merge_tokens(record(random_maps("abcd").weights, in_bytes), [(0,), (1, 2, 3)])
    assert joined.queries.pieces == ("a", "猫")


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        ("hello you", "hello|you", f"{CLS}|hello|you"),
        ("hello you", f"{CLS}|hello|you", f"hello|you|{SEP}"),
        ("a ", f"a|{SEP}| ", f"a|{SEP}"),  # nothing else behind the marker
    ],
)
def test_markers_that_differ_are_refused(text: str, one: str, other: str) -> None:
    with pytest.raises(InvalidOption, match="the models put their markers at different places"):
        find_common_units([cut(text, *each.split("|"), special=MARKED) for each in (one, other)])


@pytest.mark.parametrize("turned", [False, True])
def test_a_text_that_one_reads_further(turned: bool) -> None:
    text = "a very long text"
    pair = [cut(text, "a", "very", "long", "text"), cut(text, "a", "ve", "ry")]
    with pytest.raises(InvalidOption, match="one model reads character 7 of the text, another does not") as caught:
        find_common_units(pair[::-1] if turned else pair)
    assert "--max-tokens" in caught.value.hint


def test_weights_are_summed_over_keys_and_averaged_over_queries() -> None:
    rows = np.array([[0.5, 0.25, 0.25], [0.125, 0.625, 0.25], [0.0, 0.5, 0.5]])
    maps = merge_tokens(record(rows[None, None], tokens("a", "b", "c")), [(0, 1), (2,)])
    assert maps.weights[0, 0].tolist() == [[(0.75 + 0.75) / 2, 0.25], [0.5, 0.5]]
    assert maps.queries.pieces == ("a b", "c")
    assert maps.queries.offsets == ((0, 3), (4, 5))
    assert maps.self_attention


def test_where_any_token_of_a_unit_may_attend_the_unit_may_and_padding_may_be_left_out() -> None:
    maps = merge_tokens(random_maps("abcde", causal=True), [(0,), (1, 2), (3, 4)])
    assert maps.attendable[0].tolist() == np.tri(3, dtype=bool).tolist()
    padded = merge_tokens(random_maps("abcd", padding=3), [(0, 1), (2, 3)])
    assert padded.weights.shape == (1, 2, 2, 2)
    assert padded.real_queries.all()
    weights = np.array([[1, 0, 0], [0.5, 0.5, 0]])
    maps = record(weights[None, None], tokens("a", "b"), tokens("x", "y", "z"), attendable=np.tri(2, 3, dtype=bool))
    assert merge_tokens(maps, [(0,), (1,)], [(0, 1), (2,)]).attendable[0].tolist() == [[True, False]] * 2


def test_what_a_unit_says_of_its_tokens() -> None:
    made = cut("hel" + "lo you", CLS, "hel", "lo", "you", special=[CLS])
    marked = Tokens(made.pieces, made.offsets, made.special, unknown=(False, True, False, False))
    joined = merge_tokens(record(np.full((1, 1, 4, 4), 0.25), marked), [(0,), (1, 2), (3,)]).queries
    assert joined.pieces == (CLS, "hello", "you")
    assert joined.special == (True, False, False)
    assert joined.unknown == (False, True, False)
    assert joined.offsets == ((0, 0), (0, 5), (6, 9))


def test_another_text_is_not_joined_without_units_of_its_own() -> None:
    with pytest.raises(InvalidOption, match="joining tokens needs self-attention"):
        merge_tokens(cross_maps(), [(0,)])
