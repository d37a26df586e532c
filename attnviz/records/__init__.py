"""What one forward pass over one text leaves behind. Knows numpy and nothing of models, files or pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, TypeGuard

import numpy as np
from jaxtyping import Bool, Float32, Int

from attnviz.errors import InvalidRecord
from attnviz.records import walk
from attnviz.records.notebook import Tabular
from attnviz.records.walk import TINY as TINY
from attnviz.records.walk import Heads, Queries, WalkedRows
from attnviz.shapes import Attendable, PerHead, PerLayer, PerQuery, RealQueries, ValueNorms, Weights

if TYPE_CHECKING:
    from attnviz.records.factored import FactoredMaps
    from attnviz.records.grid import Grid

MAX_NUMBERS = {"layer": 100_000, "head": 2**15 - 1}

Setting = str | int | float | bool | None
Level = Literal["head", "layer"]


def is_mostly_unknown(n_unknown: int, n_tokens: int) -> bool:
    """Return whether at least half of a text's tokens, markers aside, are not in the vocabulary."""
    return 0 < n_tokens <= 2 * n_unknown


@dataclass(frozen=True)
class Tokens:
    """One text, cut up as the model saw it.

    `pieces` are the characters of the text that each token covers (for a marker that the model added, its name);
    `unknown` says which of them the vocabulary does not hold, so that the model read its unknown-token instead.
    """

    pieces: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]  # characters [start, end) in the text
    special: tuple[bool, ...]  # markers that the model added, such as [CLS]
    unknown: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        if not self.unknown:
            object.__setattr__(self, "unknown", (False,) * len(self.pieces))
        sizes = {len(self.pieces), len(self.offsets), len(self.special), len(self.unknown)}
        if len(sizes) != 1:
            raise InvalidRecord(
                f"{len(self.pieces)} pieces, {len(self.offsets)} offsets, {len(self.special)} special marks and "
                f"{len(self.unknown)} unknown marks do not belong together"
            )

    def __len__(self) -> int:
        return len(self.pieces)

    @cached_property
    def distinct_pieces(self) -> tuple[str, ...]:
        """Return each piece once, in the order in which they first stand in the text."""
        return tuple(dict.fromkeys(self.pieces))

    @cached_property
    def places(self) -> Int[np.ndarray, " token"]:
        """Return for each token the place of its piece in `distinct_pieces`."""
        places = {piece: place for place, piece in enumerate(self.distinct_pieces)}
        return np.fromiter(map(places.__getitem__, self.pieces), np.int64, len(self))

    @cached_property
    def markers(self) -> Bool[np.ndarray, " token"]:
        """Return `special` as an array."""
        return np.array(self.special, dtype=bool)

    @property
    def mostly_unknown(self) -> bool:
        """Check whether the vocabulary holds at most half of the text's tokens: a model's answer then says little."""
        return is_mostly_unknown(sum(self.unknown), len(self) - sum(self.special))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Return `distinct_pieces` as words are told apart: whatever their case and the white space around them."""
        return tuple([piece.strip().casefold() for piece in self.distinct_pieces])


def name_tokens(names: Sequence[str], special: Sequence[bool] = ()) -> Tokens:
    """Return tokens that are no text's, called by their names: one space apart, markers without room. () is none."""
    special = special or (False,) * len(names)
    offsets, at = [], 0
    for name, marker in zip(names, special, strict=True):
        end = at + (0 if marker else len(name))
        offsets.append((at, end))
        at = end if marker else end + 1
    return Tokens(tuple(names), tuple(offsets), tuple(special))


@dataclass(frozen=True)
class Facts:
    """What code reads of how a record was made. `Provenance.settings` tells people the same, and more."""

    causal: bool = False  # no token attends to a later one
    keep: str = "head"  # which part of a longer text was read: "head" or "head-tail"
    tokens_in_text: int | None = None  # without markers, also those that were cut off
    made_for_tokens: int | None = None  # the longest text that the model was made for
    queries_before_joining: int = 0  # how many tokens became words; 0: none were joined
    keys_before_joining: int = 0
    group: str = ""  # of layers in a model of several kinds, such as "decoder.layers.*.self_attn"
    n_layers_in_model: int | None = None  # also those that are not in the record; None: not known
    n_heads_in_model: int | None = None  # of a layer, where some were chosen to be recorded; None: all are here
    known_heads: tuple[str, ...] = ()  # by the model's card, layer after layer: "next token 0.60", "" for none
    chosen: tuple[str, ...] = ()  # what the last queries chose, a token each: what the model wrote
    guess: str = ""  # what is not certain of this record, as a sentence
    window: int | None = None  # which window of a text or an image, from 0; None: all of it
    n_windows: int | None = None  # how many that has

    def __post_init__(self) -> None:
        for what, most in MAX_NUMBERS.items():
            number = getattr(self, f"n_{what}s_in_model")
            if not 0 <= (number or 0) <= most:
                raise InvalidRecord(f"a model of {number:,} {what}s is too large", hint=f"At most {most:,} are read.")


