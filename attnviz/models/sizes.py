"""Sizes that have to fit each other, checked without importing torch."""

from __future__ import annotations

from math import ceil

from attnviz.errors import BadOption, TooLarge
from attnviz.specs.model import KeepKind

FLOAT32 = 4  # bytes
GIB = 2**30


def head_size(d_model: int, n_heads: int) -> int:
    """d_head = d_model / n_heads. Raises BadOption instead of truncating."""
    if d_model < 1:
        raise BadOption(f"d_model {d_model} is not a size", hint="It is at least 1.")
    if n_heads < 1 or d_model % n_heads:
        divisors = [n for n in range(1, d_model + 1) if d_model % n == 0]
        few = ", ".join(map(str, divisors[:4])) + (" …" if len(divisors) > 4 else "")
        raise BadOption(
            f"d_model {d_model} is not divisible by {n_heads} (try {few})", hint="The heads share d_model equally."
        )
    return d_model // n_heads


def kept(n_tokens: int, max_tokens: int | None, keep: KeepKind) -> tuple[int, int]:
    """How many tokens of the head and how many of the tail stay of a text of `n_tokens`."""
    if max_tokens is None or n_tokens <= max_tokens:
        return n_tokens, 0
    tail = max_tokens // 2 if keep == "head-tail" else 0
    return max_tokens - tail, tail


def check_memory(n_tokens: int, n_heads: int, n_layers: int, max_gib: float) -> None:
    """Raises TooLarge when one text's attention would take more than `max_gib` GiB, before anything is allocated.

    Counted: the record, and for the layer at work its scores and its weights.
    """
    _check_max_memory(max_gib)
    per_cell = FLOAT32 * n_heads * (n_layers + 2)
    needed = per_cell * n_tokens**2
    if needed > max_gib * GIB:
        fitting = int((max_gib * GIB / per_cell) ** 0.5)
        raise TooLarge(
            f"{_counted(n_tokens, 'token')} × {_counted(n_heads, 'head')} × {_counted(n_layers, 'layer')} need "
            f"{needed / GIB:.1f} GiB, allowed are {max_gib:g}",
            hint=f"--max-tokens {fitting} fits; --max-memory allows more." if fitting else "--max-memory allows more.",
        )


def check_room(what: str, needed: int, max_gib: float) -> None:
    """Raises TooLarge when `what` would take more bytes than `max_gib` GiB."""
    _check_max_memory(max_gib)
    if needed > max_gib * GIB:
        raise TooLarge(
            f"{what} need {needed / GIB:.2g} GiB, allowed are {max_gib:g}",
            hint=f"--max-memory {ceil(100 * needed / GIB) / 100:g} allows it.",
        )


def _check_max_memory(max_gib: float) -> None:
    if not max_gib > 0:  # NaN is not either
        raise BadOption(f"--max-memory {max_gib:g} is no room at all", hint="Give GiB, such as 4 or 0.5.")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
