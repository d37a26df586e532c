"""What a comparison says in words: the numbers that are there, and never more."""

from dataclasses import replace
from math import log

import numpy as np
import pytest

from attnviz.commands.compare.comparison import Comparison
from attnviz.commands.compare.verdict import NO_EVIDENCE, verdict
from attnviz.measures import choose_measures
from attnviz.table.numbers import Numbers
from tests.commands.compare.comparisons import N_TEXTS, around, comparison, model

FEWER, MORE, EITHER = (-8.1, 0.3), (0.5, 0.3), (-0.1, 0.5)  # effective keys, and half of an interval


def words(of: Comparison) -> str:
    return " ".join(note.text for note in verdict(of))


@pytest.mark.parametrize(("difference", "is_told"), [(FEWER, True), (MORE, True), (EITHER, False)])
def test_measures_that_differ_by_more_than_chance_are_named(difference: tuple[float, float], is_told: bool) -> None:
    change, half = difference
    said = words(comparison(model(keys=[14.2] * N_TEXTS), model("multi:8", 8, keys=around(14.2 + change, half))))
    started = "On these texts multi:8 differs from single by more than chance in "
    assert said.startswith(f"{started}{'effective_keys' if is_told else 'none of these measures'}.")


def test_of_several_models_a_difference_is_held_against_all_that_were_looked_at() -> None:
    """Its own interval leaves 0 out, by a little: of seven that are compared with the first some does by chance."""
    close = [model(f"multi:{i}", i, keys=around(13.9, 0.29)) for i in range(2, 9)]
    first = model(keys=[14.2] * N_TEXTS)
    assert "more than chance in effective_keys." in words(comparison(first, close[0]))
    assert words(comparison(first, *close)).count("more than chance in none of these measures.") == 7


def test_of_several_measures_too() -> None:
    """A difference that one measure shows by a little is one of two that were looked at."""
    first, other = model(keys=[14.2] * N_TEXTS), model("multi:2", 2, keys=around(13.9, 0.29))
    pair = comparison(first, other)
    rows = pair.numbers.rows()
    for row in rows:  # have another measure, which differs from text to text by nothing but chance
        if row["model"] is not None and row["head"] is not None:
            row["peak"] = 0.5 + 0.1 * (-1) ** row["text"] * (row["model"] == "single")
    numbers = Numbers.from_rows(rows, pair.numbers.keys)
    doubled = replace(pair, asked=(*pair.asked, *choose_measures(["peak"])), numbers=numbers)
    assert "more than chance in none of these measures." in words(doubled)


def test_few_texts_have_no_chance_to_be_held_against() -> None:
    said = words(comparison(model(keys=[14.2]), model("multi:8", 8, keys=[6.1]), model("multi:2", 2)))
    assert said.startswith("Over 1 text: to tell a difference from chance takes 10 (--text again, --dataset).")
    assert said.count("chance") == 1


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


def test_how_different_heads_are_is_said_of_those_of_a_layer_and_behind_the_first_screen_of_several() -> None:
    one, other = model(n_layers=2), model("multi:8", 8, distinct=3.4, n_layers=2)
    sentence = "The 8 heads of a layer of multi:8 are as different as 3.4 heads that share nothing."
    for models, is_detail in (((one, other), True), ((other,), False)):
        (note,) = (note for note in verdict(comparison(*models)) if note.text == sentence)
        assert note.is_detail == is_detail


def test_as_many_heads_are_not_more() -> None:
    """Of two models with equally many heads neither is the one whose more heads should look narrowly or help."""
    pair = (model(keys=[9.0] * 2, right=[1, 0]), model("other", keys=[9.1] * 2, right=[1, 0]))
    said = words(comparison(*pair))
    assert NO_EVIDENCE not in said
    assert "no evidence that either does better" in said


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
    expected = "multi:8 is right on 100.0% of 20 and single on 95.0%: +5.0 points (-5.5 to +15.5), "
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


def test_a_name_is_data() -> None:
    said = words(comparison(model("\x1b[31m[red]"), model("a\nb", 2)))
    assert "\x1b" not in said
    assert "\n" not in said
    assert "a⏎b" in said
