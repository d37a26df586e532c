"""What heads are called: the largest share from 30 % on, beyond chance, by one list of patterns."""

from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz.commands.survey.measure import measure_heads
from attnviz.errors import NotMeasurable
from attnviz.measures import measure_maps
from attnviz.measures.patterns import find_own_brackets, name_heads, strip_pieces
from attnviz.records import Tokens
from attnviz.records.head_names import HeadPattern, choose_name
from tests import pretrained
from tests.made import cross_maps, provenance, random_maps, record, tokens

N = 24
PIECES = tuple(f"t{n}" for n in range(N))
TWICE = tuple("abcdefghijkl") * 2
FIRST = np.eye(N)[np.zeros(N, dtype=int)]
PREVIOUS = np.eye(N)[np.maximum(np.arange(N) - 1, 0)]
INDUCTION = np.vstack([FIRST[:12], np.eye(N)[1:13]])  # from 12, the second "a", to 1 behind the first, and so on
EQUAL = np.full((N, N), 1 / N)
UNKNOWN = provenance(revision="sha256:" + "5e" * 32, trained=None)  # type: ignore[arg-type]


def names(*heads: np.ndarray, pieces: tuple[str, ...] | Tokens = PIECES) -> list[str]:
    given = pieces if isinstance(pieces, Tokens) else tokens(*pieces)
    return [name.pattern for name in name_heads(record(np.array([heads]), given, made_by=UNKNOWN))[0]]


def test_the_largest_share_names_a_head_and_a_sink_only_one_that_has_no_other() -> None:
    assert choose_name([]) == choose_name([HeadPattern("a", 0.29, 0.0)]) == choose_name([HeadPattern("a", 0.9, 0.9)])
    largest, first = HeadPattern("own bracket", 0.6, 0.1), HeadPattern("first token", 0.9, 0.1)
    assert choose_name([HeadPattern("previous token", 0.4, 0.1), largest, first]) == largest
    assert choose_name([first]) == first


def test_patterns_by_hand() -> None:
    same = np.vstack([FIRST[:12], np.eye(N)[:12]])
    heads = (PREVIOUS, np.eye(N), 0.6 * INDUCTION + 0.4 * FIRST, same, FIRST, EQUAL, np.eye(N, k=3) + FIRST * 0)
    heads = (*heads[:-1], np.where(heads[-1].any(axis=1, keepdims=True), heads[-1], EQUAL))
    assert names(*heads, pieces=TWICE) == [
        *("previous token", "itself", "induction (after a repeat)", "same word", "first token", "", "3 after"),
    ]


def test_a_patch_has_neighbours_in_its_row_and_column() -> None:
    above = np.eye(N)[np.maximum(np.arange(N) - 6, 0)]
    maps = record(np.array([[PREVIOUS, above]]), tokens(*PIECES), made_by=UNKNOWN)
    found = name_heads(replace(maps, grid=attnviz.Grid(4, 6)))[0]
    assert [name.pattern for name in found] == ["left patch", "patch above"]


def test_a_share_is_of_the_queries_that_have_such_a_key() -> None:
    (name,) = name_heads(record(np.array([[0.5 * PREVIOUS + 0.5 * EQUAL]]), tokens(*PIECES), made_by=UNKNOWN))[0]
    assert name.share == pytest.approx(0.5 + 0.5 / N)  # of 23 queries: the first has no token before it


def test_brackets_and_punctuation_need_several_to_name_a_head() -> None:
    """One favourite key is of some kind whatever it is."""
    few = tuple("." if n == 7 else f"t{n}" for n in range(N))
    many = tuple("." if n % 4 == 3 else f"t{n}" for n in range(N))
    signs = np.tile(np.array([piece == "." for piece in many]) / 6, (N, 1))
    assert names(np.eye(N)[np.full(N, 7)], pieces=few) == [""]
    assert names(np.eye(N)[np.full(N, 7)], signs, pieces=many) == ["", "punctuation"]
    brackets = ("(", "a", ")") * 8
    to_opening = np.where((np.arange(N) % 3 == 2)[:, None], np.eye(N, k=-2), EQUAL)
    assert names(to_opening, pieces=brackets) == ["own bracket"]
    assert names(np.vstack([EQUAL[:23], to_opening[23:]]), pieces=(*PIECES[:21], "(", "a", ")")) == [""]


@pytest.mark.parametrize(("n", "sharpness"), [(6, 3.0), (10, 1.5), (20, 3.0), (50, 1.5)])
def test_of_heads_by_chance_next_to_none_has_a_name(n: int, sharpness: float) -> None:
    text = ("the film was good ( I think ) and the plot . It was bad , and so I left . He said so " * 3).split()
    maps = random_maps(text[:n], n_layers=10, n_heads=100, sharpness=sharpness, made_by=UNKNOWN)
    assert sum(bool(name.pattern) for layer in name_heads(maps) for name in layer) <= 10  # 1 % of them


def test_what_has_learned_nothing_or_reads_nothing_has_no_names() -> None:
    maps = record(np.array([[PREVIOUS]]), tokens(*PIECES), made_by=UNKNOWN)
    unread = replace(maps.queries, unknown=(True,) * N)
    for nameless in (
        replace(maps, provenance=provenance(trained=False)),
        record(maps.weights, unread, made_by=UNKNOWN),
        replace(cross_maps(), provenance=UNKNOWN),
    ):
        assert {name.pattern for layer in name_heads(nameless) for name in layer} == {""}
    assert name_heads(random_maps(["one"], made_by=UNKNOWN))[0][0] == HeadPattern()


@pytest.mark.parametrize(
    ("pieces", "pairs"),
    [
        ("( a ( b ) )", [(4, 2), (5, 0)]),
        ("( [ a )", [(3, 0)]),  # one is left open
        (") a (", []),
        ("{ a } 「 b 」", [(2, 0), (5, 3)]),
        ("▁( a ##)", [(2, 0)]),
        ("() (s )", []),
    ],
)
def test_which_bracket_is_a_closing_one_s_own(pieces: str, pairs: list[tuple[int, int]]) -> None:
    assert list(find_own_brackets(strip_pieces(tokens(*pieces.split())))) == pairs


def test_markers_and_what_is_not_read_are_no_brackets() -> None:
    assert list(find_own_brackets(strip_pieces(tokens("[", "(", "a", ")", special=("[",))))) == [(3, 1)]
    assert list(find_own_brackets(strip_pieces(tokens("(", "a", ")", unknown=(")",))))) == []


def test_the_measure_is_of_closing_brackets() -> None:
    to_opening = np.eye(4)
    to_opening[2] = [0.75, 0.25, 0, 0]
    maps = record(to_opening[None, None], tokens("(", "a", ")", "b"))
    assert measure_maps(maps, ["to_own_bracket"])[0].values.tolist() == [[0.75]]
    none = random_maps(("a", "(", "b"))
    with pytest.raises(NotMeasurable, match="no bracket of this text is closed"):
        measure_maps(none, ["to_own_bracket"])
    assert list(measure_heads(none, ["to_own_bracket", "peak"])) == ["peak"]


def test_known_heads_of_a_real_encoder() -> None:
    maps = attnviz.attention(
        "The blue lamp stands by the old door. Nobody touched the blue lamp that night.", model=str(pretrained.minilm())
    )
    found = [[name.pattern for name in layer] for layer in name_heads(maps)]
    assert (found[0][2], found[1][8], found[1][10]) == ("previous token", "next token", "special tokens")
