"""What heads attend to over many texts: words, patterns, and offsets from the query. Knows records.

Shares of attention are summed as whole numbers, so that parts merge to the same bits in any order.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from attnviz.commands.survey.survey import OFFSET, PATTERN, WORD
from attnviz.errors import NotMeasurable
from attnviz.measures import PATTERNS, measure_maps
from attnviz.measures.concentration import average_received
from attnviz.measures.rows import MAX_OFFSET, count_attendable, sum_by_distance
from attnviz.records import AttentionMaps
from attnviz.table.numbers import Numbers
from attnviz.table.parquet import INTEGER, TEXT

UNKNOWN = "[UNK]"  # all words that the vocabulary does not hold together: there is no end of them
MASS_BITS = 30  # shares of attention are summed in multiples of 2⁻³⁰: nine digits, and 8 · 10⁹ of them fit
KEYS, COUNTS = {"kind": TEXT, "name": TEXT}, {"n": INTEGER, "equal": INTEGER}  # columns, beside one for each head
OFFSETS = [str(offset) for offset in range(-MAX_OFFSET, MAX_OFFSET + 1)]
NOTHING = Numbers.from_rows([], [*KEYS], KEYS | COUNTS)


def list_attended(
    maps: AttentionMaps, uniform: AttentionMaps, heads: Sequence[tuple[int, int]], shares: Mapping[str, np.ndarray]
) -> Numbers:
    """Return a row for each offset, each pattern and each token with its word: what it receives of each head.

    Beside it stands what it receives in `uniform`, of attention that favours no key, and how many queries, texts or
    tokens that is of. A word may stand in many rows. `shares` are those of patterns; a text may lack some.
    """
    keys, n_queries = maps.keys, int(maps.real_queries.sum())
    equals = {name: float(values.mean()) for name, values in measure_heads(uniform, [*PATTERNS]).items()}
    if maps.sink is not None:
        equals["to_sink"] = float(np.mean([1 / (1 + count_attendable(maps, layer)) for layer in range(maps.n_layers)]))
    patterns = [name for name in PATTERNS if name in shares]
    names = np.array(keys.words, dtype=object)[keys.places]
    for token in np.flatnonzero(keys.markers | np.array(keys.unknown)).tolist():
        names[token] = UNKNOWN if keys.unknown[token] else keys.pieces[token]
    received = average_received(maps).reshape(len(heads), -1), average_received(uniform).mean(axis=(0, 1))
    by_offset = sum_by_distance(maps).reshape(len(heads), -1), sum_by_distance(uniform).mean(axis=(0, 1))
    by_pattern = np.array([shares[name] for name in patterns]).T, np.array([equals[name] for name in patterns])
    mass, equal = (
        np.rint(np.concatenate([near, of, word * n_queries], axis=-1) * 2.0**MASS_BITS).astype(np.int64)
        for near, of, word in zip(by_offset, by_pattern, received, strict=True)
    )
    lengths = len(OFFSETS), len(patterns), len(names)
    columns: dict[str, object] = {"kind": np.repeat([OFFSET, PATTERN, WORD], lengths).tolist()}
    columns |= {"name": [*OFFSETS, *patterns, *names], "n": np.repeat([n_queries, 1, 1], lengths), "equal": equal}
    columns |= {f"{layer}.{head}": of for (layer, head), of in zip(heads, mass, strict=True)}
    return Numbers.from_columns(columns, [*KEYS])


def measure_heads(maps: AttentionMaps, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Compute measures that a text can have by name, flat; what goes to a learned sink only where there is one."""
    found = dict[str, np.ndarray]()
    for name in (name for name in names if name != "to_sink" or maps.sink is not None):
        with suppress(NotMeasurable):
            (measured,) = measure_maps(maps, [name])
            found[name] = measured.values.ravel()
    return found
