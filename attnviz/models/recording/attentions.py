"""Weights that somebody else's code has put out, as a record: what `output_attentions=True` gives, or any array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attnviz.errors import InvalidRecord, InvalidSelection
from attnviz.models.recording.assembly import About, provenance_of, record_of
from attnviz.models.recording.names import PADDING, Pieces, check_no_mask, read_names, real_tokens
from attnviz.models.recording.plan import AxisLabels
from attnviz.records import AttentionMaps, Facts
from attnviz.records.grid import Grid

EXACT = 1e-4  # by which a sum of float32 may miss 1
ROUNDED = 1e-2  # by which a row of half precision may miss 1
AXES = "a tuple with a [batch, head, query, key] for each layer, or one array [layer, head, query, key]"
NO_WEIGHTS = (
    'Load the model with attn_implementation="eager": other kernels give no weights. attnviz.record needs none of that.'
)
EVALUATE = "model.eval() turns dropout off; scores need a softmax over the keys first."
CAUSAL = "No query gives any weight to a later token, so later tokens are taken as not attendable."


def from_attentions(  # noqa: PLR0913 - each is an option of its own
    attentions: Any,
    tokens: Sequence[str] | Sequence[Sequence[str]] | None = None,
    *,
    keys: Sequence[str] | Sequence[Sequence[str]] | Grid | None = None,
    row: int | None = None,
    attention_mask: Any = None,
    model: str = "module",
    trained: bool | None = None,
    text_name: str | None = None,
) -> AttentionMaps:
    """Make a record of attention weights that a model has put out, such as `outputs.attentions`.

    Args:
        attentions: weights after softmax, as tensors, arrays or nested lists: a tuple with a [batch, head, query, key]
            for each layer, in which the batch may be left out; or one array [layer, head, query, key], in which layers
            and heads may be left out.
        tokens: the pieces of the text, or of each text of the batch; without them tokens are called by position. Of
            several texts the first axis of an array is the texts, and there is one layer.
        keys: the pieces that cross-attention attends to. Without them it is self-attention, where there are as many
            queries as keys. An `attnviz.Grid` names patches of an image: of queries, too, where there are as many and
            no tokens are given.
        row: which text of the batch, from 0; may be left out where there is one.
        attention_mask: [batch, token], 1 for a token and 0 for padding, which is left out; of `keys` where given.
        model: as titles call it.
        trained: whether the weights of the model are; None where nothing is to be said of it.
        text_name: as titles call the text; without it they quote its first words.

    Returns:
        The record, with float32 weights [layer, head, query, key]. Rows that half precision has rounded are scaled to
        sum to 1 again. What the model masked is not known: where no query looks ahead, the record counts as causal.

    Raises:
        InvalidRecord: where there are no weights, shapes or names do not fit, or a row does not sum to 1.
        InvalidSelection: for a row that the batch does not have, or none of several.

    Examples:
        >>> import torch, attnviz
        >>> attentions = (torch.full((1, 2, 3, 3), 1 / 3),)  # one layer: batch, head, query, key
        >>> attnviz.from_attentions(attentions, ["the", "cat", "sat"], model="mine")
        AttentionMaps(model='mine', text='“the cat sat”', layers=1, heads=2, queries=3, keys=3)
    """
    rows = read_names("tokens", tokens), None if isinstance(keys, Grid) else read_names("keys", keys)
    layers = _layers(attentions, max(len(of or ()) for of in rows) or 1)
    row = _row(row, len(layers[0]))
    weights = np.stack([layer[row] for layer in layers])
    grid = keys if isinstance(keys, Grid) else None
    if isinstance(keys, Grid):
        check_no_mask(attention_mask)
        of_patches = keys.names(weights.shape[3])
        same = tokens is None and weights.shape[2] == weights.shape[3]
        tokens, keys = (of_patches, None) if same else (tokens, of_patches)
    side = _side(
        weights.shape, read_names("tokens", tokens), read_names("keys", keys), row, real_tokens(attention_mask)
    )
    side = side._replace(grid=grid)
    weights = np.ascontiguousarray(weights[:, :, side.kept_queries][..., side.kept_keys])
    causal = side.same and _looks_back_only(weights)
    attendable = np.tri(len(side.queries), dtype=bool) if causal else np.ones(weights.shape[2:], dtype=bool)
    facts = Facts(causal=causal, guess=" ".join(filter(None, (CAUSAL if causal else "", _describe_sums(weights)))))
    about = About(model, "as given", trained, text_name)
    provenance = provenance_of(about, side, (("weights", "as given"), ("row", row)), facts)
    try:
        return record_of(weights, None, attendable, side, provenance, ((), ()))
    except InvalidRecord as error:
        raise InvalidRecord(error.problem, hint=error.hint or EVALUATE) from error


def _layers(attentions: Any, n_texts: int) -> list[Float[np.ndarray, "batch head query key"]]:
    """Return one array for each layer, all of the same shape.

    Names are evidence: where several texts are named, the first axis of one array is the texts, and not the heads.
    """
    given = attentions if isinstance(attentions, list | tuple) else _array(attentions)
    if n_texts > 1 and isinstance(given, np.ndarray) and given.ndim in (3, 4):
        given = (given[:, None] if given.ndim == 3 else given)[None]
    while isinstance(given, np.ndarray) and given.ndim < 4:  # of one head, or one layer
        given = given[None]
    if len(given) and all(layer is None for layer in given):
        raise InvalidRecord("there are no weights in these attentions", hint=NO_WEIGHTS)
    if not len(given):
        raise InvalidRecord("these attentions are empty", hint=NO_WEIGHTS)
    layers = [_array(layer) for layer in given]
    shapes = {layer.shape for layer in layers}
    if len(shapes) != 1 or not all(layer.ndim in (3, 4) and layer.size for layer in layers):
        found = " and ".join(map(str, sorted(shapes)[:2]))
        raise InvalidRecord(f"{len(layers)} layers of shape {found} are not attentions", hint=f"Expected {AXES}.")
    layers = [layer if layer.ndim == 4 else layer[None] for layer in layers]
    if n_texts not in (1, len(layers[0])):
        found = f"{n_texts} texts are named, and this is attention of {len(layers[0])}"
        raise InvalidRecord(found, hint="Give [text, head, query, key] of as many texts, or the names of one.")
    return layers


def _describe_sums(weights: Float[np.ndarray, "layer head query key"]) -> str:
    """Say where rows do not sum to 1: every measure counts them as if they did."""
    sums = weights.sum(axis=-1, dtype=np.float64)
    if np.abs(sums - 1).max(initial=0) <= EXACT:
        return ""
    return f"Rows sum to {sums.min():.4f} to {sums.max():.4f}; numbers count them as if they summed to 1."


def _array(layer: Any) -> np.ndarray:
    """Float32 of a tensor on any device, an array or lists. Raises InvalidRecord."""
    dtype = getattr(layer, "dtype", None)
    rounded = getattr(dtype, "itemsize", 4) == 2
    if "complex" in str(dtype):  # torch and numpy would drop what is imaginary
        raise InvalidRecord("complex numbers are not attentions", hint=f"Expected {AXES}.")
    try:
        on_host = layer.detach().float().cpu() if hasattr(layer, "detach") else layer
        weights = np.asarray(on_host, dtype=np.float32)
    except (TypeError, ValueError, NotImplementedError) as error:  # the last: a tensor on the device "meta"
        raise InvalidRecord(
            "these attentions are not arrays of numbers of one shape", hint=f"Expected {AXES}."
        ) from error
    if rounded and weights.ndim:
        sums = weights.sum(axis=-1, keepdims=True)
        weights = weights.copy()
        np.divide(weights, sums, where=np.abs(sums - 1) <= ROUNDED, out=weights)
    return weights


def _row(row: int | None, n_rows: int) -> int:
    if row is None and n_rows > 1:
        raise InvalidSelection(f"a batch of {n_rows} texts", hint=f"Choose one with row=0 to row={n_rows - 1}.")
    if not isinstance(row, int | np.integer | None) or not 0 <= (row or 0) < n_rows:
        raise InvalidSelection(f"no row {row!r:.40} in a batch of {n_rows}", hint=f"There are rows 0 to {n_rows - 1}.")
    return row or 0


def _side(
    shape: tuple[int, ...],
    tokens: tuple[Pieces, ...] | None,
    keys: tuple[Pieces, ...] | None,
    row: int,
    real: Bool[np.ndarray, "row token"] | None,
) -> AxisLabels:
    """Which positions are kept, and their names. Raises InvalidRecord where names or mask do not fit."""
    n_queries, n_keys = shape[2:]
    same = keys is None and n_queries == n_keys
    kept = np.ones(n_keys, dtype=bool)
    if real is not None:
        if row >= len(real) or real.shape[1] != n_keys:
            raise InvalidRecord(f"attention_mask of shape {real.shape} does not fit {n_keys} keys in row {row}")
        kept = real[row]
    kept_queries = kept if same else np.ones(n_queries, dtype=bool)
    queries = _names(tokens, "tokens", row, kept_queries, n_keys)
    return AxisLabels(queries, queries if same else _names(keys, "keys", row, kept, n_keys), kept_queries, kept, same)


def _names(
    rows: tuple[Pieces, ...] | None, what: str, row: int, kept: Bool[np.ndarray, " token"], n_keys: int
) -> Pieces:
    if rows is None:
        return tuple(map(str, range(int(kept.sum()))))
    names = rows[0] if len(rows) == 1 else rows[row] if row < len(rows) else ()
    if len(names) == len(kept):
        return tuple(name for name, real in zip(names, kept, strict=True) if real)
    if len(names) != kept.sum():
        problem = f"{len(names)} {what} do not fit attention of {int(kept.sum())}"
        raise InvalidRecord(problem, hint=_find_hint(len(names), len(kept), n_keys))
    return names


def _find_hint(n_names: int, n_there: int, n_keys: int) -> str:
    """Say what would make names fit."""
    if n_names == n_keys != n_there:
        return "They are as many as the keys: give keys= their names, and tokens= those of the queries."
    if n_names > n_there:
        return f"Name each of the {n_there} positions once."
    return f"Name markers too, such as [CLS]. {PADDING}"


def _looks_back_only(weights: Float[np.ndarray, "layer head query key"]) -> bool:
    """Whether some weight lies before the diagonal and none after it."""
    anywhere = weights.max(axis=(0, 1)) > 0
    return bool(np.tril(anywhere, -1).any() and not np.triu(anywhere, 1).any())
