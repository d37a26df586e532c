"""How unlike heads are: two of them, all of a layer together, and which belong side by side. Knows records only."""

from collections.abc import Sequence
from math import log

import numpy as np
from jaxtyping import Float, Float32, Float64

from attnviz.measures.rows import QueryBlock, cache_on_record, compute_entropies, compute_statistics, split_real_queries
from attnviz.records import TINY, AttentionMaps, Measurement
from attnviz.records.walk import dot

Divergences = Float64[np.ndarray, "head head"]
RecordRows = Float32[np.ndarray, "query key"]
HEADS_PER_STEP = 8  # heads mixed with one other at a time


def jsd(
    p: Float64[np.ndarray, "#*queries key"], q: Float64[np.ndarray, "#*queries key"]
) -> Float64[np.ndarray, "#*queries"]:
    """Return the Jensen-Shannon divergence over the last axis, the others broadcast: H((p + q)/2) - (H(p) + H(q))/2.

    Nats, from 0 (equal) to ln 2 (nothing in common); symmetric, and finite where one of them is 0
    (Lin 1991, doi:10.1109/18.61115). Its root is a distance.
    """
    apart = compute_entropies((p + q) / 2) - (compute_entropies(p) + compute_entropies(q)) / 2
    return np.asarray(np.maximum(apart, 0.0))  # without the -1e-16 of rounding


@cache_on_record
def measure_divergences(maps: AttentionMaps, layer: int) -> Divergences:
    """Return the mean over queries of the JSD of each two heads, in nats (Clark et al. 2019, section 6)."""
    return measure_divergences_across([(maps, layer)])


def measure_divergences_across(layers: Sequence[tuple[AttentionMaps, int]]) -> Divergences:
    """Return the same for the heads of several layers, each of a record of the same tokens."""
    maps, _ = layers[0]
    n_heads = sum(of.n_heads for of, _ in layers)
    total = np.zeros((n_heads, n_heads))
    for block in split_mixed_blocks(maps):
        own = np.concatenate([compute_own_entropies(*layer)[:, block.places] for layer in layers])
        rows = np.concatenate([read_halved_rows(*layer, block) for layer in layers])
        mixer, half = Mixer(*rows.shape[1:]), own / 2
        for one, row in enumerate(rows):  # copies of one head have exactly 0: each of the three entropies is the same
            mixed = mixer.entropies(row, rows[one + 1 :])
            mixed -= half[one]
            mixed -= half[one + 1 :]
            total[one, one + 1 :] += np.maximum(mixed, 0.0, out=mixed).sum(axis=-1)
    return (total + total.T) / int(maps.real_queries.sum())


def vendi_score(maps: AttentionMaps) -> Measurement:
    """Return the Vendi score of each layer's heads (Friedman and Dieng 2022, arXiv:2210.02410).

    Heads, from 1 (copies) to the number of heads (no two attend to a common key). Two copies and one head with keys
    of its own count as 3/2^(2/3) = 1.89. It says how differently heads attend, not how many the model needs.
    """
    values = np.array([count_distinct(measure_divergences(maps, layer)) for layer in range(maps.n_layers)])
    return Measurement("vendi_score", "heads", values, (1.0, float(maps.n_heads)))


def count_distinct(divergences: Divergences) -> float:
    """Return exp of the entropy of the eigenvalues of K/h, K = 1 - JSD in bits the similarity of each two of h heads.

    `divergences` are in nats. K is positive definite (Hein and Bousquet 2005, AISTATS), also as a mean over queries.
    """
    similar = 1 - divergences / log(2)
    shares = np.maximum(np.linalg.eigvalsh(similar / len(similar)), 0.0)  # rounding may leave -1e-17
    return float(np.exp(compute_entropies(shares / shares.sum())))


def divergence_from_mean(maps: AttentionMaps) -> Measurement:
    """Return the mean over heads and queries of the JSD of a head from the mean of the layer's heads.

    Nats, from 0 (copies, or one head alone) to `max_divergence_from_mean` (Lin 1991, doi:10.1109/18.61115). Vaswani et
    al. 2017, arXiv:1706.03762, have several heads because averaging reduces the effective resolution: this is how far
    the average is from what it averages. It compares the heads with their own average, not with what a model trained
    with a single head attends to.
    """
    values = np.zeros(maps.n_layers)  # of one head exactly 0: rounding would otherwise put texts in an order
    for layer in range(maps.n_layers if maps.n_heads > 1 else 0):
        for block in split_mixed_blocks(maps):
            rows = read_halved_rows(maps, layer, block)
            mixer, mean = Mixer(*rows.shape[1:]), rows.mean(axis=0)
            own = compute_own_entropies(maps, layer)[:, block.places]
            apart = mixer.entropies(mean, rows) - (own + mixer.entropies(mean, mean[None])) / 2
            values[layer] += np.maximum(apart, 0.0).sum()
    values /= maps.n_heads * int(maps.real_queries.sum())
    return Measurement("divergence_from_mean", "nats", values, (0.0, max_divergence_from_mean(maps.n_heads)))


