"""Sizes that have to fit each other, checked without importing torch."""

from dataclasses import dataclass
from math import isqrt

from attnviz.bounded import GIB, check_room
from attnviz.display import format_count
from attnviz.errors import InvalidOption
from attnviz.specs import KeepKind

FLOAT32 = 4  # bytes
BASE = 460 * 2**20  # of a process with torch, matplotlib and a built-in model; pictures of many points included
BASE_PRETRAINED = 800 * 2**20  # and with transformers
ONE_HEAD = 32  # bytes for each cell of one head: float64 copies in measures and rollout, masks, what is drawn
ONE_TOKEN = 2_000  # bytes of its piece, offsets and marks, in a record and in what is shown
ONE_CHARACTER = 400  # bytes while it is made tokens: of one word of 15 MiB, whose pieces are its characters
STATES = 48  # numbers of d_model for each token: states, projections, feed-forward
MAX_D_MODEL = 65_536  # four projections of it take 64 GiB: beyond this it is a slip of the finger
MAX_LAYERS = 1_000  # that a model is trained with, or that a checkpoint may have


def head_size(d_model: int, n_heads: int) -> int:
    """Compute d_head = d_model / n_heads. Raises InvalidOption instead of truncating."""
    if d_model < 1:
        raise InvalidOption(f"d_model {d_model} is not a size", hint="It is at least 1.")
    if d_model > MAX_D_MODEL:  # before its divisors are tried
        raise InvalidOption(f"d_model {d_model} is too large", hint=f"It is at most {MAX_D_MODEL:,}.")
    if n_heads < 1 or d_model % n_heads:
        divisors = [n for n in range(1, d_model + 1) if d_model % n == 0]
        few = ", ".join(map(str, divisors[:4])) + (" …" if len(divisors) > 4 else "")
        problem = f"d_model {d_model} is not divisible by {n_heads} (try {few})"
        raise InvalidOption(problem, hint="The heads share d_model equally.")
    return d_model // n_heads


def count_kept(n_tokens: int, max_tokens: int | None, keep: KeepKind) -> tuple[int, int]:
    """Return how many tokens of the head and how many of the tail stay of a text of `n_tokens`."""
    if max_tokens is None or n_tokens <= max_tokens:
        return n_tokens, 0
    tail = max_tokens // 2 if keep == "head-tail" else 0
    return max_tokens - tail, tail


@dataclass(frozen=True)
class Work:
    """What the attention of one text takes, wherever it comes from: from a model, or from a record (d_model 0)."""

    n_queries: int
    n_keys: int
    n_heads: int
    n_layers: int
    d_model: int = 0
    n_parameters: int = 0
    base: int = BASE  # bytes of the process before
    n_copies: int = 2  # of the record, beside itself
    n_maps: int | None = None  # heads in all whose weights are recorded, where some were chosen

    @property
    def needed(self) -> int:
        """Estimate the peak memory of the process in bytes, rounded up (checked by tests/attacks/test_sizes.py)."""
        tokens = (self.n_queries + self.n_keys) // 2
        return self.fixed + self.per_token * tokens + self.per_cell * self.n_queries * self.n_keys

    @property
    def fixed(self) -> int:
        """Count the bytes of the process and of the weights twice, while they are loaded or worked through."""
        return self.base + 2 * FLOAT32 * self.n_parameters

    @property
    def per_token(self) -> int:
        """Count the bytes of a token: states, projections and feed-forward activations; and its names and offsets."""
        return FLOAT32 * STATES * self.d_model + ONE_TOKEN

    def fitting(self, room: float) -> int:
        """Return how many tokens that attend to each other take no more than `room` bytes."""
        linear, left = self.per_token / (2 * self.per_cell), max(0.0, room - self.fixed)
        return int((linear**2 + left / self.per_cell) ** 0.5 - linear)

    @property
    def per_cell(self) -> int:
        """Count the bytes of a pair of query and key.

        Of a record these are its weights and their copies (weighed by values, and with words joined); or of a layer its
        scores and weights, also as float64; and of one head what measures and rollout hold.
        """
        record = FLOAT32 * (self.n_maps or self.n_heads * self.n_layers)
        layer = 4 * FLOAT32 * self.n_heads
        return record + max(self.n_copies * record, layer) + ONE_HEAD


def check_memory(work: Work, max_gib: float, instead: str = "") -> None:
    """Raise TooLarge when the process would take more than `max_gib` GiB, before anything is allocated.

    `instead`: what takes less, where --max-tokens does not.
    """
    heads, layers = format_count(work.n_heads, "heads"), format_count(work.n_layers, "layers")
    tokens = format_count(isqrt(work.n_queries * work.n_keys), "tokens")
    fitting = work.fitting(max_gib * GIB) if work.d_model and max_gib > 0 else 0
    hint = instead or (f"--max-tokens {fitting} fits; " if fitting else "")
    check_room(f"{tokens} × {heads} × {layers}", work.needed, max_gib, hint)
