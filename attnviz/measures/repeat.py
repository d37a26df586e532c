"""What heads do with tokens that come twice: induction, duplicate and previous-token scores. Knows records only."""

from __future__ import annotations

import numpy as np

from attnviz.errors import InvalidOption
from attnviz.records import AttentionMaps
from attnviz.shapes import PerHead

SCORES = ("induction", "duplicate token", "previous token")


def score_repeats(maps: AttentionMaps) -> dict[str, PerHead]:
    """Return mean attention along three diagonals of a text that says the same n tokens twice (Olsson et al. 2022).

    Shares, from 0 to 1 (arXiv:2209.11895), as TransformerLens works them out: induction is the key n - 1 before the
    query, behind the token's first occurrence; duplicate that occurrence itself, n before; previous the key before.
    Markers are left out. Raises InvalidOption where the second half does not say what the first does.
    """
    tokens = maps.queries
    places = np.flatnonzero(~np.array(tokens.special))
    pieces = [tokens.pieces[place].strip() for place in places]
    n = len(pieces) // 2
    if not n or pieces[:n] != pieces[n:]:
        raise InvalidOption(
            "the second half of the tokens does not repeat the first",
            hint="The model's tokenizer cuts the halves differently.",
        )
    weights = maps.weights[:, :, places[0] : places[-1] + 1, places[0] : places[-1] + 1]
    offsets = dict(zip(SCORES, (1 - n, -n, -1), strict=True))
    return {
        name: np.asarray(np.diagonal(weights, offset, axis1=2, axis2=3).mean(axis=-1, dtype=np.float64))
        for name, offset in offsets.items()
    }
