"""Records of models written here, of every shape that somebody's own may have."""

import hashlib
import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnviz.errors import InvalidRecord, InvalidSelection
from attnviz.models.recording.record import record
from tests.models.captures import SDPA, drawn, recorded
from tests.models.structures import Module, by_softmax, called

# --- models -------------------------------------------------------------------------------------------------------


class SelfAttention(nn.Module):
    """As in nanoGPT: the fused kernel or by hand, with or without a cache."""

    def __init__(self, d_model: int, n_heads: int, flash: bool) -> None:
        super().__init__()
        self.n_heads, self.flash = n_heads, flash
        self.c_attn, self.c_proj = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.attn_dropout = nn.Dropout(0.1)
        self.past: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor, real: Tensor | None, cached: bool) -> Tensor:
        b, t, c = x.shape
        q, k, v = (one.view(b, t, self.n_heads, -1).transpose(1, 2) for one in self.c_attn(x).chunk(3, dim=-1))
        if cached and self.past is not None:
            k, v = torch.cat([self.past[0], k], dim=2), torch.cat([self.past[1], v], dim=2)
        self.past = (k, v)
        allowed = torch.ones(t, k.shape[2], dtype=torch.bool).tril(k.shape[2] - t)
        if real is not None:
            allowed = allowed & real[:, None, None].bool()
        if self.flash:
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=0.1 * self.training)
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = functional.softmax(att.masked_fill(~allowed, torch.finfo(att.dtype).min), dim=-1)
            y = self.attn_dropout(att) @ v
        output: Tensor = self.c_proj(y.transpose(1, 2).reshape(b, t, c))
        return output


