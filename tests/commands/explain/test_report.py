"""A model's query by hand: what is shown, what is summed up, and that the columns add up."""

import json
import re

import numpy as np
import pytest

from attnviz.commands.explain.picture import MAX_ROWS
from attnviz.commands.explain.report import explain_report
from attnviz.records import Facts
from attnviz.records.attention_trace import AttentionTrace, Projection, VerifiedTrace, trace_head
from attnviz.renderers.documents.json import write_alone
from attnviz.report import Report
from tests.made import FILM, HOSTILE, notes, provenance, table, tokens


def found(
    pieces: tuple[str, ...] = FILM,
    *,
    n_heads: int = 2,
    d_head: int = 4,
    query: int = 3,
    causal: bool = False,
    projects: bool = True,
    position: bool = False,
    seed: int = 0,
) -> VerifiedTrace:
    """A made-up layer whose arithmetic is right by definition."""
    random = np.random.default_rng(seed)
    n, d_model = len(pieces), n_heads * d_head
    attendable = np.arange(n) <= query if causal else np.ones(n, dtype=bool)
    made = [random.normal(size=(2 * n + 1, d_head)) for _ in range(n_heads)]
    bias = np.arange(n) - 1.5 if position else None
    heads = tuple(trace_head(of[0], of[1 : n + 1], of[n + 1 :], attendable, bias) for of in made)
    projection = Projection(random.normal(size=(d_model, d_model)), random.normal(size=d_model)) if projects else None
    worked = AttentionTrace(tokens(*pieces), query, attendable, random.normal(size=(n, d_model)), heads, projection)
    made_by = provenance(settings=(("norm", "pre"),), facts=Facts(causal=causal, tokens_in_text=n))
    return VerifiedTrace(worked, made_by, 0, 1, True, worked.output, 1e-8, 1e-9, 1e-4)


def shown(of: VerifiedTrace) -> Report:
    return explain_report(of, 0)


# What is shown


def test_title_and_subtitle_say_what_is_explained() -> None:
    report = shown(found())
    assert report.title == "Attention from token 3 thin in multi:2, step by step"
    assert report.subtitle == (
        "untrained (random weights, seed 0) · “the plot was thin , yet i loved every…” · 14 tokens · layer 0 of 1"
    )
    assert shown(found(causal=True)).subtitle.endswith("layer 0 of 1 · causal")
    assert "the layer's output were computed again from x and the model's matrices" in notes(report)
    assert "From its own numbers the output differs by at most 1e-08" in notes(report)


def test_one_head_without_projections() -> None:
    assert "from x, more exactly" in notes(shown(found(n_heads=1, projects=False)))


def test_each_key_has_a_row_with_its_scores_and_weight() -> None:
    of = found(position=True)
    rows = table(shown(of), "steps-layer-0-head-0")
    head = of.trace.heads[0]
    assert [column.header for column in rows.columns] == [
        "key",
        "q · k",
        "b",
        "s = q · k / √4 + b",
        "a = exp(s) / Σ exp(s)",
    ]
    assert [row[0] for row in rows.rows] == [f"{place} {piece}" for place, piece in enumerate(FILM)]
    numbers = zip(head.scores, np.arange(14) - 1.5, head.scores / 2 + np.arange(14) - 1.5, head.weights, strict=True)
    assert [row[1:] for row in rows.rows] == [pytest.approx(each) for each in numbers]
    assert sum(float(row[-1]) for row in rows.rows) == pytest.approx(1)


def test_keys_of_the_largest_weight_have_rows_and_the_others_one() -> None:
    of = found(tuple(f"w{place}" for place in range(40)))
    weights = of.trace.heads[0].weights
    *rows, rest = table(shown(of), "steps-layer-0-head-0").rows
    assert [row[0] for row in rows] == [f"{key} w{key}" for key in sorted(np.argsort(-weights)[:MAX_ROWS].tolist())]
    assert rest[:-1] == ("… 16 other keys", "…", "…")
    assert sum(float(row[-1]) for row in (*rows, rest)) == pytest.approx(1)


def test_a_mask_is_shown_where_there_is_one() -> None:
    rows = table(shown(found(FILM[:6], causal=True)), "steps-layer-0-head-0").rows
    assert [row[2:] for row in rows[4:]] == [(-np.inf, 0)] * 2
    assert np.isfinite([row[2] for row in rows[:4]]).all()


def test_tokens_are_safe_to_show_and_whole_in_the_data() -> None:
    report = shown(found(HOSTILE))
    cells = "".join(str(cell) for each in report.tables for row in each.rows for cell in row)
    assert not re.search(
        "[\x00-\x1f\x7f-\x9f\u202e\u200b\ud800]", cells + report.title + notes(report).replace("\n", " ")
    )
    document = json.loads(b"".join(write_alone(report)))
    assert document["tokens"]["pieces"] == [piece.replace("\ud800", "\ufffd") for piece in HOSTILE]


def test_the_data_hold_all_heads_in_full() -> None:
    of = found()
    document = json.loads(b"".join(write_alone(shown(of))))
    assert len(document["heads"]) == 2
    for head, written in zip(of.trace.heads, document["heads"], strict=True):
        for name in ("query", "keys", "values", "scores", "scaled", "weights", "weighted", "output"):
            assert written[name] == getattr(head, name).tolist()
    assert document["output"] == of.trace.output.tolist()
    assert document["largest_error"] == 1e-8
    assert document["projection"]["bias"] == of.trace.projection.bias.tolist()  # type: ignore[union-attr]
