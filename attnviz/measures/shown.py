"""What is shown of a record: chosen first, and refused here, then measured, each number once. Knows records and specs.

Heads or their mean are chosen, weighed and merged as asked. Views arrange what is measured, and measure nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from attnviz.errors import InvalidOption
from attnviz.measures import measure_maps, parse_sort
from attnviz.measures.notable import Pair, choose_notable, find_pairs_apart, find_strongest_pair, read_moved_rows
from attnviz.measures.patterns import measure_patterns, name_heads
from attnviz.measures.rows import RowStatistics, compute_equal_shares, compute_statistics, has_too_many_weights
from attnviz.measures.weighing import find_reachable, rollout, weigh_values
from attnviz.measures.words import merge_words
from attnviz.records import AttentionMaps, Measurement
from attnviz.records.head_names import HeadPattern
from attnviz.records.mean import add_mean
from attnviz.records.part import Place, TokenSelection, list_left_out, select_tokens
from attnviz.selection import select_numbers, select_pairs
from attnviz.shapes import Cells, PerHead, PerRow, Shown
from attnviz.specs import FigureOptions

MAX_FILES = 24  # heads up to which each has a file of its own
N_NOTABLE = 12


class Findings(NamedTuple):
    """What is measured of the part of a record that is shown; what it does not show is not measured."""

    numbers: tuple[Measurement, ...]  # in the order asked for
    hidden: Measurement | None  # how much goes to keys that are not drawn, where some are not
    order: tuple[Place, ...]  # heads, sorted where that is asked for
    notable: tuple[Place, ...] | None  # those worth a look, the first first; None where each is large enough
    pairs: list[Pair]  # of tokens apart, the strongest first
    strongest: Callable[[int, int], Pair | None]  # of a layer and head, found when it is asked for
    statistics: Mapping[int, RowStatistics]  # by layer, with pools: of maps too large to be drawn
    equal: Mapping[int, PerRow]  # by layer: what each query would give to each key if all got the same
    rolled: tuple[Cells, Shown] | None  # rollout, and where it may lie
    patterns: tuple[tuple[str, PerHead, PerHead], ...]  # see `measure_patterns`
    names: tuple[tuple[HeadPattern, ...], ...]  # by layer and head; the mean, which is the last, has none
    here: tuple[tuple[HeadPattern, ...], ...]  # by this text alone


class RecordPart(NamedTuple):
    """What is chosen of a record, before it is measured; layers, heads and places are those in it."""

    maps: AttentionMaps
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    places: tuple[Place, ...]  # of layers and heads
    tokens: TokenSelection
    is_pooled: bool  # there are more weights than are drawn one by one

    @property
    def drawn(self) -> tuple[tuple[int, ...], ...]:
        """Return the layers and the heads of these places, each once."""
        return tuple(tuple(dict.fromkeys(side)) for side in zip(*self.places, strict=True))

    def walk(self) -> Iterator[int]:
        """Find the pooled maps of these heads, if any, and statistics on the same walk: after measures it is a second.

        Yields each layer before it is walked over, which takes long of a long text.
        """
        if has_too_many_weights(self.maps, len(self.layers) * len(self.heads)):
            for layer in self.layers:
                yield layer
                compute_statistics(self.maps, layer, with_pools=True)

    def measure(self, spec: FigureOptions) -> Findings:
        """Measure it; of a mean over heads also how far they are from it.

        Raises InvalidOption as measures do, and for a rollout from one text to another.
        """
        maps, alone, places, (layers, heads) = self.maps, self.maps.heads_alone, self.places, self.drawn
        is_large = has_too_many_weights(maps, len(layers) * len(heads))
        statistics = {layer: compute_statistics(maps, layer, with_pools=True) for layer in layers if is_large}
        found = measure_maps(maps, spec.measure)
        also = [] if spec.sort is None else [parse_sort(spec.sort)[0].name]
        also += [] if maps is alone else ["divergence_from_mean"]  # what is lost where heads are averaged
        more = [name for name in also if name not in [each.name for each in found]]
        numbers = (*found, *(measure_maps(maps, more) if more else ()))
        order, notable = places, None
        if spec.sort is not None:
            measure, ascending = parse_sort(spec.sort)
            values = next(each.values for each in numbers if each.name == measure.name)
            order = tuple(sorted(places, key=lambda place: float(values[place]), reverse=not ascending))
        single = [place for place in order if place[1] < alone.n_heads]
        if not spec.pick and len(single) > MAX_FILES:
            first = range(N_NOTABLE) if spec.sort else choose_notable(read_moved_rows(alone, single), N_NOTABLE)
            notable = tuple(single[n] for n in first)
        has_overview = len(single) == len(places) and (len(places) > 1 or spec.pick) and self.tokens.asked is None
        return Findings(
            numbers=numbers,
            hidden=measure_hidden(maps, self.tokens),
            order=order,
            notable=notable,
            pairs=find_pairs_apart(maps, single, self.tokens) if maps.grid is None or spec.kind != "map" else [],
            strongest=partial(find_strongest_pair, maps, self.tokens),
            statistics=statistics,
            equal={layer: compute_equal_shares(maps, layer) for layer in layers},
            rolled=(rollout(alone).astype(np.float32), find_reachable(maps)) if spec.rollout else None,
            patterns=measure_patterns(alone) if has_overview else (),
            names=tuple((*of_layer, HeadPattern()) for of_layer in name_heads(alone)),
            here=tuple((*of_layer, HeadPattern()) for of_layer in name_heads(alone, by_card=False)),
        )


def measure_hidden(maps: AttentionMaps, part: TokenSelection) -> Measurement | None:
    """Return the share of what goes to tokens that goes to hidden keys: a mean over the queries drawn, padding aside.

    Nothing where all tokens are drawn.
    """
    left_out = list_left_out(maps.keys, part.keys)
    if not left_out and not list_left_out(maps.queries, part.queries):
        return None
    queries = np.array([query for query in part.asking.queries if maps.real_queries[query]])
    values = np.empty((maps.n_layers, maps.n_heads))
    for layer, head in np.ndindex(values.shape):
        rows = maps.rows(layer, head, queries)
        shares = rows[:, left_out].sum(axis=-1, dtype=np.float64) / rows.sum(axis=-1, dtype=np.float64)
        values[layer, head] = shares.mean()
    return Measurement("hidden", "share", values, (0.0, 1.0))


def choose_from_record(maps: AttentionMaps, spec: FigureOptions) -> RecordPart:
    """Choose layers, heads and tokens of a record, weigh and merge its weights.

    Where the mean over heads is chosen, it is the last head of each layer. Raises InvalidSelection for a layer, head or
    token that is not there and where no token is left, InvalidOption as weighing and merging do, and where tokens are
    left out of maps that are too large to be drawn.
    """
    layers = select_numbers(spec.layer, maps.layer_numbers, "layer")
    heads = select_numbers(spec.head, maps.head_numbers, "head", mean=True)
    picked = select_pairs(spec.pick, maps.layer_numbers, maps.head_numbers) if spec.pick else ()
    if spec.weigh == "values":
        maps = weigh_values(maps)
    if spec.merge is not None:
        maps = merge_words(maps, spec.merge)
    if maps.n_heads in (*heads, *(head for _, head in picked)):
        heads = tuple(dict.fromkeys((*heads, maps.n_heads)))
        maps = add_mean(maps)
    places = picked or tuple(product(layers, heads))
    tokens = select_tokens(maps, spec)
    is_pooled = has_too_many_weights(maps, len(places), tokens)
    if is_pooled and (len(tokens.queries) < len(maps.queries) or len(tokens.keys) < len(maps.keys)):
        raise InvalidOption(
            f"{len(tokens.queries):,} queries and {len(tokens.keys):,} keys of {len(places)} heads are too many to be "
            "drawn without the others",
            hint="Draw all of them, fewer heads, or a part with --tokens, --query 0:500 or --key.",
        )
    return RecordPart(maps, layers, heads, places, tokens, is_pooled)
