"""A comparison as tables, rows and data."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attnviz.bounded import format_bytes
from attnviz.commands.compare.comparison import Comparison
from attnviz.commands.compare.costs import write_count
from attnviz.commands.compare.report import compare_report, compare_rows
from attnviz.commands.compare.spec import CompareSpec
from attnviz.commands.compare.verdict import HEADLINE
from attnviz.options import build
from attnviz.report import Note, Report, Scale
from attnviz.table.numbers import Numbers
from tests.commands.compare.comparisons import N_TEXTS, around, card, comparison, model
from tests.made import notes, table

SCALE = Scale("fixed", 0.0, 1.0, "attention weight")


def report(of: Comparison, title: str | None = None, measure: tuple[str, ...] = ()) -> Report:
    spec = build(CompareSpec, models=("single", "multi"), title=title, measure=measure)
    return compare_report(of, (), (SCALE,), (), spec)


def rows(of: Report, name: str) -> dict[str, tuple[Any, ...]]:
    return {str(row[0]): row[1:] for row in table(of, name).rows}


def two(**more: Any) -> Comparison:
    """Of 20 texts, -8.1 keys with an interval of ± .3."""
    return comparison(model(keys=[14.2] * N_TEXTS), model("multi:8", 8, keys=around(6.1, 0.3)), **more)


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
    assert found["effective_keys (keys)"] == ("14.20", "6.10", "200.00", "-8.10")
    assert found["vendi_score (heads)"][:3] == ("1.00", "8.00", "-")
    assert rows(shown, "differences")["effective_keys (keys)"] == ("-8.10", "-8.40 to -7.80")
    assert shown.title == "single and multi:8 on imdb test[:500]"


def test_what_is_read_as_unknown_is_said_of_each_model() -> None:
    pair = comparison(model(), model("multi:8", 8))
    unknown = {"single": 50, "multi:8": 0}
    rows = pair.numbers.rows()
    rows = [row | {"unknown": unknown[row["model"]]} if row["model"] and row["tokens"] else row for row in rows]
    shown = report(replace(pair, numbers=Numbers.from_rows(rows, pair.numbers.keys)))
    assert shown.subtitle == "200 tokens · single: trained, 25% read as [UNK] · multi:8: trained"


def test_the_verdict_leads() -> None:
    shown = report(two())
    leads = [isinstance(block, Note) and block.leads for block in shown.blocks]
    assert leads == sorted(leads, reverse=True)
    assert [note.text for note in shown.notes if note.leads] == shown.data["verdict"]
    assert not all(note.leads for note in shown.notes)


def test_five_measures_are_listed_first_where_none_is_named() -> None:
    of = two()
    names = [measure.name for measure in of.measures]
    shown = table(report(of), "measures")
    assert [str(shown.rows[n][0]).split()[0] for n in shown.first] == [name for name in names if name in HEADLINE]
    assert shown.more == "All models, measures, intervals, likeness, costs: --table full."  # nothing is marked
    assert table(report(of, measure=("all",)), "measures").first == ()


def test_a_difference_that_may_be_none_is_marked_and_the_mark_explained() -> None:
    shown = report(comparison(model(keys=[5.0] * N_TEXTS), model("multi:2", 2, keys=around(5.1, 0.2))))
    assert rows(shown, "measures")["effective_keys (keys)"][-1] == "~+0.10"
    assert (
        table(shown, "measures").more
        == "~: may be none. All models, measures, intervals, likeness, costs: --table full."
    )
    assert rows(shown, "differences")["effective_keys (keys)"] == ("~+0.10", "-0.10 to +0.30")
    assert "~ marks a difference whose interval includes 0." in notes(shown)
    assert "not what models trained from other seeds would" in notes(shown)


def test_three_models_have_a_table_of_differences_from_the_first() -> None:
    three = comparison(model(), model("multi:2", 2, keys=[9.0]), model("multi:4", 4, keys=[7.0]))
    shown = report(three)
    assert rows(shown, "measures")["effective_keys (keys)"] == ("10.00", "9.00", "7.00", "200.00")
    headers = [column.header for column in table(shown, "differences").columns]
    assert headers == ["mean per head", "multi:2", "95 % interval", "multi:4", "95 % interval"]
    assert rows(shown, "differences")["effective_keys (keys)"] == ("-1.00", "-", "-3.00", "-")
    assert table(shown, "differences").title == "Difference from single"
    assert shown.title == "single, multi:2 and multi:4 on imdb test[:500]"


def test_what_it_costs() -> None:
    shown = report(two())
    found = rows(shown, "costs")
    assert table(shown, "costs").title == "What it costs and what comes of it (means over the texts)"
    assert found["heads h of width d/h"] == ("1 of 32", "8 of 4")
    assert found["parameters"] == ("2,750,018", "2,750,018")
    assert found["FLOP of projections, 8 n d²"] == ("1.64 M", "1.64 M")
    assert found["FLOP of scores and sums, 4 n² d"] == ("5.12 M", "5.12 M")
    assert found["memory of the maps, 4 h n² B"] == ("156 KiB", "1.22 MiB")
    assert "accuracy on these texts" not in found


def test_answers_of_models_that_classify_and_a_dash_for_one_that_does_not() -> None:
    many = report(comparison(model(keys=[1.0, 1.0], right=[1, 0]), model("dot", keys=[1.0, 1.0])))
    assert rows(many, "costs")["accuracy on these texts"] == ("0.5000", "-")
    tested = report(comparison(model(tested=card(0.89, 0.9, 0.91)), model("dot")))
    assert rows(tested, "costs")["test accuracy, mean of seeds"] == ("0.9000", "-")
    assert rows(tested, "costs")["95 % interval over seeds"] == ("0.8752 to 0.9248", "-")
    assert rows(tested, "costs")["95 % interval over texts"] == ("0.8946 to 0.9051", "-")


def test_what_makes_models_unlike_is_said() -> None:
    assert "differ in d_model too" in notes(report(comparison(model(), model("random:8", 8, d_model=64))))
    assert "d_model too" not in notes(report(two()))
    assert "Tokens are joined until all models have the same" in notes(report(two(merged=True)))
    cut = comparison(model(), model("multi:2", 2), in_text=233)
    assert "Of the texts' 233 tokens 200 are compared" in notes(report(cut))


def test_the_subtitle_says_of_each_whether_it_was_trained() -> None:
    shown = report(comparison(model(), model("random:8", 8, trained=False)), title="My own")
    assert shown.title == "My own"
    assert shown.subtitle == (
        "imdb test[:500] · 200 tokens · single: trained · random:8: untrained (random weights, seed 0)"
    )


def test_each_model_has_its_own_number_of_tokens() -> None:
    """Costs follow from them: one that cuts finer or adds markers reads more."""
    shown = report(comparison(model(), model("multi:2", 2, n_tokens=24.4), merged=True))
    assert rows(shown, "costs")["tokens n that it reads"] == ("200", "24")
    assert table(shown, "costs").title == "What it costs and what comes of it"


def test_few_texts_have_no_intervals_and_a_reason_instead() -> None:
    alone, several = model(keys=[14.0, 14.4], right=[1, 1]), model("multi:8", 8, keys=[6.0, 6.2], right=[1, 1])
    shown = report(comparison(alone, several))
    assert rows(shown, "measures")["effective_keys (keys)"][-1] == "-8.10"
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


def test_data_holds_each_text_and_each_head() -> None:
    data: Any = report(two(divergences=np.zeros((9, 9)))).data
    keys = data["measures"]["effective_keys"]
    assert [values.tolist() for values in keys["per_text"]] == [[14.2] * N_TEXTS, pytest.approx(around(6.1, 0.3))]
    assert [values.shape for values in keys["per_head"]] == [(1, 1), (1, 8)]
    (difference,) = keys["differences"]
    assert [difference[name] for name in ("value", "low", "high")] == pytest.approx([-8.1, -8.4, -7.8])
    assert (difference["no_interval"], difference["includes_zero"]) == (None, False)
    assert [each["name"] for each in data["models"]] == ["single", "multi:8"]
    assert data["divergences"].shape == (9, 9)
    assert data["verdict"][0].startswith("On these texts multi:8 differs")


COUNTS = {0: "0", 999: "999", 999.4: "999", 1000: "1 k", 1234: "1.23 k", 5.12e6: "5.12 M", 9.999e8: "1 G"}
SIZES = {4: "4 bytes", 1024: "1 KiB", 1000 * 2**10: "0.977 MiB", 160_000: "156 KiB", 2**30: "1 GiB"}


@pytest.mark.parametrize(("write", "written"), [(write_count, COUNTS), (format_bytes, SIZES)])
def test_large_numbers_and_bytes(write: Callable[[float], str], written: dict[float, str]) -> None:
    assert {number: write(float(number)) for number in written} == written


def test_models_of_one_name_get_files_of_their_own() -> None:
    alike = comparison(model("a/b"), model("a b", 2), model("猫"), model("../.."))
    assert alike.slugs == ("a-b-0", "a-b-1", "model-2", "model-3")