def max_divergence_from_mean(n_heads: int) -> float:
    """Return f(1/h), the largest mean of JSD(p_i, m) over h heads p_i, m their mean.

    f(s) = ln 2 + (s ln s - (1+s) ln(1+s))/2. Nats: 0, 0.216, 0.380, 0.497, 0.546 for h = 1, 2, 4, 8, 12, rising to ln
    2. JSD is convex in both arguments at once and m is linear in the heads, so the mean over heads is largest where
    each head attends to one key only. Where m puts a share s on that key, the head is ½ ln(2/(1+s)) + ½ (s ln(2s/(1+s))
    + (1-s) ln 2) = f(s) away from m. f falls as s grows (its derivative is ½ ln(s/(1+s))), and s is at least 1/h, the
    head's own part. So the mean is at most f(1/h), reached where no two heads have a key in common; a query with fewer
    keys than heads stays below.
    """
    share = 1 / n_heads
    return log(2) - ((1 + share) * log(1 + share) - share * log(share)) / 2


def to_similarity(divergences: Divergences) -> Divergences:
    """Return 1 - JSD in bits of divergences in nats: 1 for copies, 0 where no two heads attend to a common key."""
    return np.asarray(np.clip(1 - divergences / log(2), 0.0, 1.0))


def order_by_likeness(distances: Float[np.ndarray, "head head"]) -> tuple[int, ...]:
    """Order heads so that similar ones are neighbours: the leaves of average linkage (Sokal & Michener 1958, UPGMA).

    The two clusters that are nearest on average are joined again and again, of equals the earliest; the one with the
    earlier head comes first.
    """
    clusters: list[tuple[int, ...]] = [(head,) for head in range(len(distances))]
    between = distances.astype(np.float64).copy()
    np.fill_diagonal(between, np.inf)
    while len(clusters) > 1:
        one, other = sorted(int(i) for i in np.unravel_index(between.argmin(), between.shape))
        sizes = len(clusters[one]), len(clusters[other])
        joined = (sizes[0] * between[one] + sizes[1] * between[other]) / sum(sizes)
        between[one], between[:, one] = joined, joined
        between[one, one] = np.inf
        between = np.delete(np.delete(between, other, axis=0), other, axis=1)
        clusters[one] += clusters.pop(other)
    return clusters[0] if clusters else ()


def split_mixed_blocks(maps: AttentionMaps) -> tuple[QueryBlock, ...]:
    """Split the real queries into blocks of which several heads are held at a time."""
    return split_real_queries(maps, 4 * len(maps.keys))


def read_halved_rows(maps: AttentionMaps, layer: int, block: QueryBlock) -> Float32[np.ndarray, "head query key"]:
    """Return half of each row of a layer's heads, for means of two, in float32 and without zeros."""
    scales = (0.5 / compute_statistics(maps, layer).sums[:, block.places, None]).astype(np.float32)
    found = np.empty((*scales.shape[:2], len(maps.keys)), dtype=np.float32)
    for heads in maps.heads_at_once:
        np.multiply(maps.rows(layer, heads, block.queries), scales[heads], out=found[heads])
        found[heads] += TINY
    return found


class Mixer:
    """Entropies of means of two rows, each given as half of it, in float32 and in memory that is taken once: to take it
    anew costs as much.
    """

    def __init__(self, n_queries: int, n_keys: int) -> None:
        self._sums, self._terms = (np.empty((HEADS_PER_STEP, n_queries, n_keys), np.float32) for _ in range(2))

    def entropies(
        self, one: RecordRows, others: Float32[np.ndarray, "head query key"]
    ) -> Float64[np.ndarray, "head query"]:
        """Return the entropies, in nats, of the means of one head's rows and those of each of the others."""
        found = np.empty(others.shape[:2])
        for start in range(0, len(others), HEADS_PER_STEP):
            several = others[start : start + HEADS_PER_STEP]
            sums = np.add(several, one, out=self._sums[: len(several)])
            terms = np.log(sums, out=self._terms[: len(several)])
            found[start : start + HEADS_PER_STEP] = dot(terms, sums)
        return np.negative(found, out=found)


@cache_on_record
def compute_own_entropies(maps: AttentionMaps, layer: int) -> Float64[np.ndarray, "head query"]:
    """Return the entropy of each head's rows as `Mixer` computes it: the mean of two copies has the very same."""
    found = np.empty((maps.n_heads, int(maps.real_queries.sum())))
    for block in split_mixed_blocks(maps):
        rows = read_halved_rows(maps, layer, block)
        mixer = Mixer(*rows.shape[1:])
        for head, of_head in enumerate(rows):
            found[head, block.places] = mixer.entropies(of_head, of_head[None])[0]
    return found
