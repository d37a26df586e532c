"""A comparison as tables, rows and data."""

from collections.abc import Callable
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest

from attnviz.bounded import format_bytes
from attnviz.commands.compare.comparison import Comparison
from attnviz.commands.compare.costs import NO_EVIDENCE, verdict, write_count
from attnviz.commands.compare.report import compare_report, compare_rows
from attnviz.commands.compare.spec import CompareSpec
from attnviz.measures import choose_measures
from attnviz.options import build
from attnviz.report import Report, Scale
from attnviz.table.numbers import Numbers
from tests.commands.compare.comparisons import N_TEXTS, around, card, comparison, model
from tests.made import notes, table

SCALE = Scale("fixed", 0.0, 1.0, "attention weight")


def report(of: Comparison) -> Report:
    return compare_report(of, (), (SCALE,), (), build(CompareSpec, models=("single", "multi")))


def rows(of: Report, name: str) -> dict[str, tuple[Any, ...]]:
    return {str(row[0]): row[1:] for row in table(of, name).rows}


def two() -> Comparison:
    """Of 20 texts, -8.1 keys with an interval of ± .3."""
    return comparison(model(keys=[14.2] * N_TEXTS), model("multi:8", 8, keys=around(6.1, 0.3)))


def test_two_models_share_a_table_with_their_difference() -> None:
    shown = report(two())
    assert [column.header for column in table(shown, "measures").columns] == [
        "mean per head",
        "single",
        "multi:8",
        "uniform",
        "difference",
    ]
    found = rows(shown, "measures")
    assert found["effective keys"] == ("14.20", "6.10", "200.00", "-8.10")
    assert found["vendi score (heads)"][:3] == ("1.00", "8.00", "-")
    assert rows(shown, "differences")["effective keys"] == ("-8.10", "-8.40 to -7.80")
    assert shown.title == "single and multi:8 on imdb test[:500]"


def test_what_is_read_as_unknown_is_said_of_each_model() -> None:
    pair = comparison(model(), model("multi:8", 8))
    unknown = {"single": 50, "multi:8": 0}
    rows = pair.numbers.rows()
    rows = [row | {"unknown": unknown[row["model"]]} if row["model"] and row["tokens"] else row for row in rows]
    shown = report(replace(pair, numbers=Numbers.from_rows(rows, pair.numbers.keys)))
    assert shown.subtitle == "200 tokens · single: trained, 25% read as [UNK] · multi:8: trained"


def test_a_difference_that_may_be_none_is_marked_and_the_mark_explained() -> None:
    shown = report(comparison(model(keys=[5.0] * N_TEXTS), model("multi:2", 2, keys=around(5.1, 0.2))))
    assert rows(shown, "measures")["effective keys"][-1] == "~+0.10"
    assert (
        table(shown, "measures").more
        == "~: may be none. All models, measures, intervals, likeness, costs: --table full."
    )
    assert rows(shown, "differences")["effective keys"] == ("~+0.10", "-0.10 to +0.30")
    assert "~ marks a difference whose interval includes 0. Each interval is of one measure alone" in notes(shown)
    assert "not what models trained from other seeds would" in notes(shown)


def test_three_models_have_a_table_of_differences_from_the_first() -> None:
    shown = report(comparison(model(), model("multi:2", 2, keys=[9.0]), model("multi:4", 4, keys=[7.0])))
    assert rows(shown, "measures")["effective keys"] == ("10.00", "9.00", "7.00", "200.00")
    headers = [column.header for column in table(shown, "differences").columns]
    assert headers == ["mean per head", "multi:2", "95 % interval", "multi:4", "95 % interval"]
    assert rows(shown, "differences")["effective keys"] == ("-1.00", "-", "-3.00", "-")
    assert table(shown, "differences").title == "Difference from single"
    assert shown.title == "single, multi:2 and multi:4 on imdb test[:500]"


def test_answers_of_models_that_classify_and_a_dash_for_one_that_does_not() -> None:
    many = report(comparison(model(keys=[1.0, 1.0], right=[1, 0]), model("dot", keys=[1.0, 1.0])))
    assert rows(many, "costs")["accuracy on these texts"] == ("0.5000", "-")
    tested = report(comparison(model(tested=card(0.89, 0.9, 0.91)), model("dot")))
    assert rows(tested, "costs")["test accuracy, mean of seeds"] == ("0.9000", "-")
    assert rows(tested, "costs")["95 % interval over seeds"] == ("0.8752 to 0.9248", "-")
    assert rows(tested, "costs")["95 % interval over texts"] == ("0.8946 to 0.9051", "-")


def test_each_model_has_its_own_number_of_tokens() -> None:
    """Costs follow from them: one that cuts finer or adds markers reads more."""
    shown = report(comparison(model(), model("multi:2", 2, n_tokens=24.4), merged=True))
    assert rows(shown, "costs")["tokens n that it reads"] == ("200", "24")
    assert table(shown, "costs").title == "What it costs and what comes of it"


def test_few_texts_have_no_intervals_and_a_reason_instead() -> None:
    alone, several = model(keys=[14.0, 14.4], right=[1, 1]), model("multi:8", 8, keys=[6.0, 6.2], right=[1, 1])
    shown = report(comparison(alone, several))
    assert rows(shown, "measures")["effective keys"][-1] == "-8.10"
    assert "Over 2 texts: to tell a difference from chance takes 10" in notes(shown)
    assert "~" not in notes(shown)
    assert "+0.0 points (no interval: fewer than 10 texts), no evidence that more heads" in notes(shown)
    data: Any = shown.data
    nothing = {"low": None, "high": None, "includes_zero": None}
    reason = {"no_interval": "fewer than 10 texts"}
    assert data["measures"]["effective_keys"]["differences"] == [{"value": pytest.approx(-8.1), **nothing, **reason}]
    assert list(compare_rows(comparison(alone, several)))[3][8] == "fewer than 10 texts"


