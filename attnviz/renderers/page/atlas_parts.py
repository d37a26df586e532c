"""The heads of an atlas as a page holds them: JSON and a byte for each weight, deflated together. Knows `report` only.

A weight is held as the logarithm of what it is of an equal share: a step is a 16th of a doubling, so that it is known
within 2.2 %, which is less than anyone sees in a shade. Tokens stand in one list, and texts are numbers of its entries.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from math import isfinite, log10
from typing import Any

import numpy as np

from attnviz.report import Atlas

STEPS, LOWEST = 16, -4  # of a doubling; doublings of an equal share below which a weight is held as 0
DIGITS = 3  # of numbers that are not weights
EXACTNESS = (
    "Weights of moments are stored within 2.2 % of what they are, and below 1/16 of an equal share not at all; other "
    f"numbers of heads with {DIGITS} digits. texts-*.parquet has all of them, text by text."
)


def pack_atlas(atlas: Atlas) -> bytes:
    """Return the JSON of an atlas, a line break and a byte for each weight of its moments, deflated, as base64."""
    pieces: dict[str, int] = {}
    heads = [head | {"moments": [*map(_shorten_moment, head["moments"])]} for head in atlas["heads"]]
    texts = []
    for text in atlas["texts"]:
        tokens = [pieces.setdefault(each, len(pieces)) for each in text["tokens"]]
        texts.append([text["title"], text["options"], _runs(text["positions"]), tokens])
    document = _round({**atlas, "heads": heads, "texts": texts, "pieces": [*pieces], "steps": STEPS, "lowest": LOWEST})
    written = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
    codes = b"".join(encode_weights(moment) for head in atlas["heads"] for moment in head["moments"])
    return b64encode(zlib.compress(written + b"\n" + codes, 9))


def _shorten_moment(moment: Mapping[str, Any]) -> Sequence[object]:
    numbers = (moment[name] for name in ("n_keys", "to_first", "effective_keys"))
    return [moment["kind"][0], moment["text"], moment["query"], _runs(moment["keys"]), *numbers]


def _runs(positions: Sequence[int]) -> list[int]:
    """Return where each stretch of positions begins, and how long it is, one after the other."""
    found: list[int] = []
    for position in positions:
        if found and position == found[-2] + found[-1]:
            found[-1] += 1
        else:
            found += [position, 1]
    return found


def encode_weights(moment: Mapping[str, Any]) -> bytes:
    """Return a byte for each weight: 0 for next to nothing, else steps of 1/16 of a doubling from 1/16 × on."""
    multiples = np.maximum(np.array(moment["weights"], dtype=np.float64) * moment["n_keys"], 1e-9)
    steps = np.rint((np.log2(multiples) - LOWEST) * STEPS) + 1
    return bytes(np.clip(steps, 0, 255).astype(np.uint8))


def _round(value: Any) -> Any:
    """Return the same with a few digits of each number; None for what JSON has no number for."""
    if isinstance(value, Mapping):
        return {name: _round(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_round, value)]
    if not isinstance(value, float):
        return value
    if not isfinite(value):
        return None
    places = DIGITS if value == 0 else min(6, DIGITS - 1 - int(np.floor(log10(abs(value)))))
    rounded = round(value, places)
    return int(rounded) if rounded == int(rounded) else rounded
