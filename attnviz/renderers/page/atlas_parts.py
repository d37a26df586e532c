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

import numpy as np

from attnviz.report import Atlas, AtlasMeasure, AttentionMoment

STEPS, LOWEST = 16, -4  # of a doubling; doublings of an equal share below which a weight is held as 0
DIGITS = 3  # of numbers that are not weights
EXACTNESS = (
    "Weights of moments are stored within 2.2 % of what they are, and below 1/16 of an equal share not at all; other "
    f"numbers of heads with {DIGITS} digits. texts-*.parquet has all of them, text by text."
)


def pack_atlas(atlas: Atlas) -> bytes:
    """Return the JSON of an atlas, a line break and a byte for each weight of its moments, deflated, as base64."""
    pieces: dict[str, int] = {}
    texts = [
        [
            text.title,
            text.options,
            _runs(text.positions),
            [pieces.setdefault(each, len(pieces)) for each in text.tokens],
        ]
        for text in atlas.texts
    ]
    document = {
        "measures": [_measure(measure) for measure in atlas.measures],
        "axes": atlas.axes,
        "letters": dict(atlas.letters),
        "heads": [
            {
                "layer": head.layer,
                "head": head.head,
                "names": head.names,
                "curve": _round(head.by_offset),
                "words": [[word, _round_one(lift), support] for word, lift, support in head.words],
                "facts": head.facts,
                "moments": [_moment(moment) for moment in head.moments],
            }
            for head in atlas.heads
        ],
        "texts": texts,
        "pieces": [*pieces],
        "equal": _round(atlas.equal_by_offset),
        "words": [
            [word, support, [[place, _round_one(lift)] for place, lift in heads]]
            for word, support, heads in atlas.words
        ],
        "commands": atlas.commands,
        "steps": STEPS,
        "lowest": LOWEST,
    }
    written = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
    codes = b"".join(encode_weights(moment) for head in atlas.heads for moment in head.moments)
    return b64encode(zlib.compress(written + b"\n" + codes, 9))


def _measure(measure: AtlasMeasure) -> Mapping[str, object]:
    return {
        "title": measure.title,
        "unit": measure.unit,
        "about": measure.description,
        "values": _round(measure.values),
        "halves": _round(measure.halves),
        "equal": _round_one(measure.equal),
        "chance": _round_one(measure.chance),
    }


def _moment(moment: AttentionMoment) -> Sequence[object]:
    numbers = (moment.n_keys, _round_one(moment.to_first), _round_one(moment.effective_keys))
    return [moment.title[0], moment.text, moment.query, _runs(moment.keys), *numbers]


def _runs(positions: Sequence[int]) -> list[int]:
    """Return where each stretch of positions begins, and how long it is, one after the other."""
    found: list[int] = []
    for position in positions:
        if found and position == found[-2] + found[-1]:
            found[-1] += 1
        else:
            found += [position, 1]
    return found


def encode_weights(moment: AttentionMoment) -> bytes:
    """Return a byte for each weight: 0 for next to nothing, else steps of 1/16 of a doubling from 1/16 × on."""
    multiples = np.maximum(np.array(moment.weights, dtype=np.float64) * moment.n_keys, 1e-9)
    steps = np.rint((np.log2(multiples) - LOWEST) * STEPS) + 1
    return bytes(np.clip(steps, 0, 255).astype(np.uint8))


def _round(numbers: Sequence[float]) -> list[float | None]:
    return [_round_one(number) for number in numbers]


def _round_one(number: float) -> float | None:
    """Return a number with a few digits; None for what JSON has no number for."""
    if not isfinite(number):
        return None
    places = DIGITS if number == 0 else min(6, DIGITS - 1 - int(np.floor(log10(abs(number)))))
    rounded = round(float(number), places)
    return int(rounded) if rounded == int(rounded) else rounded