def test_rows_for_a_spreadsheet_hold_every_number_whole() -> None:
    first, *found = compare_rows(two())
    assert first == ("measure", "unit", "of", "model", "mean", "difference", "low", "high", "no interval because")
    assert found[0][:5] == ("effective_keys", "keys", "each head", "uniform attention", 200.0)
    assert found[1][:4] == ("effective_keys", "keys", "each head", "single")
    assert found[2][3] == "multi:8"
    assert [float(cell) for cell in (found[1][4], *found[2][4:8])] == pytest.approx([14.2, 6.1, -8.1, -8.4, -7.8])
    assert found[-1][:4] == ("divergence_from_mean", "nats", "all heads of a layer", "multi:8")
    assert len(found) == 2 * 3 + 2 * 2


COUNTS = {0: "0", 999: "999", 999.4: "999", 1000: "1 k", 1234: "1.23 k", 5.12e6: "5.12 M", 9.999e8: "1 G"}
SIZES = {4: "4 bytes", 1024: "1 KiB", 1000 * 2**10: "0.977 MiB", 160_000: "156 KiB", 2**30: "1 GiB"}


@pytest.mark.parametrize(("write", "written"), [(write_count, COUNTS), (format_bytes, SIZES)])
def test_large_numbers_and_bytes(write: Callable[[float], str], written: dict[float, str]) -> None:
    assert {number: write(float(number)) for number in written} == written


def test_models_of_one_name_get_files_of_their_own() -> None:
    alike = comparison(model("a/b"), model("a b", 2), model("猫"), model("../.."))
    assert alike.slugs == ("a-b-0", "a-b-1", "model-2", "model-3")


# --- In words: the numbers that are there, and never more ---


FEWER, MORE, EITHER = (-8.1, 0.3), (0.5, 0.3), (-0.1, 0.5)  # effective keys, and half of an interval


def words(of: Comparison) -> str:
    return " ".join(note.text for note in verdict(of))


@pytest.mark.parametrize(("difference", "is_told"), [(FEWER, True), (MORE, True), (EITHER, False)])
def test_measures_that_differ_by_more_than_chance_are_named(difference: tuple[float, float], is_told: bool) -> None:
    change, half = difference
    said = words(comparison(model(keys=[14.2] * N_TEXTS), model("multi:8", 8, keys=around(14.2 + change, half))))
    started = "On these texts multi:8 differs from single by more than chance in "
    assert said.startswith(f"{started}{'effective keys' if is_told else 'none of these measures'}.")


def test_of_several_models_a_difference_is_held_against_all_that_were_looked_at() -> None:
    """Its own interval leaves 0 out, by a little: of seven that are compared with the first some does by chance."""
    close = [model(f"multi:{i}", i, keys=around(13.9, 0.29)) for i in range(2, 9)]
    first = model(keys=[14.2] * N_TEXTS)
    assert "more than chance in effective keys." in words(comparison(first, close[0]))
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


def test_that_one_head_is_one_is_no_difference_beyond_chance() -> None:
    pair = comparison(model(keys=[14.2] * N_TEXTS), model("multi:2", 2, keys=around(14.2, 0.5)))
    rows = pair.numbers.rows()
    for row in rows:
        row["vendi_score"] = row["vendi_score"] and row["vendi_score"] - 0.01 * row["text"] * (row["model"] != "single")
    varied = replace(pair, numbers=Numbers.from_rows(rows, pair.numbers.keys))
    assert "more than chance in none of these measures." in words(varied)


def test_few_texts_have_no_chance_to_be_held_against() -> None:
    said = words(comparison(model(keys=[14.2]), model("multi:8", 8, keys=[6.1]), model("multi:2", 2)))
    assert said.startswith("Over 1 text: to tell a difference from chance takes 10 (--text again, --dataset).")
    assert said.count("chance") == 1
    assert words(comparison(model(keys=[9.0] * N_TEXTS), model("multi:8", 8, keys=[9.0] * N_TEXTS))).count("takes") == 0


def test_the_pairs_most_alike_are_named_beside_the_median_pair() -> None:
    """Also across models; of one model, heads go without its name."""
    similar = np.array([[1, 0.9, 0.2, 0.3], [0.9, 1, 0.4, 0.1], [0.2, 0.4, 1, 0.7], [0.3, 0.1, 0.7, 1]])
    said = words(comparison(model(), model("multi:3", 3), divergences=log(2) * (1 - similar)))
    assert (
        "alike here (1 - mean JSD in bits): single · 0 and multi:3 · 0 (.900), multi:3 · 1 and multi:3 · 2 (.700), "
        in said
    )
    said = words(comparison(model("multi:4", 4, keys=[6.0] * 3), divergences=log(2) * (1 - similar)))
    assert "Heads most alike here (1 - mean JSD in bits): 0 and 1 (.900), 2 and 3 (.700), 1 and 2 (.400);" in said
    said = words(comparison(model("multi:2", 2), divergences=log(2) * (1 - similar[:2, :2])))
    assert "How alike heads are here (1 - mean JSD in bits): 0 and 1 (.900)." in said
    assert "alike" not in words(comparison(model(), divergences=np.zeros((1, 1))))


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
