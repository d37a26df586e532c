"""Records without the markers that a model added, for models that add different ones. Knows records only."""

from __future__ import annotations

import numpy as np

from attnviz.errors import InvalidOption
from attnviz.measures.rows import check_self_attention
from attnviz.records import AttentionMaps, Tokens


def without_markers(maps: AttentionMaps) -> AttentionMaps:
    """The attention between tokens of the text. What goes to markers such as [CLS] goes to the `sink` of each row.

    Nothing is renormalised: rows and sinks sum to 1. Self-attention only. Raises InvalidOption for other attention, and
    where all tokens are markers.
    """
    check_self_attention(maps, "leaving out markers")
    marked = np.array(maps.queries.special)
    if not marked.any():
        return maps
    if marked.all():
        raise InvalidOption("all tokens are markers", hint="Give a text.")
    kept = np.flatnonzero(~marked)
    of_kept = maps.weights[:, :, kept]
    sink = of_kept[..., marked].sum(axis=-1)
    all_tokens = maps.queries
    tokens = Tokens(
        pieces=tuple(all_tokens.pieces[place] for place in kept),
        offsets=tuple(all_tokens.offsets[place] for place in kept),
        special=tuple(all_tokens.special[place] for place in kept),
        unknown=tuple(all_tokens.unknown[place] for place in kept),
    )
    return AttentionMaps(
        weights=np.ascontiguousarray(of_kept[..., kept]),
        queries=tokens,
        keys=tokens,
        attendable=maps.attendable[:, kept][:, :, kept],
        provenance=maps.provenance,
        sink=sink if maps.sink is None else sink + maps.sink[:, :, kept],
        layer_numbers=maps.layer_numbers,
        head_numbers=maps.head_numbers,
    )
