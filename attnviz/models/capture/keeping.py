"""What is kept of an attention, its chosen layers and heads, as weights or as their factors; and how it is handed over.

Knows which modules are at work; knows no function of torch but the kernels that attend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from torch.nn import functional

from attnviz.errors import InvalidRecord
from attnviz.models.capture.by_hand import TorchCall
from attnviz.models.capture.call import Call, Kept
from attnviz.models.capture.captured import CapturedAttention, Kernel, unpack_groups
from attnviz.models.capture.factored import FactoringKernel
from attnviz.models.capture.flow import Origin
from attnviz.models.capture.kernels import Axes, dot_product
from attnviz.models.capture.modules_at_work import ModulesAtWork
from attnviz.models.capture.multihead import multi_head
from attnviz.models.capture.paths import may_be_in
from attnviz.models.capture.room import LayersRoom
from attnviz.models.capture.values import some_values
from attnviz.models.protocols import EVERY, LayersAndHeads

KERNELS: dict[Kernel, Callable[..., tuple[Any, CapturedAttention]]] = {
    functional.scaled_dot_product_attention: dot_product,
    functional.multi_head_attention_forward: multi_head,
}
DENSE = "Leave out factored."


class Keeper:
    """Hands over what was asked for: see `capture`."""

    def __init__(
        self,
        take: Callable[[Call], None],
        choice: LayersAndHeads,
        factored: bool,
        modules_as_heads: bool,
        at_work: ModulesAtWork,
    ) -> None:
        self._take, self._choice, self._modules_as_heads, self._at_work = take, choice, modules_as_heads, at_work
        self._factoring = FactoringKernel(choice) if factored else None
        self._room = LayersRoom()

    def keep_kernel(self, call: TorchCall, axes: Axes, origin: Origin, value: Any, same: bool) -> tuple[Any, Origin]:
        """Return what a kernel gives, and where that comes from. `same`: queries and keys are one tensor."""
        at_work, what = self._at_work, self._at_work.name_attention()
        if not self._may_be_chosen(axes[1]):
            return call.result(), at_work.note_attention(origin)
        is_dot_product = call.function is functional.scaled_dot_product_attention
        if self._factoring is None:
            more: dict[str, Any] = {"axes": axes} if is_dot_product else {}
            if is_dot_product and self._choice.heads is None:
                more["room"] = lambda shape: self._room.take(*at_work.find_layers(), shape)  # all heads until the end
            result, seen = KERNELS[call.function](*call, what, **more)
            if (innermost := at_work.innermost) is not None:
                n_groups = getattr(innermost.module, "num_key_value_groups", 1)
                seen = unpack_groups(seen, n_groups, innermost.n_positions)
            return result, self._hand_over(self._on_host(seen), origin, value, same)
        if not is_dot_product:
            raise InvalidRecord(f"{what} is of nn.MultiheadAttention, which keeps its q and k", hint=DENSE)
        result, rows, error = self._factoring(*call, what)
        if (len(rows), rows.n_heads) != axes[:2]:
            raise InvalidRecord(f"{what} has no axis each for texts and heads", hint=DENSE)
        attendable = np.broadcast_to(rows.attended[:, None], (len(rows), *rows.shape[2:]))
        kept = Kept(rows, attendable, None, "factored", error, rows.n_heads)
        return result, self._hand_over(kept, origin, value, same)

    def keep_product(self, seen: CapturedAttention, origin: Origin, value: Any) -> Origin:
        """Hand over what is written by hand, and return where it comes from.

        Raises InvalidRecord where its factors are asked for.
        """
        is_chosen = self._may_be_chosen(seen.weights.shape[1])
        if not is_chosen or (self._factoring is not None and origin.product is None):
            return self._at_work.note_attention(origin)
        if self._factoring is not None:
            what = self._at_work.name_attention()
            raise InvalidRecord(f"{what} is written out as softmax(…) @ value: its q and k are gone", hint=DENSE)
        return self._hand_over(self._on_host(seen), origin, value)

    def _may_be_chosen(self, n_heads: int) -> bool:
        return self._may_be_head(n_heads) or may_be_in(self._at_work.find_path()[0], self._choice.layers)

    def _may_be_head(self, n_heads: int) -> bool:
        """Return whether a call may be one head of a layer whose heads are calls: it is chosen among them later."""
        return self._modules_as_heads and n_heads == 1

    def _heads(self, n_heads: int) -> tuple[int, ...]:
        return (0,) if self._may_be_head(n_heads) else self._choice.heads_of(n_heads, self._at_work.name_attention())

    def _on_host(self, seen: CapturedAttention) -> Kept:
        n_heads = seen.weights.shape[1]
        if self._choice.heads is not None:
            heads = list(self._heads(n_heads))
            sink = None if seen.sink is None else seen.sink[:, heads]
            seen = replace(seen, weights=seen.weights[:, heads], sink=sink)
        attendable = seen.attendable.detach().cpu().numpy()
        of_sink = None if seen.sink is None else seen.sink.detach().cpu().numpy()
        kept = self._room.as_array(seen.weights)
        return Kept(kept, attendable, of_sink, seen.how, seen.error, n_heads, seen.guess, seen.is_pooled)

    def _hand_over(self, seen: Kept, origin: Origin, value: Any, same: bool = False) -> Origin:
        """Hand one attention over, and return where its output comes from. `same`: queries and keys are one tensor."""
        at_work = self._at_work
        path, n_alike = at_work.find_path()
        kept = seen._asdict()
        n_heads = kept.pop("n_heads")
        kept["is_pooled"] |= origin.is_learned or (seen.how == "multiplied" and origin.product is None)
        kept["guess"] = seen.guess or self._guess(seen, origin)
        self._take(
            Call(
                path=path,
                number=at_work.stacks.number,
                **kept,
                place=at_work.n_seen,
                after=origin.after,
                run=0 if at_work.innermost is None else at_work.innermost.number,
                reads=at_work.reads(path),
                own_keys=same or origin.own_keys,
                n_alike=n_alike,
                values=some_values(value, seen.kept.shape),
                heads=self._heads(n_heads),
                n_heads_in_model=None if self._choice == EVERY else n_heads,
                root=at_work.name_root(),
                place_in_stack=at_work.stacks.place,
                n_rows_read=at_work.n_rows_read,
                keys_are_read=not at_work.n_read or seen.kept.shape[0] * seen.kept.shape[3] in at_work.n_read,
            )
        )
        return at_work.note_attention(origin)

    def _guess(self, seen: Kept, origin: Origin) -> str:
        """Say why these weights may be of something else than tokens."""
        n_batch, _, n_queries, n_keys = seen.kept.shape
        if n_queries == 1 or seen.is_pooled or origin.is_learned:  # queries of no token, perhaps without a product
            return ""
        if origin.product is None:
            if n_queries != n_keys and n_batch * n_keys in self._at_work.n_read:
                return ""
            return "no product of queries with keys was seen under this softmax"
        n_positions = self._at_work.n_positions_of_all
        if n_positions and n_batch * n_queries not in n_positions | self._at_work.n_read:
            queries = f"{n_queries} queries" if n_batch == 1 else f"{n_queries} queries in each of {n_batch} texts"
            return f"{queries} are not the number of tokens that the module read"
        return ""
