"""What heads look at, in words: where a share is large and more than uniform attention gives."""

from __future__ import annotations

import numpy as np

from attnviz.views.patterns import can_look_at, name_patterns
from tests.made import cross_maps, random_maps, record, tokens, uniform_maps

N = 40
PIECES = tuple(f"t{n}" for n in range(N))


def looks_at(*heads: np.ndarray, pieces: tuple[str, ...] = PIECES) -> list[str]:
    """Each head as weights to which uniform attention is added up to a sum of 1."""
    rows = np.stack([head + (1 - head.sum(axis=-1, keepdims=True)) / len(pieces) for head in heads])
    return name_patterns(record(rows[None], tokens(*pieces)))[0]


def test_patterns_by_hand() -> None:
    first = np.zeros((N, N))
    first[:, 0] = 0.5
    full_stop = np.zeros((N, N))
    full_stop[:, 7] = 0.6
    pieces = tuple("." if n == 7 else f"t{n}" for n in range(N))
    heads = (0.9 * np.eye(N, k=-1), 0.4 * np.eye(N, k=1), 0.3 * np.eye(N), first, full_stop)
    assert looks_at(*heads, pieces=pieces) == [
        "previous token 0.88",  # of the first there is none
        "next token 0.40",
        "itself 0.32",
        "first token 0.51",
        "punctuation 0.61",
    ]


def test_small_shares_count_only_as_many_times_an_equal_share() -> None:
    assert looks_at(0.11 * np.eye(N)) == ["itself 0.13"]  # 5.2 times 1/40
    assert looks_at(0.09 * np.eye(N)) == ["no single pattern"]  # 4.6 times
    assert looks_at(0.3 * np.eye(5), pieces=tuple("abcde")) == ["itself 0.44"]
    assert looks_at(0.1 * np.eye(5), pieces=tuple("abcde")) == ["no single pattern"]  # .28, but 1.4 times


def test_uniform_attention_has_no_pattern_however_short_the_text() -> None:
    for n in range(1, 9):
        assert name_patterns(uniform_maps(n)) == [["no single pattern" if n < 3 else "all queries alike"]]


def test_queries_that_attend_alike_are_said_to_where_no_key_has_most() -> None:
    """What each gives the first token would else name the head."""
    alike = np.zeros((N, N))
    alike[:, 0] = 0.38
    assert looks_at(alike, 0.3 * np.eye(N)) == ["all queries alike", "itself 0.32"]


def test_what_a_text_can_show() -> None:
    def shows(*pieces: str) -> list[str]:
        names = ("same word", "punctuation", "own bracket", "2 after", "sentence start")
        return [name for name in names if can_look_at(random_maps(pieces), name)]

    assert shows("a", "b") == ["sentence start"]
    assert shows("A", "a", "b") == ["same word", "2 after", "sentence start"]
    assert shows("(", ")") == ["punctuation", "own bracket", "sentence start"]


def test_from_one_text_to_another_positions_mean_nothing() -> None:
    assert not {cell for layer in name_patterns(cross_maps()) for cell in layer} & {"itself", "previous token"}
