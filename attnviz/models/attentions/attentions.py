"""Weights of any other program as a record: what `output_attentions=True` gives, an array, or a file of either."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
from jaxtyping import Bool

from attnviz.errors import InvalidRecord
from attnviz.models.attentions.readings import AXES, EXACT, Rows, find_axes, find_reason, read_axes, scale_rounded
from attnviz.models.attentions.weights_file import WeightsRequest, check_row, read_weights
from attnviz.models.capture.call import Call
from attnviz.models.capture.ids import Store, nobody
from attnviz.models.recording.assembly import provenance_of, record_of, span
from attnviz.models.recording.groups import Group
from attnviz.models.recording.labels import PADDING, Names, Pieces, label, read_names, real_tokens
from attnviz.records import AttentionMaps, Facts, Provenance
from attnviz.records.grid import Grid
from attnviz.store.weights import FileWeights

OF_KEYS = "The names are those of the keys: there are as many, and queries are called by their positions."
UNEVEN = "Rows sum to {:.4f} to {:.4f}; numbers count them as if they summed to 1."
CAUSAL = "No query gives any weight to a later token, so later tokens are taken as not attendable."
SIZES = "weights of {} queries and {} keys"
UNTITLED = Provenance("", "", None, "", "")
PATCHES = "Give their places: Grid(…, at=range(4, 20)); or names of patches that differ by numbers alone."
OF_PATCHES = "Patches are the {} tokens in a row whose names differ by numbers alone."


def from_attentions(  # noqa: PLR0913 - each is an option of its own
    attentions: Any,
    tokens: Sequence[str] | Sequence[Sequence[str]] | Grid | None = None,
    *,
    keys: Sequence[str] | Sequence[Sequence[str]] | Grid | None = None,
    row: int | None = None,
    attention_mask: Any = None,
    array: str | None = None,
    axes: str | None = None,
    model: str | None = None,
    trained: bool | None = None,
    text_name: str | None = None,
) -> AttentionMaps:
    """Make a record of attention weights that a model has put out, such as `outputs.attentions`.

    Args:
        attentions: weights after softmax, as tensors, arrays or nested lists: a tuple with a [batch, head, query, key]
            for each layer, in which the batch may be left out, and None for a layer without attention; what a model or
            `generate` puts out with `output_attentions=True`, whose steps are put together; or one array, most often
            [layer, head, query, key], in which layers and heads may be left out, and of one query the queries. Or a
            mapping of such with names; a pandas table; `(edge_index, alpha)` of a graph, whose targets are the queries.
            Or the path of a .npy, .npz, .pt, .safetensors, .json or .csv that holds them, of which no pickle is
            ever run.
        tokens: the pieces of the text, or of each text of the batch; without them tokens are called by position. Names
            that fit the keys alone are theirs. A `Grid` names queries that are patches.
        keys: the pieces that cross-attention attends to. Without them it is self-attention, where there are as many
            queries as keys. An `attnviz.Grid` names patches of an image: of queries, too, where there are as many and
            no tokens are given.
        row: which text of the batch, from 0; may be left out where there is one.
        attention_mask: [batch, token], 1 for a token and 0 for padding, which is left out; of `keys` where given.
        array: which array of a file or a mapping that holds several; without it, the only one whose rows sum to 1.
            Those whose names differ by a number are layers in their order.
        axes: what the axes of the array are, such as "text,layer,head,query,key". Without it, what names and numbers
            say of them; where they leave it open, the record says what was taken.
        model: as titles call it; without it "module", or the name of the file.
        trained: whether the weights of the model are; None where nothing is to be said of it.
        text_name: as tables and files call the text; without it they quote its first words, as titles do.

    Returns:
        The record, with float32 weights [layer, head, query, key]. Rows of half precision or few decimals are scaled to
        sum to 1 again. What the model masked is not known: where no query looks ahead, the record counts as causal.

    Raises:
        InvalidRecord: where there are no weights, shapes or names do not fit, or a row does not sum to 1; for a file
            that is none of these.
        InvalidOption: for an `array` that there is not, and for `axes` that do not fit.
        TooLarge: for a file of more than 4 GiB of weights.
        InvalidSelection: for a row that the batch does not have, or none of several.

    Examples:
        >>> import torch, attnviz
        >>> attentions = (torch.full((1, 2, 3, 3), 1 / 3),)  # one layer: batch, head, query, key
        >>> attnviz.from_attentions(attentions, ["the", "cat", "sat"], model="mine")
        AttentionMaps(model='mine', text='“the cat sat”', layers=1, heads=2, queries=3, keys=3)
    """
    asked = WeightsRequest(tokens, keys, row, attention_mask, array, axes)
    about = Provenance("" if model is None else model, "", trained, "", "" if text_name is None else text_name)
    return make_maps(read_weights(attentions, asked), asked, about)


@np.errstate(over="ignore", invalid="ignore")  # of infinite and too large weights, which are refused
def make_maps(file: FileWeights, asked: WeightsRequest, about: Provenance = UNTITLED) -> AttentionMaps:
    """Make a record of weights and their names. Raises as `from_attentions` does.

    Each layer is a call of a single text, so that its tokens get their names, and padding goes, as in `attnviz.record`.
    """
    if asked.tokens is None and asked.keys is None:
        asked = asked._replace(tokens=file.queries, keys=file.keys)
    both = ("tokens", asked.tokens), ("keys", asked.keys)
    rows = [None if isinstance(each, Grid) else read_names(what, each) for what, each in both]
    guess, given = [file.guess] if file.guess else [], file.given
    if asked.axes is None:
        axes, said = find_axes(file.weights, file.known, (rows[0], rows[1]), asked.row, asked.door["axes"])
        guess += [said] if said else []
    else:
        axes = read_axes(asked.axes, file.weights.ndim)
    order = [axes.index(axis) for axis in AXES if axis in axes]
    missing = [place for place, axis in enumerate(AXES) if axis not in axes]
    layers = np.expand_dims(file.weights.transpose(order), missing)  # [layer, text, head, query, key]
    row = check_row(asked.row, layers.shape[1], asked.door)
    rows = [each[row : row + 1] if each is not None and len(each) > 1 else each for each in rows]
    weights, said = scale_rounded(layers[:, row])
    guess += [said] if said else []
    names = _name(asked, rows, row, weights.shape[2:], guess)
    used = np.asarray((weights > 0).any(axis=(0, 1)))
    allowed, attended = np.ones_like(used), np.asarray(used.any(axis=0))
    if names.real is None and given is None and _is_padded(attended, layers, names):
        allowed[:, ~attended] = False
    sink = np.zeros(weights.shape[:3], dtype=np.float32)
    call = Call("", 0, weights[:1], allowed[None], sink[:1], "multiplied", 0.0, nobody(used.shape[:1])[None].numpy())
    try:
        ((_, (side,)),) = label([Group(SIZES.format(*used.shape), 0, [call])], names, Store())
    except InvalidRecord as error:
        hint = asked.door["padding"] if error.hint == PADDING else error.hint
        raise InvalidRecord(error.problem, hint=hint) from error
    kept = np.ix_(side.kept_queries, side.kept_keys)
    used, allowed = used[kept], np.ones_like(used[kept]) if given is None else given
    causal = given is None and side.queries is side.keys and np.tril(used, -1).any() and not np.triu(used, 1).any()
    if causal:
        allowed = np.tri(len(used), dtype=bool)
        guess.append(CAUSAL)
    sums = weights[:, :, side.kept_queries].sum(axis=-1, dtype=np.float64)
    if np.abs(sums - 1).max(initial=0) > EXACT:
        guess.append(UNEVEN.format(sums.min(), sums.max()))
    if file.name and rows == [None, None] and names.grid is None:
        guess.append("Tokens are called by their positions: no names were given.")
    facts = Facts(causal=bool(causal), guess=" ".join(guess), n_layers_in_model=file.n_layers)
    settings = ("weights", "as given"), ("row", row), *((("array", file.array),) if file.array else ())
    model = about.model or file.name or "module"
    about = replace(about, model=model, revision=file.revision, settings=settings, facts=facts)
    numbers = file.layers if len(file.layers) == len(weights) else tuple(range(len(weights)))
    try:
        kept_weights = weights[:, :, span(side.kept_queries)][..., span(side.kept_keys)]
        return record_of(kept_weights, sink, allowed, side, provenance_of(about, side), layer_numbers=numbers)
    except InvalidRecord as error:
        raise InvalidRecord(error.problem, hint=error.hint or find_reason(layers[:, row])) from error


def _name(asked: WeightsRequest, rows: Sequence[Rows], row: int, sizes: tuple[int, ...], guess: list[str]) -> Names:
    """Decide whose the names are. Raises InvalidRecord where it is not known which of the tokens are patches."""
    (tokens, keys), grid, (n_queries, n_keys) = rows, asked.keys, sizes
    if isinstance(asked.tokens, Grid):
        tokens = (asked.tokens.names(n_queries),)
    real = real_tokens(asked.attention_mask, grid)
    if isinstance(grid, Grid):
        if tokens is not None and n_queries == n_keys != grid.n_patches and not grid.leading:
            if not (places := grid.at or _find_run(tokens[0], grid.n_patches)):
                problem = f"which of the {n_keys} tokens are the {grid.n_patches} patches is not known"
                raise InvalidRecord(problem, hint=PATCHES)
            guess += [] if grid.at else [OF_PATCHES.format(grid.n_patches)]
            grid = replace(grid, at=places).over(grid.pixels)
            named = zip(range(n_keys), tokens[0], grid.names(n_keys), strict=True)
            return Names(None, (tuple(patch if at in places else token for at, token, patch in named),), None, grid)
        return Names(tokens, (grid.names(n_keys),), None, grid)
    if keys is None and tokens is not None and n_queries != len(tokens[0]) == n_keys:
        tokens, keys = None, tokens
        guess.append(OF_KEYS)
    return Names(tokens, keys, None if real is None else real[row : row + 1])


def _find_run(pieces: Pieces, n_patches: int) -> tuple[int, ...]:
    """Find the only tokens in a row, so many, that are called alike but for numbers: "<image>", or "p0" to "p15"."""
    places = groupby(range(len(pieces)), key=lambda place: re.sub("[0-9]+", "", pieces[place]))
    runs = [tuple(run) for _, run in places]
    fitting = [run for run in runs if len(run) == n_patches]
    return fitting[0] if len(fitting) == 1 else ()


def _is_padded(used: Bool[np.ndarray, " key"], layers: np.ndarray, names: Names) -> bool:
    """Tell whether keys that nothing attends to are padding: only the others have names, or other texts have them."""
    named, n_used = names.keys or names.tokens, int(used.sum())
    if named is not None or not 0 < n_used < len(used):
        return named is not None and len(named[0]) == n_used < len(used)
    first, last = np.flatnonzero(used)[[0, -1]]
    of_others = (layers > 0).any(axis=(0, 1, 2, 3))
    return bool(last - first + 1 == n_used and (of_others & ~used).any())
