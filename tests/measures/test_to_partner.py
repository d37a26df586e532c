"""Attention between the two of a pair, by hand: who has a partner, and what a head that attends to it scores."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from attnviz.errors import InvalidOption, NotMeasurable
from attnviz.measures import measure_maps, measure_possible
from attnviz.measures.concentration import make_uniform
from attnviz.measures.to_partner import find_partner_pairs, has_pair, to_partner
from attnviz.records import Tokens
from tests.made import cross_maps, random_maps, record, tokens

NESTED = ("a", "(", "b", "[", "c", "]", ")", '"', "d", '"')
PARTNERS = {1: 6, 3: 5, 7: 9}


def pairs(pieces: tuple[str, ...] | Tokens) -> list[tuple[int, int]]:
    """Those of a text that attends to itself, openings first."""
    maps = random_maps(pieces) if isinstance(pieces, tuple) else record(np.eye(len(pieces))[None, None], pieces)
    return [(query, key) for query, key in find_partner_pairs(maps).T.tolist() if query < key]


def touching(*pieces: str) -> Tokens:
    """Pieces of one text without anything between them."""
    ends = np.cumsum([0, *map(len, pieces)]).tolist()
    nothing = (False,) * len(pieces)
    return Tokens(pieces, tuple(pairwise(ends)), nothing, nothing)


def test_a_head_that_attends_to_partners_scores_1_and_only_they_count() -> None:
    n = len(NESTED)
    both = {**PARTNERS, **{closing: opening for opening, closing in PARTNERS.items()}}
    to_partners, half = np.eye(n), np.eye(n)
    for query, key in both.items():
        to_partners[query] = np.eye(n)[key]
        half[query] = (np.eye(n)[key] + np.eye(n)[0]) / 2
    away = np.full((n, n), 1 / n)
    maps = record(np.stack([to_partners, half, np.eye(n), away])[None], tokens(*NESTED))
    assert to_partner(maps).values.tolist() == [[1.0, 0.5, 0.0, pytest.approx(1 / n)]]
    assert to_partner(make_uniform(maps)).values.tolist() == [[pytest.approx(1 / n)]]


def test_in_a_causal_map_only_closing_ones_reach_their_partner() -> None:
    n, weights = len(NESTED), np.eye(len(NESTED))
    for opening, closing in PARTNERS.items():
        weights[closing] = np.eye(n)[opening]
    maps = record(weights[None, None], tokens(*NESTED), attendable=np.tri(n, dtype=bool))
    assert to_partner(maps).values.tolist() == [[1.0]]
    assert to_partner(make_uniform(maps)).values.item() == pytest.approx((1 / 7 + 1 / 6 + 1 / 10) / 3)


@pytest.mark.parametrize(
    ("text", "partners"),
    [
        ("( a ( b ) )", [(0, 5), (2, 4)]),
        ("( [ a )", [(0, 3)]),  # one is left open
        (") a (", []),
        ("{ a } < b >", [(0, 2), (3, 5)]),
        ('" a " b " c " d "', [(0, 2), (4, 6)]),
        ('( " a ) " b "', [(0, 3), (1, 4)]),  # a stray mark takes no bracket away
        ("“ a ‘ b ’ ”", [(0, 5), (2, 4)]),
        ("„ a “ “ b ” « c » » d «", [(0, 2), (3, 5), (6, 8), (9, 11)]),
        ("' a ' don't", []),
    ],
)
def test_who_has_a_partner(text: str, partners: list[tuple[int, int]]) -> None:
    assert pairs(tuple(text.split())) == partners
    assert has_pair(text) == bool(partners)


def test_an_apostrophe_within_a_word_closes_nothing_however_it_is_cut() -> None:
    assert pairs(touching("‘", "don’t", "’")) == [(0, 2)]
    assert pairs(touching("‘", "don", "’", "t", "’")) == [(0, 4)]
    assert pairs(tokens("‘", "boys", "’", "t", "’")) == [(0, 2)]  # a space stands behind it


def test_pieces_of_other_tokenizers() -> None:
    """Prefixes, several signs in a piece, pieces with letters, markers and what the model does not know."""
    assert pairs(("▁(", "a", "▁“", "b", ".”", "),")) == [(0, 5), (2, 4)]
    assert pairs(("Ġ(", "a", "##)")) == [(0, 2)]
    assert pairs(("()", "(s", ")")) == []
    assert pairs(tokens("[CLS]", "(", "a", ")", special=("[CLS]",))) == [(1, 3)]
    assert pairs(tokens("(", "a", ")", unknown=(")",))) == []


def test_a_text_without_a_pair_has_no_number() -> None:
    maps = random_maps(("a", "(", "b"))
    with pytest.raises(NotMeasurable, match="no bracket or quotation mark of this text has a partner"):
        measure_maps(maps, ["to_partner"])
    assert list(measure_possible(maps, ["to_partner", "peak"])) == ["peak"]
    assert "to_partner" not in [each.name for each in measure_maps(random_maps(NESTED), ["all"])]
    with pytest.raises(InvalidOption, match="self-attention"):
        measure_maps(cross_maps(), ["to_partner"])
