"""Attention as tables: one line per head, one line per query. Knows records, measurements and `report`."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from attnviz.errors import InvalidOption, TooLarge
from attnviz.measures import MEASURES, Measure
from attnviz.measures.patterns import name_heads
from attnviz.measures.rows import compute_statistics, count_attendable, split_real_queries
from attnviz.records import AttentionMaps, Measurement
from attnviz.records.head_names import MIN_SHARE, NO_NAME, write_share
from attnviz.registry import find
from attnviz.report import Cell, Column, Heatmap, LazyRows, Row, Table
from attnviz.selection import find_token, is_slice
from attnviz.shapes import RealQueries
from attnviz.specs import FigureOptions
from attnviz.views.tokens import TokenSelection, label_keys, label_queries, name_token, select_tokens

MAX_ROWS = 2**20  # of weights: as many as a spreadsheet holds
MIN_MULTIPLE = 2.0  # of an equal share, from which on the first token is a sink of a head
MAX_PAIR_LABEL = 12  # graphemes of each token of a pair: a row per head has to fit a line


def parse_sort(sort: str) -> tuple[Measure, bool]:
    """Return the measure that heads are sorted by, and whether the smallest comes first.

    Raises InvalidOption for one that there is not, and for one that is no number of a single head.
    """
    ascending = sort.strip().startswith("-")
    measure = find(MEASURES, sort.strip().removeprefix("-").lower(), "measure")
    assert isinstance(measure, Measure)
    if measure.level == "layer":
        hint = "It is one number for all heads of a layer together; sort by a number of each head, such as entropy."
        raise InvalidOption(f"heads cannot be sorted by {measure.name}", hint=hint)
    return measure, ascending


def sort_places(
    measurements: Sequence[Measurement], places: Iterable[tuple[int, int]], sort: str
) -> list[tuple[int, int]]:
    """Sort heads by one of the measurements (see `parse_sort`), equal ones in the order given."""
    measure, ascending = parse_sort(sort)
    values = next(m.values for m in measurements if m.name == measure.name)
    return sorted(places, key=lambda place: float(values[place]), reverse=not ascending)


def describe_order(sort: str) -> str:
    """Say by what heads are sorted: "to previous, the largest first"."""
    measure, ascending = parse_sort(sort)
    return f"{measure.name.replace('_', ' ')}, the {'smallest' if ascending else 'largest'} first"


def heads_table(
    maps: AttentionMaps,
    measurements: Sequence[Measurement],
    places: Iterable[tuple[int, int]],
    part: TokenSelection,
    spec: FigureOptions,
    first: Collection[tuple[int, int]] = (),
) -> Table:
    """List one line per head: its numbers, what it looks at, and the first drawn pair with the largest weight.

    `places` are those of layers and heads in the record. In this order, or by the measurement that `spec.sort` names
    (see `parse_sort`), equal ones in this order. Nothing but the order is worked out before it is read. Where there is
    no room for all, those of `first` are listed. Measurements per layer are left out (see `layers_table`).
    """
    measurements = [m for m in measurements if m.level == "head"]
    order, title = list(places), "heads"
    if spec.sort is not None:
        order, title = sort_places(measurements, order, spec.sort), f"heads by {describe_order(spec.sort)}"
    columns = (
        Column("layer"),
        Column("head"),
        *map(_create_column, measurements),
        Column("looks at", "in this text"),
        Column("strongest pair", "without sinks"),
        Column("weight"),
    )

    def rows() -> Iterator[Row]:
        is_nameless = maps.provenance.trained is False or maps.keys.mostly_unknown
        names, here = (name_heads(maps.heads_alone, by_card) for by_card in (True, False))
        for layer, head in order:
            numbers = (float(m.values[layer, head]) for m in measurements)
            pair = _find_strongest_pair(maps, layer, head, part)
            looks_at = "-"  # of the mean of a layer, and of heads that have learned nothing or read nothing known
            if not is_nameless and head < len(names[layer]):
                name, alone = names[layer][head], here[layer][head]
                looks_at = f"{name.pattern} {write_share(name.share) or '(none)'}" if name.pattern else NO_NAME
                looks_at += f"; here {alone.pattern} {write_share(alone.share)}" * (alone.pattern > name.pattern == "")
            yield (maps.layer_numbers[layer], maps.head_names[head], *numbers, looks_at, *pair)

    listed = tuple(n for n, place in enumerate(order) if place in first)
    return Table("heads", title, "heads", columns, LazyRows(rows), first=listed)


def layers_table(maps: AttentionMaps, measurements: Sequence[Measurement], layers: Sequence[int]) -> tuple[Table, ...]:
    """List one line per layer: the numbers of all its heads together, whichever are drawn."""
    of_layers = [m for m in measurements if m.level == "layer"]
    if not of_layers:
        return ()
    n_heads = maps.heads_alone.n_heads
    title = f"all {n_heads} heads of a layer together" if n_heads > 1 else "the one head of a layer"
    rows = tuple((maps.layer_numbers[layer], *(float(m.values[layer]) for m in of_layers)) for layer in layers)
    return (Table("layers", title, "facts", (Column("layer"), *map(_create_column, of_layers)), rows),)


def _create_column(measurement: Measurement) -> Column:
    name, unit = measurement.name.replace("_", " "), measurement.unit
    return Column(name, unit, digits=3 if unit in ("nats", "share") else 2)


def measures_rows(
    maps: AttentionMaps, measurements: Sequence[Measurement], places: Sequence[tuple[int, int]]
) -> Iterator[Row]:
    """Yield a header and a row for each number of the layers and heads at `places`, every digit, for a spreadsheet.

    The head is empty for a whole layer.
    """
    yield ("model", "text", "layer", "head", "measure", "unit", "value")
    of = maps.provenance.model, maps.provenance.text_name
    for m in measurements:
        if m.level == "layer":
            for layer in dict.fromkeys(layer for layer, _ in places):
                yield (*of, maps.layer_numbers[layer], "", m.name, m.unit, float(m.values[layer]))
        else:
            for layer, head in places:
                name = maps.head_names[head]
                yield (*of, maps.layer_numbers[layer], name, m.name, m.unit, float(m.values[layer, head]))


def weights_rows(maps: AttentionMaps, places: Sequence[tuple[int, int]], spec: FigureOptions) -> Iterator[Row]:
    """Return a header and a row for each weight drawn of some heads that may be above 0, for a spreadsheet.

    Rows have every digit and are made when they are read. Raises TooLarge for more cells than a spreadsheet has rows.
    """
    part = select_tokens(maps, spec)
    if spec.query is not None and not is_slice(spec.query):
        part = TokenSelection((find_token(spec.query, maps.queries.pieces),), part.keys)
    n_cells = len(places) * len(part.queries) * len(part.keys)
    if n_cells > MAX_ROWS:
        raise TooLarge(
            f"{n_cells:,} weights are more rows than the {MAX_ROWS:,} of a spreadsheet",
            hint="Choose some with --layer, --head, --tokens or --query; --print json writes all.",
        )
    return _list_weights(maps, places, part)


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
    rows = LazyRows(lambda: _list_top_rows(picture, real_queries, k))  # 72 heads of 256 queries take half a second
    return Table(f"{picture.name}-top", title, "top", tuple(columns), rows)


def _list_top_rows(picture: Heatmap, real_queries: RealQueries, k: int) -> Iterator[Row]:
    keys = [f"{position} {label}" for position, label in zip(picture.column_positions, picture.columns, strict=True)]
    for row, (query, label) in enumerate(zip(picture.row_positions, picture.rows, strict=True)):
        if real_queries[query]:
            weights = picture.values[row]
            best = find_largest(weights, np.flatnonzero(picture.allowed[row]), k)
            pairs: list[Cell] = [cell for key in best for cell in (keys[key], float(weights[key]))]
            yield (query, label, *pairs, *([""] * 2 * (k - len(best))))


def find_largest(weights: np.ndarray, allowed: np.ndarray, k: int) -> list[int]:
    """Return the `k` allowed positions of largest weight, in order."""
    order = np.argsort(-weights[allowed], kind="stable")[:k]
    return [int(key) for key in allowed[order]]


def _find_strongest_pair(maps: AttentionMaps, layer: int, head: int, part: TokenSelection) -> tuple[str, Cell]:
    """Return the drawn pair of largest weight among queries that have a choice of keys, and that weight.

    Markers and a first token that is the head's sink are left out where there are others: most heads give them most.
    The first token of a causal map attends to itself whatever the head does. Both cells are empty where no query drawn
    may attend to any key drawn.
    """
    real, drawn = maps.real_queries, np.isin(np.arange(len(maps.queries)), part.queries)
    places = np.flatnonzero(real)
    choosing = drawn[places] & (count_attendable(maps, layer) > 1)
    chosen = choosing if choosing.any() else drawn[places]
    unremarkable = find_unremarkable_keys(maps, layer, head)
    told = np.array([key for key in part.keys if key not in unremarkable])
    told = told if len(told) else np.array(part.keys)
    ordinary = chosen & ~maps.queries.markers[places]
    chosen = ordinary if ordinary.any() else chosen
    keys = compute_statistics(maps, layer).peak_keys[head]
    if len(told) < len(maps.keys):
        found = []  # which of these keys each query gives most to; -1 where it may attend to none of them
        for block in split_real_queries(maps):
            allowed = maps.read_allowed(layer, block.queries)[:, told]
            cells = np.where(allowed, maps.rows(layer, head, block.queries)[:, told], -1)
            found.append(np.where(allowed.any(axis=1), told[cells.argmax(axis=1)], -1))
        keys = np.concatenate(found)
    weights = np.where(chosen & (keys >= 0), maps.read_cells_of_heads(layer, places, keys)[head], -1)
    best = int(weights.argmax())
    if weights[best] < 0:
        return "", ""
    query = name_token(maps.queries, int(places[best]), MAX_PAIR_LABEL)
    return f"{query} → {name_token(maps.keys, int(keys[best]), MAX_PAIR_LABEL)}", float(weights[best])


def find_unremarkable_keys(maps: AttentionMaps, layer: int, head: int) -> set[int]:
    """Return markers, and the first token where it is a sink of the head: many times what equal attention gives it."""
    found = set(np.flatnonzero(maps.keys.markers).tolist())
    first = int(maps.real_queries.argmax())
    if maps.self_attention and len(maps.keys) > 2:
        share = float(compute_statistics(maps, layer).received[head, first])
        equal = float(np.mean(1 / count_attendable(maps, layer)))
        if share >= MIN_SHARE and share >= MIN_MULTIPLE * equal:
            found.add(first)
    return found
