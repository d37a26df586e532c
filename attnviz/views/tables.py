"""Attention as tables: one line per head, one line per query. Knows records, measurements and `report`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from attnviz.display import name_measure
from attnviz.errors import TooLarge
from attnviz.measures import parse_sort
from attnviz.measures.shown import Findings, RecordPart
from attnviz.records import AttentionMaps, Measurement
from attnviz.records.head_names import NO_NAME, write_share
from attnviz.records.part import TokenSelection
from attnviz.report import Cell, Column, Heatmap, LazyRows, Row, Table
from attnviz.shapes import RealQueries
from attnviz.specs import FigureOptions
from attnviz.views.tokens import label_keys, label_queries, name_token

MAX_ROWS = 2**20  # of weights: as many as a spreadsheet holds
MAX_PAIR_LABEL = 12  # graphemes of each token of a pair: a row per head has to fit a line


def describe_order(sort: str) -> str:
    """Say by what heads are sorted: "to previous, the largest first"."""
    measure, ascending = parse_sort(sort)
    return f"{measure.name.replace('_', ' ')}, the {'smallest' if ascending else 'largest'} first"


def heads_table(part: RecordPart, measured: Findings, spec: FigureOptions) -> Table:
    """List one line per head: its numbers, what it looks at, and the first drawn pair with the largest weight.

    Nothing but the order is worked out before it is read. Where there is no room for all heads, the notable ones are
    listed. Measurements per layer are left out (see `layers_table`).
    """
    maps, order = part.maps, measured.order
    measurements = [m for m in (*measured.numbers, measured.hidden) if m is not None and m.level == "head"]
    title = "heads" if spec.sort is None else f"heads by {describe_order(spec.sort)}"
    columns = (
        Column("layer"),
        Column("head"),
        *(replace(measure_column(each.name, each.unit), minor=True) for each in measurements),
        Column("looks at", "in this text" if maps.grid is None else "in this image"),
        Column("strongest pair", "without sinks"),
        Column("weight"),
    )

    def rows() -> Iterator[Row]:
        is_nameless = maps.provenance.trained is False or maps.keys.mostly_unknown
        names, here = measured.names, measured.here
        for layer, head in order:
            numbers = (float(m.values[layer, head]) for m in measurements)
            looks_at = "-"  # of the mean of a layer, and of heads that have learned nothing or read nothing known
            if not is_nameless and head < maps.heads_alone.n_heads:
                name, alone = names[layer][head], here[layer][head]
                looks_at = f"{name.pattern} {write_share(name.share) or '(none)'}" if name.pattern else NO_NAME
                looks_at += f"; here {alone.pattern} {write_share(alone.share)}" * (alone.pattern > name.pattern == "")
            pair: tuple[str, Cell] = "", ""
            if found := measured.strongest(layer, head):
                query = name_token(maps.queries, found.query, MAX_PAIR_LABEL)
                pair = f"{query} → {name_token(maps.keys, found.key, MAX_PAIR_LABEL)}", found.weight
            yield (maps.layer_numbers[layer], maps.head_names[head], *numbers, looks_at, *pair)

    listed = tuple(n for n, place in enumerate(order) if place in (measured.notable or ()))
    return Table("heads", title, "heads", columns, LazyRows(rows), first=listed)


def layers_table(part: RecordPart, measured: Findings) -> tuple[Table, ...]:
    """List one line per layer: the numbers of all its heads together, whichever are drawn."""
    maps, (layers, _) = part.maps, part.drawn
    of_layers = [m for m in measured.numbers if m.level == "layer"]
    if not of_layers:
        return ()
    n_heads = maps.heads_alone.n_heads
    title = f"all {n_heads} heads of a layer together" if n_heads > 1 else "the one head of a layer"
    rows = tuple((maps.layer_numbers[layer], *(float(m.values[layer]) for m in of_layers)) for layer in layers)
    columns = (Column("layer"), *(measure_column(each.name, each.unit) for each in of_layers))
    return (Table("layers", title, "facts", columns, rows),)


def measure_column(name: str, unit: str) -> Column:
    """Return the column of a measure, with a unit where its name does not say it, as that of effective keys does."""
    title = name_measure(name)
    return Column(title, "" if unit in title else unit, digits=3 if unit in ("nats", "share") else 2)


def measures_rows(
    maps: AttentionMaps, measurements: Sequence[Measurement], places: Sequence[tuple[int, int]]
) -> Iterator[Row]:
    """Yield a header and a row for each number of the layers and heads at `places`, every digit, for a spreadsheet.

    The head is empty for a whole layer.
    """
    yield ("model", "text", "layer", "head", "measure", "unit", "value")
    of = maps.provenance.model, maps.provenance.text_name
    for m in measurements:
        for place in dict.fromkeys(place[: m.values.ndim] for place in places):  # a layer, or a layer and a head
            name = maps.head_names[place[1]] if len(place) > 1 else ""
            yield (*of, maps.layer_numbers[place[0]], name, m.name, m.unit, float(m.values[place]))


def weights_rows(part: RecordPart) -> Iterator[Row]:
    """Return a header and a row for each weight drawn of some heads that may be above 0, for a spreadsheet.

    Rows have every digit and are made when they are read. Raises TooLarge for more cells than a spreadsheet has rows.
    """
    maps, places, tokens = part.maps, part.places, part.tokens.asking
    n_cells = len(places) * len(tokens.queries) * len(tokens.keys)
    if n_cells > MAX_ROWS:
        raise TooLarge(
            f"{n_cells:,} weights are more rows than the {MAX_ROWS:,} of a spreadsheet",
            hint="Choose some with --layer, --head, --tokens or --query; --print json writes all.",
        )
    return _list_weights(maps, places, tokens)


def _list_weights(maps: AttentionMaps, places: Sequence[tuple[int, int]], part: TokenSelection) -> Iterator[Row]:
    yield ("model", "text", "layer", "head", "query", "key", "query_token", "key_token", "weight")
    of, queries, keys = (maps.provenance.model, maps.provenance.text_name), label_queries(maps), label_keys(maps)
    for layer, head in places:
        names = maps.layer_numbers[layer], maps.head_names[head]
        for query in part.queries:
            row = slice(query, query + 1)
            weights = maps.rows(layer, head, row)[0]  # float32, which is written with the fewest digits
            allowed = maps.read_allowed(layer, row)[0].tolist()
            for key in part.keys:
                if allowed[key]:
                    yield (*of, *names, query, key, queries[query], keys[key], weights[key])


def top_table(picture: Heatmap, real_queries: RealQueries, top_k: int) -> Table:
    """List for each real query drawn its `top_k` keys, largest weight first, of equal ones the earlier.

    A key that may not be attended to is never listed; a query with fewer keys than `top_k` leaves its last cells empty.
    """
    k = min(max(1, top_k), len(picture.columns))
    columns = [Column("query"), Column("token")]
    for rank in range(1, k + 1):
        columns += [Column(f"key {rank}"), Column(f"weight {rank}")]
    title = f"{picture.title}: " + (f"top {k} keys of each query" if k > 1 else "top key of each query")

    def rows() -> Iterator[Row]:  # 72 heads of 256 queries take half a second
        keys = [f"{at} {label}" for at, label in zip(picture.column_positions, picture.columns, strict=True)]
        for row, (query, label) in enumerate(zip(picture.row_positions, picture.rows, strict=True)):
            if real_queries[query]:
                weights = picture.values[row]
                best = find_largest(weights, np.flatnonzero(picture.allowed[row]), k)
                pairs: list[Cell] = [cell for key in best for cell in (keys[key], float(weights[key]))]
                yield (query, label, *pairs, *([""] * 2 * (k - len(best))))

    return Table(f"{picture.name}-top", title, "top", tuple(columns), LazyRows(rows))


def find_largest(weights: np.ndarray, allowed: np.ndarray, k: int) -> list[int]:
    """Return the `k` allowed positions of largest weight, in order."""
    order = np.argsort(-weights[allowed], kind="stable")[:k]
    return [int(key) for key in allowed[order]]
