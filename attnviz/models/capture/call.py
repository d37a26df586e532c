"""One attention as a capture hands it over. Knows no modules but by their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32

from attnviz.models.capture.captured import How
from attnviz.models.capture.factored import FactoredRows
from attnviz.models.capture.values import Values


@dataclass(frozen=True, eq=False)
class Call:
    """One attention as it was computed. The arrays are nobody else's.

    In a row that may attend to nothing all weights are 0; every other row and its sink together sum to 1.
    """

    path: str  # of the module in the outermost one, such as "encoder.layer.3.attention.self"; "" where there is none
    number: int  # of the outermost forward pass since the capture began: a step of a generation is a pass
    kept: Float32[np.ndarray, "batch head query key"] | FactoredRows  # weights after softmax, or what they come of
    attendable: Bool[np.ndarray, "batch query key"]  # by any head; of factors by any query
    sink: Float32[np.ndarray, "batch head query"] | None  # the share that goes to no key
    how: How  # worked out from what a kernel was given, or the very numbers that the model multiplied, or not at all
    error: float  # largest |weights · value - output of the call itself|, relative to the largest |value|
    place: int = 0  # among the calls of the capture
    after: int = 0  # bit n: it reads what call n gave
    run: int = 0  # which run of its module it is in
    reads: tuple[int, ...] = ()  # the states, by number, that the module of the path's last number read; (): not known
    own_keys: bool | None = None  # whether queries and keys come from the same states; None where that is not known
    n_alike: tuple[int, ...] = ()  # for each number in the path, how many modules are numbered so; 0: not known
    guess: str = ""  # why it may be no attention over tokens
    values: Values | None = None  # some of what was attended to, to know a cache again; None: not seen
    n_steps: int = 1  # how many passes it was joined from
    apart: str = ""  # why its pass, which goes on from others, was not joined to them
    heads: tuple[int, ...] = ()  # by their numbers in the call; (): all
    n_heads_in_model: int | None = None  # that the call has, where layers or heads were chosen
    place_in_stack: int = 0  # where layers are outermost modules, the layer that the path is in
    root: str = ""  # the class of the outermost module; "" where there is none
    is_pooled: bool = False  # its queries need not be tokens: they are learned, or there is one weight a word
    keys_are_read: bool = True  # whether any module was given as many positions as there are keys
    n_rows_read: int = 0  # how many texts the outermost module was given; 0: not known

    @property
    def weights(self) -> Float32[np.ndarray, "batch head query key"]:
        """After softmax, where they were asked for."""
        assert isinstance(self.kept, np.ndarray)
        return self.kept

    @property
    def factors(self) -> FactoredRows | None:
        """What the weights come of, where that was asked for."""
        return self.kept if isinstance(self.kept, FactoredRows) else None

    @property
    def shape(self) -> tuple[int, ...]:
        """[batch, head, query, key] of the weights."""
        return self.kept.shape

    @property
    def attended(self) -> Bool[np.ndarray, "batch key"]:
        """Which keys any query attends to."""
        if self.factors is not None:
            return self.factors.attended
        return np.asarray(self.attendable.any(axis=1))


class Kept(NamedTuple):
    """What is kept of one attention: fields of `Call`."""

    kept: Float32[np.ndarray, "batch head query key"] | FactoredRows
    attendable: Bool[np.ndarray, "batch query key"]
    sink: Float32[np.ndarray, "batch head query"] | None
    how: How
    error: float
    n_heads: int  # of the call, also those that are not kept
    guess: str = ""
    is_pooled: bool = False
