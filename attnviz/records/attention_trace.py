"""One query's arithmetic, every step kept, in numpy and float64 (arXiv:1706.03762). Knows no torch, texts or files."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from attnviz.records import Provenance, Tokens

MAX_PLAIN_SCORE = 20.0  # exp of scaled scores up to here has few enough digits to be read; e^20 is 485165195.4098

Vector = Float64[np.ndarray, " component"]
PerKey = Float64[np.ndarray, " key"]


@dataclass(frozen=True, eq=False)
class Head:
    """One head at work for one query. Masked keys have scores as all have, and the exponential 0."""

    query: Vector
    keys: Float64[np.ndarray, "key component"]
    values: Float64[np.ndarray, "key component"]
    scores: PerKey  # q · k
    position: PerKey | None  # what is added for the distance of a key, by models that have such a bias
    scaled: PerKey  # q · k / √d_head, and the position bias
    shift: float  # taken from each scaled score before exp, which changes no weight
    exponentials: PerKey
    weights: PerKey
    weighted: Float64[np.ndarray, "key component"]  # weight · v
    output: Vector  # their sum

    @property
    def d_head(self) -> int:
        """Return the width of the head."""
        return len(self.query)


@dataclass(frozen=True, eq=False)
class Projection:
    """From the heads' outputs side by side to the output: c W + b."""

    matrix: Float64[np.ndarray, "concatenated output"]
    bias: Float64[np.ndarray, " output"]


@dataclass(frozen=True, eq=False)
class AttentionTrace:
    """One query's way through all heads of a layer."""

    tokens: Tokens
    query: int  # its position
    attendable: Bool[np.ndarray, " key"]  # by this query
    states: Float64[np.ndarray, "key d_model"]  # what attention is given
    heads: tuple[Head, ...]
    projection: Projection | None  # None: the concatenation is the output

    @property
    def concatenated(self) -> Vector:
        """Return the outputs of all heads, one after the other."""
        return np.concatenate([head.output for head in self.heads])

    @property
    def output(self) -> Vector:
        """Return what the layer gives for this query."""
        whole = self.concatenated
        return whole if self.projection is None else whole @ self.projection.matrix + self.projection.bias


@dataclass(frozen=True, eq=False)
class VerifiedTrace:
    """One query's way through a layer of a model, and what the model itself made of it."""

    trace: AttentionTrace
    provenance: Provenance
    layer: int
    n_layers: int
    normed: bool  # whether the states went through a layer norm just before
    model_output: Vector
    error: float  # largest difference of a component of the output
    weights_error: float  # largest difference of a weight of any head
    allowed: float  # largest `error` that is tolerated

    @property
    def projects(self) -> bool:
        """Check whether queries, keys and values are projections of the states, and not the states themselves."""
        return self.trace.projection is not None


def trace_head(
    query: Vector,
    keys: Float64[np.ndarray, "key component"],
    values: Float64[np.ndarray, "key component"],
    attendable: Bool[np.ndarray, " key"],
    position: PerKey | None = None,
) -> Head:
    """Compute softmax(q kᵀ / √d_head + position) v step by step (Vaswani et al. 2017, section 3.2.1)."""
    scores = keys @ query
    scaled = scores / math.sqrt(len(query)) + (0.0 if position is None else position)
    largest = float(scaled[attendable].max())
    shift = 0.0 if abs(largest) <= MAX_PLAIN_SCORE else largest  # beyond it exp may overflow, or all be 0
    exponentials = np.where(attendable, np.exp(np.where(attendable, scaled, -np.inf) - shift), 0.0)
    weights = exponentials / float(exponentials.sum())
    weighted = weights[:, np.newaxis] * values
    return Head(
        query, keys, values, scores, position, scaled, shift, exponentials, weights, weighted, weighted.sum(axis=0)
    )
