"""Self-attention beside other layers: what each costs and how far apart two tokens are. Knows `report`.

Complexities are those of table 1 of Vaswani et al. 2017 (arXiv:1706.03762), maximum path lengths too, evaluated without
the constants that O( ) leaves out, so that they compare growth and not milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from attnviz.commands.compare.costs import write_count
from attnviz.display import pluralize
from attnviz.report import Block, Column, Note, Row, Table


def theory_blocks(n: int, d: int, k: int) -> tuple[Block, ...]:
    """The table for n tokens of width d and kernels of width k, and where sources disagree. Raises nothing."""
    columns = [Column(name) for name in ("layer", "operations", "", "steps", " ", "longest path", "  ")]
    title = f"Layers that connect n = {n} {pluralize(n, 'tokens')} of width d = {d} (kernel k = {k})"
    return (Table("theory", title, "compared", tuple(columns), tuple(_rows(n, d, k))), *map(Note, _remarks(n, d)))


def stack_height(n: int, k: int) -> int:
    """Layers of contiguous convolutions of width k until one output has seen all of n tokens: 1 + L (k - 1) ≥ n."""
    return ceil((n - 1) / (k - 1))


def count_dilated_layers(n: int, k: int) -> int:
    """Layers of dilated convolutions of width k, dilation k to the power of the layer, until one has: k^L ≥ n."""
    height, reach = 0, 1
    while reach < n:
        height, reach = height + 1, reach * k
    return height


def _rows(n: int, d: int, k: int) -> Iterator[Row]:
    yield ("self-attention", "O(n² · d)", write_count(float(n * n * d)), "O(1)", "1", "O(1)", "1")
    yield ("recurrent", "O(n · d²)", write_count(float(n * d * d)), "O(n)", str(n), "O(n)", str(n))
    one = write_count(float(k * n * d * d))
    yield ("convolutional", "O(k · n · d²)", one, "O(1)", "1", "O(n / k)", str(max(1, stack_height(n, k))))
    yield ("dilated conv.", "O(k · n · d²)", one, "O(1)", "1", "O(log_k n)", str(max(1, count_dilated_layers(n, k))))


def _remarks(n: int, d: int) -> Iterator[str]:
    yield (
        "Source: Vaswani et al. 2017, table 1. It gives convolutions the path O(log_k n); its text says this needs "
        "dilated kernels, and that contiguous ones need O(n / k) layers: both stand here. Counted are layers until one "
        "output has seen all n tokens, 1 + L (k - 1) ≥ n or k^L ≥ n. Operations are of one layer: the stack that "
        "connects all tokens takes as many times more as its path is long."
    )
    fewer = "fewer" if n < d else "more" if n > d else "as many"
    yield (
        f"The table leaves out the four projections of attention, O(n · d²) too ({write_count(4.0 * n * d * d)} here). "
        f"It calls self-attention cheaper than recurrence where n < d: here n = {n} and d = {d}, so it takes {fewer} "
        f"operations{'' if n == d else ' than a recurrent layer'}, but not one after the other."
    )