class GPT(nn.Module):
    def __init__(self, flash: bool = True, n_layers: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.wte, self.wpe = nn.Embedding(20, 8), nn.Embedding(999, 8, _weight=torch.zeros(999, 8))
        self.h = nn.ModuleList([SelfAttention(8, 2, flash) for _ in range(n_layers)])
        self.eval()

    def forward(self, ids: Tensor, real: Tensor | None = None, cached: bool = False) -> Tensor:
        states = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for layer in self.h:
            states = states + layer(states, real, cached)
        logits: Tensor = states @ self.wte.weight.T
        return logits.softmax(dim=-1)  # never multiplied, so not attention


IDS = torch.tensor([[3, 7, 1, 9, 4]])
WORDS = ["the", "cat", "sat", "on", "mats"]


# --- names and numbers --------------------------------------------------------------------------------------------


def test_names_and_where_they_come_from() -> None:
    maps = recorded(lambda: GPT()(IDS), tokens=WORDS, model="nano", trained=True, revision="abc", text_name="a line")
    of = maps[0].provenance
    assert maps[0].queries.pieces == tuple(WORDS)
    assert maps[0].queries is maps[0].keys
    text = "the cat sat on mats"
    assert [text[start:end] for start, end in maps[0].queries.offsets] == WORDS
    assert of.text_sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert (of.model, of.trained, of.revision, of.text_name) == ("nano", True, "abc", "a line")
    settings = dict(of.settings)
    error = settings.pop("largest_error")
    assert isinstance(error, float)
    assert 0 < error < 1e-5
    weights = "recomputed, and held against the output of each call"
    assert settings == {"weights": weights, "pass": 0, "row": 0, "group": "h.*"}
    assert [name for name, _ in of.versions] == ["attnviz", "numpy", "torch"]
    by_hand = recorded(lambda: GPT(flash=False)(IDS))[0].provenance
    assert dict(by_hand.settings)["weights"] == "as the model itself multiplied them"


def test_a_sequence_that_fills_when_the_block_ends() -> None:
    with record() as maps:
        model = GPT()
        model(IDS)
        model(IDS[:, :3])
        assert len(maps) == 0
    assert len(maps) == 2
    assert [len(of_pass.queries) for of_pass in maps] == [5, 3]
    assert [dict(of_pass.provenance.settings)["pass"] for of_pass in maps] == [0, 1]
    assert maps[-1] is maps[1]
    assert list(maps[1:]) == [maps[1]]
    assert maps[0].queries.pieces == ("0", "1", "2", "3", "4")  # nobody named them
    assert (maps[0].provenance.model, maps[0].provenance.trained) == ("GPT", None)
    with pytest.raises(InvalidSelection, match=r"no group 'h'\. There is 'h\.\*'"):
        maps.only("h")
    assert list(maps.only("h.*")) == list(maps)


def test_names_given_once_are_those_of_each_text_of_a_batch() -> None:
    """Also where these attend to one another, as images do that are matched (LoFTR, Sun et al. 2021)."""
    with record(WORDS) as maps:
        Module(lambda _, texts: by_softmax(texts[:2], texts[1:], texts[1:]))(drawn(3, 3, len(WORDS), 16))
    assert [of.queries.pieces for of in maps] == [tuple(WORDS)] * 2
    assert "Names were given once, for each of 3 texts." in maps[1].provenance.facts.guess
    with record(WORDS) as maps:
        GPT()(IDS)
        GPT()(IDS.flip(1))
    assert [of.provenance.facts.guess for of in maps] == ["Names were given once, for each of 2 texts."] * 2
    with record(keys=["a", "b"]) as maps:  # of which of two encoders?
        cross = nn.MultiheadAttention(4, 1, batch_first=True)
        Module(lambda _, x, *keys: cross(x, *[torch.cat(keys, dim=1)] * 2))(*torch.ones(3, 1, 2, 4))
    assert maps[0].provenance.facts.guess == "Names were given once, for each of 2 texts."


@pytest.mark.parametrize(
    ("given", "n_texts", "said"),
    [
        ({"tokens": WORDS[:1]}, 1, r"1 name in tokens.*is of 5.*attention_mask"),
        ({"tokens": ["the", ["cat"]]}, 1, "Give its pieces"),
        ({"tokens": [WORDS] * 3}, 2, r"tokens is of 3 texts, the attention in h\.\* of 2.*list of lists"),
        ({"tokens": [WORDS] * 2}, 1, r"tokens is of 2 texts, the attention in h\.\* of 1.*a block of its own"),
        ({"attention_mask": [[1, 1, 1]]}, 1, "attention_mask is of 1 × 3 tokens.*of 1 × 5"),
        ({"attention_mask": [[[1]]]}, 1, "attention_mask has 3 axes"),
        # one that is added to scores: taken for ours it would leave out the text
        ({"attention_mask": [[0.0, -np.inf]]}, 1, "attention_mask holds -inf"),
        ({"attention_mask": [[1], [1, 0]]}, 1, r"attention_mask holds \[1\]\. It is \[batch, token\]"),
    ],
)
def test_names_and_masks_that_do_not_fit(given: dict[str, Any], n_texts: int, said: str) -> None:
    with pytest.raises(InvalidRecord, match=said), record(**given):
        GPT()(IDS.expand(n_texts, -1))


# --- padding ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("flash", "kind"), [(True, torch.tensor), (False, np.array), (True, list)])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("with_padding", [True, False])
def test_padding_is_trimmed(side: str, flash: bool, kind: Callable[..., Any], with_padding: bool) -> None:
    ids = torch.tensor([[3, 7, 1, 9, 4], [0, 0, 5, 2, 8] if side == "left" else [5, 2, 8, 0, 0]])
    real = [[1] * 5, [0, 0, 1, 1, 1] if side == "left" else [1, 1, 1, 0, 0]]
    short = ["[PAD]", "[PAD]", "a", "b", "c"] if side == "left" else ["a", "b", "c", "[PAD]", "[PAD]"]
    with record([WORDS, short if with_padding else ["a", "b", "c"]], attention_mask=kind(real)) as maps:
        GPT(flash)(ids, torch.tensor(real))
    alone = recorded(lambda: GPT(flash)(ids[1:, 2:] if side == "left" else ids[1:, :3]))
    assert maps[0].queries.pieces == tuple(WORDS)
    assert maps[1].queries.pieces == ("a", "b", "c")
    np.testing.assert_allclose(maps[1].weights, alone[0].weights, atol=1e-6)
    np.testing.assert_array_equal(maps[1].attendable, alone[0].attendable)


def test_padding_without_a_mask_and_in_the_middle() -> None:
    """Keys that nobody attends to are padding, wherever they stand."""
    real = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    maps = recorded(lambda: GPT()(IDS.expand(2, -1), real), tokens=[WORDS, ["a", "b", "c"]])
    assert [of_row.weights.shape for of_row in maps] == [(3, 2, 5, 5), (3, 2, 3, 3)]
    real = torch.tensor([[1, 1, 0, 1, 1]])
    maps = recorded(lambda: GPT()(IDS, real), tokens=WORDS, attention_mask=real)
    assert maps[0].keys.pieces == ("the", "cat", "on", "mats")
    np.testing.assert_array_equal(maps[0].attendable[0], np.tri(4, dtype=bool))


def test_weight_on_padding_is_refused() -> None:
    with pytest.raises(InvalidRecord, match=r"sum to 0.*, not 1.*was the model given attention_mask"):
        recorded(lambda: GPT()(IDS), attention_mask=[[0, 1, 1, 1, 1]])


def test_a_query_that_attends_to_nothing() -> None:
    allowed = torch.ones(4, 4, dtype=torch.bool)
    allowed[2] = False
    states = drawn(4, 1, 1, 4, 8)
    with pytest.raises(InvalidRecord, match=r"query 2, 'c', may attend to no key\..*attention_mask"):
        recorded(lambda: SDPA(states, states, states, allowed), tokens=list("abcd"))


# --- generation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_emptied", [False, True])
def test_a_cache_that_begins_anew_is_of_another_text(is_emptied: bool) -> None:
    """Also where the second text begins as the first one did, and where it is the same model's cache."""
    model: Any = GPT()
    with record() as maps:
        for ids in (IDS[:, :3], IDS[:, :4]):
            model(ids[:, :-1], cached=True)
            model(ids[:, -1:], cached=True)
            for layer in model.h:
                layer.past = (layer.past[0][:, :, :0], layer.past[1][:, :, :0]) if is_emptied else None
    assert [one.keys.pieces for one in maps] == [tuple("012"), tuple("0123")]


def test_steps_that_take_a_token_back_are_those_of_the_text_that_stays() -> None:
    """As in assisted decoding, where the last pass may try words that nothing follows."""
    model = GPT()
    model(IDS[:, :3], cached=True)  # a text that was begun before: the queries are the last of the keys
    with record(WORDS) as maps:
        model(IDS[:, 3:4], cached=True)
        model(IDS[:, 4:], cached=True)
    assert [(one.queries.pieces, one.keys.pieces) for one in maps] == [(tuple(WORDS[3:]), tuple(WORDS))]
    model = GPT()
    with record(WORDS) as maps:
        model(IDS[:, :3], cached=True)
        for tried, n_kept in (([[9, 2]], 4), ([[*IDS[0, 4:].tolist(), 8, 6]], 5)):
            model(torch.tensor(tried), cached=True)
            layers: Any = model.h
            for layer in layers:
                layer.past = (layer.past[0][:, :, :n_kept], layer.past[1][:, :, :n_kept])
    whole = recorded(lambda: GPT()(torch.tensor([[*IDS[0, :3].tolist(), 9, 4]])), tokens=WORDS)
    assert [one.keys.pieces for one in maps] == [tuple(WORDS)]
    np.testing.assert_allclose(maps[0].weights, whole[0].weights, atol=1e-6)


@pytest.mark.parametrize("padded_names", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_a_padded_cache(padded_names: bool, masked: bool) -> None:
    """The mask is of the prompt; what is generated is no padding. Without it, what nobody attends to is."""
    model = GPT()
    real = torch.tensor([[1, 1, 1], [0, 1, 1]])
    names = [["the", "cat", "sat"], ["[PAD]", "a", "dog"] if padded_names and masked else ["a", "dog"]]
    with record(names, attention_mask=real if masked else None) as maps:
        model(torch.tensor([[3, 7, 1], [0, 5, 2]]), real, cached=True)
        model(torch.tensor([[9], [8]]), torch.cat([real, torch.ones(2, 1)], dim=1), cached=True)
    assert [one.keys.pieces for one in maps] == [("the", "cat", "sat", "⟨3⟩"), ("a", "dog", "⟨2⟩")]
    np.testing.assert_array_equal(maps[1].attendable[0], np.tri(3, dtype=bool))


@pytest.mark.parametrize("n_more", [0, 2])
def test_a_cache_with_room_to_spare(n_more: int) -> None:
    """Of eight places, written through an alias, as LitGPT does. KerasHub reads room for the answer first."""

    def forward(own: Any, ids: Tensor, n_read: int) -> Tensor:
        states = own.words(ids).unflatten(-1, (2, 4)).transpose(1, 2)
        places = torch.arange(n_read, n_read + ids.shape[1])
        keys = own.cache[: len(ids), ...].index_copy_(2, places, states)
        return SDPA(states, keys, keys, torch.arange(8) <= places[:, None])

    model = Module(forward, words=nn.Embedding(20, 8), cache=torch.zeros(1, 2, 8, 4))
    with torch.no_grad(), record(names := [*"abcde"[: 3 + n_more]]) as maps:
        for n_read, ids in ((0, [3, 7, 1, *[0] * n_more]), (3, [9]), (4, [4])):
            model(torch.tensor([ids]), n_read)
    (one,) = maps
    assert one.keys.pieces == (*names, "⟨3⟩", "⟨4⟩")[:5]
    np.testing.assert_array_equal(one.attendable[0], np.tri(5, dtype=bool))


def test_layers_that_no_module_tells_apart_are_layers() -> None:
    """As where a function runs the maps of two layers step by step, over a cache of each."""
    words, layers = nn.Embedding(9, 16), [(nn.LayerNorm(16), list[Tensor]()), (nn.Linear(16, 16), list[Tensor]())]
    with torch.no_grad(), record() as maps:
        for ids in ([1, 2, 3], [4]):
            states = words(torch.tensor([ids]))
            for layer, cache in layers:
                cache.append(layer(states))
                states = by_softmax(cache[-1], *[torch.cat(cache, 1)] * 2)
    assert [one.weights.shape for one in maps] == [(2, 1, 4, 4)]


def test_texts_one_after_another_are_no_generation() -> None:
    """A longer second text does not get the first one's names."""
    model = GPT()
    with pytest.raises(InvalidRecord, match=r"3 names in tokens.*is of 5"):
        recorded(lambda: [model(ids) for ids in (IDS[:, :3], IDS.flip(1))], tokens=WORDS[:3])


@pytest.mark.parametrize("n_names", [3, 5, 6])
@pytest.mark.parametrize("block_size", [3, 9])
@pytest.mark.parametrize(("n_texts", "kind"), [(1, torch.int64), (2, torch.int32)])
# Forward is a function that calls modules; the last is another model each time, as where several write together.
@pytest.mark.parametrize("run", [GPT.__call__, GPT.forward, lambda _, ids: GPT()(ids)])
def test_a_text_grows_without_a_cache(run: Any, n_texts: int, kind: torch.dtype, block_size: int, n_names: int) -> None:
    """Each pass has the names of what it reads, also of a text that is cropped, as in nanoGPT's generate."""
    model, words = GPT(), [*WORDS, "."][:n_names]
    with torch.no_grad(), record([words] * n_texts) as maps:
        for n_read in (3, 4, 5):
            run(model, torch.tensor([IDS[0, :n_read].tolist()] * n_texts, dtype=kind)[:, -block_size:])
    whole = [*words, "⟨3⟩", "⟨4⟩"][:5]
    expected = [tuple(whole[:n_read][-block_size:]) for n_read in (3, 4, 5) for _ in range(n_texts)]
    assert [one.keys.pieces for one in maps] == [one.queries.pieces for one in maps] == expected


@pytest.mark.parametrize("cached", [False, True])
def test_more_names_than_a_text_has_at_last_are_refused(cached: bool) -> None:
    """The word that was chosen last and never read may have one."""
    model, steps = GPT(), [IDS[:, begin if cached else 0 : end] for begin, end in ((0, 3), (3, 4), (4, 5))]
    with pytest.raises(InvalidRecord, match=r"7 names in tokens.*is of 5"):
        recorded(lambda: [model(ids, cached=cached) for ids in steps], tokens=[*WORDS, "on", "it"])


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("n_texts", [1, 2])
@pytest.mark.parametrize("n_steps", [1, 3])
def test_a_translation_that_grows_without_a_cache(n_steps: int, n_texts: int) -> None:
    """As tutorials decode, [token, text], by modules that a function calls."""
    model, words, texts = nn.Transformer(8, 2, 1, 1, 16).eval(), nn.Embedding(20, 8), slice(n_texts)
    source, target = torch.tensor([[3, 5], [4, 6]])[:, texts], torch.tensor([[1, 1], [5, 7], [6, 8]])[:, texts]
    names = [("sab"[:n_steps], "xy"), ("tde"[:n_steps], "uv")][texts]
    with torch.no_grad(), record([list(own) for own, _ in names], keys=[list(other) for _, other in names]) as maps:
        memory = model.encoder(words(source))
        for n_read in range(1, n_steps + 1):
            model.decoder(words(target[:n_read]), memory)
    found = [(called([one]), dict(one.provenance.settings)["row"]) for one in maps.only("layers.*.multihead_attn")]
    rows = [*enumerate(names)]
    assert found == [(f"{own[:n]}/{other}", row) for n in range(1, n_steps + 1) for row, (own, other) in rows]


# --- cross-attention ----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_padding_of_both_texts() -> None:
    """attention_mask is of what the encoder reads; the decoder's padding shows in what nobody attends to."""
    torch.manual_seed(0)
    model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval()
    source, target = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]), torch.tensor([[1, 1, 1], [1, 1, 0]])
    of_source = dict.fromkeys(("src_key_padding_mask", "memory_key_padding_mask"), source == 0)
    tokens, keys = [["a", "b", "c"], ["d", "e"]], [["w", "x", "y", "z"], ["u", "v"]]
    with torch.no_grad(), record(tokens, keys=keys, attention_mask=source) as maps:
        model(drawn(14, 2, 4, 8), drawn(15, 2, 3, 8), tgt_key_padding_mask=target == 0, **of_source)
    within, across = ("encoder.layers.*.self_attn", "decoder.layers.*.self_attn"), "decoder.layers.*.multihead_attn"
    assert maps.groups == (*within, across)
    assert [one.self_attention for one in maps] == [True, True, True, True, False, False]
    second = [one for one in maps if dict(one.provenance.settings)["row"] == 1]
    assert called(second) == "uv de de/uv"


