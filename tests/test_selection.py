"""Which layers, heads and texts a user means."""

from collections.abc import Callable

import pytest

from attnviz.errors import InvalidSelection
from attnviz.selection import find_span, find_token, select_numbers, select_pairs


@pytest.mark.parametrize(
    ("chosen", "positions"),
    [
        ([], (0, 1, 2, 3, 4, 5, 6, 7)),
        (["2,2", "1-3"], (2, 1, 3)),
        (["-3--1"], (5, 6, 7)),
        ([" 1 , 2 - 3 "], (1, 2, 3)),
    ],
)
def test_positions_come_in_the_order_given_and_each_once(chosen: list[str], positions: tuple[int, ...]) -> None:
    assert select_numbers(chosen, 8, "head") == positions
    assert select_numbers([], 0, "head") == ()


@pytest.mark.parametrize(
    ("written", "places"),
    [([], (0, 1, 2)), (["1"], (0,)), (["-1"], (2,)), (["0-4"], (0, 1)), (["3,1"], (1, 0)), (["2-7"], (1, 2))],
)
def test_numbers_with_gaps_are_chosen_by_themselves(written: list[str], places: tuple[int, ...]) -> None:
    assert select_numbers(written, (1, 3, 7), "layer") == places


def test_a_mean_is_the_place_behind_the_last() -> None:
    assert select_numbers(["0-1, mean", "mean,7"], 8, "head", mean=True) == (0, 1, 8, 7)
    assert select_numbers([], 8, "head", mean=True) == tuple(range(8))
    assert select_pairs(["4.mean,0.1"], [0, 4], [2, 1]) == ((1, 2), (0, 1))
    for what, says in (("head", "the mean over heads is not a head"), ("layer", "'mean' does not say which layer")):
        with pytest.raises(InvalidSelection, match=says):
            select_numbers(["mean"], 8, what)


def test_a_head_of_one_layer_is_led_to_the_option_that_takes_it() -> None:
    for written in ("0.4", "0.4,1.mean", " 1.mean"):
        with pytest.raises(
            InvalidSelection, match=rf"does not say which head\. Did you mean --pick {written.strip()}\?"
        ):
            select_numbers([written], 8, "head", mean=True)
    for written, mean in (("0.4", False), ("0.4,1", True)):  # where there is no --pick, and where it would not do
        with pytest.raises(InvalidSelection) as refused:
            select_numbers([written], 8, "head", mean=mean)
        assert "--pick" not in str(refused.value.hint)


NO_NUMBERS = ("", " ", ",", "1,", "1,,2", "a", "1.0", "0:3", "1-", "--1", "+1", "٣", "9" * 5000)


@pytest.mark.parametrize(
    ("written", "there", "said"),
    [
        *((each, 8, r"no head .* There are heads 0 to 7\.$") for each in ("8", "-9", "0-9", "0-99999999999")),
        *((each, (1, 3, 7), r"no head .* There are heads 1, 3, 7\.$") for each in ("0", "2", "8", "3-8", "-4")),
        *((each, 8, "does not say which head.*0-3,7") for each in NO_NUMBERS),
        ("3-1", 8, "heads 3-1 run backwards"),
        ("5", 0, r"There are no heads\."),
        ("5", 1, r"There is only head 0\."),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(written: str, there: int | tuple[int, ...], said: str) -> None:
    with pytest.raises(InvalidSelection, match=said):
        select_numbers([written], there, "head")


# Which token

PIECES = ("The", "film", "was", "the", "film", ".", "10", "Straße")


@pytest.mark.parametrize(
    ("written", "place"),
    [("0", 0), ("7", 7), ("-1", 7), ("-8", 0), ("the", 3), ("The", 0), ("WAS", 2), (".", 5), ("STRASSE", 7), ("6", 6)],
)
def test_a_token_is_named_by_its_position_or_by_itself(written: str, place: int) -> None:
    assert find_token(written, PIECES) == find_token(written, [f" {piece}" for piece in PIECES]) == place


def test_a_word_that_occurs_often_and_words_beyond_all_length_take_no_time() -> None:
    with pytest.raises(InvalidSelection, match="occurs 30 times") as error:
        find_token("a", ("a",) * 30)
    assert error.value.hint.endswith("18, 19, ….")
    with pytest.raises(InvalidSelection, match="no token 'aaa") as error:
        find_token("a" * 100_000 + "b", ["a" * 100_000 + str(n) for n in range(300)])
    assert len(str(error.value)) < 200


def test_pairs_are_places_of_layers_and_heads_in_the_order_given() -> None:
    assert select_pairs(["0.2,8.5", " 0.0 "], [0, 4, 8], [0, 2, 5]) == ((0, 1), (2, 2), (0, 0))
    assert select_pairs(["0.2", "0.2"], [0], range(3)) == ((0, 2),)


WORDS = ("[CLS]", "Not", "good", ",", "but", " the", "act", "ing", "saved", "the", "film", "")


@pytest.mark.parametrize(
    ("written", "places"),
    [
        ("9:99", (9, 12)),
        ("not  GOOD", (1, 3)),
        ("acting", (6, 8)),
        ("not good … the", (1, 6)),
        ("but...saved", (4, 9)),
        ("… good", (0, 3)),
    ],
)
def test_a_stretch_of_tokens_is_a_slice_or_from_words_to_words(written: str, places: tuple[int, int]) -> None:
    found = find_span(written, WORDS)
    assert (found.start, found.stop) == places


TOKENS_NOT_THERE = (
    ("film", "'film' occurs 2 times. Choose by position: 1, 4."),
    ("flim", "no token 'flim' in the text. The nearest is 1 'film'."),
    ("zzz", "no token 'zzz' in the text. There are tokens 0 to 7."),
    ("8", "no token 8. There are tokens 0 to 7."),
    ("9" * 5000, f"no token '{'9' * 39}…' in the text."),
)
PAIRS_NOT_THERE = (
    ("1.0", "no layer 1. There are layers 0, 4."),
    ("4.3", "no head 3. There are heads 0 to 2."),
    ("4", "'4' does not say which head of which layer. Write layer.head, several with commas: 0.2,1.8."),
    ("0,2", "'0' does not say which head of which layer. Did you mean 0.2? Write layer.head"),
    ("0.1,", "'' does not say which head of which layer"),
)
STRETCHES_NOT_THERE = (
    ("the", "'the' occurs 2 times. Choose by position: 5:6, 9:10."),
    ("ood", "no 'ood' in the text. Write 5:20 (without 20)"),
    ("film … good", "no 'good' in the text after token 10"),
    ("3:3", "'3:3' leaves none of 12 tokens"),
    ("…", "'…' leaves none of 12 tokens"),
)


@pytest.mark.parametrize(
    ("find", "written", "says"),
    [
        *((lambda written: find_token(written, PIECES), *row) for row in TOKENS_NOT_THERE),
        *((lambda written: select_pairs([written], [0, 4], range(3)), *row) for row in PAIRS_NOT_THERE),
        *((lambda written: find_span(written, WORDS), *row) for row in STRETCHES_NOT_THERE),
    ],
)
def test_what_is_not_there_is_told_in_one_line(find: Callable[[str], object], written: str, says: str) -> None:
    with pytest.raises(InvalidSelection) as error:
        find(written)
    assert str(error.value).startswith(says)
    assert "\n" not in str(error.value)
