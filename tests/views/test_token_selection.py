"""What is hidden, and what share of attention that is, by hand; and what tokens are called."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attnviz.errors import InvalidOption, InvalidSelection
from attnviz.measures.shown import measure_hidden
from attnviz.records import AttentionMaps, Tokens
from attnviz.records.part import TokenSelection, select_tokens
from attnviz.specs import FigureOptions
from attnviz.views.tokens import label_token, label_tokens, name_token
from tests.made import cross_maps, random_maps, record, sink_maps, tokens

MARKERS = ("[CLS]", "[SEP]")
DROPPED, BOTH = FigureOptions(drop_first=True), FigureOptions(hide_special=True, drop_first=True)
MARKERS_ALONE = record(np.eye(2)[None, None], tokens(*MARKERS, special=MARKERS))


def marked(weights: np.ndarray) -> AttentionMaps:
    """[CLS] a b [SEP]."""
    return record(weights[None, None], tokens("[CLS]", "a", "b", "[SEP]", special=MARKERS))


def hidden(maps: AttentionMaps, **options: bool | str) -> Any:
    """What share of each head's attention these options hide."""
    return measure_hidden(maps, select_tokens(maps, FigureOptions(**options)))  # type: ignore[arg-type]


def test_what_is_drawn() -> None:
    maps = marked(np.eye(4))
    assert select_tokens(maps, FigureOptions()) == TokenSelection((0, 1, 2, 3), (0, 1, 2, 3))
    for without_markers in (FigureOptions(hide_special=True), BOTH):
        assert select_tokens(maps, without_markers) == TokenSelection((1, 2), (1, 2))
    assert select_tokens(maps, FigureOptions(drop_first=True)) == TokenSelection((1, 2, 3), (1, 2, 3))
    assert select_tokens(random_maps("ab", padding=2), FigureOptions(hide_special=True)).keys == (0, 1)


def test_the_first_token_of_either_text() -> None:
    assert select_tokens(cross_maps(2, 3), FigureOptions(drop_first=True)) == TokenSelection((1,), (1, 2))
    maps = record(np.full((1, 1, 1, 2), 0.5), tokens("q"), tokens("</s>", "k", special=("</s>",)))
    assert select_tokens(maps, FigureOptions(hide_special=True)) == TokenSelection((0,), (1,))


def test_a_part_is_cut_out_and_keeps_the_equal_share_of_the_whole() -> None:
    maps = random_maps([*"abcd"], causal=True)
    part = select_tokens(maps, FigureOptions(tokens="2:4"))
    assert part == TokenSelection((2, 3), (2, 3), (0, 1, 2, 3))
    rows = maps.weights[0, 0][part.rows], maps.attendable[0][part.rows]
    assert part.equal_share(*rows) == pytest.approx([1 / 3, 1 / 4])
    assert not part.renormalizes(maps)
    of_rest = select_tokens(maps, FigureOptions(tokens="c … d", drop_first=True))
    weights = maps.weights[0, 0]
    assert of_rest.equal_share(weights[2:], maps.attendable[0, 2:]) == pytest.approx(
        [weights[2, 1:3].sum() / 2, weights[3, 1:4].sum() / 3]
    )
    assert of_rest.renormalizes(maps)
    share: Any = measure_hidden(maps, part)
    assert share.values[0, 0] == pytest.approx(weights[2:, :2].sum(axis=1).mean())
    with pytest.raises(InvalidOption, match="--tokens needs one text"):
        select_tokens(cross_maps(2, 3), FigureOptions(tokens="0:1"))


def test_the_share_of_what_is_hidden_by_hand() -> None:
    maps = marked(np.array([[1, 0, 0, 0], [0.5, 0.25, 0, 0.25], [0.25, 0.25, 0.25, 0.25], [0, 0, 0, 1]]))
    share = hidden(maps, hide_special=True)
    assert share.values.tolist() == [[(0.75 + 0.5) / 2]]  # of the two queries that are drawn
    assert (share.name, share.unit, share.bounds) == ("hidden", "share", (0.0, 1.0))
    assert hidden(maps, hide_special=True, query="a").values.tolist() == [[0.75]], "of the one that is drawn"
    assert hidden(maps) is None


def test_a_sink_is_no_token_and_padding_asks_nothing() -> None:
    with_sink = sink_maps(share=0.4)
    bare = record(with_sink.weights / with_sink.weights.sum(axis=-1, keepdims=True))
    assert hidden(with_sink, drop_first=True).values == pytest.approx(hidden(bare, drop_first=True).values, abs=1e-6)
    rows = np.array([[0.5, 0.5, 0], [0.25, 0.75, 0], [1, 0, 0]])
    padded = record(rows[None, None], attendable=np.array([[True, True, False]] * 3))
    assert hidden(padded, drop_first=True).values.tolist() == [[0.25]]


def test_keys_that_are_all_drawn_hide_nothing() -> None:
    maps = record(np.full((1, 1, 2, 2), 0.5), tokens("<s>", "q", special=("<s>",)), tokens("k", "l"))
    share = hidden(maps, hide_special=True)
    assert share.values.tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("maps", "spec", "says"),
    [
        (MARKERS_ALONE, FigureOptions(hide_special=True), "--hide-special leaves none of 2 tokens"),
        (cross_maps(2, 1), DROPPED, "--drop-first leaves none of 1 key"),
        (cross_maps(1, 2), DROPPED, "--drop-first leaves none of 1 query"),
        (random_maps("a", padding=2), DROPPED, "--drop-first leaves nothing but padding"),
        (random_maps("ab"), replace(DROPPED, tokens="a"), "--drop-first with --tokens leaves none of 2 tokens"),
    ],
)
def test_nothing_would_be_left(maps: AttentionMaps, spec: FigureOptions, says: str) -> None:
    with pytest.raises(InvalidSelection) as caught:
        select_tokens(maps, spec)
    assert str(caught.value) == f"{says}. Leave the option out, or give a longer text."


# --- What tokens are called beside a map ---


def cut(text: str, *spans: tuple[int, int], special: tuple[int, ...] = ()) -> Tokens:
    pieces = tuple(text[start:end] for start, end in spans)
    return Tokens(pieces, spans, tuple(place in special for place in range(len(spans))))


def test_a_token_is_its_characters_without_the_space_before_it() -> None:
    tokens = cut("the  cat\n", (0, 3), (3, 4), (4, 8), (8, 9))
    assert label_tokens(tokens) == ("the", "␣", "cat", "⏎")
    assert name_token(tokens, 2) == "2 cat"


def test_only_one_space_is_left_out() -> None:
    assert label_token(cut("   cat", (0, 6)), 0) == "␣␣cat"


def test_bytes_of_one_character_are_counted() -> None:
    tokens = cut("a 猫坐", (0, 1), (1, 3), (2, 3), (2, 3), (3, 4))
    assert label_tokens(tokens) == ("a", "猫 1/3", "猫 2/3", "猫 3/3", "坐")
    assert [label_token(tokens, position) for position in range(5)] == list(label_tokens(tokens))


@pytest.mark.parametrize("spans", [((0, 0), (0, 2)), ((0, 2), (2, 2), (2, 4))])
def test_markers_share_nothing(spans: tuple[tuple[int, int], ...]) -> None:
    assert not any("/" in each for each in label_tokens(cut("abcd", *spans)))
