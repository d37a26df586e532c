"""Weights of any other program as a record: what `output_attentions=True` gives, an array, or a file of either."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attnviz.errors import InvalidOption, InvalidRecord, InvalidSelection
from attnviz.models.recording.assembly import About, provenance_of, record_of, span
from attnviz.models.recording.labels import AxisLabels, tokens_of
from attnviz.models.recording.names import PADDING, Pieces, check_no_mask, read_names, real_tokens
from attnviz.models.recording.reasons import find_reason
from attnviz.models.recording.weights_file import read_weights_file
from attnviz.records import AttentionMaps, Facts
from attnviz.records.grid import Grid
from attnviz.store.weights import ROUNDED, FileWeights

EXACT = 1e-4  # by which a sum of float32 may miss 1
ONE_SHAPE = "Give the layers of one shape at a time. attnviz.record takes them all, as they come."
AXES = "a tuple with a [batch, head, query, key] for each layer, or one array [layer, head, query, key]"
NO_WEIGHTS = (
    'Load the model with attn_implementation="eager": other kernels give no weights. attnviz.record needs none of that.'
)
TEXTS = "Its first axis, of {}, is taken for texts, one of which was chosen by row."
GUESSES = {  # by the number of axes
    3: "Its first axis, of {}, is taken for heads; of several texts, row would choose one.",
    4: "Its first axis, of {}, is taken for layers; of several texts, row would choose one.",
}
OF_KEYS = "The names are those of the keys: there are as many, and queries are called by their positions."
UNEVEN = "Rows sum to {:.4f} to {:.4f}; numbers count them as if they summed to 1."
CAUSAL = "No query gives any weight to a later token, so later tokens are taken as not attendable."


def from_attentions(  # noqa: PLR0913 - each is an option of its own
    attentions: Any,
    tokens: Sequence[str] | Sequence[Sequence[str]] | None = None,
    *,
    keys: Sequence[str] | Sequence[Sequence[str]] | Grid | None = None,
    row: int | None = None,
    attention_mask: Any = None,
    array: str | None = None,
    model: str | None = None,
    trained: bool | None = None,
    text_name: str | None = None,
) -> AttentionMaps:
    """Make a record of attention weights that a model has put out, such as `outputs.attentions`.

    Args:
        attentions: weights after softmax, as tensors, arrays or nested lists: a tuple with a [batch, head, query, key]
            for each layer, in which the batch may be left out, and None for a layer without attention; or one array
            [layer, head, query, key], in which layers and heads may be left out, and of one query the queries. Or the
            path of a .npy, .npz, .pt, .safetensors or .csv that holds them, of which no pickle is ever run.
        tokens: the pieces of the text, or of each text of the batch; without them tokens are called by position. Of
            several texts the first axis of an array is the texts, and there is one layer. Names that fit the keys alone
            are theirs.
        keys: the pieces that cross-attention attends to. Without them it is self-attention, where there are as many
            queries as keys. An `attnviz.Grid` names patches of an image: of queries, too, where there are as many and
            no tokens are given.
        row: which text of the batch, from 0; may be left out where there is one. Of one array it says that its first
            axis is the texts.
        attention_mask: [batch, token], 1 for a token and 0 for padding, which is left out; of `keys` where given.
        array: which array of a file that holds several; several names with commas are layers.
        model: as titles call it; without it "module", or the name of the file.
        trained: whether the weights of the model are; None where nothing is to be said of it.
        text_name: as tables and files call the text; without it they quote its first words, as titles do.

    Returns:
        The record, with float32 weights [layer, head, query, key]. Rows that half precision has rounded are scaled to
        sum to 1 again. What the model masked is not known: where no query looks ahead, the record counts as causal.

    Raises:
        InvalidRecord: where there are no weights, shapes or names do not fit, or a row does not sum to 1; for a file
            that is none of these.
        InvalidOption: for an `array` that the file does not have.
        TooLarge: for a file of more than 4 GiB of weights.
        InvalidSelection: for a row that the batch does not have, or none of several.

    Examples:
        >>> import torch, attnviz
        >>> attentions = (torch.full((1, 2, 3, 3), 1 / 3),)  # one layer: batch, head, query, key
        >>> attnviz.from_attentions(attentions, ["the", "cat", "sat"], model="mine")
        AttentionMaps(model='mine', text='“the cat sat”', layers=1, heads=2, queries=3, keys=3)
    """
    file = _open_file(attentions, array)
    if tokens is None and keys is None:
        tokens, keys = file.queries, file.keys
    of_tokens, of_keys = read_names("tokens", tokens), None if isinstance(keys, Grid) else read_names("keys", keys)
    n_texts = max(len(of_tokens or ()), len(of_keys or ()), 1)
    layers, guess = _layers(file, n_texts, row)
    row = _row(row, len(layers[0]))
    weights = np.stack([layer[row] for layer in layers])
    n_queries, n_keys = weights.shape[2:]
    if isinstance(keys, Grid):
        check_no_mask(attention_mask)
        of_patches = (keys.names(n_keys),)
        same = of_tokens is None and n_queries == n_keys
        of_tokens, of_keys = (of_patches, None) if same else (of_tokens, of_patches)
    elif of_keys is None and of_tokens is not None and {*map(len, of_tokens)} == {n_keys} != {n_queries}:
        of_tokens, of_keys = None, of_tokens
        guess.append(OF_KEYS)
    elif of_tokens is None and of_keys is None and file.name:
        guess.append("Tokens are called by their positions: no names were given.")
    side = _side(weights.shape, of_tokens, of_keys, row, real_tokens(attention_mask))
    side = side._replace(grid=keys if isinstance(keys, Grid) else None)
    weights = np.ascontiguousarray(weights[:, :, span(side.kept_queries)][..., span(side.kept_keys)])
    given = file.weights if isinstance(file.weights, list | tuple) else ()
    numbers = tuple(number for number, layer in enumerate(given) if layer is not None)
    n_layers = len(given) if len(numbers) < len(given) else None
    anywhere = weights.max(axis=(0, 1)) > 0
    looks_back_only = np.tril(anywhere, -1).any() and not np.triu(anywhere, 1).any()
    causal = bool(side.queries is side.keys and looks_back_only)
    attendable = np.tri(len(side.queries), dtype=bool) if causal else np.ones(weights.shape[2:], dtype=bool)
    guess += [CAUSAL] if causal else []
    sums = weights.sum(axis=-1, dtype=np.float64)
    if np.abs(sums - 1).max(initial=0) > EXACT:
        guess.append(UNEVEN.format(sums.min(), sums.max()))
    guess += [file.guess] if file.guess else []
    about = About(file.name or "module" if model is None else model, file.revision, trained, text_name)
    settings = (("weights", "as given"), ("row", row), *((("array", file.array),) if file.array else ()))
    provenance = provenance_of(
        about, side, settings, Facts(causal=causal, guess=" ".join(guess), n_layers_in_model=n_layers)
    )
    try:
        with np.errstate(invalid="ignore"):  # of infinite weights, which are refused
            return record_of(weights, None, attendable, side, provenance, layer_numbers=numbers)
    except InvalidRecord as error:
        raise InvalidRecord(error.problem, hint=error.hint or find_reason(weights)) from error


def _open_file(attentions: Any, array: str | None) -> FileWeights:
    """Read a path; wrap anything else. Raises InvalidOption for an `array` of what is no file."""
    if isinstance(attentions, FileWeights):
        return attentions
    if isinstance(attentions, str | os.PathLike):
        return read_weights_file(Path(attentions), array)
    if array is not None:
        raise InvalidOption("array chooses in a file, and these are weights", hint="Leave out array.")
    return FileWeights(attentions)


def _layers(
    file: FileWeights, n_texts: int, row: int | None
) -> tuple[list[Float[np.ndarray, "batch head query key"]], list[str]]:
    """Return one array for each layer, all of the same shape, and what of the axes is a guess.

    Names and `row` are evidence: of several texts, the first axis of one array is these, and not the heads.
    """
    weights = file.weights
    given = weights if isinstance(weights, list | tuple) else _array(weights, file.rounding)
    guess: list[str] = []
    if isinstance(given, np.ndarray):
        given, guess = _split_axes(given, n_texts, isinstance(row, int | np.integer), unsure=bool(file.name))
    if len(given) and all(layer is None for layer in given):
        raise InvalidRecord("there are no weights in these attentions", hint=NO_WEIGHTS)
    if not len(given):
        raise InvalidRecord("these attentions are empty", hint=NO_WEIGHTS)
    layers = [_array(layer, file.rounding) for layer in given if layer is not None]
    shapes = {layer.shape for layer in layers}
    if len(shapes) != 1 or not all(layer.ndim in (3, 4) and layer.size for layer in layers):
        found = " and ".join(map(str, sorted(shapes)[:2]))
        alike = all(layer.ndim == layers[0].ndim in (3, 4) and layer.size for layer in layers)
        what = "do not go into one array" if alike else "are not attentions"
        raise InvalidRecord(
            f"{len(layers)} layers of shape {found} {what}", hint=ONE_SHAPE if alike else f"Expected {AXES}."
        )
    layers = [layer if layer.ndim == 4 else layer[None] for layer in layers]
    if n_texts not in (1, len(layers[0])):
        found = f"{n_texts} texts are named, and this is attention of {len(layers[0])}"
        raise InvalidRecord(found, hint="Give [text, head, query, key] of as many texts, or the names of one.")
    return layers, guess


def _split_axes(
    weights: np.ndarray, n_texts: int, row_chosen: bool, unsure: bool
) -> tuple[Float[np.ndarray, "layer ..."], list[str]]:
    """Return [layer, batch, head, query, key], in which the batch may be left out, and what of it is a guess."""
    n_axes = weights.ndim
    if not n_axes or n_axes > 5 or 0 in weights.shape:
        why = "is empty" if 0 in weights.shape else "is not attention"
        raise InvalidRecord(f"an array of shape {weights.shape} {why}", hint=f"Expected {AXES}.")
    guess = [GUESSES[n_axes].format(len(weights))] if unsure and n_axes in GUESSES and len(weights) > 1 else []
    if (n_texts > 1 or row_chosen) and n_axes in (3, 4):
        guess = [TEXTS.format(len(weights))] if n_texts == 1 else []
        weights = (weights[:, None] if n_axes == 3 else weights)[None]
    while weights.ndim < 4:  # of one head, or one layer
        weights = weights[None]
    return weights, guess


def _array(layer: Any, rounding: float) -> np.ndarray:
    """Return float32 of a tensor on any device, an array or lists. Rows that rounding made miss 1 sum to 1 again.

    Those of half precision may miss it by ROUNDED, others by `rounding`. Raises InvalidRecord.
    """
    dtype = getattr(layer, "dtype", None)
    rounding = max(rounding, ROUNDED if getattr(dtype, "itemsize", 4) == 2 else 0)
    if "complex" in str(dtype):  # torch and numpy would drop what is imaginary
        raise InvalidRecord("complex numbers are not attentions", hint=f"Expected {AXES}.")
    try:
        on_host = layer.detach().float().cpu() if hasattr(layer, "detach") else layer
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large for float32 is refused as infinite
            weights = np.asarray(on_host, dtype=np.float32)
    except (TypeError, ValueError, NotImplementedError) as error:  # the last: a tensor on the device "meta"
        raise InvalidRecord(
            "these attentions are not arrays of numbers of one shape", hint=f"Expected {AXES}."
        ) from error
    if rounding and weights.ndim:
        sums = weights.sum(axis=-1, keepdims=True)
        weights = weights.copy()
        np.divide(weights, sums, where=np.abs(sums - 1) <= rounding, out=weights)
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
    """Find which positions are kept, and their names. Raises InvalidRecord where names or mask do not fit."""
    n_queries, n_keys = shape[2:]
    same = keys is None and n_queries == n_keys
    kept = np.ones(n_keys, dtype=bool)
    if real is not None:
        if row >= len(real) or real.shape[1] != n_keys:
            raise InvalidRecord(f"attention_mask of shape {real.shape} does not fit {n_keys} keys in row {row}")
        kept = real[row]
    kept_queries = kept if same else np.ones(n_queries, dtype=bool)
    queries = tokens_of(_names(tokens, "tokens", row, kept_queries, shape))
    of_keys = queries if same else tokens_of(_names(keys, "keys", row, kept, shape))
    return AxisLabels(queries, of_keys, kept_queries, kept)


def _names(
    rows: tuple[Pieces, ...] | None, what: str, row: int, kept: Bool[np.ndarray, " token"], shape: tuple[int, ...]
) -> Pieces:
    if rows is None:
        return tuple(map(str, range(int(kept.sum()))))
    names = rows[0] if len(rows) == 1 else rows[row] if row < len(rows) else ()
    if len(names) == len(kept):
        return tuple(name for name, real in zip(names, kept, strict=True) if real)
    if len(names) != kept.sum():
        fitting = f"{int(kept.sum())}, in weights of {shape[2]} queries and {shape[3]} keys"
        many, few = f"Name each of the {len(kept)} positions once.", f"Name markers too, such as [CLS]. {PADDING}"
        hint = many if len(names) > len(kept) else few
        raise InvalidRecord(f"{len(names)} {what} do not fit attention of {fitting}", hint=hint)
    return names
