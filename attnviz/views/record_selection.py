"""What of a record is reported: its heads or their mean, weighed and merged as asked, and measured. Knows measures."""

from collections.abc import Iterator
from typing import NamedTuple

from attnviz.measures import measure_maps
from attnviz.measures.rows import compute_statistics
from attnviz.measures.weighing import weigh_values
from attnviz.measures.words import merge_words
from attnviz.records import AttentionMaps, Measurement
from attnviz.records.mean import add_mean
from attnviz.selection import select_numbers, select_pairs
from attnviz.specs import FigureOptions
from attnviz.views.head_pictures import has_too_many_weights
from attnviz.views.tables import parse_sort

MEAN_HIDES = "divergence_from_mean"  # the measure of what is lost where heads are averaged


class RecordPart(NamedTuple):
    """A record as it is reported, before it is measured; layers and heads are places in it."""

    maps: AttentionMaps
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    names: tuple[str, ...]  # of measures beside those that are asked for

    def walk(self) -> Iterator[int]:
        """Find the pooled maps of these heads, if any, and statistics on the same walk: after measures it is a second.

        Yields each layer before it is walked over, which takes long of a long text.
        """
        if has_too_many_weights(self.maps, len(self.layers) * len(self.heads)):
            for layer in self.layers:
                yield layer
                compute_statistics(self.maps, layer, with_pools=True)

    def measure(self, spec: FigureOptions) -> tuple[Measurement, ...]:
        """Measure it. Raises InvalidOption as measures do."""
        found = measure_maps(self.maps, spec.measure)
        more = [name for name in self.names if name not in [each.name for each in found]]
        of_more = measure_maps(self.maps, more) if more else ()
        return (*found, *of_more)


def choose_from_record(maps: AttentionMaps, spec: FigureOptions) -> RecordPart:
    """Choose layers and heads of a record, weigh and merge its weights.

    Where the mean over heads is chosen, it is the last head of each layer, and how far the heads are from it is
    measured, too. Raises InvalidSelection for a layer or head that is not there, InvalidOption as these do.
    """
    layers = select_numbers(spec.layer, maps.layer_numbers, "layer")
    heads = select_numbers(spec.head, maps.head_numbers, "head", mean=True)
    picked = select_pairs(spec.pick, maps.layer_numbers, maps.head_numbers) if spec.pick else ()
    if spec.weigh == "values":
        maps = weigh_values(maps)
    if spec.merge is not None:
        maps = merge_words(maps, spec.merge)
    names = [parse_sort(spec.sort)[0].name] if spec.sort is not None else []
    if maps.n_heads in (*heads, *(head for _, head in picked)):
        heads = tuple(dict.fromkeys((*heads, maps.n_heads)))
        maps = add_mean(maps)
        names.append(MEAN_HIDES)
    return RecordPart(maps, layers, heads, tuple(names))


def select_from_record(
    maps: AttentionMaps, spec: FigureOptions
) -> tuple[AttentionMaps, tuple[int, ...], tuple[int, ...], tuple[Measurement, ...]]:
    """Choose of a record, layers and heads as places in it, and measure it at once. Raises as these two do."""
    part = choose_from_record(maps, spec)
    for _ in part.walk():
        pass
    return part.maps, part.layers, part.heads, part.measure(spec)
