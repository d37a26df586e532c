"""One attention as tensors, in the same axes whichever way it was seen. Knows no modules."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from jaxtyping import Bool, Float, Float32
from torch import Tensor

from attnviz.errors import InvalidRecord

How = Literal["recomputed", "multiplied", "factored"]

# Of the largest value. A kernel adds in another order and rounds what it gives; one that computes something else than
# softmax(q kᵀ · scale + mask) · value misses by far more.
TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 2e-2}
# What torch.set_float32_matmul_precision lets factors of float32 be rounded to: TF32 has the digits of float16.
ROUNDED_TO = {"high": torch.float16, "medium": torch.bfloat16}
NO_SCORE = -1e8  # no score is that low, and what is was put there to forbid a key: -1e9 is a habit
MASKED = -9e3  # so is -1e4, where another key of the row has a score: all scores of a row may be low
APART = 5e3
# -100 is what forbids a key in shifted windows. It leaves a gap in the scores of a row that no distance makes: 40
# between two keys is a weight of 4e-18 for the lower one.
MASKED_IN_WINDOWS = -50.0
GAP = 40.0
ROUNDED = {torch.float16: 2**-6, torch.bfloat16: 2**-4}  # by how much a row of rounded weights may miss 1
EVALUATE = "Call model.eval() before recording."


def find_allowed(scores: Float[Tensor, "*axes"]) -> Bool[Tensor, "*axes"]:
    """Tell which scores, or additive masks, let attention through."""
    low = scores <= MASKED_IN_WINDOWS
    rows = low.any(dim=-1)
    if not bool(rows.all()):  # the others forbid nothing
        allowed = ~low
        if bool(rows.any()):
            allowed[rows] = find_allowed(scores[rows])
        return allowed
    largest = scores.amax(dim=-1, keepdim=True)
    apart = (scores <= MASKED) & (scores < largest - APART)
    below = low & ~apart & (scores < largest - GAP)
    lowest_above = scores.masked_fill(apart | below, torch.inf).amin(dim=-1, keepdim=True)
    highest_below = scores.masked_fill(~below, -torch.inf).amax(dim=-1, keepdim=True)
    apart |= below & (lowest_above - highest_below >= GAP)
    lowest = torch.finfo(scores.dtype).min / 2
    # NaN is not forbidden but wrong, and shows
    forbidden = apart | (scores <= max(lowest, NO_SCORE))
    # A row of which a number such as -1e9 forbids every key attends to them evenly, and is recorded as it does. Of the
    # smallest number there is, as of -inf, it is padding's.
    evenly = forbidden.all(dim=-1, keepdim=True) & ~apart & (scores > lowest)
    return ~forbidden | evenly


def to_batch_heads(tensor: Tensor) -> Tensor:
    """Return [batch, head, …, …] of 3 axes or more: some devices' kernels take what has other axes than 4."""
    return tensor[None].flatten(0, -4)


def renormalise(
    weights: Float32[Tensor, "*rows key"], sink: Float32[Tensor, "*rows"], of: torch.dtype
) -> tuple[Float32[Tensor, "*rows key"], Float32[Tensor, "*rows"], float]:
    """Scale weights that were rounded to half precision, so that rows and sinks sum to 1 again; return by how much.

    No weight changes by more than its row had been rounded. A row that misses 1 for another reason stays as it is.
    """
    if of not in ROUNDED:
        return weights, sink, 0.0
    sums = weights.sum(dim=-1) + sink
    missed = (sums - 1).abs()
    rounded = missed <= ROUNDED[of]
    by = sums.where(rounded, torch.ones_like(sums))
    error = float(missed.masked_fill(~rounded, 0).amax())
    return weights / by.unsqueeze(-1), sink / by, error


@contextmanager
def full_precision() -> Iterator[None]:
    """Multiply float32 as float32, also where a script lets torch round factors to TF32 or bfloat16."""
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)


def check_error(error: float, dtype: torch.dtype, what: str) -> float:
    """Return the error. Raises InvalidRecord where it is too large for the dtype that the model multiplied in."""
    multiplied = ROUNDED_TO.get(torch.get_float32_matmul_precision(), dtype) if dtype == torch.float32 else dtype
    tolerance = TOLERANCES.get(multiplied, TOLERANCES[torch.bfloat16])
    if not error <= tolerance:  # written so that NaN is wrong too
        raise InvalidRecord(
            f"the weights worked out for {what} do not give its output: they miss it by {error:.2g} of the largest "
            f"value, allowed are {tolerance:g}",
            hint="It computes something else than softmax(q kᵀ · scale + mask) · value, which cannot be drawn.",
        )
    return error


def refuse_dropout(share: float, what: str) -> None:
    """Raise InvalidRecord where weights are dropped at random: those are not the model's attention."""
    if share > 0:
        raise InvalidRecord(f"{what} drops {share:.0%} of the weights: the model is in training mode", hint=EVALUATE)