@pytest.mark.parametrize(("n_queries", "n_keys"), [(3, 5), (5, 3), (4, 4)])
def test_a_single_module_of_cross_attention(n_queries: int, n_keys: int) -> None:
    module = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    states, memory = drawn(16, 1, n_queries, 8), drawn(17, 1, n_keys, 8)
    queries, keys = "abcde"[:n_queries], "vwxyz"[:n_keys]
    with record([*queries], keys=[*keys]) as maps:
        module(states, memory, memory)
    assert called(maps) == f"{queries}/{keys}"
    assert maps.groups == ("",)
    maps = recorded(lambda: module(*(states.transpose(0, 1).transpose(0, 1) for _ in "qkv")), tokens=[*queries])
    assert called(maps) == queries


# --- what cannot be recorded --------------------------------------------------------------------------------------


def test_nothing_attended_and_training_mode() -> None:
    with pytest.raises(InvalidRecord, match=r"no attention was seen.*1 softmax ran here, and none"), record():
        nn.Linear(3, 3)(torch.ones(1, 3)).softmax(dim=-1)
    with pytest.raises(InvalidRecord, match=r"no attention was seen.*No softmax ran here.*Mamba"), record():
        nn.Linear(3, 3)(torch.ones(1, 3))
    with pytest.raises(InvalidRecord, match=r"the attention in h\.0 drops 10%.*model\.eval\(\)"), record():
        GPT().train()(IDS)
    states = drawn(19, 1, 1, 4, 8)  # as where padding on the left is masked with minus infinity
    with pytest.raises(InvalidRecord, match="layer 0, head 0: the weights of query 0 hold NaN"), record():
        (states @ states.transpose(-2, -1) * math.nan).softmax(dim=-1) @ states


def test_an_exception_of_the_block_passes_through() -> None:
    def run() -> None:
        GPT()(IDS)
        raise ValueError("of mine")

    with pytest.raises(ValueError, match="of mine"), record(["no", "name", "fits"]):
        run()


def test_weights_are_written_twice() -> None:
    """As each call gives them, and into the memory that the record keeps."""
    model, ids = GPT(n_layers=4), torch.zeros(1, 600, dtype=torch.long)
    tracemalloc.start()
    maps = recorded(lambda: model(ids))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert maps[0].weights.nbytes <= peak < 2.2 * maps[0].weights.nbytes  # masks and names beside them
