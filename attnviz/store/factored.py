"""Records by factors in files: what weights are worked out from, an axis of layers in front. Knows numpy."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnviz.bounded import decode_json
from attnviz.errors import InvalidRecord
from attnviz.records.factored import FactoredMaps
from attnviz.records.factors import Factors, Window

FACTORED = 4  # the schema of records that hold factors
PARTS = ("query", "key", "log_sum_exp", "bias", "attendable_keys")  # tensors; not every model has the last two
REQUIRED_PARTS = PARTS[:3]


def encode_factored(maps: FactoredMaps, meta: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the tensors of a record's file, and its JSON: `meta` and what else there is."""
    layers = [(of.query, of.key, of.sums) for of in maps.factors]
    tensors = {name: np.stack(parts) for name, parts in zip(REQUIRED_PARTS, zip(*layers, strict=True), strict=True)}
    # Not every model has a bias. Where a layer has one of fewer distances, its farthest numbers go on.
    if any(of.bias is not None for of in maps.factors):
        biases = [np.zeros((1, 1), dtype=np.float32) if of.bias is None else of.bias for of in maps.factors]
        n_biased, n_distances = (max(sizes) for sizes in zip(*(bias.shape for bias in biases), strict=True))
        missing = [(n_distances - bias.shape[1]) // 2 for bias in biases]
        longer = [np.pad(bias, ((0, 0), (n, n)), mode="edge") for bias, n in zip(biases, missing, strict=True)]
        tensors["bias"] = np.stack([np.broadcast_to(bias, (n_biased, n_distances)) for bias in longer])
    if any(of.attendable_keys is not None for of in maps.factors):
        tensors["attendable_keys"] = np.stack([of.keys_mask for of in maps.factors])
    tensors |= {} if maps.value_norms is None else {"value_norms": maps.value_norms}
    found = {**meta, "schema": FACTORED}
    found |= {"scales": [of.scale for of in maps.factors], "windows": [of.window for of in maps.factors]}
    return tensors, found


def read_factors(meta: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> tuple[Factors, ...]:
    """Read the factors of each layer. Raises InvalidRecord where a part is missing or of another type."""
    found = {name: tensors[name] for name in PARTS if name in REQUIRED_PARTS or name in tensors}
    scales = decode_json(tuple[float, ...], meta["scales"], "scales")
    windows = decode_json(tuple[Window, ...], meta["windows"], "windows")
    if {*map(len, found.values()), len(windows)} != {len(scales)}:
        raise InvalidRecord("factors are of different numbers of layers")
    layers = [{name: part[layer] for name, part in found.items()} for layer in range(len(scales))]
    return tuple(
        Factors(**parts, scale=scale, window=window)
        for parts, scale, window in zip(layers, scales, windows, strict=True)
    )
