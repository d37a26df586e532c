"""What a report of attention maps holds: pictures, words, tables and data."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.errors import BadSelection
from attnviz.measures.measured import measured
from attnviz.records import AttentionMaps, Setting
from attnviz.report import Heatmap, Note, Panels, Report, Table
from attnviz.specs import DrawSpec, ScaleKind
from attnviz.views.heatmap import heatmap_report
from tests.made import FILM, HOSTILE, cross_maps, provenance, random_maps, record, report, tokens, uniform_maps


def only(maps: AttentionMaps, layers: list[int], heads: list[int], spec: DrawSpec | None = None) -> Report:
    return heatmap_report(maps, measured(maps), spec or DrawSpec(), layers, heads)


def overview(of: Report) -> Panels:
    (panels,) = (block for block in of.blocks if isinstance(block, Panels))
    return panels


def with_settings(*settings: tuple[str, Setting], n: int = 3) -> Report:
    return report(random_maps(FILM[:n], made_by=provenance(settings=settings)))


def test_blocks_come_in_order() -> None:
    names = [type(block) for block in report(random_maps(padding=1)).blocks]
    assert names == [Panels, Heatmap, Heatmap, Table, Table, Table, Note]


def test_each_map_is_its_heads_weights() -> None:
    maps = random_maps(n_layers=2, n_heads=3)
    heatmaps = [block for block in report(maps).blocks if isinstance(block, Heatmap)]
    assert [h.name for h in heatmaps] == [f"layer-{layer}-head-{head}" for layer in (0, 1) for head in (0, 1, 2)]
    for heatmap, (layer, head) in zip(heatmaps, np.ndindex(2, 3), strict=True):
        assert np.array_equal(heatmap.values, maps.weights[layer, head])
        assert heatmap.rows == heatmap.columns == FILM


def test_chosen_heads_keep_their_numbers() -> None:
    chosen = only(random_maps(n_layers=2, n_heads=4), [1], [3, 0])
    assert [h.title for h in overview(chosen).maps] == ["layer 1, head 3", "layer 1, head 0"]
    (heads,) = (table for table in chosen.tables if table.role == "heads")
    assert [row[:2] for row in heads.rows] == [(1, 3), (1, 0)]


def test_swapping_heads_swaps_their_maps_and_rows() -> None:
    maps = random_maps(n_heads=2)
    swapped = report(record(maps.weights[:, ::-1], maps.queries))
    before, after = (next(t.rows for t in r.tables if t.role == "heads") for r in (report(maps), swapped))
    assert [row[2:] for row in after] == [row[2:] for row in before[::-1]]


def test_a_head_that_is_not_there_is_refused() -> None:
    for layers, heads, says in (([1], [0], "no layer 1. This model has only layer 0"), ([0], [-1], "no head -1")):
        with pytest.raises(BadSelection, match=says):
            only(random_maps(), layers, heads)
    with pytest.raises(BadSelection, match="no head is chosen"):
        only(random_maps(), [0], [])


@pytest.mark.parametrize(
    ("n_heads", "n_columns"), [(2, 2), (3, 3), (4, 4), (5, 5), (6, 3), (7, 4), (8, 4), (9, 3), (12, 4), (16, 4)]
)
def test_the_overview_of_one_layer_has_about_four_in_a_row(n_heads: int, n_columns: int) -> None:
    assert overview(report(random_maps(FILM[:2], n_heads=n_heads))).n_columns == n_columns


def test_the_overview_of_several_layers_has_one_in_each_row() -> None:
    assert overview(report(random_maps(FILM[:2], n_layers=2, n_heads=6))).n_columns == 6
    assert not any(isinstance(block, Panels) for block in report(uniform_maps()).blocks)


@pytest.mark.parametrize("own", [None, "Mine"])
def test_an_untrained_model_is_always_said_to_be_so(own: str | None) -> None:
    shown = report(spec=DrawSpec(title=own))
    assert "untrained (random weights, seed 0)" in shown.subtitle
    assert shown.data["status"] == "untrained (random weights, seed 0)"
    assert ("status", "untrained (random weights, seed 0)") in shown.facts


def test_a_trained_model_shows_its_weights_digest() -> None:
    maps = random_maps(made_by=provenance(trained=True, revision="ab12cd34" + "0" * 56))
    assert "trained, weights sha256 ab12cd34…" in report(maps).subtitle
    assert "untrained" not in report(maps).subtitle
    hub = random_maps(made_by=provenance(trained=True, revision="main"))
    assert "trained, revision main" in report(hub).subtitle


def test_titles() -> None:
    assert report().title == "multi:2 attends to sample train[0]"
    own = report(spec=DrawSpec(title="My \x1b[31m [red] $$ title"))
    assert own.title == r"My \x1b[31m [red] $$ title"
    assert own.subtitle.startswith("multi:2 · ")
    assert own.data["title"] == "My \x1b[31m [red] $$ title"
    assert len(report(spec=DrawSpec(title="x" * 5000)).title) == 200


def test_the_subtitle_says_how_much_of_the_text_is_shown() -> None:
    assert with_settings(("tokens_in_text", 233)).subtitle.endswith("(random weights, seed 0) · first 3 of 233 tokens")
    both_ends = with_settings(("tokens_in_text", 233), ("keep", "head-tail"))
    assert both_ends.subtitle.endswith("(random weights, seed 0) · first 2 and last 1 of 233 tokens")
    assert with_settings(("tokens_in_text", 3)).subtitle.endswith("(random weights, seed 0) · 3 tokens")
    assert with_settings(n=1).subtitle.endswith(" · 1 token")
    assert with_settings(("causal", True)).subtitle.endswith(" · 3 tokens · causal")
    assert with_settings(("causal", False)).subtitle.endswith(" · 3 tokens")
    assert report(random_maps(FILM, padding=4)).subtitle.endswith(" · 14 tokens")
    assert report(cross_maps(1, 5)).subtitle.endswith(" · 1 query, 5 keys")


def scale_of(kind: ScaleKind, maps: AttentionMaps) -> tuple[float, float, str]:
    scale = report(maps, DrawSpec(scale=kind)).scale
    assert scale.kind == kind
    return scale.low, scale.high, scale.label


def test_scales_say_what_they_are() -> None:
    maps = uniform_maps(8)
    assert scale_of("fixed", maps) == (0.0, 1.0, "attention weight (fixed scale, 0 to 1)")
    assert scale_of("shared", maps) == (0.0, 0.125, "attention weight (shared scale, 0 to 0.125)")
    assert scale_of("log", maps) == (0.01, 1.0, "attention weight (logarithmic scale, 0.01 to 1)")
    assert scale_of("log", uniform_maps(1))[0] == 0.01
    assert scale_of("log", uniform_maps(500))[0] == 1e-4


def test_auto_is_shared_as_long_as_weights_can_be_seen() -> None:
    for n, kind in ((64, "shared"), (65, "log")):
        found = report(uniform_maps(n), DrawSpec(scale="auto")).scale
        assert found == report(uniform_maps(n), DrawSpec(scale=kind)).scale  # type: ignore[arg-type]


def test_a_shared_scale_knows_the_chosen_heads_only() -> None:
    weights = np.stack([np.eye(4), np.full((4, 4), 0.25)])[None]
    assert only(record(weights), [0], [1], DrawSpec(scale="shared")).scale.high == 0.25


def test_notes_tell_what_would_mislead() -> None:
    pieces = tokens("a", "zyx", "b", "[PAD]", special=["[PAD]"], unknown=["zyx"])
    weights = np.full((1, 1, 4, 4), 1 / 3)
    weights[..., 3] = 0
    attendable = np.tile([True, True, True, False], (4, 1))
    notes = [note.text for note in report(record(weights, pieces, attendable=attendable)).notes]
    assert notes == [
        "1 of 3 tokens is not in the vocabulary (read as [UNK]): 1 zyx.",
        "1 of 4 tokens is padding: nothing attends to padding, and no number counts it.",
    ]
    assert not list(report().notes)


def test_many_unknown_tokens_are_counted() -> None:
    strange = [f"u{i}" for i in range(12)]
    (note,) = report(record(np.full((1, 1, 12, 12), 1 / 12), tokens(*strange, unknown=strange))).notes
    assert note.text.startswith("12 of 12 tokens are not in the vocabulary")
    assert note.text.endswith("7 u7 and 4 more.")


def test_every_string_is_safe_to_show() -> None:
    name = "evil\x1b\u202e\n[/]"
    maps = random_maps(HOSTILE, made_by=provenance(model=name, text_name=name, settings=(("note", name),)))
    shown = report(maps, DrawSpec(title=name))
    strings = [shown.title, shown.subtitle, *(value for _, value in shown.facts), *(note.text for note in shown.notes)]
    for block in shown.blocks:
        if isinstance(block, Heatmap):
            strings += [block.title, *block.rows, *block.columns]
        if isinstance(block, Table):
            strings += [cell for row in block.rows for cell in row if isinstance(cell, str)]
    assert not {"\x1b", "\u202e", "\n", "\x00", "\u200b", "\ud800"} & set("".join(strings))


def test_the_same_record_gives_the_same_report() -> None:
    one, other = report(), report()
    assert (one.title, one.subtitle, one.facts, one.scale) == (other.title, other.subtitle, other.facts, other.scale)
    assert list(one.tables) == list(other.tables)


def test_data_hold_texts_and_numbers_as_they_are() -> None:
    maps = random_maps(HOSTILE, n_layers=2, n_heads=3)
    data = only(maps, [1], [2, 0]).data
    assert data["queries"]["pieces"] == list(HOSTILE) == data["keys"]["pieces"]  # type: ignore[index]
    assert data["layers"] == [1]
    assert data["heads"] == [2, 0]
    assert np.array_equal(data["weights"], maps.weights[[1]][:, [2, 0]])  # type: ignore[arg-type]
    entropy = data["measures"]["entropy"]  # type: ignore[index]
    assert entropy["unit"] == "nats"
    assert np.array_equal(entropy["values"], measured(maps, ["entropy"])[0].values[1:, [2, 0]])
    assert data["text"] == {"name": "sample train[0]", "sha256": "5e" * 32}
    assert data["self_attention"] is True


def test_data_of_all_heads_copy_no_weights() -> None:
    maps = random_maps()
    assert report(maps).data["weights"] is maps.weights


def test_a_model_used_for_what_it_was_not_made_for_is_said_to_be() -> None:
    def said(*settings: tuple[str, Setting], trained: bool = True) -> list[str]:
        made_by = provenance(trained=trained, revision="5e" * 32, settings=settings)
        return [note.text for note in report(random_maps(FILM, made_by=made_by)).notes]

    assert said(("causal", True)) == [
        "The model was trained to look both ways; forced to look back only, it does what it never learned."
    ]
    assert said(("causal", True), trained=False) == said(("causal", False)) == []
    assert said(("made_for_tokens", 13)) == ["The model was made for texts of at most 13 tokens and has 14 here."]
    assert said(("made_for_tokens", 14)) == []
