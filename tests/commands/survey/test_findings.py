"""What a survey finds: moments and cards of heads, what answers lose without them, and how classes differ."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from attnviz.commands.survey import measure as survey_measure
from attnviz.commands.survey.effects import BEYOND, WITHIN, draw_ablations, show_ablations, show_classes
from attnviz.commands.survey.files import load_files
from attnviz.commands.survey.moments import KINDS, N_MOMENTS, mix_hashes
from attnviz.commands.survey.tables import COLUMNS, DIFFERENCES, KEYS
from attnviz.records import AttentionMaps, Tokens
from attnviz.report import Chart, Note
from attnviz.specs import TextOptions
from attnviz.table.numbers import Numbers
from attnviz.text import load_corpus
from attnviz.views.tokens import BYTE, read_piece
from tests.commands.survey.made import open_model, run
from tests.events import data, report
from tests.made import columns_by, known
from tests.text.corpora import write_jsonl

Row = tuple[float, int, int, np.ndarray]  # rank, text, query and weights


def find_strongest(maps: list[AttentionMaps], head: int) -> list[Row]:
    """Of each text the row that aims most at one key, which is not the first token nor a marker; the strongest six."""
    found = []
    for text, each in enumerate(maps):
        rests = [position == 0 or special for position, special in enumerate(each.keys.special)]
        rows: list[Row] = []
        for query, row in enumerate(each.weights[0, head].astype(np.float64)):
            row /= row.sum()
            peak = row.max()
            aims = peak * np.log2(peak * len(row)) if not rests[int(row.argmax())] else -peak
            rows.append((float(aims), text, query, row))
        found.append(max(rows, key=lambda one: one[0]))
    return sorted(found, key=lambda one: -one[0])[:N_MOMENTS]


def find_random(texts: tuple[str, ...], maps: list[AttentionMaps], head: int) -> list[Row]:
    """The six of the smallest hashes among all rows of all texts, but for those of first tokens."""
    found: list[Row] = []
    for text, each in enumerate(maps):
        hashes = mix_hashes(survey_measure.text_hash(text, texts[text]), np.arange(len(each.keys)))
        rows = each.weights[0, head].astype(np.float64)
        found += [(-int(hashes[query]) / 2.0**64, text, query, rows[query]) for query in range(1, len(rows))]
    return sorted(found, key=lambda one: -one[0])[:N_MOMENTS]


def test_moments_are_those_of_a_plain_loop(surveyed: Path) -> None:
    rows, model = load_files(surveyed).moments.rows(), open_model()
    texts = load_corpus(TextOptions(dataset="sample", split="train[:12]")).texts
    maps = [model.attention(text) for text in texts]
    for head in range(2):
        own = [[row for row in rows if (row["layer"], row["head"], row["kind"]) == (0, head, kind)] for kind in KINDS]
        for moments, expected in zip(own, (find_strongest(maps, head), find_random(texts, maps, head)), strict=True):
            moments.sort(key=lambda row: -row["rank"])
            assert [row["rank"] for row in moments] == pytest.approx([row[0] for row in expected], rel=1e-5)
            assert [row["text"] for row in moments] == [row[1] for row in expected]
            assert [row["query"] for row in moments] == [row[2] for row in expected]
            for moment, (_, text, query, row) in zip(moments, expected, strict=True):
                shown = moment["keys"]
                assert query in shown
                assert moment["weights"] == pytest.approx((row[shown] / row.sum()).tolist(), rel=1e-5)
                assert moment["to_first"] == pytest.approx(row[0] / row.sum(), rel=1e-5)
                assert moment["n_keys"] == len(row)
                entropy = -sum(weight * np.log(weight) for weight in row if weight)
                assert moment["effective_keys"] == pytest.approx(np.exp(entropy), rel=1e-4)
                pieces = [maps[text].keys.pieces[position].strip() for position in shown]
                assert [token.strip() for token in moment["tokens"]] == pieces
    assert len({row["text"] for row in own[0]}) == N_MOMENTS  # no text twice
    drawn = {(row["head"], row["text"], row["query"]) for row in rows if row["kind"] == KINDS[1] and row["layer"] == 0}
    assert len({each[1:] for each in drawn}) == N_MOMENTS  # the same ones for all heads


def test_without_texts_the_file_holds_no_word(tmp_path: Path) -> None:
    run(tmp_path, no_text=True)
    files = [*tmp_path.glob("*.parquet")]
    data = b" ".join(repr(pq.read_table(path, partitioning=None).to_pylist()).encode() for path in files)
    texts = load_corpus(TextOptions(dataset="sample", split="train[:12]")).texts
    words = {word for text in texts for word in text.split() if word.isalpha() and len(word) > 4}
    said = {"layer", "order", "words", "train", "counts"}  # what a survey says by itself
    assert len(words) > 50
    assert not [word for word in words - said if word.encode() in data]
    moments = load_files(tmp_path).moments
    assert any(weight > 0 for row in moments.rows() for weight in row["weights"])
    assert not any(row["tokens"] for row in moments.rows())


# --- Tokens of moments ---


def test_tokens_that_are_bytes_of_one_character_are_shown_once() -> None:
    offsets = ((0, 0), (0, 1), (0, 1), (1, 5), (5, 6), (7, 8))
    tokens = Tokens(("[CLS]", "猫", "猫", " cat", "s", "."), offsets, (True, *[False] * 5))
    assert [read_piece(tokens, position) for position in range(6)] == [" [CLS]", "猫", BYTE, " cat", "s", " ."]


# --- What it costs to do without heads: which are shown, in which order, and what is said to be beyond chance ---


def survey_of(means: list[float], p_values: list[float]) -> Any:
    """Return what is shown of a survey of 40 texts, of layers of eight heads."""
    rows: list[dict[str, object]] = []
    for place, (mean, p_value) in enumerate(zip(means, p_values, strict=True)):
        said = {"measure": "without_head_zero", "layer": place // 8, "head": place % 8, "n": 40, "p_value": p_value}
        rows.append({**said, "mean": mean, "low": mean - 0.01, "high": mean + 0.01})
    tables = SimpleNamespace(numbers=Numbers.from_rows(rows, [*KEYS], COLUMNS))
    return SimpleNamespace(tables=tables, texts=range(40))


def chart_of(survey: Any) -> Chart:
    (charts,) = draw_ablations(survey)
    return charts.charts[0]


def last_note(survey: Any) -> str:
    *_, note = show_ablations(survey)
    assert isinstance(note, Note)
    return note.text


def test_heads_stand_by_their_cost_and_those_beyond_chance_among_quiet_ones() -> None:
    chart = chart_of(survey_of([0.02, -0.03, 0.05, 0.0], [1.0, 0.04, 0.001, 1.0]))
    assert chart.names == ("0.2", "0.0", "0.3", "0.1")
    assert columns_by(chart, "group", "x", "y") == {
        BEYOND: [(0, 3), (0.05, -0.03)],
        WITHIN: [(1, 2), (0.02, 0.0)],
    }
    assert chart.quiet == (WITHIN,)
    np.testing.assert_allclose(chart.column("low"), [0.04, 0.01, -0.01, -0.04])
    np.testing.assert_allclose(chart.column("high"), [0.06, 0.03, 0.01, -0.02])


def test_of_many_heads_the_largest_are_drawn_whether_they_help_or_harm() -> None:
    means = [0.001] * 30
    means[3], means[29] = -0.2, 0.1
    chart = chart_of(survey_of(means, [1.0] * 30))
    assert chart.title == "replaced by zero, the 20 largest of 30 heads"
    assert (len(chart.names), chart.names[0], chart.names[-1]) == (20, "3.5", "0.3")


def test_what_is_said_names_those_beyond_chance_or_the_largest() -> None:
    certain = last_note(survey_of([0.01, -0.03, 0.02], [0.01, 0.02, 0.9]))
    assert certain.endswith("2 differ from 0 over 40 texts; the largest: 0.1 zero -0.0300, 0.0 zero +0.0100.")
    none = last_note(survey_of([0.01, -0.03, 0.02], [1.0, 1.0, 1.0]))
    assert "none is beyond chance over 40 texts" in none
    assert none.endswith("the largest: 0.1 zero -0.0300.")


@pytest.mark.parametrize(
    ("sizes", "said"),
    [([5, 7], "(here 2 classes, the smallest of 5 "), ([20] * 21, "(here 21 classes, the "), ([12], "")],
)
def test_classes_that_are_not_compared_are_said_to_be(sizes: list[int], said: str) -> None:
    of = SimpleNamespace(sizes=dict(enumerate(sizes)), n_matched=sum(sizes))
    classes: Any = SimpleNamespace(
        tables=SimpleNamespace(classes=of, differences=Numbers.from_rows([], [*KEYS], DIFFERENCES))
    )
    found = [each.text for each in show_classes(classes) if isinstance(each, Note)]
    assert len(found) == bool(said)
    assert not said or said in found[0]


# --- What differs between classes of texts, as a survey shows it of texts that were made to differ ---


def test_texts_whose_classes_differ_say_so_and_others_do_not(tmp_path: Path) -> None:
    """Texts of class 1 say one word again and again; the table, the data and the atlas name what differs."""
    words = "the film was long and the end was not good but i liked the songs of it very much"
    draws = np.random.default_rng(1)
    lines = []
    for place in range(40):
        chosen = (
            draws.choice(words.split(), 12).tolist()
            if place % 2 == 0
            else ["film"] * 6 + draws.choice(words.split(), 6).tolist()
        )
        lines.append((" ".join(chosen), place % 2))
    file = write_jsonl(tmp_path / "texts.jsonl", lines)
    whole = run(tmp_path / "out", dataset=str(file), split=None, measure=("all",))
    (table,) = (table for table in report(whole).tables if table.name == "classes")
    assert ("to same word", 1) in {(row[2], row[3]) for row in table.rows}
    said: Any = data(whole)["classes"]
    assert said["labels"] == {"0": 20, "1": 20}
    assert len(said["differences"]) == len(table.rows) < said["tested"]
    assert all(each["p_value"] < 0.05 for each in said["differences"])
    atlas = known(report(whole).atlas)
    assert any("to same word" in value for head in atlas["heads"] for _, value in head["facts"])
    assert load_files(tmp_path / "out").tables.classes.sizes == {0: 20, 1: 20}
    alike = run(tmp_path / "alike", split=None)
    notes = [note.text for note in report(alike).notes]
    assert any("none is beyond chance (Holm)" in note for note in notes)
