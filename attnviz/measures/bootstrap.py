"""How sure a mean over texts is. Knows arrays only."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

RESAMPLES = 2_000
BLOCK = 50  # resamples at a time: each is a count for every text
SHARE = 0.95


def intervals(values: Float[np.ndarray, "text number"], seed: int = 0) -> Float[np.ndarray, "2 number"]:
    """From where to where the mean of each column goes in 95 % of the resamples of the texts.

    The percentile bootstrap (Efron 1979, doi:10.1214/aos/1176344552): texts are drawn with replacement, whole rows at
    a time, so that what belongs together stays together. It says what other texts of this kind would give, not what
    other seeds of training would, and of few texts it makes too little. The same seed gives the same interval.
    """
    n_texts = len(values)
    assert n_texts > 1, "one text has no spread"
    generator = np.random.default_rng(seed)
    equally = np.full(n_texts, 1 / n_texts)
    means = [generator.multinomial(n_texts, equally, size=BLOCK) @ values for _ in range(RESAMPLES // BLOCK)]
    return np.quantile(np.concatenate(means) / n_texts, [(1 - SHARE) / 2, (1 + SHARE) / 2], axis=0)
