"""One attention as a capture hands it over, and which rows of it are texts, windows and heads: the ids say so."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int
from torch import Tensor

from attnviz.models.capture.attending import Seen
from attnviz.models.capture.captured import How
from attnviz.models.capture.factored import FactoredRows
from attnviz.models.capture.ids import NOBODY, row_of

PlaceIds = Int[np.ndarray, "..."]


@dataclass(frozen=True, eq=False)
class Call:
    """One attention as it was computed. The arrays are nobody else's.

    A row is a text, or a window of one. In a row that may attend to nothing all weights are 0; every other row and its
    sink together sum to 1.
    """

    path: str  # of the module in the outermost one, such as "encoder.layer.3.attention.self"; "" where there is none
    number: int  # of the outermost forward pass since the capture began: a step of a generation is a pass
    kept: Float32[np.ndarray, "row head query key"] | FactoredRows  # weights after softmax, or what they come of
    attendable: Bool[np.ndarray, "row query key"]  # by any head; of factors by any query
    sink: Float32[np.ndarray, "row head query"] | None  # the share that goes to no key
    how: How  # worked out from what a kernel was given, or the very numbers that the model multiplied, or not at all
    error: float  # largest |weights · value - output of the call itself|, relative to the largest |value|
    queries: PlaceIds | None = None  # their ids; None: of no token, such as learned ones
    keys: PlaceIds | None = None  # None: not known
    place: int = 0  # among the calls of the capture
    after: int = 0  # bit n: it reads what call n gave
    run: int = 0  # which run of its module it is in
    n_alike: tuple[int, ...] = ()  # for each number in the path, how many modules are numbered so; 0: not known
    guess: str = ""  # why it may be no attention over tokens
    n_steps: int = 1  # how many passes it was joined from
    is_mixed: bool = False  # whether its queries are made of several tokens each
    apart: str = ""  # why its pass, which goes on from others, was not joined to them
    heads: tuple[int, ...] = ()  # by their numbers in the call; (): all
    n_heads_in_model: int | None = None  # that the call has, where layers or heads were chosen
    place_in_stack: int = 0  # where layers are outermost modules, the layer that the path is in
    root: str = ""  # the class of the outermost module; "" where there is none

    @property
    def weights(self) -> Float32[np.ndarray, "row head query key"]:
        """After softmax, where they were asked for."""
        assert isinstance(self.kept, np.ndarray)
        return self.kept

    @property
    def factors(self) -> FactoredRows | None:
        """What the weights come of, where that was asked for."""
        return self.kept if isinstance(self.kept, FactoredRows) else None

    @property
    def shape(self) -> tuple[int, ...]:
        """[row, head, query, key] of the weights."""
        return self.kept.shape

    @property
    def attended(self) -> Bool[np.ndarray, "row key"]:
        """Which keys any query attends to."""
        return self.factors.attended if self.factors is not None else np.asarray(self.attendable.any(axis=1))

    @property
    def is_pooled(self) -> bool:
        """Whether its queries are no tokens, though its keys are known to be some."""
        return self.queries is None and self.keys is not None


class Arranged(NamedTuple):
    """Rows of a product, put in order."""

    places: Int[Tensor, "_row _head _query"] | None  # where each query stands in the product; None: in this order
    shape: tuple[int, int, int, int]  # [row, head, query, key]
    queries: PlaceIds | None
    keys: PlaceIds | None

    def order(self, of: Tensor) -> Tensor:
        """[row, head, query, …] of anything that has [row of the product, query, …]."""
        if self.places is not None:
            of = of.flatten(0, 1)[self.places.flatten()]
        return of.reshape(*self.shape[:3], *of.shape[2 if self.places is None else 1 :])


def arrange(seen: Seen) -> Arranged:
    """Rows with the same queries and the same keys are the heads of one text, or of one window.

    Where nothing is known of them, the axis before queries is that of the heads, and those before it are texts.
    """
    n_rows, n_queries, n_keys = seen.weights.shape
    if seen.keys is None:
        leading = seen.shape[:-2]
        n_heads = leading[-1] if leading else 1
        return Arranged(None, (n_rows // max(1, n_heads), n_heads, n_queries, n_keys), None, None)
    keys = seen.keys
    queries = torch.full((n_rows, n_queries), NOBODY) if seen.queries is None else seen.queries
    places = torch.arange(n_rows * n_queries).view(n_rows, n_queries)
    if seen.queries is not None:
        places, queries, keys = _split_queries(places, queries, keys)
    members, first = _group(torch.cat([queries, keys], dim=1))
    places, queries, keys = places[members], queries[first], keys[first]
    places, queries, keys = _join_queries(places, queries, keys)
    shape = *places.shape, n_keys
    natural = torch.equal(places.flatten(), torch.arange(places.numel()))
    known = None if bool((queries == NOBODY).all()) else queries.numpy()
    return Arranged(None if natural else places, shape, known, keys.numpy())


def _group(rows: Tensor) -> tuple[Tensor, Tensor]:
    """[group, member] of equal rows, groups in the order of their first; each alone where they are not of one size."""
    groups: dict[bytes, list[int]] = defaultdict(list)
    for place, row in enumerate(rows.contiguous().numpy()):
        groups[row.tobytes()].append(place)
    if len({len(group) for group in groups.values()}) > 1:
        return torch.arange(len(rows))[:, None], torch.arange(len(rows))
    members = torch.tensor(list(groups.values()))
    return members, members[:, 0]


def _split_queries(places: Tensor, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of their own for heads that stand on the axis of queries: behind one another, or side by side."""
    n_rows, n_queries = queries.shape
    n_apart = len(torch.unique(queries[0]))
    n_heads = n_queries // n_apart
    if n_heads == 1 or n_queries % n_apart or bool((queries[0] < 0).any()):
        return places, queries, keys
    if torch.equal(queries[0, :n_apart], queries[0, n_apart : 2 * n_apart]):
        split = [each.view(n_rows, n_heads, n_apart) for each in (places, queries)]
    else:
        split = [each.view(n_rows, n_apart, n_heads).mT for each in (places, queries)]
    return split[0].flatten(0, 1), split[1].flatten(0, 1), keys.repeat_interleave(n_heads, dim=0)


def _join_queries(places: Tensor, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One row for several with the same keys: of other queries of a text, or of heads that chose their own."""
    members, first = _group(keys)
    n_joined = members.shape[1]
    together = queries[members]  # [row, joined, query]
    if n_joined == 1 or bool((keys < 0).all()) or bool((row_of(together) != row_of(together[:, :1, :1])).any()):
        return places, queries, keys
    whole = together.flatten(1)
    n_heads, n_queries = places.shape[1:]
    if len(torch.unique(whole[0])) == whole.shape[1]:
        ordered = places[members].transpose(1, 2).reshape(len(first), n_heads, -1)
        return ordered, whole, keys[first]
    as_heads = places[members].reshape(len(first), -1, n_queries)
    return as_heads, torch.full((len(first), n_queries), NOBODY), keys[first]
