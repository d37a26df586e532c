"""One look at the attention of one forward pass: of one text, from a few queries, beside the kernels that run.

A look waits at the dispatcher, as a capture does, and keeps nothing of what it sees but a few numbers of each head. It
works out the scores of 32 queries of the first text, in the place of all n, so that no n × n matrix of weights is made
and fused kernels stay as they are. Where a model writes attention out by hand it is known by its rule: a softmax whose
rows are then multiplied with states.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from attnviz.models.capture.captured import Asked, expand_mask, find_allowed, read_kernel, to_batch_heads
from attnviz.models.capture.follow import Operation, list_tensors
from attnviz.models.capture.tap import SOFTMAXES, Operators
from attnviz.monitor.run import SIDE

PRODUCTS = {"mm", "bmm", "baddbmm"}
N_QUERIES = 32
SKIPPED = 0.25  # of the text: in a causal model its queries have few keys


class Look(Operators):
    """The attention of the pass that runs while it is open, in the order of the calls."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.values: list[Float[Tensor, "head measure"]] = []  # of each call, by MEASURES
        self.maps: list[Float[Tensor, "head cell"]] = []  # means over bins of queries and keys, in equal shares
        self.is_padding = self.is_empty = False  # all of a text; a batch without texts, or of texts without tokens
        self._scores: Tensor | None = None  # of the last softmax, which may be attention
        # of a text, where rows are texts and heads together, as those of nn.MultiheadAttention are
        self._n_heads = next((each.num_heads for each in model.modules() if hasattr(each, "num_heads")), 1)

    def run(self, name: str, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run an operator as it is, and look at what attends."""
        result = func(*args, **kwargs)
        if isinstance(result, Tensor) and not result.numel():
            self.is_empty = True
        elif name in SOFTMAXES:
            self._scores = args[0]
        elif name in PRODUCTS and self._scores is not None:
            scores, self._scores = self._scores, None
            shape, size = scores.shape[-2:], scores.numel()
            if any(side.shape[-2:] == shape and side.numel() == size for side in list_tensors(args)):
                self._look_at_scores(scores)
        elif kernel := read_kernel(Operation(name, func, args, kwargs, result, [], [])):
            self._look_at_kernel(kernel[0])
        return result

    def _look_at_scores(self, scores: Float[Tensor, "*axes query key"]) -> None:
        """Look at all scores of a softmax, which a model made by hand."""
        n_heads = scores.shape[-3] if scores.ndim > 3 else self._n_heads
        scores = scores.reshape(-1, *scores.shape[-2:])[:n_heads]
        allowed = find_allowed(scores[0].float())
        at = choose_queries(allowed)
        self._keep(scores[:, at].float(), allowed, at)

    def _look_at_kernel(self, asked: Asked) -> None:
        """Work out the scores of some queries from what a kernel was given."""
        query, key = (to_batch_heads(side)[0].float() for side in (asked.query, asked.key))
        shape = *asked.query.shape[:-1], key.shape[-2]
        mask = expand_mask(asked, shape)
        mask = query.new_zeros(1, *shape[-2:]) if mask is None else mask[0]
        allowed = mask[0] if mask.dtype == torch.bool else find_allowed(mask[0].float())
        at = choose_queries(allowed)
        scale = query.shape[-1] ** -0.5 if asked.scale is None else asked.scale
        scores = query[:, at] @ key.repeat_interleave(len(query) // len(key), dim=0).transpose(-1, -2) * scale
        self._keep(scores if mask.dtype == torch.bool else scores + mask[:, at], allowed, at)

    def _keep(
        self, scores: Float[Tensor, "head at key"], allowed: Bool[Tensor, "query key"], at: Int[Tensor, " at"]
    ) -> None:
        """Reduce the scores of some queries to a few numbers of each head; padding, which nobody may see, is no key."""
        if not len(at):
            self.is_padding = True
            return
        keys, forbidden = allowed.byte().amax(dim=0).bool(), ~allowed[at]  # a twentieth of the time of any()
        scores = scores.masked_fill(forbidden, -torch.inf)[..., keys]
        weights = scores.softmax(dim=-1)
        n_allowed = (~forbidden).sum(dim=-1)
        entropy = -(weights * weights.clamp_min(1e-30).log()).sum(dim=-1) / n_allowed.clamp_min(2).log()
        first = weights[..., 0].mean(dim=-1)
        previous = torch.full_like(first, torch.nan)  # queries of another text than the keys have none
        if allowed.shape[0] == allowed.shape[1]:
            places = (keys.cumsum(dim=0)[at] - 2).clamp_min(0)
            previous = weights[:, range(len(at)), places].mean(dim=-1)
        self.values.append(torch.stack((scores.amax(dim=(-1, -2)), entropy.mean(dim=-1), first, previous), dim=-1))
        self.maps.append(adaptive_avg_pool2d(weights * n_allowed[:, None], SIDE).flatten(1))


def choose_queries(allowed: Bool[Tensor, "query key"]) -> Int[Tensor, " chosen"]:
    """Choose queries evenly over a text, none of them padding: of a text that is all padding none."""
    n_queries, n_keys = allowed.shape
    real = allowed.byte().amax(dim=0 if n_queries == n_keys else 1).nonzero()[:, 0]
    first = max(0, min(max(1, int(len(real) * SKIPPED)), len(real) - 1))
    n_chosen = min(N_QUERIES, len(real) - first)
    return real[torch.linspace(first, len(real) - 1, n_chosen, device=real.device).long()]
