"""Whether scores say what a model's answer hangs on: by deleting tokens, and by rank. Knows arrays only.

Comprehensiveness and sufficiency after DeYoung et al. 2020 (ERASER, arXiv:1911.03429, section 4); rank correlation
after Jain & Wallace 2019 (arXiv:1902.10186, section 4.1). Removal counts the few tokens that a method puts first, on
the side that it says they are on. τ counts every pair of tokens alike, also the many that hardly change anything,
and only their sizes. So a method may be good at one and poor at the other.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float

FRACTIONS = (0.05, 0.1, 0.2, 0.5)  # of a text's tokens, the first by score
MIN_TOKENS = 2  # fewer leave nothing when one is deleted


def first_tokens(
    scores: Float[np.ndarray, " token"], removable: Bool[np.ndarray, " token"]
) -> list[Bool[np.ndarray, " token"]]:
    """Select the tokens that the scores put first, for each fraction: as many as fit, of equal ones the earliest.

    A fraction of less than one token is left out, and one that chooses as many as the one before.
    """
    places = np.flatnonzero(removable)
    order = places[np.argsort(-scores[places], kind="stable")]
    counts = dict.fromkeys(int(share * len(places)) for share in FRACTIONS)
    return [np.isin(np.arange(len(scores)), order[:count]) for count in counts if count]


def describe_short(n_removable: Sequence[int]) -> Iterator[str]:
    """Yield for how many texts, by their numbers of tokens, a step is left out: its share is less than one token."""
    for share in FRACTIONS:
        if n_short := sum(int(share * n) == 0 for n in n_removable):
            texts = f"{n_short} of {len(n_removable)} texts"
            yield f"the step of {share:.0%} is left out of {texts}, of fewer than {round(1 / share)} tokens"


def kendall(one: Float[np.ndarray, " token"], other: Float[np.ndarray, " token"]) -> float:
    """Compute Kendall's τ-b (1945, doi:10.1093/biomet/33.3.239), from -1 to 1; NaN if either has equal values only."""
    first, second = (np.sign(each[:, None] - each[None, :]) for each in (one, other))
    norm = np.sqrt(float((first**2).sum()) * float((second**2).sum()))
    return float((first * second).sum() / norm) if norm else float("nan")
