"""What a comparison says in words: the numbers that are there, and never more."""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest

from attnviz.commands.compare.comparison import Comparison
from attnviz.commands.compare.verdict import COPY, NO_EVIDENCE, near_copies, verdict
from tests.commands.compare.comparisons import N_TEXTS, around, card, comparison, model

FEWER, MORE, EITHER = (-8.1, 0.3), (0.5, 0.3), (-0.1, 0.5)  # effective keys, and half of an interval


def words(of: Comparison) -> str:
    return " ".join(verdict(of))


def two_models(change: float, half: float) -> Comparison:
    return comparison(model(keys=[14.2] * N_TEXTS), model("multi:8", 8, keys=around(14.2 + change, half)))


def test_how_widely_heads_look() -> None:
    said = words(two_models(*FEWER))
    assert "On these 20 texts each of the 8 heads of multi:8 attends to 6.1 effective keys" in said
    assert "against 14.2 for the head of single (uniform attention: 200.0)" in said
    assert "a difference of -8.1 keys (-8.4 to -7.8)." in said
    assert "is not seen here" not in said


@pytest.mark.parametrize("difference", [MORE, EITHER])
def test_a_claim_that_the_numbers_do_not_bear_out_is_denied(difference: tuple[float, float]) -> None:
    said = words(two_models(*difference))
    assert "That the heads of multi:8 look more narrowly than those of single is not seen here." in said
    assert ("that may be none" in said) == (difference == EITHER)


def test_of_several_models_a_difference_is_held_against_all_that_were_looked_at() -> None:
    """Its own interval leaves 0 out, by a little: of seven that are compared with the first some does by chance."""
    close = [model(f"multi:{i}", i, keys=around(13.9, 0.29)) for i in range(2, 9)]
    first = model(keys=[14.2] * N_TEXTS)
    assert "keys (-0.6 to -0.0)." in words(comparison(first, close[0]))
    assert words(comparison(first, *close)).count("keys (-0.6 to -0.0) that may be none.") == 7


def test_one_text_has_no_interval_and_gets_none() -> None:
    said = words(comparison(model(keys=[14.2]), model("multi:8", 8, keys=[6.1])))
    assert said.startswith("On this text each of the 8 heads of multi:8 attends to 6.1 effective keys")
    assert "(uniform attention: 200.0)." in said
    assert "a difference of" not in said


def test_more_heads_first_is_no_claim_about_fewer() -> None:
    several, one = model("multi:8", 8, keys=[6.0] * N_TEXTS), model(keys=around(9.0, 0.3))
    said = words(comparison(several, one))
    assert "the head of single attends to 9.0 effective keys against 6.0 for each of the 8 heads of multi:8" in said
    assert "not seen here" not in said


def apart(*groups: tuple[int, ...], n_heads: int) -> np.ndarray:
    """Heads of one group are alike, others share nothing."""
    found = np.full((n_heads, n_heads), log(2))
    for group in groups:
        found[np.ix_(group, group)] = 0.01
    np.fill_diagonal(found, 0)
    return found


def test_near_copies_are_counted_within_a_model_only() -> None:
    """Head 0 is that of the first model: that it is like head 1 of the other model is no copy."""
    found = apart((0, 1), (2, 3, 4), n_heads=9)
    whole = comparison(model(), model("multi:8", 8), divergences=found)
    assert [near_copies(whole, each) for each in whole.models] == [0, 3]
    assert "3 of 8 are nearly copies (of another in their layer: JSD under 5% of ln 2)" in words(whole)


def test_the_pairs_most_alike_are_named_beside_the_median_pair() -> None:
    """Also across models; of one model, heads go without its name."""
    similar = np.array([[1, 0.9, 0.2, 0.3], [0.9, 1, 0.4, 0.1], [0.2, 0.4, 1, 0.7], [0.3, 0.1, 0.7, 1]])
    said = words(comparison(model(), model("multi:3", 3), divergences=log(2) * (1 - similar)))
    assert (
        "alike here (1 - mean JSD in bits): single · 0 and multi:3 · 0 (.900), multi:3 · 1 and multi:3 · 2 (.700), "
        in said
    )
    assert "; median pair .350; least like any other multi:3 · 1 (.700)." in said
    said = words(comparison(model("multi:4", 4, keys=[6.0] * 3), divergences=log(2) * (1 - similar)))
    assert "Heads most alike here (1 - mean JSD in bits): 0 and 1 (.900), 2 and 3 (.700), 1 and 2 (.400);" in said
    said = words(comparison(model("multi:2", 2), divergences=log(2) * (1 - similar[:2, :2])))
    assert "How alike heads are here (1 - mean JSD in bits): 0 and 1 (.900)." in said
    assert "alike" not in words(comparison(model(), divergences=np.zeros((1, 1))))


def test_copies_that_were_not_measured_are_not_mentioned() -> None:
    said = words(comparison(model(), model("multi:8", 8, distinct=3.4)))
    assert "The 8 heads of multi:8 are as different as 3.4 heads that share nothing." in said
    assert "copies" not in said


