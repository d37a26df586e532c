"""One attention as tensors, in the same axes whichever way it was seen. Knows no modules.

Of kernels that attend within one operator, it is what they were given and their weights, worked out and held against
their outputs. torch has them behind scaled_dot_product_attention, and as flex_attention, whose changes to the scores
come as code. The kernel that the model chose runs.
"""

import math
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32
from torch import Tensor

from attnviz.errors import InvalidRecord
from attnviz.models.capture.follow import Operation
from attnviz.models.capture.ids import collapse

How = Literal["recomputed", "multiplied", "factored"]

# Of the largest value. A kernel adds in another order and rounds what it gives; one that computes something else than
# softmax(q kᵀ · scale + mask) · value misses by far more.
TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 2e-2}
# What torch.set_float32_matmul_precision lets factors of float32 be rounded to: TF32 has the digits of float16.
ROUNDED_TO = {"high": torch.float16, "medium": torch.bfloat16}
NO_SCORE = -1e8  # scores are higher, and what is lower was put there to forbid a key: -1e9 is a habit
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
    rows = scores.amin(dim=-1) <= MASKED_IN_WINDOWS
    if not bool(rows.all()):  # the others forbid nothing
        allowed = torch.ones_like(scores, dtype=torch.bool)
        if bool(rows.any()):
            allowed[rows] = find_allowed(scores[rows])
        return allowed
    largest = scores.amax(dim=-1, keepdim=True)
    apart = (scores <= MASKED) & (scores < largest - APART)
    below = (scores <= MASKED_IN_WINDOWS) & ~apart & (scores < largest - GAP)
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


def check_error(error: float, dtype: torch.dtype, what: str) -> float:
    """Return the error. Raises InvalidRecord where it is too large for the dtype that the model multiplied in."""
    multiplied = ROUNDED_TO.get(torch.get_float32_matmul_precision(), dtype) if dtype == torch.float32 else dtype
    tolerance = TOLERANCES.get(multiplied, TOLERANCES[torch.bfloat16])
    if math.isnan(error):
        raise InvalidRecord(f"{what} reads or gives NaN", hint="Look for it in the model's weights and what it reads.")
    if error > tolerance:
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


# In the names of kernels, whoever wrote them.
SIGNS = ("attention", "attn", "transformer_encoder", "transformer_decoder")
N_MIXED = 4  # random mixtures of components that are held against each other in the place of all
AT_ONCE = 2**18  # scores that are held at a time, besides the weights: the processor's cache holds them


@dataclass(frozen=True, eq=False)
class Asked:
    """What F.scaled_dot_product_attention takes, whatever way its arguments come."""

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False  # keys and values say it themselves


