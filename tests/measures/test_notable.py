"""Which of many heads are worth a look, and what some of them do."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from attnviz.measures import notable
from attnviz.measures.notable import choose_notable, name_moved, read_moved_rows
from attnviz.records import AttentionMaps
from tests import pretrained
from tests.made import cross_maps, provenance, random_maps, record, tokens

N = 16
ALLOWED = np.tri(N, dtype=bool)
EQUAL = ALLOWED / ALLOWED.sum(axis=1, keepdims=True)
FIRST = np.eye(N)[np.zeros(N, dtype=int)]
PREVIOUS = np.eye(N)[np.maximum(np.arange(N) - 1, 0)]
TWICE = ("a", "b", "c", "d", "e", "f", "g", "h") * 2
INDUCTION = np.vstack([FIRST[:8], np.eye(N)[1:9]])  # from 8, the second "a", to 1 behind the first, and so on
UNKNOWN = provenance(revision="sha256:" + "5e" * 32, trained=None)  # type: ignore[arg-type]


def heads(*maps: np.ndarray, pieces: tuple[str, ...] = TWICE) -> AttentionMaps:
    """One layer with these heads."""
    return record(np.array([maps]), tokens(*pieces), attendable=ALLOWED, made_by=UNKNOWN)


def chosen(maps: AttentionMaps, number: int = 12) -> tuple[int, ...]:
    return choose_notable(read_moved_rows(maps, every(maps)), number)


def names(maps: AttentionMaps) -> tuple[str, ...]:
    return name_moved(maps, read_moved_rows(maps, every(maps)))


def every(maps: AttentionMaps) -> list[tuple[int, int]]:
    return [*product(range(maps.n_layers), range(maps.n_heads))]


def test_heads_of_the_first_token_of_equal_shares_and_copies_are_not_worth_a_look() -> None:
    itself = np.eye(N)
    maps = heads(FIRST, EQUAL, PREVIOUS, PREVIOUS, itself, itself, 0.5 * FIRST + 0.5 * EQUAL)
    assert set(chosen(maps)) == {2, 4}
    assert len(chosen(maps, 1)) == 1


def test_of_two_alike_the_one_that_moves_more_is_worth_more() -> None:
    maps = heads(0.6 * FIRST + 0.4 * PREVIOUS, 0.1 * FIRST + 0.9 * PREVIOUS)
    assert chosen(maps, 1) == (1,)


def test_what_moves_is_without_the_first_token() -> None:
    rows = read_moved_rows(heads(0.75 * FIRST + 0.25 * PREVIOUS), [(0, 0)])
    assert rows.queries.tolist() == [*range(2, N)]  # the others have no choice
    np.testing.assert_allclose(rows.moved, 0.25)
    np.testing.assert_allclose(rows.shares[0], PREVIOUS[2:], atol=1e-6)
    np.testing.assert_allclose(rows.equal[0, 0, :4], [0, 0.5, 0.5, 0])


def test_layers_that_look_back_differently_have_equal_shares_of_their_own() -> None:
    near = ALLOWED & ~np.tri(N, k=-4, dtype=bool)
    shares = [EQUAL, near / near.sum(axis=1, keepdims=True)]
    maps = record(np.array([[each] for each in shares]), attendable=np.stack([ALLOWED, near]), made_by=UNKNOWN)
    assert chosen(maps) == ()


@pytest.mark.parametrize("pieces", [["one"], ["one", "two"]])
def test_no_head_has_a_choice_in_a_short_text(pieces: list[str]) -> None:
    maps = random_maps(pieces, n_heads=3, causal=True, made_by=UNKNOWN)
    assert (chosen(maps), names(maps)) == ((), ("", "", ""))


def test_two_texts_have_no_first_token() -> None:
    maps = cross_maps()
    np.testing.assert_allclose(read_moved_rows(maps, every(maps)).moved, 1)
    assert len(chosen(maps)) == 2
    assert names(replace(maps, provenance=UNKNOWN)) == ("", "")


def test_of_a_long_text_queries_are_read_that_are_evenly_spaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notable, "MAX_CELLS", 3 * 3 * N)
    maps = heads(PREVIOUS, EQUAL, FIRST)
    assert read_moved_rows(maps, every(maps)).queries.tolist() == [8, 15]  # of 0, 8 and 15 the first has no choice
    assert chosen(maps) == (0,)


def test_heads_are_named_by_where_most_of_what_moves_goes() -> None:
    mixed = 0.6 * FIRST + 0.4 * INDUCTION
    same = np.vstack([FIRST[:8], np.eye(N)[:8]])
    same[8] = FIRST[0]  # the first token is no key that counts
    found = names(heads(PREVIOUS, np.eye(N), INDUCTION, mixed, same, EQUAL, FIRST))
    assert found == ("previous token", "itself", "after a repeat", "after a repeat", "same word", "", "")


def test_a_name_may_not_be_chance() -> None:
    """Where two tokens come twice, one head in many gives both what is behind the first of them."""
    pieces = tuple("abcdefghijklmnop")
    pieces = (*pieces[:9], "b", *pieces[10:15], "d")
    head = FIRST.copy()
    head[[9, 15]] = np.eye(N)[[2, 4]]
    assert names(heads(head, pieces=pieces)) == ("",)
    assert names(heads(INDUCTION)) == ("after a repeat",)


def test_half_of_what_moves_is_enough_and_less_is_not() -> None:
    assert names(heads(0.6 * PREVIOUS + 0.4 * np.eye(N), 0.45 * PREVIOUS + 0.3 * np.eye(N) + 0.25 * EQUAL)) == (
        "previous token",
        "",
    )


def test_a_model_that_learned_nothing_has_no_names() -> None:
    maps = heads(PREVIOUS, INDUCTION)
    assert names(replace(maps, provenance=provenance(trained=False))) == ("", "")


def test_of_many_heads_of_random_weights_next_to_none_is_named() -> None:
    maps = random_maps(TWICE * 2, n_layers=8, n_heads=50, sharpness=6.0, causal=True, made_by=UNKNOWN)
    assert maps.weights.max(axis=-1).mean() > 0.8
    assert sum(map(bool, names(maps))) <= 4  # 1 % of them


def test_known_heads_of_a_real_encoder() -> None:
    from attnviz.models.loading import find_model
    from attnviz.specs import ModelOptions

    model = find_model(ModelOptions(model=str(pretrained.minilm()))).open(())
    maps = model.attention("The blue lamp stands by the old door. Nobody touched the blue lamp that night.", "text")
    rows = read_moved_rows(maps, every(maps))
    named = {every(maps)[n]: name_moved(maps, rows)[n] for n in choose_notable(rows, 12)}
    assert len(named) == 12
    assert named[0, 2] == "previous token"
    assert named[1, 8] == "next token"


@pytest.mark.slow
def test_known_heads_of_a_real_decoder() -> None:
    """Heads that are known from other measurements, in a sentence and in a text that says words twice."""
    model = pretrained.decoder()
    known = {(1, 2), (2, 1), (11, 1), (16, 0), (18, 6), (23, 0), (23, 3)}
    sentence = model.attention("When Mary and John went to the store, John gave a drink to")
    assert len(known & {every(sentence)[n] for n in chosen(sentence)}) >= 4
    names_of = dict(zip(every(sentence), names(sentence), strict=True))
    assert (names_of[16, 0], names_of[11, 1], names_of[18, 6]) == ("previous token", "previous token", "")
    twice = model.attention("apple river glass monkey seven cloud paper iron " * 2)
    places = [every(twice)[n] for n in chosen(twice)]
    assert names(twice)[every(twice).index((18, 6))] == "after a repeat"
    assert (18, 6) in places
