"""One report's content for machines: texts and numbers as they are, nothing escaped, nothing rounded.

Keys, in order: title; model, status, trained, revision; text {name, sha256}; settings; versions; queries and keys
(both always given, equal in self-attention; `self_attention` tells); layers and heads (which ones:
by the model's own numbers, and "mean" for the mean over all heads of a layer);
measures {name: {unit, bounds, values [layer][head], or [layer] of all heads of a layer together}}; attendable
[query][key], or [layer][query][key] where layers differ; sink [layer][head][query], where the model has one; weights
[layer][head][query][key]; instead of these three, of texts with too many weights to be drawn one by one, pooled {size,
maximum and mean [layer][head][row][column]}, a cell for `size` queries and as many keys; hidden {queries, keys, share
[layer][head]}, where tokens are not drawn: which positions, and how much of what the queries drawn attend to goes
there; rollout [query][key], where it was asked for.

Layers and heads are in the order of `layers` and `heads`, however a table is sorted, and tokens that are not drawn are
in all arrays. Where words were joined, queries and keys are words, and the settings say so: merge, and
tokens_before_merging or, of two texts, queries_before_merging and keys_before_merging. Numbers that belong together are
numpy arrays; a renderer writes them out.

A record is also a table of pandas, which is imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from attnviz.measures.shown import Findings, RecordPart
from attnviz.records import AttentionMaps, Provenance, Tokens
from attnviz.records.part import list_left_out
from attnviz.views.captions import describe_status
from attnviz.views.tokens import label_tokens

if TYPE_CHECKING:
    from pandas import Categorical, DataFrame


def collect_data(title: str, part: RecordPart, measured: Findings) -> Mapping[str, object]:
    """Collect the chosen heads of one record, and everything that is known about where they come from."""
    maps, tokens, (layers, heads) = part.maps, part.tokens, part.drawn
    found = {
        "title": title,
        **describe_provenance(maps.provenance),
        "self_attention": maps.self_attention,
        "queries": asdict(maps.queries),
        "keys": asdict(maps.keys),
        **({"chosen": list(maps.chosen)} if maps.chosen else {}),  # by the last queries
        "layers": [maps.layer_numbers[layer] for layer in layers],
        "heads": [maps.head_names[head] for head in heads],
        "measures": {
            m.name: {"unit": m.unit, "bounds": list(m.bounds), "values": choose_heads(m.values, layers, heads)}
            for m in measured.numbers
        },
        **_collect_cells(part, measured),
    }
    if measured.hidden is not None:
        queries, keys = list_left_out(maps.queries, tokens.queries), list_left_out(maps.keys, tokens.keys)
        share = choose_heads(measured.hidden.values, layers, heads)
        found["hidden"] = {"queries": queries, "keys": keys, "share": share}
    return found if measured.rolled is None else {**found, "rollout": measured.rolled[0]}


def _collect_cells(part: RecordPart, measured: Findings) -> Mapping[str, object]:
    """Collect masks, sinks and weights, or the pooled maps of very many weights, layer by layer: those of all heads may
    be too many to be worked out at once. What lies in memory as it is wanted is not copied.
    """
    maps, (layers, heads) = part.maps, part.drawn
    if several := [each.pooled for each in measured.statistics.values() if each.pooled is not None]:
        means = several[0].mean[None] if len(several) == 1 else np.stack([pooled.mean for pooled in several])
        return {"pooled": {"size": several[0].size, "mean": choose_heads(means, range(len(several)), heads)}}
    every = slice(0, len(maps.queries))
    masks = [maps.read_allowed(layer, every) for layer in ((0,) if maps.layers_alike else layers)]
    if len(layers) * len(heads) == maps.n_layers * maps.n_heads and maps.heads_alone is maps:
        weights = choose_heads(maps.weights, layers, heads)
    else:
        weights = np.stack([[maps.rows(layer, head, every) for head in heads] for layer in layers])
    return {
        "attendable": masks[0] if maps.layers_alike else np.stack(masks),
        **({} if maps.sink is None else {"sink": choose_heads(maps.sink, layers, heads)}),
        "weights": weights,
    }


def choose_heads(array: np.ndarray, layers: Sequence[int], heads: Sequence[int]) -> np.ndarray:
    """Return `array[layers][heads]`, or `array[layers]`; for all of it the array itself, since weights may be large."""
    if array.ndim == 1:
        return array[list(layers)]
    if list(layers) == list(range(array.shape[0])) and list(heads) == list(range(array.shape[1])):
        return array
    return array[np.ix_(layers, heads)]


def describe_provenance(provenance: Provenance) -> Mapping[str, object]:
    """Describe for machines where a record comes from."""
    return {
        "model": provenance.model,
        "status": describe_status(provenance),
        "trained": provenance.trained,
        "revision": provenance.revision,
        "text": {"name": provenance.text_name, "sha256": provenance.text_sha256},
        "settings": dict(provenance.settings),
        "versions": dict(provenance.versions),
    }


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
