"""Records of somebody's own model: whatever attends while a block runs. The one way in; `import attnviz` offers it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, overload

from attnviz.errors import InvalidRecord, InvalidSelection
from attnviz.models.capture.call import Call
from attnviz.models.capture.tap import capture
from attnviz.models.protocols import LayersAndHeads
from attnviz.models.recording.assembly import records
from attnviz.models.recording.groups import group_calls
from attnviz.models.recording.labels import Names, name_patches, read_names, real_tokens
from attnviz.records import AttentionMaps, Provenance
from attnviz.records.grid import Grid
from attnviz.records.notebook import Displayable


class Recording(Displayable, Sequence[AttentionMaps]):
    """Records in the order of passes, groups and rows of the batch; empty until the block that makes them ends."""

    def __init__(self, records: Sequence[AttentionMaps] = ()) -> None:
        self._records = list(records)
        self.not_seen = ""  # what attended in the block and is in no record, in sentences; "": nothing is known of any

    @overload
    def __getitem__(self, place: int) -> AttentionMaps: ...
    @overload
    def __getitem__(self, place: slice) -> "Recording": ...
    def __getitem__(self, place: int | slice) -> "AttentionMaps | Recording":
        return Recording(self._records[place]) if isinstance(place, slice) else self._records[place]

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        first = f", the first of them {self[0]!r}" if self._records else ""
        apart = f"; steps are not joined: {self.not_joined}" if self.not_joined else ""
        missing = f"; {self.not_seen}" if self.not_seen else ""
        return f"Recording({len(self)} records{first}{apart}{missing})"

    @property
    def not_joined(self) -> str:
        """Say why the steps of a text that grows are records of their own; "" where none had to be."""
        settings = (dict(maps.provenance.settings) for maps in self._records)
        return next((str(each["not_joined"]) for each in settings if "not_joined" in each), "")

    @property
    def groups(self) -> tuple[str, ...]:
        """List the names of the groups of layers, such as "decoder.layers.*.self_attn"."""
        return tuple(dict.fromkeys(maps.provenance.facts.group for maps in self._records))

    def only(self, group: str) -> "Recording":
        """Return the records of one group. Raises InvalidSelection, with the groups there are."""
        if group not in self.groups:
            there_are = ", ".join(map(repr, self.groups)) or "none"
            raise InvalidSelection(f"no group {group!r}", hint=f"There is {there_are}.")
        return Recording([maps for maps in self._records if maps.provenance.facts.group == group])


@contextmanager
def record(  # noqa: PLR0913 - each is an option of its own
    tokens: Sequence[str] | Sequence[Sequence[str]] | None = None,
    *,
    keys: Sequence[str] | Sequence[Sequence[str]] | Grid | None = None,
    attention_mask: Any = None,
    model: str | None = None,
    trained: bool | None = None,
    revision: str = "as given",
    text_name: str | None = None,
    factored: bool = False,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> Iterator[Recording]:
    """Record the attention of whatever PyTorch modules run in the block, changing nothing in them.

        >>> import torch, attnviz
        >>> layer = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True).eval()
        >>> with attnviz.record(tokens=["the", "cat", "sat"]) as maps:
        ...     _ = layer(torch.zeros(1, 3, 8))
        >>> maps[0].weights.shape  # layer, head, query, key
        (1, 2, 3, 3)

    The records are there when the block ends: one for each forward pass of an outermost module, each group of layers
    (`Recording.groups`) and each row of the batch. Outermost modules of one class that read one another's states, as
    where a function calls layers one by one, are the layers of one pass; the same module again is another pass.
    Rows of a batch stand in the order in which the texts were read, also where the model sorts them. A text that a
    module reads several times, as under guidance in a diffusion, is as many texts. Inside a model that is known of
    states that a module with others in it reads.

    What the outermost module reads are tokens: words [text, token], or states [text, token, d]. What has no axis of
    tokens beside these, such as lengths [text] or a vector [text, d], is one token of each text. Where a module gives
    the numbers of the last axis features of their own, as those of a series [text, time] or of a table, each is one.
    States of more axes, as patches of frames [text, frame, patch, d], are tokens once a linear map or a norm reads
    their last axis; what becomes rows of a batch, as patches of an image do, stays of its text. Texts, or images
    [channel, y, x], that stand in a list are rows as those of a batch. Words that a model finds itself, as those that
    came back from NumPy, are called ⟨new 0⟩.

    States of a recurrence, also of a cell written by hand, are called by the token that was read last. Scores that are
    made of pairs of tokens, such as sums and distances, are of both. Where no module is at work, as in the cells of a
    notebook, a softmax of any scores is taken for one of attention, and the record's facts say that it is a guess. So
    is which tokens weights are of where a module did to its states what is not followed: names then go by how many
    there are.

    `tokens` names the pieces of one text, or of each text of a batch in a list of lists, also where these stand one
    after another on one axis and attend as windows, as the graphs of a batch do; without it, tokens are called by their
    positions. `keys` names what cross-attention attends to, and what the encoder of an encoder-decoder reads. The
    pieces count as separated by one space; none counts as a marker of the model. Where several texts bear names that
    were given once, their facts say so.

    As `keys`, an `attnviz.Grid` names the patches of an image, in self-attention, too.

    Titles call the model `model`, else by the class of the outermost module, and the text by its first words: "Reader
    attends to “the cat sat”". Tables and files call the text `text_name`, or likewise.

    `attention_mask` is [batch, token], 1 for a token and 0 for padding, of `keys` where a model reads both, else of
    `tokens`. Padding is left out of the records; without a mask, keys that no query may attend to are.

    The steps of a text that grows over a key/value cache, as in a model's own `generate`, are one record: that of one
    pass over prompt and answer, but for the last token, which was chosen and never read. The query at position i chose
    the token at position i + 1. Positions beyond the names that are given are called ⟨7⟩; a list of names is read when
    the block ends, so that those of the answer can be put behind. Lists that are all as long name the padding that
    texts begin with, too. A row of a batch that ends before others goes on with the padding that it was fed. Without a
    cache each pass is a record of its own, of as many of the names as it reads, also where the text is cropped from its
    beginning word by word; beams have names for what they began with. Steps whose cache holds tokens of other rows
    (beam search) stay records of their own, and `Recording.not_joined` says why. There the queries are the last of the
    keys, and measures that compare their positions do not apply.

    One weight a word, as where a recurrent network's states are pooled, is one query, called ⟨query⟩; calls of one
    module in a loop that have one each are rows of one record, which `tokens` may name. Windows are records of their
    own, with the names of their tokens. All layers of a record hold the same tokens in the same places: layers that
    hold others, or hold them in another order, are a group of their own. Where all layers are written in one function
    or module, a word that asks again asks in a further layer.

    Modules of one head each that are numbered from 0 and read the same states are the heads of one layer; so are calls
    of one head in one run of a module, as in a loop over heads. A module that attends to some texts or queries at a
    time, and perhaps to some of their heads, is recorded as if it had attended to all at once. Of calls that are taken
    for layers, though one reads nothing that those before it gave, the record's facts say that it is a guess.

    `layers` and `heads` choose some, by the model's own numbers from 0; of others nothing is kept. The record's
    `layer_numbers` and `head_numbers` say which they are, and pictures and tables call them by these.

    With `factored` a record keeps q, k and the log-sum-exp of each row in the place of the weights, which are worked
    out from them a block of rows at a time: for texts whose weights are too many. That is for models that attend
    through `scaled_dot_product_attention`, with masks that are windows (causal is one) or padding and may add a bias
    by distance, in one pass over the text.

    Attention may be written out by hand: with @, bmm, mm or einsum, keys on any axis, softmax as exp over its sum. A
    product in which rows that sum to one weigh states of different tokens is attention. What torch.vmap, torch.func,
    torch.jit.trace or torch.export look at is not recorded, nor is the meta device, where there is nothing to read; a
    program that was traced, scripted, frozen or exported is. What mixes tokens otherwise, as linear attention does, is
    named.

    Raises InvalidRecord where nothing attended, where names or mask do not fit, for a `model`, `revision` or
    `text_name` that is no text, where the model is in training mode and drops weights, where a kernel computes
    something else than attention, and where factors are asked for of attention that is not made of them;
    InvalidSelection for a layer or head that there is not.
    """
    _names(tokens, keys, attention_mask)  # refused before any work, as is what cannot stand in a record
    about = Provenance("" if model is None else model, revision, trained, "", "" if text_name is None else text_name)
    choice = LayersAndHeads(layers, heads)
    calls: list[Call] = []
    recording = Recording()
    with capture(calls.append, choice, factored=factored) as watching:
        yield recording
    # The first layers of outermost modules were seen before there was a second: 0 stands before their paths now.
    stacked = {call.number for call in calls if call.place_in_stack}
    for at, call in enumerate(calls):
        if call.number in stacked and not call.place_in_stack:
            calls[at] = replace(call, path=f"0.{call.path}".rstrip("."), n_alike=(0, *call.n_alike))
    if not calls and watching.at_work.n_seen:
        raise InvalidSelection(f"no attention was seen in layers {choice.layers}", hint="Layers count from 0.")
    if not calls:
        raise InvalidRecord("no attention was seen in this block", hint=watching.unread.describe_none())
    names = _names(tokens, keys, attention_mask)
    recording.not_seen = " ".join(watching.unread.describe())
    groups = group_calls(calls, watching, choice)
    if names.grid is not None:
        names = replace(names, keys=name_patches(names.grid, groups))
    calls.clear()  # so that each layer is let go when its numbers are in the record
    recording._records = list(records(groups, names, about, watching.store))


def _names(tokens: Any, keys: Any, attention_mask: Any) -> Names:
    """Read what the caller called things; patches are named once it is known how many keys there are."""
    of_keys = None if isinstance(keys, Grid) else read_names("keys", keys)
    grid = keys if isinstance(keys, Grid) else None
    return Names(read_names("tokens", tokens), of_keys, real_tokens(attention_mask, keys), grid)
