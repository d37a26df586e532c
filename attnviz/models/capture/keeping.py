"""What is kept of an attention, its chosen layers and heads, as weights or as their factors; and how it is handed over.

Knows which modules are at work, and no operator but the kernels that attend.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnviz.errors import InvalidRecord
from attnviz.models.capture.attending import Seen
from attnviz.models.capture.call import Arranged, Call, arrange
from attnviz.models.capture.captured import refuse_dropout, renormalise
from attnviz.models.capture.factored import Factoring
from attnviz.models.capture.follow import Operation
from attnviz.models.capture.ids import NOTHING, Ids, Known, row_of
from attnviz.models.capture.kernels import Fused, read_kernel, recompute
from attnviz.models.capture.modules_at_work import ModulesAtWork, may_be_in
from attnviz.models.protocols import EVERY, LayersAndHeads

DENSE = "Leave out factored."


class Keeper:
    """Hands over what was asked for: see `capture`."""

    def __init__(
        self,
        take: Callable[[Call], None],
        choice: LayersAndHeads,
        factored: bool,
        at_work: ModulesAtWork,
    ) -> None:
        self._take, self._choice, self._at_work = take, choice, at_work
        self._store = at_work.store
        self._factoring = Factoring(choice) if factored else None

    def keep_kernel(self, of: Operation) -> bool:
        """Keep what a kernel was given. Returns whether it could be read."""
        kernel = read_kernel(of)
        if kernel is None:
            return False
        asked, output = kernel.asked, kernel.output
        query, key, value = (self._store.get(side) or NOTHING for side in of.tensors[:3])
        shape = (*asked.query.shape[:-1], asked.key.shape[-2])
        queries = self._store.recall(_lay_out_rows, query.ids, shape[:-1])
        keys = self._store.recall(_lay_out_rows, value.ids if key.ids is None else key.ids, (*shape[:-2], shape[-1]))
        after, ids = query.after | key.after | value.after, query.ids
        with torch.autocast(output.device.type, enabled=False):
            rows = torch.empty(torch.Size(shape[:-2]).numel(), *shape[-2:], device="meta")
            number = self._keep_asked(kernel, Seen(rows, queries, keys, None, shape, after=after))
        if queries is None or bool((queries < 0).all()):
            ids = None if keys is None else self._store.make(keys, shape[-2]).view(*shape[:-1], 1)
        ids = None if ids is None else ids[..., :1].expand(output.shape)
        self._store.put(output, Known(ids, after | 1 << number))
        return True

    def _arrange(self, seen: Seen) -> Arranged:
        n_heads = seen.shape[-3] if len(seen.shape) > 2 else 1
        return self._store.recall(arrange, seen.queries, seen.keys, tuple(seen.weights.shape), n_heads)

    def _keep_asked(self, kernel: Fused, seen: Seen) -> int:
        asked, what, n_heads = kernel.asked, self._at_work.name_attention(), seen.shape[-3]
        if not self._may_be_chosen(n_heads):
            return self._at_work.note_attention()
        refuse_dropout(asked.dropout_p, what)
        if self._factoring is not None:
            rows, error = self._factoring(asked, kernel.output, kernel.sums, what)
            arranged = self._arrange(seen)
            if arranged.places is not None or arranged.shape[:2] != (len(rows), rows.n_heads):
                raise InvalidRecord(f"{what} has no axis each for texts and heads", hint=DENSE)
            attendable = np.broadcast_to(rows.attended[:, None], (len(rows), *rows.shape[2:]))
            about = {"sink": None, "how": "factored", "error": error}
            return self._hand_over(seen, arranged, kept=rows, attendable=attendable, **about)
        found = recompute(asked, kernel.output, what)
        weights, allowed = found.weights.flatten(0, 1), None
        if not bool(found.attendable.all()):
            allowed = found.attendable[:, None].expand(-1, n_heads, -1, -1).reshape(weights.shape)
        return self._keep_rows(seen._replace(allowed=allowed), weights, None, how="recomputed", error=found.error)

    def keep_product(self, seen: Seen) -> int | None:
        """Hand over what was multiplied, and return its number; None where it is the kernel of a convolution.

        One that is made anew for each token, as in ConvBERT, weighs the tokens around it and looks at none of them.

        Raises InvalidRecord where its factors are asked for, and where dropout is at work.
        """
        what = self._at_work.name_attention()
        if seen.queries is not None and seen.keys is not None and not seen.looks_at_keys and seen.weights.shape[1] == 1:
            rows = torch.cat([row_of(seen.queries), seen.keys], dim=1)
            if len(torch.unique(rows, dim=0)) > len(torch.unique(row_of(seen.queries))):
                return None
        refuse_dropout(seen.dropped, what)
        if self._factoring is not None and seen.weights.shape[1] > 1:
            raise InvalidRecord(f"{what} is written out as softmax(…) @ value: its q and k are gone", hint=DENSE)
        weights = seen.weights.to(torch.float32, copy=True)
        allowed = seen.allowed
        if allowed is not None:
            weights.masked_fill_(~allowed, 0)
        elif not seen.follows_softmax:
            allowed = weights > 0
        sink = 1 - weights.sum(dim=-1) if seen.is_cut else None
        weights, sink, error = renormalise(weights, sink, seen.weights.dtype)
        return self._keep_rows(seen._replace(allowed=allowed), weights, sink, how="multiplied", error=error)

    def _keep_rows(self, seen: Seen, weights: Tensor, sink: Tensor | None, **known: Any) -> int:
        arranged = self._arrange(seen)
        n_rows, n_heads, n_queries, n_keys = arranged.shape
        if not self._may_be_chosen(n_heads):
            return self._at_work.note_attention()
        heads = list(self._heads(n_heads))
        kept = arranged.order(weights)
        named = np.empty(0) if arranged.keys is None else np.flatnonzero((arranged.keys >= 0).any(axis=0))
        n_tokens = int(named[-1]) + 1 if len(named) else n_keys
        # Keys behind all tokens are room in a cache, or a place to look at that is no token; but what the model has
        # learned and put behind its tokens asks, too, and is one of them: such as the objects that YOLOS looks for.
        asks = n_queries == n_keys and arranged.queries is not None and (arranged.queries[:, n_tokens:] < 0).all()
        if n_tokens < n_keys and not asks:
            beyond = weights[..., n_tokens:].sum(dim=-1)
            sink = beyond if sink is None else sink + beyond
            sink = sink if bool((beyond > 0).any()) or seen.is_cut else None
            kept, n_keys = kept[..., :n_tokens].contiguous(), n_tokens
            arranged = arranged._replace(keys=arranged.keys[:, :n_tokens])  # type: ignore[index]
            if seen.allowed is not None:
                seen = seen._replace(allowed=seen.allowed[..., :n_tokens])
        sink = None if sink is None else arranged.order(sink)
        if len(heads) < n_heads:
            kept, sink = kept[:, heads], None if sink is None else sink[:, heads]
        if seen.allowed is None:
            attendable = np.broadcast_to(np.True_, (n_rows, n_queries, n_keys))
        else:
            attendable = arranged.order(seen.allowed).any(dim=1).cpu().numpy()
        known["sink"] = None if sink is None else sink.cpu().numpy()
        return self._hand_over(seen, arranged, kept=kept.cpu().numpy(), attendable=attendable, **known)

    def _may_be_chosen(self, n_heads: int) -> bool:
        return n_heads == 1 or may_be_in(self._at_work.find_path()[0], self._choice.layers)

    def _heads(self, n_heads: int) -> tuple[int, ...]:
        """Return the chosen heads of a call. One of one head may be a layer's: `join_heads` chooses."""
        return (0,) if n_heads == 1 else self._choice.heads_of(n_heads, self._at_work.name_attention())

    def _hand_over(self, seen: Seen, arranged: Arranged, **known: Any) -> int:
        """Hand over a `Call`, of which weights or factors, and how they came about, are known."""
        where, n_heads = self._at_work.locate(), arranged.shape[1]
        call = Call(
            **where,
            **known,
            queries=arranged.queries,
            keys=arranged.keys,
            after=seen.after,
            guess=seen.guess,
            heads=self._heads(n_heads),
            n_heads_in_model=None if self._choice == EVERY else n_heads,
        )
        self._take(call)
        return call.place


def _lay_out_rows(ids: Ids | None, shape: tuple[int, ...]) -> Ids | None:
    """Lay out as [row, token] the ids of a side [… token d], for every head."""
    if ids is None:
        return None
    if ids.shape[1] not in (1, shape[1]):
        ids = ids.repeat_interleave(shape[1] // ids.shape[1], dim=1)
    return ids[..., 0].expand(shape).reshape(-1, shape[-1])