@dataclass(frozen=True)
class Provenance:
    """Enough to make the record again; no clock, no host name. Raises InvalidRecord for what is no text."""

    model: str  # "multi:8", a path, a hub id
    revision: str  # sha256 of the weights, or "random, seed 0"
    trained: bool | None  # None: not known, as for a third-party module
    text_sha256: str  # of the whole text in UTF-8
    text_name: str = "text"  # where the text came from, such as "sample train[0]"
    settings: tuple[tuple[str, Setting], ...] = ()  # for people
    versions: tuple[tuple[str, str], ...] = ()
    facts: Facts = Facts()  # for code

    def __post_init__(self) -> None:
        texts = {
            name: f'It is text, as in {name}="mine".' for name in ("model", "revision", "text_sha256", "text_name")
        }
        for name, hint in {**texts, "trained": "It is True, False or None."}.items():  # else no file of it can be read
            if not isinstance(found := getattr(self, name), str if name in texts else bool | None):
                raise InvalidRecord(f"the {name} of a record is of type {type(found).__name__}", hint=hint)


@dataclass(frozen=True, eq=False, repr=False)
class AttentionMaps(Tabular):
    """Attention of one text, one forward pass, after softmax.

    `attendable` may be given as [query, key], for all layers alike, or by layer: windows make some layers look less far
    than others. It is kept by layer. `sink` is the share of each row that goes to no key: a model may learn a place to
    look at that is no token (gpt-oss). A row and its sink together sum to 1.

    `layer_numbers` are the model's own: in a model that attends in its layers 1 and 3 only, `weights[0]` is of layer 1.
    They rise; without them, layers are counted from 0. So are and do `head_numbers`, the same in every layer.

    Raises InvalidRecord where shapes and tokens disagree, a row does not sum to 1, a weight is negative or not finite,
    weight lies where attention is not allowed, or the numbers of layers or heads do not rise.
    """

    weights: Weights
    queries: Tokens
    keys: Tokens  # the same object as queries for self-attention
    attendable: Bool[np.ndarray, "*layers query key"]  # True where attention is allowed; see above
    provenance: Provenance
    sink: PerQuery | None = None
    layer_numbers: tuple[int, ...] = ()
    grid: Grid | None = None  # of keys that are patches of an image
    value_norms: ValueNorms | None = None  # ‖v_j W_O‖: times a weight, how much of the output it moves
    weighed: bool = False  # whether the weights are shares of that, see `measures.weighing`
    head_numbers: tuple[int, ...] = ()

    is_factored: ClassVar[bool] = False  # whether it holds what its weights are worked out from, see `holds_factors`

    def __post_init__(self) -> None:
        expected = (len(self.queries), len(self.keys))
        if self.weights.ndim != 4 or self.weights.shape[2:] != expected:
            raise InvalidRecord(
                f"weights of shape {self.weights.shape} do not fit {expected[0]} queries and {expected[1]} keys",
                hint="Expected [layer, head, query, key].",
            )
        n_layers, n_heads = self.weights.shape[:2]
        if self.attendable.shape not in (expected, (n_layers, *expected)):
            raise InvalidRecord(f"attendable has shape {self.attendable.shape}, expected {expected}")
        if self.sink is not None and self.sink.shape != self.weights.shape[:3]:
            raise InvalidRecord(f"sink has shape {self.sink.shape}, expected {self.weights.shape[:3]}")
        if 0 in self.weights.shape:
            raise InvalidRecord(f"weights of shape {self.weights.shape} are empty")
        self._check_numbers(n_layers, n_heads)
        if self.grid is not None and not self.grid.fits(len(self.keys)):
            raise InvalidRecord(f"{self.grid.n_patches} patches do not fit {len(self.keys)} keys")
        object.__setattr__(self, "attendable", np.broadcast_to(self.attendable, (n_layers, *expected)))
        for layer, number in enumerate(self.layer_numbers):  # layer by layer, so that checking costs one layer's memory
            self._check_layer(layer, number)
        # a view, so that the caller's own array stays writeable
        for name in ("weights", "attendable", "sink", "value_norms"):
            if getattr(self, name) is not None:
                view = getattr(self, name).view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    def _check_numbers(self, n_layers: int, n_heads: int) -> None:
        for what, count in (("layer", n_layers), ("head", n_heads)):
            numbers = getattr(self, f"{what}_numbers") or tuple(range(count))
            if numbers[-1] > MAX_NUMBERS[what]:
                raise InvalidRecord(f"{what} number {numbers[-1]:,} is above {MAX_NUMBERS[what]:,}")
            if len(numbers) != count or numbers[0] < 0 or list(numbers) != sorted(set(numbers)):
                raise InvalidRecord(f"{what} numbers {numbers} do not name {count} {what}s in rising order")
            object.__setattr__(self, f"{what}_numbers", numbers)
        norms, expected = self.value_norms, (n_layers, n_heads, len(self.keys))
        if norms is not None and (norms.shape != expected or not ((norms >= 0) & np.isfinite(norms)).all()):
            raise InvalidRecord(
                f"value norms must be finite, at least 0 and of shape {expected}, got shape {norms.shape}"
            )

    def _check_layer(self, layer: int, number: int) -> None:
        # A product is faster than a sum by axis. Whether it was invalid is read off a flag of the processor, which
        # another library may have left set; a row that is no distribution is found by its sum, below.
        with np.errstate(invalid="ignore"):
            row_sums = self.weights[layer] @ np.ones(len(self.keys), dtype=np.float32)
        if self.sink is not None:
            if not (self.sink[layer] >= 0).all():
                raise InvalidRecord(f"layer {number} holds a negative share of a sink")
            if not row_sums.all():  # a share of nothing is no distribution
                raise InvalidRecord(f"layer {number} holds a query that attends to nothing but a sink")
            row_sums = row_sums + self.sink[layer]
        wrong = ~(np.abs(row_sums - 1) <= walk.ROW_SUM_TOLERANCE)  # written so that NaN is wrong too
        if wrong.any():
            head, query = (int(i) for i in np.argwhere(wrong)[0])
            total = row_sums[head, query]
            said = "hold NaN" if np.isnan(total) else f"sum to {total:.4g}, not 1"
            raise InvalidRecord(f"layer {number}, head {self.head_numbers[head]}: the weights of query {query} {said}")
        if self.weights[layer].min() < 0:  # rows that sum to 1 hold no NaN
            raise InvalidRecord(f"layer {number} holds negative weights")
        if not self.allows_all(layer) and (self.weights[layer].max(axis=0)[~self.attendable[layer]] > 0).any():
            raise InvalidRecord(f"layer {number} holds weight where attention is not allowed")

    def __repr__(self) -> str:
        """Describe the record in one line, whatever its size."""
        of = f"model={self.provenance.model!r}, text={self.provenance.text_name!r}"
        sizes = f"layers={self.n_layers}, heads={self.n_heads}, queries={len(self.queries)}, keys={len(self.keys)}"
        return f"AttentionMaps({of}, {sizes})"

    @property
    def n_layers(self) -> int:
        """Count the layers of the record."""
        return len(self.layer_numbers)

    @property
    def n_heads(self) -> int:
        """Count the heads of each layer of the record."""
        return len(self.head_names)

    @property
    def n_bytes(self) -> int:
        """Count the bytes that the record holds for its weights."""
        return int(self.weights.nbytes)

    @property
    def heads_at_once(self) -> Sequence[Heads]:
        """Return which heads `walk` is given together.

        Several of a short text: each step takes as long to begin as to go over ten thousand weights.
        """
        step = max(1, walk.CELLS_AT_ONCE // (len(self.queries) * len(self.keys)))
        return [slice(start, min(start + step, self.n_heads)) for start in range(0, self.n_heads, step)]

    def rows(self, layer: int, heads: Heads, queries: Queries) -> Float32[np.ndarray, "*heads query key"]:
        """Return the weights of some queries; `layer` is a place in the record."""
        return np.asarray(self.weights[layer][heads, queries])

    def walk(self, layer: int, heads: Heads, several: Iterable[Queries]) -> Iterator[WalkedRows]:
        """Yield what is known of each of several stretches of queries; its weights are valid until the next one."""
        n_queries, n_keys = len(self.queries), len(self.keys)
        distances = walk.spread_by_distance(np.abs(np.arange(1 - n_queries, n_keys, dtype=np.float32)), n_queries)
        room = np.empty(0, dtype=np.float32)
        for queries in several:
            rows = self.rows(layer, heads, queries)
            if room.size < rows.size:
                room = np.empty(rows.size, dtype=np.float32)
            logs = np.add(rows, TINY, out=room[: rows.size].reshape(rows.shape))
            best = logs.argmax(axis=-1)  # not of the weights: argmax copies a read-only array
            yield walk.read_logarithms(rows, np.log(logs, out=logs), best, distances[queries], slice(0, n_keys))

    def read_cells_of_heads(
        self, layer: int, queries: Int[np.ndarray, " cell"], keys: Int[np.ndarray, " cell"]
    ) -> Float32[np.ndarray, "head cell"]:
        """Return the weights of single pairs of a query and a key, for each head of a layer."""
        of_layer = self.weights[layer]
        if not of_layer.flags.c_contiguous:
            return np.asarray(of_layer[:, queries, keys])
        places = queries * of_layer.shape[2] + keys  # flat indices take a third of the time
        return np.asarray(of_layer.reshape(len(of_layer), -1).take(places, axis=1))

    def read_allowed(self, layer: int, queries: Queries) -> Bool[np.ndarray, "query key"]:
        """Return which keys some queries may attend to in a layer."""
        return np.asarray(self.attendable[layer, queries])

    def allows_all(self, layer: int) -> bool:
        """Return whether each query may attend to each key in a layer."""
        return bool(self._masks[layer if len(self._masks) > 1 else 0].all())

    @property
    def unseen_layers(self) -> tuple[int, ...]:
        """Return the model's layers, as far as known, in which no attention of this kind was seen."""
        known = self.provenance.facts.n_layers_in_model or 0
        return tuple(sorted({*range(known)} - {*self.layer_numbers}))

    @property
    def unseen_heads(self) -> tuple[int, ...]:
        """Return the heads of each layer, as far as known, that were not chosen."""
        n_heads = max(self.provenance.facts.n_heads_in_model or 0, self.head_numbers[-1] + 1)
        return tuple(sorted({*range(n_heads)} - {*self.head_numbers}))

    @property
    def head_names(self) -> tuple[int | str, ...]:
        """Return the names of the heads of each layer: their numbers, and the mean that `add_mean` may have added."""
        return self.head_numbers

    @property
    def heads_alone(self) -> AttentionMaps:
        """Return the record without the mean that `add_mean` may have added."""
        return self

    def locate(self, layer: int, head: int) -> tuple[int, int]:
        """Return the places in the record of a layer and a head that it has, given the model's own numbers."""
        return self.layer_numbers.index(layer), self.head_numbers.index(head)

    @property
    def known_heads(self) -> tuple[str, ...]:
        """Return what each head looks at over many texts, where the model's card says it of these layers: see `Facts`.

        Nothing of a text that the vocabulary does not hold, or that is longer than the model was made for.
        """
        facts = self.provenance.facts
        is_too_long = facts.made_for_tokens is not None and len(self.queries) > facts.made_for_tokens
        is_of_these = len(facts.known_heads) == self.n_layers * self.n_heads
        return facts.known_heads if is_of_these and not (is_too_long or self.queries.mostly_unknown) else ()

    @property
    def chosen(self) -> tuple[str, ...]:
        """Return what the last queries chose, where the model wrote: query i chose the token at position i + 1."""
        chosen = self.provenance.facts.chosen
        return chosen if len(chosen) <= len(self.queries) else ()

    @property
    def self_attention(self) -> bool:
        """Check whether the tokens attend to each other, rather than to another text's."""
        return self.queries is self.keys

    @property
    def layers_alike(self) -> bool:
        """Check whether all layers allow the same attention."""
        return len(self._masks) == 1 or bool((self.attendable == self.attendable[0]).all())

    @property
    def _masks(self) -> Attendable:
        """Return the masks that lie in memory: one if given for all layers; one row if given for all queries."""
        layers, queries = (slice(1) if step == 0 else slice(None) for step in self.attendable.strides[:2])
        return self.attendable[layers, queries]

    @cached_property
    def real_queries(self) -> RealQueries:
        """Return which queries count in a mean: in self-attention, a token that no query may attend to is padding."""
        if self.self_attention:
            return np.asarray(self._masks.any(axis=(0, 1)))
        return np.ones(len(self.queries), dtype=bool)


def holds_factors(maps: AttentionMaps) -> TypeGuard[FactoredMaps]:
    """Return whether a record holds what its weights are worked out from, in the place of weights."""
    return maps.is_factored


@dataclass(frozen=True, eq=False)
class Measurement:
    """One number per head, or one per layer of its heads taken together: how many axes `values` has says which.

    Raises InvalidRecord when a value lies outside its bounds.
    """

    name: str
    unit: str  # "nats", "tokens", "share"
    values: PerHead | PerLayer
    bounds: tuple[float, float]  # smallest and largest possible

    def __post_init__(self) -> None:
        smallest, largest = self.bounds
        slack = 1e-4 * max(1.0, abs(largest))  # rows may sum to 1 only within float32
        low, high = smallest - slack, largest + slack
        if not all(low <= value <= high for value in self.values.ravel().tolist()):  # a few numbers: numpy takes longer
            raise InvalidRecord(f"{self.name} lies outside {smallest:g} to {largest:g}")

    @property
    def level(self) -> Level:
        """Return what one of the values is a number of."""
        return "head" if self.values.ndim == 2 else "layer"
