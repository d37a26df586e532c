"""The first screen: heads by what they do, pairs of words apart, and what each token looks at, by hand."""

import numpy as np

from attnviz.records import AttentionMaps
from attnviz.report import Table
from attnviz.running.metrics import add_known_heads
from attnviz.specs import FigureOptions
from tests.made import provenance, record, report, tokens

WORDS = [f"w{n}" for n in range(14)]
N = len(WORDS)


def made(*heads: np.ndarray, words: list[str] = WORDS, trained: bool = True) -> AttentionMaps:
    weights = [0.9 * head + 0.1 / N for head in heads]
    made_by = provenance(revision="sha256:" + "5e" * 32, trained=trained)
    return record(np.stack(weights)[None], tokens(*words), made_by=made_by)


FOLLOWING, BEFORE = np.eye(N, k=1), np.eye(N, k=-1)
FOLLOWING[-1, -1] = BEFORE[0, 0] = 1
APART = np.full((N, N), 1 / N)
APART[3] = np.eye(N)[9]


def answer(maps: AttentionMaps, **options: object) -> tuple[list[str], Table]:
    shown = report(maps, FigureOptions(**options))  # type: ignore[arg-type]
    (table,) = (table for table in shown.tables if table.role == "answer")
    return [note.text for note in shown.notes if note.leads], table


def test_heads_stand_by_what_they_do_and_each_kind_has_its_clearest_head() -> None:
    weaker = 0.6 * FOLLOWING + 0.4 / N
    notes, table = answer(made(weaker, BEFORE, FOLLOWING, APART))
    assert notes[0] == "next token 0.2 91 %, 0.0 57 % · previous token 0.1 91 % · no single pattern in 1."
    assert notes[1].startswith("Strongest between words apart: w3 → w9 91 % (0.3)")
    assert [column.unit for column in table.columns] == ["", "0.2", "0.1"]
    assert table.rows[:2] == (("w0", "w1 .91", "w0 .91"), ("w1", "w2 .91", "w0 .91"))
    assert len(table.rows) == 10


def test_a_head_without_a_name_over_many_texts_stands_beside_the_kind_that_it_follows_here() -> None:
    notes, _ = answer(add_known_heads(made(BEFORE, BEFORE), ("previous token 0.90", "")))
    assert notes[0] == "previous token 0.0 91 %, here also 0.1 91 % · no single pattern in 1."
    assert notes[-1] == "Heads are named by what they do over many texts; shares are of this one."


def test_nothing_is_said_of_names_where_only_the_mean_of_heads_is_shown() -> None:
    assert answer(made(FOLLOWING, BEFORE), head=("mean",))[0] == []


def test_pairs_apart_are_the_strongest_of_all_weights_also_in_one_head_and_beside_a_neighbour() -> None:
    two = APART.copy()
    two[5], two[7] = 0.9 * np.eye(N)[1] + 0.1 / N, 0.55 * np.eye(N)[8] + 0.45 * np.eye(N)[2]
    weaker = 0.4 * FOLLOWING @ FOLLOWING + 0.6 / N
    notes, _ = answer(made(two, weaker, trained=False))
    assert notes == ["Strongest between words apart: w3 → w9 91 % (0.0), w5 → w1 82 % (0.0), w7 → w2 41 % (0.0)."]
    notes, _ = answer(made(two, weaker, trained=False), tokens="0:8")
    assert notes == ["Strongest between words apart: w5 → w1 82 % (0.0), w7 → w2 41 % (0.0), w5 → w7 41 % (0.1)."]
    notes, _ = answer(made(two, weaker, words=["a"] * 4 + [","] * 10, trained=False))  # the same words once
    assert notes == ["Strongest between words apart: a → “,” 91 % (0.0), “,” → a 82 % (0.0), “,” → “,” 41 % (0.1)."]


def test_without_names_the_first_heads_are_shown_as_sorted() -> None:
    notes, table = answer(made(APART, FOLLOWING, trained=False), query="w3")
    assert notes == ["Strongest between words apart: w3 → w9 91 % (0.0)."]
    assert [column.unit for column in table.columns] == ["", "0.0", "0.1"]
    assert table.rows == (("w3", "w9 .91", "w4 .91"),)


def test_where_attention_rests_is_told_last_and_is_no_pair() -> None:
    first = np.tile(np.eye(N)[0], (N, 1))
    notes, table = answer(made(first, FOLLOWING))
    assert notes[0] == "next token 0.1 91 % · first token 0.0 91 %."
    assert [column.header for column in table.columns] == ["token", "next token"]
