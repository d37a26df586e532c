"""What weights are worked out from, so that a page shows those of a query of a long text. Knows `report`, the codings.

page/factored.js reads what is written here.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Shaped

from attnviz.renderers.page.map_parts import Held, Shared, share, share_bytes
from attnviz.renderers.page.packing import EXACT, EXACT_BITS, pack
from attnviz.report import Heatmap, WeightFactors

ROOM = 10_000_000  # bytes of base64: with maps and labels, a page stays below 15 MB


def describe_factors(maps: Sequence[Heatmap], block: int, held: Held) -> Mapping[str, object] | None:
    """Describe factors, and let the page hold the numbers of each map that has any.

    Of the maps that are drawn pooled, as many as find room; `block` of their cells become one on the page. Their parts
    follow those of all maps.
    """
    heads = {
        place: each.factors for place, each in enumerate(maps) if each.factors is not None and each.block * block > 1
    }
    sizes = [of.query.size + of.key.size + of.log_sum_exp.size for of in heads.values()]
    n_fitting = int((np.cumsum(sizes) * EXACT_BITS / 8 * 4 / 3 <= ROOM).sum())
    kept = dict([*heads.items()][: max(1, n_fitting)])  # one however large
    if not kept:
        return None
    tokens, arrays = Shared(), Shared()
    described: list[Mapping[str, object] | None] = [None] * len(maps)
    for part, (place, head) in enumerate(kept.items(), len(held.parts)):
        described[place] = {"part": part, **_describe_head(head, tokens, arrays)}
    numbers = [np.concatenate([of.query.ravel(), of.key.ravel(), of.log_sum_exp]) for of in kept.values()]
    held.parts += (pack(each[None], EXACT) for each in numbers)
    held.say("about.factors")
    if without := [maps[place].title for place in heads if place not in kept]:
        held.say("about.without", n=len(without), first=without[0])
    return {"maps": described, "tokens": [*tokens.values()], "arrays": [*arrays.values()]}


def _describe_head(of: WeightFactors, tokens: Shared, arrays: Shared) -> Mapping[str, object]:
    """Describe a head, all but the numbers of its part; `tokens` and `arrays` by number, or None."""

    def array(numbers: Shaped[np.ndarray, " _n"] | None, dtype: str) -> int | None:
        return None if numbers is None else share_bytes(numbers.astype(dtype), arrays)

    return {
        "rows": share(of.rows, tokens),
        "columns": share(of.columns, tokens),
        "width": of.query.shape[1],
        "scale": of.scale,
        "window": of.window,
        "bias": array(of.bias, "<f4"),
        "attendable": array(of.attendable, "u1"),
        "shares": array(of.equal, "<f4"),
    }
