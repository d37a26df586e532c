"""Tables by hand: the strongest pair, and the top keys of each query."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from attnviz.errors import TooLarge
from attnviz.measures.shown import choose_from_record
from attnviz.records import AttentionMaps, Tokens
from attnviz.records.part import select_tokens
from attnviz.report import Row, Table
from attnviz.specs import FigureOptions
from attnviz.views import tables
from attnviz.views.head_pictures import draw_heatmaps
from tests.made import random_maps, record, sink_maps, tokens, uniform_maps, windowed_maps

BY_HAND = record(np.array([[[[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.4, 0.2, 0.4]]]]), tokens("a", "b", "c"))


def heads_table(maps: AttentionMaps, **choice: bool | str | None) -> Table:
    spec = FigureOptions(**choice)  # type: ignore[arg-type]
    part = choose_from_record(maps, spec)
    return tables.heads_table(part, part.measure(spec), spec)


def weights_rows(maps: AttentionMaps, **choice: Any) -> Iterator[Row]:
    return tables.weights_rows(choose_from_record(maps, FigureOptions(**choice)))


def top_table(maps: AttentionMaps, layer: int, head: int, top_k: int, **choice: bool) -> Table:
    (picture,) = draw_heatmaps(maps, [(layer, head)], select_tokens(maps, FigureOptions(**choice)))  # type: ignore[arg-type]
    return tables.top_table(picture, maps.real_queries, top_k)


def test_heads_by_hand() -> None:
    table = heads_table(BY_HAND)
    assert [(c.header, c.unit) for c in table.columns] == [
        ("layer", ""),
        ("head", ""),
        ("entropy", "nats"),
        ("effective keys", ""),
        ("distance", "tokens"),
        ("peak", "share"),
        ("looks at", "in this text"),
        ("strongest pair", "without sinks"),
        ("weight", ""),
    ]
    ((layer, head, entropy, keys, distance, peak, looks_at, pair, weight),) = table.rows
    assert (layer, head, looks_at, pair) == (0, 0, "-", "1 b → 2 c")
    assert weight == pytest.approx(0.8)
    assert entropy == pytest.approx((1.0296530 + 0.6390319 + 1.0549202) / 3)
    assert keys == pytest.approx((2.8000941 + 1.8946457 + 2.8717459) / 3)
    assert distance == pytest.approx((1.1 + 0.9 + 1.0) / 3)
    assert peak == pytest.approx((0.5 + 0.8 + 0.4) / 3)


def square(*rows: Sequence[float], pieces: Tokens | None = None, allowed: np.ndarray | None = None) -> AttentionMaps:
    return record(np.array([[rows]]), pieces, attendable=allowed)


PAIRS: dict[str, tuple[AttentionMaps, str]] = {
    "of equal ones the earliest": (uniform_maps(3), "0 t0 → 0 t0"),
    "of one token its own": (uniform_maps(1), "0 t0 → 0 t0"),
    "of a causal map one that had a choice": (
        square([1, 0, 0], [0.7, 0.3, 0], [0.2, 0.2, 0.6], allowed=np.tri(3, dtype=bool)),
        "1 t1 → 0 t0",
    ),
    "none of padding": (
        square([0.6, 0.4, 0], [0.5, 0.5, 0], [1, 0, 0], allowed=np.array([[True, True, False]] * 3)),
        "0 t0 → 0 t0",
    ),
    "of words where there are markers": (
        square(
            *([0.9, 0.1, 0, 0], [0.6, 0.1, 0.3, 0], [0.5, 0.2, 0.1, 0.2], [0, 0, 0, 1]),
            pieces=tokens("[CLS]", "a", "b", "[SEP]", special=["[CLS]", "[SEP]"]),
        ),
        "1 a → 2 b",
    ),
    "of words where the first token is a sink": (
        square([1, 0, 0, 0], [0.9, 0.1, 0, 0], [0.7, 0.2, 0.1, 0], [0.6, 0, 0.4, 0], pieces=tokens(*"abcd")),
        "3 d → 2 c",
    ),
}


@pytest.mark.parametrize(("maps", "pair"), PAIRS.values(), ids=PAIRS)
def test_the_strongest_pair(maps: AttentionMaps, pair: str) -> None:
    assert heads_table(maps).rows[0][-2] == pair


def test_forbidden_keys_are_never_listed() -> None:
    maps = random_maps(("a", "b", "c"), causal=True, padding=1)
    table = top_table(maps, 0, 0, 9)
    assert len(table.columns) == 2 + 2 * 4  # no more columns than keys
    for query, row in enumerate(table.rows):
        listed = [int(str(cell).split()[0]) for cell in row[2::2] if cell]
        assert sorted(listed) == list(range(query + 1))
        assert row[2 + 2 * len(listed) :] == ("",) * (2 * (4 - len(listed)))


def test_a_hidden_token_is_neither_query_nor_key_and_the_others_keep_their_positions() -> None:
    table = top_table(BY_HAND, 0, 0, 3, drop_first=True)
    assert [row[:3] + row[4:5] for row in table.rows] == [(1, "b", "2 c", "1 b"), (2, "c", "2 c", "1 b")]
    assert table.rows[0][3::2] == pytest.approx((0.8, 0.1))  # not 8/9 and 1/9
    sharp = record(np.array([[[[1, 0, 0], [0.1, 0.1, 0.8], [0.9, 0, 0.1]]]]), tokens("a", "b", "c"))
    row = heads_table(sharp, drop_first=True).rows[0]
    assert row[-2] == "1 b → 2 c"
    assert row[-1] == pytest.approx(0.8)
    assert row[2:6] == heads_table(sharp).rows[0][2:6]  # measures count every token


def test_queries_that_may_attend_to_nothing_that_is_drawn() -> None:
    attendable = np.array([[1, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=bool)
    maps = record(np.array([[1, 0, 0]] * 3)[None, None], attendable=attendable)
    assert heads_table(maps, drop_first=True).rows[0][-2:] == ("", "")
    assert [*top_table(maps, 0, 0, 1, drop_first=True).rows] == [(1, "t1", "", ""), (2, "t2", "", "")]


def test_each_layers_own_window_and_a_sink() -> None:
    maps = windowed_maps(4, window=2)
    listed = [[cell for cell in row[2::2] if cell] for row in top_table(maps, 1, 0, 4).rows]
    assert [sorted(keys) for keys in listed] == [["0 t0"], ["0 t0", "1 t1"], ["1 t1", "2 t2"], ["2 t2", "3 t3"]]
    with_sink = sink_maps(share=0.25)
    found = heads_table(with_sink)
    assert [row[[c.header for c in found.columns].index("to sink")] for row in found.rows] == [0.25, 0.0]
    weights = top_table(with_sink, 0, 0, 4).rows[0][3::2]
    assert sum(float(weight) for weight in weights) == pytest.approx(0.75)
    assert weights[0] == float(with_sink.weights[0, 0, 0].max())


# Each head attends alike to so many of three keys.
SORTED = record(np.array([[(np.arange(3) < n) / n] * 3 for n in (1, 3, 3, 2)]).reshape(2, 2, 3, 3))


@pytest.mark.parametrize(
    ("sort", "expected", "title"),
    [
        (None, [(0, 0), (0, 1), (1, 0), (1, 1)], "heads"),
        ("entropy", [(0, 1), (1, 0), (1, 1), (0, 0)], "heads by entropy, the largest first"),
        ("-Entropy", [(0, 0), (1, 1), (0, 1), (1, 0)], "heads by entropy, the smallest first"),
    ],
)
def test_heads_in_the_order_of_a_measure(sort: str | None, expected: list[tuple[int, int]], title: str) -> None:
    table = heads_table(SORTED, sort=sort)
    assert [row[:2] for row in table.rows] == expected
    assert table.title == title
    assert {*table.rows} == {*heads_table(SORTED).rows}  # whole rows are moved


def test_weights_are_rows_with_every_digit_of_cells_that_are_allowed() -> None:
    maps = windowed_maps()
    places = [(1, 0), (0, 1)]
    header, *rows = weights_rows(maps, pick=("1.0,0.1",))
    assert header == ("model", "text", "layer", "head", "query", "key", "query_token", "key_token", "weight")
    expected = [
        (layer, head, query, key, f"t{query}", f"t{key}", maps.weights[layer, head, query, key])
        for layer, head in places
        for query, key in zip(*np.nonzero(maps.attendable[layer]), strict=True)
    ]
    assert [(*row[2:-1], np.float32(row[-1])) for row in rows] == expected


def test_rows_of_weights_are_those_that_are_drawn() -> None:
    maps = random_maps("abcde", n_heads=3)
    for choice, queries, keys in (
        ({"tokens": "1:3"}, [1, 2], [1, 2]),
        ({"query": "d", "drop_first": True}, [3], [1, 2, 3, 4]),
        ({"query": "1:3", "key": "4:"}, [1, 2], [4]),
    ):
        _, *rows = weights_rows(maps, head=("mean",), **choice)
        assert [row[3:6] for row in rows] == [("mean", query, key) for query in queries for key in keys]
        mean = maps.weights[0].mean(axis=0)[np.ix_(queries, keys)].ravel()
        assert [float(row[-1]) for row in rows] == pytest.approx(mean, abs=1e-7)


def test_more_weights_than_a_spreadsheet_has_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_ROWS", 49)
    maps = random_maps("abcde", n_heads=2)
    with pytest.raises(TooLarge, match=r"50 weights are more rows than the 49 of a spreadsheet. Choose some"):
        weights_rows(maps)
    assert len(list(weights_rows(maps, head=("0",)))) == 26
