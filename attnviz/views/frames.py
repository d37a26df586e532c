"""Records as tables of pandas, which is imported when it is asked for. Knows records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnviz.records import AttentionMaps, Tokens
from attnviz.views.tokens import label_tokens

if TYPE_CHECKING:
    from pandas import Categorical, DataFrame


def to_pandas(maps: AttentionMaps) -> DataFrame:
    """Return a table with a row for each attendable cell: see `Tabular.to_pandas`."""
    import pandas

    layers, heads, queries, keys = np.nonzero(np.broadcast_to(maps.attendable[:, None], maps.weights.shape))
    return pandas.DataFrame(
        {
            "layer": np.asarray(maps.layer_numbers, dtype=np.int32)[layers],
            "head": np.asarray(maps.head_numbers, dtype=np.int16)[heads],
            "query": queries.astype(np.int32),
            "key": keys.astype(np.int32),
            "query_token": _name_places(maps.queries, queries),
            "key_token": _name_places(maps.keys, keys),
            "weight": maps.weights[layers, heads, queries, keys],
        }
    )


def _name_places(tokens: Tokens, places: np.ndarray) -> Categorical[str]:
    """Return what stands at each place, as codes: a text per weight would take ten times as much."""
    from pandas import Categorical, Index

    names, codes = np.unique(np.array(label_tokens(tokens), dtype=object), return_inverse=True)
    return Categorical.from_codes(codes[places].astype(np.int32), Index(names.tolist()))