def test_of_several_layers_the_kinds_are_those_of_one() -> None:
    """Heads are as different as so many within their layer, in the mean over layers."""
    said = words(comparison(model(n_layers=2), model("multi:8", 8, distinct=3.4, n_layers=2)))
    assert "each of the 16 heads of multi:8 attends to 10.0 effective keys against 10.0" in said
    assert "against 10.0 for each of the 2 heads of single" in said
    assert "The 8 heads of a layer of multi:8 are as different as 3.4 heads that share nothing." in said


@pytest.mark.parametrize(("n_heads", "share"), [(2, "23%"), (8, "10%")])
def test_what_a_mean_of_heads_blurs_is_a_share_of_the_most_for_so_many_heads(n_heads: int, share: str) -> None:
    """0.05 of 0.2158 and of 0.4971 nats."""
    said = words(comparison(model(), model("several", n_heads)))
    assert f"The mean of its heads is 0.050 nats of JSD away from each of them ({share} of the most" in said
    assert f"that {n_heads} heads can have)" in said


def test_as_many_heads_are_not_more() -> None:
    """Of two models with equally many heads neither is the one whose more heads should look narrowly or help."""
    pair = (model(keys=[9.0] * 2, right=[1, 0]), model("other", keys=[9.1] * 2, right=[1, 0]))
    said = words(comparison(*pair))
    assert "is not seen here" not in said
    assert NO_EVIDENCE not in said
    assert "no evidence that either does better" in said


def test_heads_as_far_apart_as_the_limit_are_no_copies() -> None:
    """Bounds that touch overlap, and a difference that begins at 0 includes it."""
    limit = np.array([[0, COPY * log(2)], [COPY * log(2), 0]])
    pair = comparison(model("multi:2", 2), divergences=limit)
    assert near_copies(pair, pair.models[0]) == 0
    cards = comparison(model(tested=card(0.8, 0.7, 0.9)), model("b", 2, tested=card(0.8, 0.7, 0.9)))
    assert "which may be none" in words(cards)


def classified(*right: list[int]) -> str:
    """Of 20 texts under one head and under eight."""
    single, several = (
        model(name, n_heads, keys=[9.0] * N_TEXTS, right=of)
        for (name, n_heads), of in zip((("single", 1), ("multi:8", 8)), right, strict=True)
    )
    return words(comparison(single, several))


def test_accuracy_whose_difference_may_be_none() -> None:
    """Another answer to 1 text of 20: 5 points, ± 2.093 · 22.36 / √20."""
    said = classified([1] * 19 + [0], [1] * 20)
    expected = "multi:8 is right on 100.0% of them and single on 95.0%: +5.0 points (-5.5 to +15.5), "
    assert expected + NO_EVIDENCE in said


@pytest.mark.parametrize("better", ["multi:8", "single"])
def test_accuracy_that_differs(better: str) -> None:
    worse = [1, 0] * 10
    said = classified(worse, [1] * 20) if better == "multi:8" else classified([1] * 20, worse)
    assert f"{better} does better on texts like these." in said
    assert NO_EVIDENCE not in said


def test_a_difference_of_accuracies_ends_where_there_is_no_more() -> None:
    """90 points, ± 2.093 · 30.78 / √20."""
    assert "points (+75.6 to +100.0)" in classified([0] * 18 + [1, 1], [1] * 20)


def test_one_text_is_read_by_each() -> None:
    said = words(comparison(model(right=[1]), model("multi:8", 8, right=[0])))
    assert "single reads it as positive (0.75), multi:8 reads it as negative (0.75)." in said
    assert "points" not in said


def test_cards_speak_of_seeds() -> None:
    """Intervals of 0.85 to 0.95 and of 0.86 to 0.96 overlap, and on every seed the other is better by 0.01."""
    first, other = model(tested=card(0.88, 0.9, 0.92)), model("multi:8", 8, tested=card(0.889, 0.91, 0.931))
    said = words(comparison(first, other))
    assert "Over 3 seeds on 12,500 texts the cards say 0.9100 against 0.9000 for multi:8 and single:" in said
    # 4.303 · 0.001 / √3 on either side
    assert "+0.0100 seed by seed (95 % interval over seeds of training +0.0075 to +0.0125)." in said
    alike = card(0.9, 0.9, 0.9)
    mixed = model("multi:8", 8, tested=alike)
    assert "+0.0000 seed by seed" in words(comparison(first, mixed))
    assert "which may be none." in words(comparison(first, mixed))
    assert "cards" not in words(comparison(first, model("random:8", 8)))
    assert "cards" not in words(comparison(first, model("multi:8", 8, tested=replace(alike, seeds=(3, 4, 5)))))


def test_a_name_is_data() -> None:
    said = words(comparison(model("\x1b[31m[red]"), model("a\nb", 2)))
    assert "\x1b" not in said
    assert "\n" not in said
    assert "\\x1b[31m[red]" in said