def recompute(
    asked: Asked, output: Tensor, what: str
) -> tuple[Float32[Tensor, "batch head query key"], Bool[Tensor, "batch query key"], float]:
    """Work out the weights of a kernel, and hold them against its output.

    Returns weights, all 0 in a row that may attend to nothing; which keys any head may attend to; and by how much
    weights · value miss the output, relative to the largest value.

    In float32 at least, of what the kernel read: under autocast that was rounded to the dtype of its output.
    """
    dtype = output.dtype
    exact = torch.float64 if dtype == torch.float64 else torch.float32
    mask = expand_mask(asked, (*output.shape[:-1], asked.key.shape[-2]))
    allowed, bias = torch.ones((1, 1, 1, 1), dtype=torch.bool), None
    if mask is not None:  # most are the same for all heads
        few = collapse(mask)
        allowed = few if few.dtype == torch.bool else find_allowed(few)
        bias = torch.where(allowed, 0.0 if few.dtype == torch.bool else few, -torch.inf).expand(mask.shape)
    given = (side.to(dtype).to(exact) for side in (asked.query, asked.key, asked.value, output))
    query, key, value, of_kernel = map(to_batch_heads, given)
    n_batch, n_heads, n_queries, _ = of_kernel.shape
    query = query * (1 / math.sqrt(query.shape[-1]) if asked.scale is None else asked.scale)
    key, value = (  # of each head, also of grouped-query attention
        side[:, :, None].expand(n_batch, -1, n_heads // side.shape[1], -1, -1).flatten(1, 2) for side in (key, value)
    )
    n_keys = key.shape[-2]
    # NumPy asks for memory in large pages: handing over many small ones takes longer than to work out what they hold.
    on_host = torch.from_numpy(np.empty((n_batch, n_heads, n_queries, n_keys), dtype=np.float32))
    weights = on_host if query.device == on_host.device else torch.empty_like(on_host, device=query.device)
    largest = float(value.abs().amax()) if value.numel() else 0.0
    if dtype == exact and value.shape[-1] > N_MIXED:
        # The few components lie in rows, which is several times as fast to multiply with as in columns.
        mixture = _make_mixture(value.shape[-1]).to(value)
        value, of_kernel = ((mixture @ side.mT).mT for side in (value, of_kernel))
    worst = query.new_zeros(())
    step = max(1, AT_ONCE // max(1, n_queries * n_keys))
    with ExitStack() as stack:
        # Factors of float32 are multiplied as they are, also where a script lets torch round them to TF32 or bfloat16.
        stack.callback(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
        torch.set_float32_matmul_precision("highest")
        for row, first in product(range(n_batch), range(0, n_heads, step)):
            of = (row, slice(first, first + step))
            sides = query[of], key[of], value[of], of_kernel[of]
            missed = _work_out(sides, None if bias is None else bias[of], weights[of])
            worst = torch.maximum(worst, missed)
    error = float(worst) / max(largest, torch.finfo(exact).tiny)
    attendable = allowed.any(dim=1).expand(n_batch, n_queries, n_keys)
    return weights, attendable, check_error(error, dtype, what)


@cache
def _make_mixture(d_value: int) -> Float[Tensor, "mixed d_value"]:
    """Return a few random mixtures of the components, the same for values and output (Freivalds 1979).

    Weights that give them give every component, and it takes a fraction of the time to see.
    """
    return torch.randn(N_MIXED, d_value, generator=torch.Generator().manual_seed(0)) / math.sqrt(d_value)


def _work_out(
    sides: tuple[Tensor, Tensor, Tensor, Tensor],
    bias: Float[Tensor, "head query key"] | None,
    weights: Float32[Tensor, "head query key"],
) -> Float[Tensor, ""]:
    """Fill in the weights of some heads; return by how much they miss what the kernel gave.

    `sides`: query, key, value and what the kernel gave, [head place d]. `bias`: is added to scores, -inf forbids.
    """
    query, key, value, given = sides
    scores = query @ key.mT
    empty = None
    if bias is not None:
        scores.add_(bias)
        empty = (collapse(bias) == -torch.inf).all(dim=-1, keepdim=True)
    exact = torch.softmax(scores, dim=-1, out=weights if scores.dtype == weights.dtype else None)
    missed = (exact @ value - given).abs_()
    if empty is not None and bool(empty.any()):
        exact.masked_fill_(empty, 0)  # NaN
        missed.masked_fill_(empty, 0)  # kernels give 0, NaN or the mean of the values to a query without keys
    weights.copy_(exact)  # which does nothing where they were filled in
    return missed.amax() if missed.numel() else missed.new_zeros(())


def expand_mask(asked: Asked, shape: Sequence[int]) -> Tensor | None:
    """Return the mask of every head, bool (True lets attention through) or additive, without a copy."""
    if asked.is_causal:
        mask = torch.ones(*shape[-2:], dtype=torch.bool, device=asked.query.device).tril()
    elif asked.attn_mask is not None:
        mask = asked.attn_mask
    else:
        return None
    return to_batch_heads(mask.expand(*shape))


# --- kernels below that function --------------------------------------------------------------------------------------


@cache
def is_kernel(name: str) -> bool:
    """Tell whether an operator attends, by its name."""
    return any(sign in name for sign in SIGNS) and "backward" not in name


def read_kernel(of: Operation) -> tuple[Asked, Tensor | None] | None:
    """Return what a kernel was asked for, and its log-sum-exp where it gives that; None where it is not known."""
    if of.name == "flex_attention":
        return _read_flex(of), None
    if not of.name.startswith("_scaled_dot_product"):
        return None
    given = of.arguments
    mask = given.get("attn_mask", given.get("attn_bias"))
    options = given.get("dropout_p", 0.0), given.get("is_causal", False), given.get("scale")
    sums = of.result[1] if of.name.endswith("for_cpu") else None
    return Asked(given["query"], given["key"], given["value"], mask, *options), sums


def _read_flex(of: Operation) -> Asked:
    """Read flex_attention: whatever a score is changed to is the same as a bias, which is what it is changed by."""
    query, key, value, score_mod, block_mask, scale, options, *buffers = (*of.args, *of.kwargs.values())
    n_shared = query.shape[1] // key.shape[1]
    key, value = (side.repeat_interleave(n_shared, dim=1).expand(len(query), -1, -1, -1) for side in (key, value))
    work_out = sys.modules[type(of.function).__module__]._math_attention_inner
    before, after = work_out(query, key, value, score_mod, block_mask, scale, options, *buffers)
    return Asked(query, key, value, (after - before).to(query.dtype), scale=scale)
