"""What a report of attention maps holds: pictures, words, tables and data."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attnviz.errors import InvalidSelection
from attnviz.measures import MEASURES, measure_maps
from attnviz.measures.concentration import entropy
from attnviz.measures.divergence import vendi_score
from attnviz.measures.weighing import rollout
from attnviz.measures.words import merge_words
from attnviz.records import AttentionMaps, Facts, Tokens
from attnviz.report import Heatmap, HeatmapGrid, Report, Scale, Table
from attnviz.specs import FigureOptions, ScaleKind
from tests.made import (
    FILM,
    HOSTILE,
    cross_maps,
    heatmaps,
    known,
    overview,
    provenance,
    random_maps,
    record,
    report,
    sink_maps,
    tokens,
    uniform_maps,
    windowed_maps,
)


def with_facts(n: int = 3, **facts: Any) -> Report:
    return report(random_maps(FILM[:n], made_by=provenance(facts=Facts(**facts))))


def remarks(of: Report) -> list[str]:
    """The notes but for the answer."""
    return [note.text for note in of.notes if not note.leads]


@pytest.mark.parametrize("own", [None, "Mine"])
def test_an_untrained_model_is_always_said_to_be_so(own: str | None) -> None:
    shown = report(spec=FigureOptions(title=own))
    assert "untrained (random weights, seed 0)" in shown.subtitle
    assert shown.data["status"] == "untrained (random weights, seed 0)"
    assert ("status", "untrained (random weights, seed 0)") in shown.facts


def test_the_digest_of_weights_is_in_the_file_and_not_in_the_picture() -> None:
    maps = random_maps(made_by=provenance(trained=True, revision="ab12cd34" + "0" * 56))
    assert report(maps).subtitle.startswith("trained · ")
    assert dict(report(maps).facts)["status"] == "trained, weights sha256 ab12cd34…"
    packaged = random_maps(made_by=provenance(trained=True, revision="some 1.2, sha256:ab12cd34" + "0" * 56))
    assert report(packaged).subtitle.startswith("trained, some 1.2 · ")
    hub = random_maps(made_by=provenance(trained=True, revision="main"))
    assert "trained, revision main" in report(hub).subtitle


def test_titles() -> None:
    assert report().title == "multi:2 attends to “the plot was thin , yet i loved every…”"
    assert dict(report().facts)["text"] == "sample train[0]"
    bytes_of_one = Tokens(("好", "好", " a"), ((0, 1), (0, 1), (1, 3)), (False,) * 3)
    assert report(record(np.full((1, 1, 3, 3), 1 / 3), bytes_of_one)).title == "multi:2 attends to “好 a”"
    own = report(spec=FigureOptions(title="My \x1b[31m [red] $$ title"))
    assert own.title == r"My \x1b[31m [red] $$ title"
    assert own.subtitle.startswith("multi:2 · ")
    none = report(spec=FigureOptions(title=""))
    assert (none.title, none.data["title"]) == ("", "")
    assert own.data["title"] == "My \x1b[31m [red] $$ title"
    assert len(report(spec=FigureOptions(title="x" * 5000)).title) == 200


def test_the_subtitle_says_how_much_of_the_text_is_shown() -> None:
    assert with_facts(tokens_in_text=2330).subtitle.endswith("(random weights, seed 0) · first 3 of 2,330 tokens")
    both_ends = with_facts(tokens_in_text=233, keep="head-tail")
    assert both_ends.subtitle.endswith("(random weights, seed 0) · first 2 and last 1 of 233 tokens")
    assert with_facts(tokens_in_text=3).subtitle.endswith("(random weights, seed 0) · 3 tokens")
    assert with_facts(n=1).subtitle.endswith(" · 1 token")
    assert with_facts(causal=True).subtitle.endswith(" · 3 tokens · causal")
    assert with_facts(causal=False).subtitle.endswith(" · 3 tokens")
    assert report(random_maps(FILM, padding=4)).subtitle.endswith(" · 14 tokens")
    assert report(cross_maps(1, 5)).subtitle.endswith(" · 1 query, 5 keys")


def scale_of(kind: ScaleKind, maps: AttentionMaps) -> tuple[float, float, str]:
    scale = report(maps, FigureOptions(scale=kind)).scale
    assert scale.kind == kind
    return scale.low, scale.high, scale.label


def test_scales_say_what_they_are() -> None:
    maps = uniform_maps(8)
    assert scale_of("fixed", maps) == (0.0, 1.0, "attention weight (fixed scale, 0 to 1)")
    assert scale_of("shared", maps) == (0.0, 0.125, "attention weight (shared scale, 0 to 0.125)")
    assert scale_of("log", maps) == (0.01, 1.0, "attention weight (logarithmic scale, 0.01 to 1)")
    assert scale_of("log", uniform_maps(1))[0] == 0.01
    assert scale_of("log", uniform_maps(500))[0] == 1e-4


def test_the_lift_of_a_cell_is_how_many_equal_shares_it_holds() -> None:
    lift = report(uniform_maps(8)).scale
    words = "attention weight, × an equal share (1/n)"
    assert lift == Scale("lift", 1.0, 8.0, words, is_bounded=True)  # no key gets more of 8 keys
    assert report(uniform_maps(15)).scale.high == 15
    assert report(uniform_maps(16)).scale == report(uniform_maps(40)).scale == Scale("lift", 1.0, 16.0, words)
    assert report(uniform_maps(1)).scale.high == 2  # of 1 there would be no colours
    (uniform,) = heatmaps(report(uniform_maps(8)))
    assert uniform.shade(lift) == pytest.approx(1)
    assert uniform.shade(replace(lift, kind="fixed")) is uniform.values
    weights = np.array([[[[1, 0, 0], [0.25, 0.75, 0], [0.5, 0.2, 0.3]]]])
    causal = record(weights, tokens("a", "b", "c"), attendable=np.tri(3, dtype=bool))
    (picture,) = heatmaps(report(causal))
    assert picture.shade(lift) == pytest.approx(np.array([[1, 0, 0], [0.5, 1.5, 0], [1.5, 0.6, 0.9]]))
    dropped = report(causal, FigureOptions(drop_first=True))
    assert dropped.scale.label == "attention weight, × an equal share among the keys shown"
    (picture,) = heatmaps(dropped)
    assert picture.shade(lift) == pytest.approx(np.array([[1, 0], [0.8, 1.2]]))  # of what b and c get, and 2 keys


def test_a_shared_scale_knows_the_chosen_heads_only() -> None:
    weights = np.stack([np.eye(4), np.full((4, 4), 0.25)])[None]
    assert report(record(weights), FigureOptions(head=("1",), scale="shared")).scale.high == 0.25


def test_notes_tell_what_would_mislead() -> None:
    pieces = tokens("a", "zyx", "b", "[PAD]", special=["[PAD]"], unknown=["zyx"])
    weights = np.full((1, 1, 4, 4), 1 / 3)
    weights[..., 3] = 0
    attendable = np.tile([True, True, True, False], (4, 1))
    assert remarks(report(record(weights, pieces, attendable=attendable))) == [
        "The vocabulary lacks 1 of 3 tokens (read as [UNK]): 1 zyx.",
        "Nothing attends to padding (1 of 4 tokens), and no number counts it.",
    ]
    assert not remarks(report())


def test_names_of_the_card_stand_over_maps_with_what_this_text_shows() -> None:
    """Of heads that look at the last token, and at the next one; the third has no name. Else this text names."""
    learned = provenance(revision="sha256:" + "5e" * 32, trained=True)
    card = ("own bracket 0.60", "next token 0.90", "")

    def drawn(*pieces: str, labels: tuple[str, ...] = card) -> tuple[list[str], str]:
        n, facts = len(pieces), Facts(known_heads=labels)
        last, following = np.zeros((n, n)), np.eye(n, k=1)
        last[:, -1] = following[-1, -1] = 1
        weights = np.stack([np.eye(n)[::-1], following, np.full((n, n), 1 / n)])[None]
        shown = overview(report(record(weights, tokens(*pieces), made_by=replace(learned, facts=facts))))
        return [each.note for each in shown.maps], shown.footnote

    said = "in grey: what a head looks at over many texts, by the model's card"
    assert drawn("(", "a", "b", "c", ")") == (["own bracket", "next token", ""], said)
    assert drawn("a", "b", ",") == (
        ["own bracket", "next token", ""],
        f"{said} (own bracket: this text has nothing of the kind)",
    )
    assert drawn(*"abcdefghijkl", labels=())[0][1:] == ["next token", ""]
    assert drawn(*"abcdefghijkl", labels=())[1] == "in grey: what a head looks at in this text"


def test_every_string_is_safe_to_show() -> None:
    name = "evil\x1b\u202e\n[/]"
    facts = Facts(known_heads=(f"{name}{'y' * 500} 0.60",) * 2)
    made_by = provenance(trained=True, model=name, text_name=name, settings=(("note", name),), facts=facts)
    shown = report(random_maps(HOSTILE, made_by=made_by), FigureOptions(title=name))
    strings = [shown.title, shown.subtitle, *(value for _, value in shown.facts), *(note.text for note in shown.notes)]
    for block in shown.blocks:
        if isinstance(block, Heatmap):
            strings += [block.title, *block.rows, *block.columns]
        if isinstance(block, HeatmapGrid):
            strings += [block.footnote, *(each.note for each in block.maps)]
        if isinstance(block, Table):
            strings += [cell for row in block.rows for cell in row if isinstance(cell, str)]
            strings += [column.header for column in block.columns]
    assert max(map(len, strings)) < 600
    assert not {"\x1b", "\u202e", "\n", "\x00", "\u200b", "\ud800"} & set("".join(strings))


def test_data_hold_texts_and_numbers_as_they_are() -> None:
    maps = random_maps(HOSTILE, n_layers=2, n_heads=3)
    data = report(maps, FigureOptions(layer=("1",), head=("2,0",))).data
    assert data["queries"]["pieces"] == HOSTILE == data["keys"]["pieces"]  # type: ignore[index]
    assert data["layers"] == [1]
    assert data["heads"] == [2, 0]
    assert np.array_equal(data["weights"], maps.weights[[1]][:, [2, 0]])  # type: ignore[arg-type]
    of_entropy = data["measures"]["entropy"]  # type: ignore[index]
    assert of_entropy["unit"] == "nats"
    assert np.array_equal(of_entropy["values"], measure_maps(maps, ["entropy"])[0].values[1:, [2, 0]])
    assert data["text"] == {"name": "sample train[0]", "sha256": "5e" * 32}
    assert data["self_attention"] is True


def test_a_model_used_for_what_it_was_not_made_for_is_said_to_be() -> None:
    def said(trained: bool = True, **facts: Any) -> list[str]:
        made_by = provenance(trained=trained, revision="5e" * 32, facts=Facts(**facts))
        return remarks(report(random_maps(FILM, made_by=made_by)))

    assert said(causal=True) == [
        "The model was trained to look both ways; forced to look back only, it does what it never learned."
    ]
    assert said(causal=True, trained=False) == said(causal=False) == []
    assert said(made_for_tokens=13) == ["The model was made for texts of at most 13 tokens and has 14 here."]
    assert said(made_for_tokens=14) == []


# Tokens that are not drawn

HIDING = FigureOptions(hide_special=True)


def marked() -> AttentionMaps:
    """Four words between two markers, two heads."""
    weights = random_maps("abcdef").weights
    return record(weights, tokens("[CLS]", "a", "b", "c", "d", "[SEP]", special=["[CLS]", "[SEP]"]))


def test_hidden_tokens_are_cut_out_of_the_maps_and_nothing_is_scaled() -> None:
    maps = marked()
    shown = heatmaps(report(maps, HIDING))
    assert [heatmap.rows for heatmap in shown] == [("a", "b", "c", "d")] * 2
    assert {heatmap.row_positions for heatmap in shown} == {heatmap.column_positions for heatmap in shown}
    assert shown[0].row_positions == (1, 2, 3, 4)
    assert np.array_equal(shown[1].values, maps.weights[0, 1, 1:5, 1:5])
    assert shown[1].allowed.shape == (4, 4)
    assert heatmaps(report(maps))[0].row_positions == (0, 1, 2, 3, 4, 5)


def test_what_was_hidden_is_said_everywhere() -> None:
    maps = marked()
    shown = report(maps, HIDING)
    by_hand = (maps.weights[0, :, 1:5, 0] + maps.weights[0, :, 1:5, 5]).mean(axis=-1)
    share = f"{by_hand.mean():.1%} of the attention of the queries drawn"
    assert shown.subtitle.endswith(f" · 4 tokens and 2 markers · 2 tokens hidden, {share}")
    assert report(maps).subtitle.endswith(" · 4 tokens and 2 markers")
    (heads,) = (table for table in shown.tables if table.role == "heads")
    (place,) = (n for n, column in enumerate(heads.columns) if column.header == "hidden")
    assert heads.columns[place].unit == "share"
    assert [row[place] for row in heads.rows] == pytest.approx(by_hand)
    found: Any = shown.data["hidden"]
    assert (found["queries"], found["keys"]) == ([0, 5], [0, 5])
    assert found["share"] == pytest.approx(by_hand[None])
    assert shown.data["weights"] is maps.weights
    assert "hidden" not in shown.data["measures"]  # type: ignore[operator]
    assert "hidden" not in report(maps).data


def test_a_text_of_which_half_is_unknown_says_so_on_its_pictures() -> None:
    maps = random_maps(n_heads=2)
    n_tokens = len(maps.queries)
    for n_unknown, said in ((n_tokens // 2 - 1, ""), (n_tokens, f"{n_tokens} of {n_tokens} tokens read as [UNK]")):
        unknown = tuple(place < n_unknown for place in range(n_tokens))
        tokens = replace(maps.queries, unknown=unknown)
        shown = report(replace(maps, queries=tokens, keys=tokens))
        assert said in shown.subtitle
        assert ("[UNK]" in shown.subtitle) == bool(said)


def test_the_shared_scale_is_over_what_is_drawn() -> None:
    weights = np.array([[[[1, 0, 0], [0.5, 0.25, 0.25], [0.75, 0, 0.25]]]])
    assert report(record(weights), FigureOptions(scale="shared", drop_first=True)).scale.high == 0.25
    assert report(record(weights), FigureOptions(scale="fixed", drop_first=True)).scale.high == 1


# Heads and queries that are picked


def test_picked_heads_are_one_picture_in_the_order_given() -> None:
    maps = random_maps(n_layers=3, n_heads=3)
    shown = report(maps, FigureOptions(pick=("2.1,0.0", "2.0"), columns=2))
    grid = overview(shown)
    assert [each.title for each in grid.maps] == ["layer 2, head 1", "layer 0, head 0", "layer 2, head 0"]
    assert grid.n_columns == 2
    assert np.array_equal(grid.maps[1].values, maps.weights[0, 0])
    (heads,) = (table for table in shown.tables if table.role == "heads")
    assert [row[:2] for row in heads.rows] == [(2, 1), (0, 0), (2, 0)]
    assert (shown.data["layers"], shown.data["heads"]) == ([2, 0], [1, 0])
    assert overview(report(maps, FigureOptions(columns=2))).n_columns == 2


def test_one_query_is_a_row_of_each_head() -> None:
    maps = random_maps(n_layers=2, n_heads=2, causal=True)
    scale = report(maps).scale
    (strip,) = heatmaps(report(maps, FigureOptions(query="plot", tokens="0:5")))
    assert (strip.name, strip.title, strip.row_axis) == ("query-1", "what 1 “plot” attends to", "layer.head")
    assert (strip.rows, strip.columns) == (("0.0", "0.1", "1.0", "1.1"), FILM[:5])
    assert strip.asked == 1
    (elsewhere,) = heatmaps(report(maps, FigureOptions(query="plot", key="2:5")))
    assert elsewhere.asked is None
    assert np.array_equal(strip.values, maps.weights[:, :, 1, :5].reshape(4, 5))
    assert np.array_equal(strip.allowed, np.tile([True, True, False, False, False], (4, 1)))
    assert strip.shade(scale) == pytest.approx(strip.values * 2)  # it may attend to two keys
    (one_layer,) = heatmaps(report(maps, FigureOptions(layer=("1",), head=("0,1",), query="-1")))
    assert (one_layer.title, one_layer.rows) == ("what 13 “.” attends to, heads of layer 1", ("0", "1"))
    with pytest.raises(InvalidSelection, match="no token 'plt' in the text"):
        report(maps, FigureOptions(query="plt"))


# Words, rollout, many heads, sinks


def test_joined_words_are_said_to_be_joined() -> None:
    pieces = tokens("[CLS]", "play", "ing", "!", "[SEP]", special=("[CLS]", "[SEP]"), gap=0)
    facts = Facts(tokens_in_text=40, made_for_tokens=4)
    bare = record(random_maps("abcde").weights, pieces, made_by=provenance(trained=True, facts=facts))
    maps, shown = merge_words(bare), report(bare, FigureOptions(merge="words"))
    assert shown.subtitle.endswith(" · 2 words from first 3 of 40 tokens and 2 markers")
    assert remarks(shown) == [
        "The model was made for texts of at most 4 tokens and has 5 here.",
        "The pieces of each word are joined (sum over keys, mean over queries), and all numbers are about words: "
        "5 tokens became 4.",
    ]
    assert heatmaps(shown)[0].rows == ("[CLS]", "playing", "!", "[SEP]")
    found: Any = shown.data
    assert np.array_equal(found["weights"], maps.weights)
    assert np.array_equal(found["measures"]["entropy"]["values"], entropy(maps).values)  # joined before it is measured
    assert found["settings"] == {"merge": "words", "tokens_before_merging": 5}
    assert ("merge", "words") in shown.facts
    whole = report(merge_words(random_maps()))
    assert whole.subtitle.endswith(" · 14 words from 14 tokens")
    (note,) = remarks(whole)
    assert note == "No word is cut into pieces here: there was nothing to join."


@pytest.mark.parametrize("n_layers", [1, 3])
def test_a_rollout_is_one_more_picture_on_a_scale_of_its_own(n_layers: int) -> None:
    maps = random_maps(n_layers=n_layers, causal=True)
    shown = report(maps, FigureOptions(rollout=True, scale="shared"))
    *others, picture = heatmaps(shown)
    assert len(others) == n_layers * 2
    assert picture.name == "rollout"
    assert np.allclose(picture.values, rollout(maps), atol=1e-7)
    assert np.array_equal(picture.allowed, np.tri(14, dtype=bool))
    assert picture.scale is not None
    assert picture.scale.high == picture.values.max()
    assert "share of the token after all layers" in picture.scale.label
    assert picture not in overview(shown).maps
    assert np.allclose(shown.data["rollout"], rollout(maps), atol=1e-7)  # type: ignore[arg-type]
    (top,) = (table for table in shown.tables if table.name == "rollout-top")
    assert top.title.startswith("attention rollout through all layers (Abnar & Zuidema 2020): top 3 keys")
    assert "rollout" not in report(maps).data
    by_lift = heatmaps(report(maps, FigureOptions(rollout=True)))[-1].scale
    what = "share of the token after all layers, × an equal share (1/n)"
    assert by_lift == Scale("lift", 1.0, float(len(maps.keys)), what, is_bounded=True)


def test_a_rollout_hides_what_is_hidden_after_all_layers_have_used_it() -> None:
    weights = marked().weights.copy()
    weights[..., 0, :] = np.eye(6)[0]  # the marker keeps to itself, so that the largest share is hidden
    maps = record(weights, marked().queries)
    shown = report(maps, FigureOptions(rollout=True, hide_special=True, scale="shared"))
    picture = heatmaps(shown)[-1]
    assert np.allclose(picture.values, rollout(maps)[1:5, 1:5], atol=1e-7)
    assert picture.column_positions == (1, 2, 3, 4)
    assert known(picture.scale).high == picture.values.max() < 0.9


def test_a_sink_and_windows_in_every_part() -> None:
    shown = report(sink_maps(share=0.25))
    assert any(column.header == "to sink" for table in shown.tables for column in table.columns)
    assert remarks(shown)[0].startswith("12.5% of all attention goes to a sink that the model has learned")
    assert np.array_equal(shown.data["sink"], sink_maps(share=0.25).sink)  # type: ignore[arg-type]
    maps = windowed_maps(5)
    assert np.array_equal(report(maps).data["attendable"], maps.attendable)  # type: ignore[arg-type]


@pytest.mark.parametrize("n_heads", [1, 3])
def test_measures_of_all_heads_of_a_layer_have_a_row_per_layer(n_heads: int) -> None:
    """All measures are there: those of heads head by head, the others layer by layer, whichever heads are drawn."""
    maps = random_maps(n_layers=3, n_heads=n_heads)
    found = report(maps, FigureOptions(layer=("2,0",), head=("0",), measure=("all",)))
    measures: Any = found.data["measures"]
    assert list(measures) == [measure.name for measure in MEASURES if not measure.of_some_texts]
    table = next(table for table in found.tables if table.name == "layers")
    assert [column.header for column in table.columns[1:]] == [
        measure.name.replace("_", " ") for measure in MEASURES if measure.level == "layer"
    ]
    assert [row[0] for row in table.rows] == [2, 0]
    expected = vendi_score(maps).values[[2, 0]].tolist()
    assert measures["vendi_score"]["values"].tolist() == [row[1] for row in table.rows] == expected
    assert measures["entropy"]["values"].shape == (2, 1)
    assert "layers" not in {table.name for table in report(maps).tables}
