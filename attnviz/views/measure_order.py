"""Which measures are drawn where not all can be, and of how many heads."""

MAX_CHARTS, MAX_SAMPLES = 4, 32
PREFERRED = ("effective_keys", "entropy", "distance", "peak")


def rank(measure: str) -> int:
    """Return the rank of a measure: the lowest are drawn first."""
    return PREFERRED.index(measure) if measure in PREFERRED else len(PREFERRED)
