"""Weights whose axes are not [batch head query key]: other orders, two axes, one weight a word, and none at all."""

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

import attnviz
from attnviz.errors import InvalidRecord
from attnviz.models.capture.unread import KINDS
from tests.models.captures import SDPA, drawn, recorded
from tests.models.structures import Module, by_softmax, called, linears


def attention(attend: Callable[..., tuple[Tensor, Tensor]]) -> Any:
    """4 heads of one text each, in whatever way; keeps [batch head query key]."""

    def forward(own: Any, states: Tensor) -> Tensor:
        own.weights, output = attend(own.query(states), own.key(states), own.value(states))
        return output

    torch.manual_seed(0)
    return Module(forward, **linears(query=16, key=16, value=16))


def grouped(query: Tensor, key: Tensor, value: Tensor, fused: bool = False) -> Any:
    """2 keys and values for 2 heads each, on an axis of their own."""
    query = query.view(*query.shape[:2], 2, 2, 4).permute(0, 2, 3, 1, 4)
    key, value = (one[..., :8].view(*one.shape[:2], 2, 1, 4).permute(0, 2, 3, 1, 4) for one in (key, value))
    weights = (query @ key.mT / 2).softmax(dim=-1)
    wide = [one.expand(-1, -1, 2, -1, -1) for one in (key, value)]
    output = SDPA(query, wide[0], wide[1]) if fused else weights @ value
    return weights.flatten(1, 2), output


def single(query: Tensor, key: Tensor, value: Tensor, causal: bool = False) -> Any:
    scores = query @ key.mT / 4
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[1:]).triu(1) > 0, -torch.inf)
    return scores.softmax(dim=-1).unsqueeze(1), SDPA(query, key, value, is_causal=causal)


@pytest.mark.parametrize(
    "attend",
    [grouped, partial(grouped, fused=True), single, partial(single, causal=True)],
    ids=["by hand, 5 axes", "5 axes", "3 axes", "3 axes, causal"],
)
@pytest.mark.parametrize("n_texts", [1, 2, 3])
def test_what_the_module_reads_tells_texts_from_heads(attend: Callable[..., Any], n_texts: int) -> None:
    module = attention(attend)
    maps = recorded(lambda: module(drawn(82, n_texts, 5, 16)))
    assert len(maps) == n_texts
    for one, expected in zip(maps, module.weights.detach().numpy(), strict=True):
        np.testing.assert_allclose(one.weights[0], expected, atol=1e-6)
        np.testing.assert_array_equal(one.attendable[0], (expected > 0).any(axis=0))
        assert not one.provenance.facts.guess


@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize("bias", [causal_lower_right, causal_upper_left])
def test_masks_that_do_not_hold_their_numbers(bias: Callable[..., Tensor], factored: bool) -> None:
    query, keys = drawn(85, 1, 2, 3, 8), drawn(86, 1, 2, 5, 8)
    allowed = np.tri(3, 5, 2 if bias is causal_lower_right else 0, dtype=bool)
    maps = recorded(lambda: SDPA(query, keys, keys, attn_mask=bias(3, 5)), factored=factored)
    scores = (query @ keys.mT / 8**0.5).masked_fill(~torch.from_numpy(allowed), -torch.inf)
    expected = scores.softmax(dim=-1)[0].numpy()[..., : maps[0].weights.shape[-1]]
    np.testing.assert_allclose(maps[0].weights[0], expected, atol=1e-6)


def by_hand(states: Tensor) -> Tensor:
    return (states @ states.mT).softmax(dim=-1) @ states


def fused(states: Tensor) -> Tensor:
    return SDPA(states, states, states)


def layer(**settings: Any) -> nn.Module:
    return nn.TransformerEncoderLayer(4, 2, batch_first=True, **settings).eval()


@pytest.mark.filterwarnings("ignore:`torch.jit")
@pytest.mark.parametrize(
    ("run", "where"),
    [
        (torch.vmap(fused), "under torch.vmap"),
        (torch.vmap(by_hand), "under torch.vmap"),
        (torch.func.grad(lambda states: fused(states).sum()), "under torch.vmap or another transform of torch.func"),
        (lambda states: torch.func.jvp(by_hand, (states,), (states,)), "under torch.vmap or another transform"),
        (lambda states: torch.jit.trace(fused, states, check_trace=False), "under torch.jit.trace"),  # type: ignore[no-untyped-call]
        (lambda states: torch.export.export(layer(), (states[0],)), "under torch.export"),
        (lambda states: layer(device="meta")(states[0].to("meta")), "on the meta device"),
    ],
    ids=["vmap", "vmap by hand", "grad", "jvp", "trace", "export", "meta"],
)
def test_where_nothing_can_be_read_the_model_goes_on(run: Callable[[Tensor], Any], where: str) -> None:
    states = drawn(87, 2, 2, 3, 4)
    with pytest.raises(InvalidRecord, match=f"no attention was seen.*several lengths: {where}"), attnviz.record():
        run(states)
    with attnviz.record() as maps:
        run(states)
        fused(states)
    assert len(maps) == 2
    assert maps[0].provenance.facts.guess == maps.not_seen
    assert maps.not_seen.startswith(f"Not in here: {KINDS['empty']}: {where}")


def test_words_that_cannot_be_read_are_no_failure_of_ours() -> None:
    model = Module(lambda own, words: fused(own.words(words)), words=nn.Embedding(6, 4))
    with pytest.raises(InvalidRecord, match=r"several lengths: under torch\.vmap") as error, attnviz.record():
        torch.vmap(model)(torch.arange(6).view(2, 1, 3))
    assert "could not be followed" not in str(error.value)


def test_a_memory_that_is_learned_is_recorded_and_called_a_guess() -> None:
    """States that attend to keys, and values, which are learned and have attended to one another."""
    forward = lambda own, ids: by_softmax(own.words(ids)[:, None], *[by_softmax(*[own.memory * 1] * 3)] * 2)  # noqa: E731
    model = Module(forward, words=nn.Embedding(9, 4), memory=nn.Parameter(torch.randn(1, 2, 2, 4)))
    maps = recorded(lambda: model(torch.tensor([[1, 2, 3], [4, 5, 6]])))
    assert called(maps) == "⟨query 0⟩⟨query 1⟩ 012/⟨before 1⟩⟨before 2⟩ 012/⟨before 1⟩⟨before 2⟩"
    assert "is a guess: what they weigh is learned" in maps[0].provenance.facts.guess


# --- The formula on two axes, and one weight a word: as courses and recurrent models write attention ---


WORDS = ["this", "movie", "is", "not", "great", ",", "but", "the", "acting", "saved", "it", "."]
N = len(WORDS)
Q, K, V = drawn(1, 5, 8), drawn(2, 5, 8), drawn(3, 5, 8)
FORMULA, MATRIX = torch.softmax(Q @ K.T / math.sqrt(8), dim=-1), drawn(4, 8, 8)


def divide_by_sum(weights: Tensor) -> Tensor:
    return weights / weights.sum(dim=-1, keepdim=True)


@pytest.mark.parametrize(
    "run",
    [
        lambda: torch.softmax(Q @ K.T / math.sqrt(8), dim=-1) @ V,
        lambda: torch.einsum("qk,kd->qd", (Q @ K.T / math.sqrt(8)).softmax(1), V),
        lambda: V.T @ torch.softmax(K @ Q.T / math.sqrt(8), dim=0),
        lambda: V.T @ torch.softmax(Q @ K.T / math.sqrt(8), dim=1).T,
        lambda: torch.einsum("qk,kd,de->qe", (Q @ K.T / math.sqrt(8)).softmax(1), V, MATRIX),
        lambda: divide_by_sum((Q @ K.T / math.sqrt(8)).exp()) @ V,
        lambda: torch.log_softmax(Q @ K.T / math.sqrt(8), dim=-1).exp() @ V,
        lambda: (V[None].mT @ torch.softmax(Q[None] @ K[None].mT / math.sqrt(8), -1).mT).mT,
        lambda: torch.softmax(((Q @ MATRIX) @ (K @ MATRIX.T.inverse()).T) / math.sqrt(8), dim=-1) @ (V @ MATRIX),
    ],
)
def test_the_formula_in_a_cell(run: Callable[[], Tensor]) -> None:
    maps = recorded(run, tokens=list("abcde"))
    (found,) = maps
    assert found.weights.shape == (1, 1, 5, 5)
    np.testing.assert_allclose(found.weights[0, 0], FORMULA.numpy(), atol=1e-5)
    assert found.queries.pieces == found.keys.pieces == tuple("abcde")
    assert (maps.not_seen, found.provenance.facts.guess) == ("", "")


@pytest.mark.parametrize(
    "change",
    [
        lambda weights: divide_by_sum(torch.where(weights < weights.median(-1, keepdim=True).values, 0, weights)),
        lambda weights: divide_by_sum(weights + 1e-2),
        lambda weights: (weights + weights.roll(1, 0)) / 2,
    ],
    ids=["only the largest", "a floor", "a mean"],
)
@pytest.mark.parametrize("axes", [(), (None,), (None, None)])
def test_changed_weights_are_those_multiplied(change: Callable[[Tensor], Tensor], axes: tuple[None, ...]) -> None:
    with attnviz.record(tokens=list("abcde")) as maps:
        weights = change(torch.softmax(Q @ K.T, dim=-1))[axes]
        weights @ V[axes]
    (found,) = maps
    np.testing.assert_allclose(found.weights[0, 0], weights[(0,) * len(axes)].numpy(), atol=1e-6)
    assert maps.not_seen == ""


def test_a_share_that_goes_to_no_key_is_not_negative_by_rounding() -> None:
    weights = torch.cat([drawn(1, 64, 64), torch.linspace(-40, 0, 64)[:, None]], 1).softmax(-1)
    (found,) = recorded(lambda: weights.log().softmax(-1)[:, :64] @ drawn(2, 64, 8))
    assert found.sink is not None
    np.testing.assert_allclose(found.sink[0, 0], weights[:, 64], atol=1e-6)


@pytest.mark.parametrize("beside", [lambda w: torch.where(w.isnan(), 0, w), lambda w: torch.cat([w, w * 0], 1)[:, :5]])
def test_what_a_mask_left_out_stays_so_beside_other_numbers(beside: Callable[[Tensor], Tensor]) -> None:
    """As TransformerLens takes NaN away."""
    is_later = torch.ones(5, 5).triu(1) > 0
    (found,) = recorded(lambda: beside((Q @ K.T).masked_fill(is_later, -torch.inf).softmax(-1)) @ V)
    np.testing.assert_array_equal(found.attendable[0], ~is_later)


def pooled(own: Any, states: Tensor) -> Any:
    """By queries that are learned and normed, as in CoCa."""
    return own.attend(own.norm(own.learned).expand(len(states), -1, -1), states, states)


def shortened(own: Any, states: Any) -> Tensor:
    """Keys of each head are convolved, as in MViT."""
    heads = states.unflatten(-1, (2, 8)).transpose(1, 2)
    key = own.shorten(heads.flatten(0, 1).mT).mT.unflatten(0, heads.shape[:2])
    return by_softmax(heads, key, key)


def in_turn(own: Any, states: Tensor) -> Tensor:
    """One module attends for each head in turn, as in pytorch-forecasting."""
    return torch.stack([own.attend(states * n, states, states) for n in (1, 2)]).mean(0)


def chosen(_: Any, states: Any) -> Tensor:
    """Each head asks with tokens that it chose, as in Informer (Zhou et al. 2021)."""
    heads = states.unflatten(-1, (2, 8)).transpose(1, 2)
    return by_softmax(heads[:, torch.arange(2)[:, None], torch.tensor([[3, 0], [4, 1]])], heads, heads)


def by_frames(own: Any, films: Tensor) -> Any:
    """Convolve each frame, then attend among frames of each patch, as in TimeSformer (Bertasius et al. 2021)."""
    patches = own.cut(films.flatten(0, 1)).flatten(2).mT.unflatten(0, films.shape[:2])
    by_time = own.layer(patches.transpose(1, 2).flatten(0, 1)).unflatten(0, (len(films), -1)).transpose(1, 2)
    return own.layer(by_time.flatten(0, 1))


def by_pictures(own: Any, pictures: Tensor) -> Tensor:
    """Add what is learned to patches of pictures before all else, then attend in each, as in Flamingo."""
    states = own.norm(pictures + own.learned[:1]).unflatten(-1, (2, 8)).movedim(3, 1)
    return by_softmax(states, states, states)


def by_columns(own: Any, kinds: Tensor, numbers: Tensor) -> Any:
    """Look up features of numbers, behind a class token, as in an FT-Transformer (Gorishniy et al. 2021)."""
    columns = own.words(kinds), own.words(torch.arange(2)) * numbers[..., None]
    return own.layer(torch.cat([own.learned[:1].expand(len(kinds), 1, -1), *columns], dim=1))


def by_kinds(own: Any, ids: Tensor) -> Any:
    """Look up in a table of what kind words are, and embed the kinds of all texts as one list, as RecBole does."""
    kinds = (torch.arange(30) % 7)[ids.flip(1)]
    return own.layer(own.words(kinds.view(-1, 1)).view(*ids.shape, 16))


def by_sentences(own: Any, ids: Tensor) -> Any:
    """Read sentences of a document one by one, as in a hierarchical network (Yang et al. 2016)."""
    return own.layer(own.words(ids.flatten(0, 1)))


def by_cache(own: Any, words: Tensor, start: int) -> Tensor:
    """Write into a part of a part of a cache with room for more texts, as the reference code of Llama does."""
    n_texts, end = len(words), start + words.shape[1]
    own.cache[:n_texts, start:end] = states = own.words(words)
    read = own.cache[:n_texts, :end]
    return by_softmax(states, read, read)


def by_shifted_scores(own: Any, states: Tensor, is_first: bool) -> Any:
    """Read distances as states and shift what they score, as in a conformer (Dai et al. 2019)."""
    by_place = states @ own.place(torch.arange(5.0).expand(2, 16, 5).mT).mT
    shifted = torch.cat([torch.zeros(2, 5, 1), by_place], -1).view(2, 6, 5)[:, 1:].reshape(2, 5, 5)
    scores = own.key(states) @ states.mT
    return (shifted + scores if is_first else scores + shifted).softmax(-1) @ states


def of_two_kinds(own: Any, picture: Tensor, words: Tensor) -> Any:
    """Compare a picture with several sentences of as many words as it has patches, as in CLIP."""
    return [own.attend(one, one, one) for one in (own.conv(picture).flatten(2).mT, own.words(words))]


def by_places_and_time(own: Any, picture: Tensor, time: Tensor) -> Any:
    """Read the time of a diffusion first, and add it to each place of a picture."""
    states = own.conv(picture) + own.words(time)[..., None, None]
    return own.layer(own.groups(states.flatten(2)).mT)


def by_levels(own: Any, films: Tensor) -> Any:
    """Halve each frame, and let it grow again beside what it was, as in a U-Net (Ronneberger et al. 2015)."""
    places = own.cut(films.flatten(0, 1))
    grown = functional.interpolate(functional.avg_pool2d(places, (2, 1)), scale_factor=(2, 1))
    return own.layer(own.conv(torch.cat([grown[:, :1], places[:, 1:3]], dim=1)).flatten(2).mT)


def by_windows(_: Any, states: Tensor) -> Any:
    """Attend within windows that stand behind heads, as in Hiera (Ryali et al. 2023)."""
    heads = states.view(2, 3, 2, 2, 8).permute(0, 3, 1, 2, 4)
    return by_softmax(heads, heads, heads)


def by_list(own: Any, texts: list[Tensor], how: str) -> Any:
    """Read texts one by one, and put what is made of them together."""
    reads = {"pad": lambda text: text, "words": own.words}
    return own.layer(nn.utils.rnn.pad_sequence([reads[how](text) for text in texts], batch_first=True))


def by_patches(own: Any, images: Tensor) -> Any:
    """Cut images into rows of a batch, and those into smaller patches, as in TNT (Han et al. 2021)."""
    return own.layer(own.cut(functional.unfold(images, 4, stride=4).mT.reshape(-1, 3, 4, 4)).flatten(2).mT)


def by_categories(own: Any, table: Tensor) -> Any:
    """Look up categories that stand beside numbers in a table, as in a TabTransformer (Huang et al. 2020)."""
    columns = (own.words(table[:, column].long()) for column in range(2))
    return own.layer(torch.stack([*columns, table[:, 2:] * own.learned[0]], dim=1))


def by_stretches(own: Any, series: Tensor) -> Any:
    """Cut series into stretches, beside which stands what of them is missing, as in Chronos-Bolt."""
    stretches = functional.pad(series[:, None], (0, 2), "replicate")[:, 0].unfold(-1, 4, 4)
    return own.layer(own.places(torch.cat([stretches, stretches.isnan().float()], dim=-1)))


def by_both_axes(_: Any, states: Tensor) -> Tensor:
    """Attend within each text, then among texts, as series of a group do in Chronos-2."""
    among = by_softmax(states, states, states).transpose(0, 1)
    return by_softmax(among, among, among)


def by_labels(_: Any, states: Tensor) -> Tensor:
    """Weigh what no module has read by scores of tokens, as a matching network does labels (Vinyals et al. 2016)."""
    return (states @ states.flip(1).mT).softmax(-1) @ functional.one_hot(torch.arange(10).view(2, 5) % 3).float()


def by_first_axis(own: Any, states: Tensor) -> Any:
    """Attend as torch's modules do unless they are told otherwise: [token, text, d]."""
    return own.beside(states, states, states)


def by_distances(own: Any, states: Tensor, kind: str) -> Any:
    """Add vectors of distances to scores and to values (Shaw et al. 2018): they are no keys, and no text."""
    query, key, value = (one(states).unflatten(-1, (2, 8)).transpose(1, 2) for one in (own.place, own.key, own.value))
    distances = (torch.arange(5) - torch.arange(5)[:, None]).clamp(-3, 3) + 4
    tables = {"read": own.distances, "learned": own.distances.weight.__getitem__, "fixed": own.fixed.__getitem__}
    vectors = tables[kind](distances)
    weights = (query @ key.mT + torch.einsum("bhqd,qkd->bhqk", query, vectors)).softmax(-1)
    return weights @ value + torch.einsum("bhqk,qkd->bhqd", weights, vectors)


IDS, OF_TWO = torch.arange(12), drawn(2, 2, 5, 16)
NEW = "⟨new 0⟩⟨new 1⟩ ⟨new 2⟩⟨new 3⟩"
CACHED = [(IDS[None, :3], 0), (IDS[None, 3:4], 3), (IDS[None, 4:5], 4)]


@pytest.mark.parametrize(
    ("forward", "passes", "names", "expected"),
    [
        (chosen, [(OF_TWO,)], "abcde abcde", "⟨query 0⟩⟨query 1⟩/abcde ⟨query 0⟩⟨query 1⟩/abcde"),
        (pooled, [(OF_TWO,)], "abcde vwxyz", "⟨query 0⟩⟨query 1⟩/abcde ⟨query 0⟩⟨query 1⟩/vwxyz"),
        (shortened, [(OF_TWO,)], "abcde abcde", "abcde/01 abcde/01"),
        (in_turn, [(OF_TWO,)], "abcde vwxyz", "abcde vwxyz"),
        (by_frames, [(drawn(5, 2, 3, 3, 4, 2),)], "abcdef uvwxyz", "ace bdf uwy vxz ab cd ef uv wx yz"),
        (by_pictures, [(drawn(5, 2, 3, 2, 16),)], "abcdef uvwxyz", "ab cd ef uv wx yz"),
        (by_columns, [(IDS[:6].view(2, 3), drawn(6, 2, 2))], "abcde abcde", "⟨before 1⟩abcde ⟨before 1⟩abcde"),
        (by_columns, [(IDS[:6].view(2, 3), drawn(6, 2, 2))], "zabcde zabcde", "zabcde zabcde"),
        (by_kinds, [(IDS.view(2, 6),)], "abcdef ABCDEF", "fedcba FEDCBA"),
        (lambda own, ids: by_softmax(*[own.fixed[ids]] * 3), [(IDS.view(2, 6),)], *["abcdef ABCDEF"] * 2),
        (by_sentences, [(IDS.view(2, 2, 3),)], "abcdef uvwxyz", "abc def uvw xyz"),
        (by_cache, [(torch.cat([ids, ids + 9]), at) for ids, at in CACHED], "abcde ABCDE", "abcde ABCDE"),
        *((by_shifted_scores, [(OF_TWO, is_first)], *["abcde ABCDE"] * 2) for is_first in (False, True)),
        (of_two_kinds, [(drawn(1, 1, 3, 2, 3), IDS.view(2, 6))], "abcdef ABCDEF", "012345 abcdef ABCDEF"),
        (by_labels, [(OF_TWO,)], "abcde ABCDE", "abcde/edcba ABCDE/EDCBA"),
        (by_places_and_time, [(drawn(1, 2, 3, 2, 3), IDS[:2])], "abcdef ABCDEF", "abcdef ABCDEF"),
        (by_list, [([*drawn(5, 2, 3, 16)], "pad")], "abc xyz", "abc xyz"),
        (by_list, [([IDS[:3], IDS[3:6]], "words")], "abc xyz", "abc xyz"),
        (lambda own, x: own.layer(x[0] + x[1]), [([OF_TWO, drawn(9, 2, 5, 16)],)], *["abcde vwxyz"] * 2),
        (by_patches, [(drawn(5, 2, 3, 4, 8),)], "abcdefgh stuvwxyz", "abcd efgh stuv wxyz"),
        (by_categories, [(IDS[:6].view(2, 3).float(),)], "abc xyz", "abc xyz"),
        (by_stretches, [(drawn(5, 2, 10),)], "abc xyz", "abc xyz"),
        (lambda own, x: by_softmax(x[:1, :2].expand(2, -1, -1), x, x), [(OF_TWO,)], "abcde vwxyz", "ab/abcde ab/vwxyz"),
        (lambda own, x: own.layer(own.words(torch.tensor(x.tolist()))), [(IDS[:4].view(2, 2) % 3,)], "ab cd", NEW),
        (by_both_axes, [(OF_TWO,)], "abcde vwxyz", "abcde vwxyz av bw cx dy ez"),
        (by_windows, [(drawn(5, 2, 6, 16),)], "abcdef uvwxyz", "ab cd ef uv wx yz"),
        (by_levels, [(drawn(5, 2, 2, 3, 8, 2),)], "abcdefgh stuvwxyz", "abcd efgh stuv wxyz"),
        (lambda own, x: own.layer(own.groups(x.flatten(2)).mT), [(drawn(1, 1, 16, 2, 3),)], "abcdef", "abcdef"),
        (by_first_axis, [(drawn(90, 5, 1, 16),)], "abcde", "abcde"),
        (by_first_axis, [(drawn(90, 5, 3, 16),)], "abcde vwxyz fghij", "abcde vwxyz fghij"),
        *((by_distances, [(OF_TWO[:1], kind)], "abcde", "abcde") for kind in ("read", "learned", "fixed")),
        *((by_distances, [(OF_TWO, kind)], *["abcde ABCDE"] * 2) for kind in ("read", "learned", "fixed")),
    ],
)
def test_names_of_tokens_in_what_others_wrote(
    forward: Callable[..., Any], passes: list[tuple[Any, ...]], names: str, expected: str
) -> None:
    """Each text has its own, on both sides, and in every pass."""
    read = {"words": nn.Embedding(30, 16), "conv": nn.Conv2d(3, 16, 1), "cut": nn.Conv2d(3, 16, 2, 2)}
    parts = {"norm": nn.LayerNorm(16), "groups": nn.GroupNorm(2, 16), "shorten": nn.Conv1d(8, 8, 2, 2)}
    mixes = {"attend": Module(lambda _, *sides: by_softmax(*sides)), "distances": nn.Embedding(9, 8)}
    module: Any = Module(forward, **read, **parts, **mixes, **linears(place=16, key=16, value=16))
    module.places = nn.Linear(8, 16)
    module.layer = nn.TransformerEncoderLayer(16, 2, 16, batch_first=True).eval()
    module.beside = nn.MultiheadAttention(16, 2).eval()
    module.learned, module.cache = nn.Parameter(drawn(1, 2, 16)), torch.zeros(4, 8, 16)
    module.register_buffer("fixed", drawn(9, 30, 8))
    maps = recorded(lambda: [module(*given) for given in passes], tokens=[*map(list, names.split())])
    assert called(maps) == expected
    assert (maps[0].provenance.facts.guess, maps.not_seen) == ("", "")
    assert {one.n_layers for one in maps} == {1}
    assert {dict(one.provenance.settings)["row"] for one in maps} == {*range(len(names.split()))}


def test_heads_of_mixtures_of_all_tokens() -> None:
    """Their keys are the same, though each head has features of its own (Wang et al. 2020, Linformer)."""
    layer: Any = Module(
        lambda own, x: by_softmax(*(of.unflatten(-1, (2, 8)).transpose(1, 2) for of in (x, *own.mix(x))))
    )
    layer.mix = lambda x: [(own(x).mT @ torch.ones(5, 3)).mT for own in (nn.Linear(16, 16), nn.Linear(16, 16))]
    maps = recorded(lambda: layer(OF_TWO), tokens=[[*"abcde"], [*"vwxyz"]])
    assert called(maps) == "abcde/⟨mixed 0⟩⟨mixed 1⟩⟨mixed 2⟩ vwxyz/⟨mixed 0⟩⟨mixed 1⟩⟨mixed 2⟩"
    assert [one.n_heads for one in maps] == [2, 2]


def by_shared_keys(own: Any, queries: Tensor, keys: Tensor, order: str = "bhij") -> Any:
    """Let 2 heads read the same keys (Shazeer 2019) by einsum, which puts the heads on the axis of queries."""
    sides = queries.view(*queries.shape[:2], 2, 8), keys[..., :8]
    weights = torch.einsum(f"bihd,{'bjd'[-keys.ndim :]}->{order}", *sides).softmax(-1)
    own.weights = torch.einsum(f"{order}->bhij", weights)
    return torch.einsum(f"{order},{'bjd'[-keys.ndim :]}->bihd", weights, sides[1]).flatten(-2)


def beside_learned(order: str, own: Any, states: Tensor) -> Any:
    """With what the model has learned before the words and behind them, as in CoCa (Yu et al. 2022)."""
    learned = own.learned.expand(len(states), -1, -1)
    both = torch.cat([learned, states, learned[:, :1]], dim=1)
    return by_shared_keys(own, both, both, order)


@pytest.mark.parametrize(
    ("attend", "names"),
    [
        *((partial(beside_learned, order), "⟨before 1⟩⟨before 2⟩{}⟨after 1⟩") for order in ("bhij", "bihj")),
        (lambda own, x: by_shared_keys(own, own.learned.expand(len(x), -1, -1), x), "⟨query 0⟩⟨query 1⟩/{}"),
        (lambda own, x: by_shared_keys(own, x, own.normed()), "{}/⟨before 1⟩⟨before 2⟩"),
    ],
)
def test_heads_that_share_their_keys(attend: Callable[[Any, Tensor], Any], names: str) -> None:
    learned = nn.Parameter(drawn(1, 2, 16))
    module: Any = Module(lambda own, x: attend(own, own.read(x)), learned=learned, **linears(read=16))
    module.normed = lambda: functional.layer_norm(learned, (16,), nn.Parameter(drawn(3, 16)), torch.zeros(16))
    maps = recorded(lambda: module(OF_TWO), tokens=[list("abcde"), list("vwxyz")])
    assert called(maps) == f"{names.format('abcde')} {names.format('vwxyz')}"
    for found, weights in zip(maps, module.weights, strict=True):
        np.testing.assert_allclose(found.weights[0], weights.numpy(), atol=1e-6)


def remembering(own: Any, words: Tensor, *before: Any) -> Any:
    states = own.words(words)
    memory = [part for old in before for part in (old[:, :4].unflatten(1, (2, 2)).mean(2), old[:, 4:])]
    keys = torch.cat([*memory, states], dim=1)
    by_softmax(states, keys, keys)
    return states


def test_steps_that_look_at_what_the_first_had_not_are_apart() -> None:
    """As in a compressive transformer, which mixes the words of steps before."""
    module = Module(remembering, words=nn.Embedding(10, 16))
    with torch.no_grad(), attnviz.record() as maps:
        module(torch.arange(5)[None], module(torch.arange(5, 10)[None]))
    assert [found.weights.shape[2:] for found in maps] == [(5, 5), (5, 8)]
    assert "such as a memory" in maps.not_joined


def by_einsum_over_a_middle_axis(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """As Transformer-XL has it (Dai et al. 2019), [query, key, text, head]."""
    query, key, value = (side.permute(2, 0, 1, 3) for side in (query, key, value))
    weights = torch.einsum("ibnd,jbnd->ijbn", query, key).softmax(dim=1)
    return torch.einsum("ijbn,jbnd->ibnd", weights, value)


@pytest.mark.parametrize("attend", [lambda q, k, v: v.mT @ (k @ q.mT).softmax(-2), by_einsum_over_a_middle_axis])
@pytest.mark.parametrize("n_texts", [1, 2])
def test_heads_whose_keys_are_on_another_axis(attend: Callable[..., Tensor], n_texts: int) -> None:
    query, key, value = drawn(11, 3, n_texts, 4, 5, 8)
    maps = recorded(lambda: attend(query, key, value), tokens=[list("abcde")] * n_texts)
    right = (query @ key.mT).softmax(-1).numpy()
    assert [found.weights.shape for found in maps] == [(1, 4, 5, 5)] * n_texts
    for found, of_text in zip(maps, right, strict=True):
        np.testing.assert_allclose(found.weights[0], of_text, atol=1e-6)
        assert ("of which text" in found.provenance.facts.guess) == (found.provenance.facts.guess != "")


@pytest.mark.parametrize("n_texts", [1, 2])
def test_texts_beside_each_other_go_on_from_a_memory(n_texts: int) -> None:
    """As Transformer-XL reads a second segment [token, text], with the states of the first before it."""

    def forward(own: Any, words: Tensor, *memory: Tensor) -> Tensor:
        states: Tensor = own.words(words)
        read = torch.cat([*memory, states])
        own.weights = torch.einsum("ibd,jbd->ijb", states, read).softmax(1)
        torch.einsum("ijb,jbd->ibd", own.weights, read)
        return states

    model: Any = Module(forward, words=nn.Embedding(30, 16))
    words, names = torch.arange(10 * n_texts).view(10, n_texts), [list("abcdefghij"), list("ABCDEFGHIJ")][:n_texts]
    maps = recorded(lambda: model(words[5:], model(words[:5])), tokens=names)
    assert [list(found.keys.pieces) for found in maps] == [list(found.queries.pieces) for found in maps] == names
    for found, right in zip(maps, model.weights.permute(2, 0, 1), strict=True):
        np.testing.assert_allclose(found.weights[0, 0, 5:], right, atol=1e-6)


def by_einsum(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Of one key einsum has nothing to sum up, and multiplies element by element."""
    query, key, value = (side.view(*side.shape[:2], 2, 8) for side in (query, key, value))
    weights = torch.einsum("bqhd,bkhd->bhqk", query, key).softmax(-1)
    return torch.einsum("bhqk,bkhd->bqhd", weights, value).flatten(2)


@pytest.mark.parametrize("n_texts", [1, 2])
@pytest.mark.parametrize("sizes", [(-1,), (-1, 1), (1, -1)], ids=["text", "text, token", "token, text"])
@pytest.mark.parametrize("kind", ["a module", "a function", "a function that calls maps"])
def test_layers_in_one_function_over_a_cache(kind: str, sizes: tuple[int, ...], n_texts: int) -> None:
    """A word asks in each layer, of its own text and of another that is as long."""
    table, names = drawn(89, 30, 16), ["abc", "ABC"][:n_texts]
    layers = [
        nn.Linear(16, 48) if "maps" in kind else partial(functional.linear, weight=of) for of in drawn(90, 2, 48, 16)
    ]
    cache = [[torch.zeros(n_texts, 0, 16)] * 2] * 2

    def write(_: Any, words: Tensor, memory: Tensor) -> None:
        states = torch.embedding(table, words).view(n_texts, 1, 16)
        for layer, sides in enumerate(layers):
            query, *read = sides(states).chunk(3, dim=-1)
            cache[layer] = [torch.cat(both, 1) for both in zip(cache[layer], read, strict=True)]
            states = states + attend(query, *cache[layer])
            states = states + attend(states, memory, memory)

    def translate() -> None:
        other = torch.tensor([[2, 7, 2], [5, 5, 9]])[:n_texts]
        memory = torch.embedding(table, other.T).transpose(0, 1) if sizes[0] == 1 else torch.embedding(table, other)
        for words in torch.tensor([[3, 8], [9, 4], [1, 6]])[:, :n_texts]:
            model(words.view(sizes), memory)

    attend, n_heads = (by_einsum, 2) if kind == "a function" else (by_softmax, 1)
    model = Module(write) if kind == "a module" else partial(write, None)
    maps = recorded(translate, tokens=[*map(list, names)])
    assert [one.weights.shape for one in maps] == [(2, n_heads, 3, 3)] * 2 * n_texts
    assert called(maps) == " ".join([*names, *(f"{name}/012" for name in names)])


def reader(pool: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> Any:
    """An LSTM whose states are pooled by one weight a word."""

    def forward(own: Any, ids: Tensor) -> Any:
        states, _ = own.read(own.embed(ids))
        own.weights, text = pool(own.score(torch.tanh(states)), states)
        return own.label(text)

    read = nn.LSTM(16, 8, bidirectional=True, batch_first=True)
    return Module(forward, embed=nn.Embedding(50, 16), read=read, **linears(score=1, label=2))


def by_row(scores: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    weights = scores.squeeze(-1).softmax(-1)
    return weights, torch.bmm(weights.unsqueeze(1), states).squeeze(1)


def by_sum(scores: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    """Pool a mean and, by the same weights, how far states are from it (Okabe et al. 2018)."""
    weights = scores.softmax(1)
    mean = (states * weights).sum(dim=1)
    return weights, mean + ((states - mean[:, None]) ** 2 * weights).sum(dim=1)


def by_words_first(scores: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    weights = scores.squeeze(-1).t().softmax(0)  # word, text
    return weights.t(), (weights.unsqueeze(-1) * states.transpose(0, 1)).sum(0)


def in_place(scores: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    weights = scores.softmax(1)
    states *= weights
    return weights, states.sum(1)


@pytest.mark.parametrize("way", [by_row, by_sum, by_words_first, in_place])
@pytest.mark.parametrize("n_texts", [1, 3])
def test_one_weight_a_word(way: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], n_texts: int) -> None:
    model = reader(way)
    with attnviz.record(tokens=[WORDS] * n_texts) as maps:
        model(torch.randint(0, 50, (n_texts, N), generator=torch.Generator().manual_seed(0)))
    assert len(maps) == n_texts
    right = model.weights.detach().reshape(n_texts, 1, 1, 1, N).numpy()
    for found, weights in zip(maps, right, strict=True):
        np.testing.assert_allclose(found.weights, weights, atol=1e-7)
        assert found.keys.pieces == tuple(WORDS)
        assert found.queries.pieces == ("⟨query⟩",)
        assert "read (sums of different tokens)" in found.provenance.facts.guess  # a recurrent network


@pytest.mark.parametrize("is_masked", [False, True])
@pytest.mark.parametrize("names", ["ab", "ab_"])
@pytest.mark.parametrize("mask", [None, [[1, 1, 1], [1, 1, 0]]])
def test_padding_behind_a_text_that_was_packed_is_none_of_its_words(names: str, mask: Any, is_masked: bool) -> None:
    """As in hierarchical attention (Yang et al. 2016), whose weights are masked, or divided by the sum of the real."""

    def forward(own: Any, words: Tensor, lengths: Tensor) -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(own.words(words), lengths, batch_first=True)
        states, _ = nn.utils.rnn.pad_packed_sequence(own.read(packed)[0], batch_first=True)
        scores, real = own.score(states)[..., 0], words > 0
        weights = scores.masked_fill(~real, -1e9).softmax(1) if is_masked else divide_by_sum(scores.exp() * real)
        return weights[:, None] @ states

    model = Module(forward, words=nn.Embedding(9, 16), read=nn.GRU(16, 16, batch_first=True), **linears(score=1))
    given = torch.tensor([[1, 2, 3], [4, 5, 0]]), torch.tensor([3, 2])
    maps = recorded(lambda: model(*given), tokens=[list("xyz"), list(names)], attention_mask=mask)
    assert [one.keys.pieces for one in maps] == [tuple("xyz"), tuple("ab")]


def by_places(model: Any, states: Tensor) -> Tensor:
    """As in SAGAN (Zhang et al. 2019)."""
    query, key, value = (layer(states).flatten(2) for layer in (model.query, model.key, model.value))
    model.weights = torch.bmm(query.permute(0, 2, 1), key).softmax(-1)
    return torch.bmm(value, model.weights.permute(0, 2, 1))


def by_sum_over_places(model: Any, states: Tensor) -> Tensor:
    weights: Tensor = model.score(states).flatten(1).softmax(1)
    model.weights = weights[:, None]
    return (states * weights.view(-1, 1, *states.shape[2:])).sum((2, 3))


def by_parts(model: Any, states: Tensor) -> Tensor:
    """Cut a picture that was read whole into patches, as in RegionViT (Chen et al. 2022)."""
    return by_places(model, functional.pixel_unshuffle(model.whole(functional.pixel_shuffle(states, 2)), 2))


@pytest.mark.parametrize("attend", [by_places, by_parts, by_sum_over_places])
def test_places_of_a_picture_are_read_behind_its_channels(attend: Callable[[Any, Tensor], Tensor]) -> None:
    """Among the places of a picture, whose channels come before them."""
    mapped = {name: nn.Conv2d(16, 16, 1) for name in ("query", "key", "value")}
    model: Any = Module(attend, score=nn.Conv2d(16, 1, 1), whole=nn.Conv2d(4, 4, 1), **mapped)
    maps = recorded(lambda: model(drawn(14, 2, 16, 2, 3)))
    assert len(maps) == 2
    for found, right in zip(maps, model.weights, strict=True):
        np.testing.assert_allclose(found.weights[0, 0], right.numpy(), atol=1e-6)
        assert (found.keys.pieces, found.provenance.facts.guess) == (tuple("012345"), "")


def test_hops_of_a_memory_network_are_all_seen() -> None:
    """End-to-end memory networks (Sukhbaatar et al. 2015): what is read is a sum of embeddings, which no module reads.

    Only the first hop was seen, as after it a module had read one state.
    """

    def forward(own: Any, story: Tensor, question: Tensor) -> Tensor:
        state, read = own.embed(question).sum(1), own.embed(story).sum(2)
        for _ in range(3):
            own.weights.append((read * state.unsqueeze(1)).sum(2).softmax(-1).detach())
            state = own.turn(state) + (read * own.weights[-1].unsqueeze(-1)).sum(1)
        return torch.as_tensor(state)

    model: Any = Module(forward, embed=nn.Embedding(40, 16), weights=[], **linears(turn=16))
    maps = recorded(lambda: model(torch.arange(24).view(1, 6, 4), torch.arange(3)[None]), keys=list("abcdef"))
    (found,) = maps
    np.testing.assert_allclose(found.weights[0, 0], torch.cat(model.weights).numpy(), atol=1e-6)


def test_gates_and_soft_words_are_none_of_ours() -> None:
    """Nor are weights that were masked and no longer sum to one."""

    def mix_experts(own: Any, states: Tensor) -> Any:
        gates = own.gate(states).softmax(-1)  # token, expert
        return (gates.unsqueeze(-1) * torch.stack([expert(states) for expert in own.experts], 1)).sum(1)

    def mix_experts_of_each_token(own: Any, states: Tensor) -> Any:
        gates = own.gate(states[None]).softmax(-1)  # text, token, expert
        mixed = functional.layer_norm(torch.stack([expert(states[None]) for expert in own.experts], 2), (16,))
        return torch.einsum("tne,tned->tnd", gates, own.experts[0](mixed))

    def choose_experts(own: Any, states: Tensor) -> Any:
        gates, chosen = own.gate(states).softmax(-1).topk(2)
        return (functional.one_hot(chosen, 3) * (gates / gates.sum(-1, keepdim=True)).unsqueeze(-1)).sum(1)

    def mix_layers(own: Any, states: Tensor) -> Any:
        return torch.einsum("l,ld->d", own.mix.softmax(0), own.gate(states))

    def attend_to_layers(own: Any, states: Tensor) -> Any:
        layers = torch.stack([states, own.gate(states)], 1)
        wide = layers.unsqueeze(1)
        return SDPA(layers, layers, layers) + SDPA(wide, wide, wide)[:, 0]  # by its parts, and as a kernel

    experts = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
    for model in (
        Module(mix_experts, experts=experts, **linears(gate=3)),
        Module(mix_experts_of_each_token, experts=experts, **linears(gate=3)),
        Module(choose_experts, **linears(gate=3)),
        Module(lambda own, x: own.gate(x).softmax(-1) @ own.words.weight, words=nn.Embedding(N, 16), **linears(gate=N)),
        Module(lambda _, states: (states @ states.mT).softmax(-1) * torch.ones(N, N).tril() @ states),
        Module(mix_layers, mix=nn.Parameter(drawn(8, N)), **linears(gate=16)),
        Module(attend_to_layers, **linears(gate=16)),
    ):
        with pytest.raises(InvalidRecord, match="no attention was seen"):
            recorded(lambda model=model: model(drawn(7, N, 16)))  # type: ignore[misc]


@pytest.mark.parametrize("n_texts", [1, 2])
def test_steps_that_choose_their_own_words_are_no_heads(n_texts: int) -> None:
    """A chatbot whose scores are sums of products (Luong et al. 2015), with words on the first axis."""

    def forward(own: Any, words: Tensor) -> Tensor:
        (read, state), word = own.read(own.words(words)), torch.zeros(1, n_texts, dtype=torch.long)
        for _ in range(3):
            asked, state = own.write(own.words(word), state)
            weights = (asked * read).sum(2).mT.softmax(1).unsqueeze(1)
            word = own.choose(asked + torch.bmm(weights, read.transpose(0, 1)).transpose(0, 1)).argmax(-1)
        return word

    parts = {"words": nn.Embedding(9, 16), "read": nn.GRU(16, 16), "write": nn.GRU(16, 16), **linears(choose=9)}
    names = {"tokens": [list("xyz"), list("XYZ")][:n_texts], "keys": [list("abcde"), list("ABCDE")][:n_texts]}
    words = torch.arange(5 * n_texts).view(5, n_texts) % 9
    maps = recorded(lambda: Module(forward, **parts)(words), **names)
    assert called(maps) == " ".join(["xyz/abcde", "XYZ/ABCDE"][:n_texts])


def test_scores_that_a_notebook_fills_in_are_taken_for_those_of_its_tokens() -> None:
    """As where a book for beginners compares each token with each in a loop."""
    tokens, scores = drawn(3, 4, 3), torch.empty(4, 4)
    with torch.no_grad(), attnviz.record(list("abcd")) as maps:
        for query, key in product(range(4), repeat=2):
            scores[query, key] = tokens[query] @ tokens[key]
        scores.softmax(-1) @ tokens
    np.testing.assert_allclose(maps[0].weights[0, 0], scores.softmax(-1), atol=1e-6)
    assert maps[0].keys.pieces == tuple("abcd")
    assert maps[0].provenance.facts.guess.endswith("it is not known what the scores that they came of are of.")


def test_hops_in_a_notebook_are_layers() -> None:
    """A state reads a memory again and again: nothing is known of either but what it has read."""
    state, memory = drawn(3, 1, 1, 4), drawn(4, 1, 5, 4)
    with torch.no_grad(), attnviz.record(keys=list("abcde")) as maps:
        for _ in range(3):
            state = state + (state @ memory.mT).softmax(-1) @ memory
    assert [(one.n_layers, called([one])) for one in maps] == [(3, "⟨query⟩/abcde")]


@pytest.mark.parametrize("is_fed", [True, False])
@pytest.mark.parametrize("n_written", [4, N])
def test_steps_of_a_recurrent_decoder_are_rows(n_written: int, is_fed: bool) -> None:
    """A translator was as many layers of one row as it wrote words. What it reads next are words, or what it saw."""

    def forward(own: Any, states: Tensor, words: Tensor) -> Tensor:
        own.weights = []
        read, state = own.read(states)
        state, seen = state[0], words[:, 0]
        for word in words.unbind(1):
            state = own.write(seen if is_fed else word, state)
            weights = torch.bmm(read, own.score(state).unsqueeze(2)).squeeze(2).softmax(dim=1)
            own.weights.append(weights.detach())
            seen = torch.bmm(weights.unsqueeze(1), read).squeeze(1)
        return seen

    model: Any = Module(forward, read=nn.GRU(16, 16, batch_first=True), write=nn.GRUCell(16, 16), **linears(score=16))
    written = [f"word {n}" for n in range(n_written)]
    states = drawn(10, 2, N, 16), drawn(11, 2, n_written, 16)
    maps = recorded(lambda: model(*states), tokens=[written] * 2, keys=[WORDS] * 2)
    assert [one.weights.shape for one in maps] == [(1, 1, n_written, N)] * 2
    for row, one in enumerate(maps):
        np.testing.assert_allclose(one.weights[0, 0], torch.stack(model.weights, 1)[row].numpy(), atol=1e-7)
        assert (list(one.queries.pieces), list(one.keys.pieces)) == (written, WORDS)


@pytest.mark.parametrize("is_outside", [False, True])
@pytest.mark.parametrize("chooses", [False, True])
@pytest.mark.parametrize("n_texts", [1, 2, 3])
def test_a_decoder_writes_one_word_after_another(n_texts: int, chooses: bool, is_outside: bool) -> None:
    """As in tutorials, where a function runs its steps, and the words are given or those that it chose."""

    def step(own: Any, word: Tensor, state: Tensor, read: Tensor) -> Any:
        asked, state = own.write(own.words(word)[:, None], state)
        own.weights = (asked @ read.mT).softmax(-1)
        return own.choose(own.weights @ read)[:, 0].argmax(-1), state

    def translate(own: Any, source: Tensor, words: Tensor) -> Any:
        (read, state), word = own.read(own.words(source)), words[:, 0]
        for n in (1, 2, 2):
            chosen, state = own.step(word, state, read)
            word = chosen if chooses else words[:, n]

    read, write = (nn.GRU(16, 16, batch_first=True) for _ in range(2))
    step_by_step = Module(step, words=nn.Embedding(30, 16), write=write, **linears(choose=30))
    model = Module(translate, words=nn.Embedding(30, 16), read=read, step=step_by_step)
    given = torch.arange(5 * n_texts).view(n_texts, 5), torch.arange(3 * n_texts).view(n_texts, 3)
    names = {"tokens": [list("xyz"), list("XYZ"), list("uvw")][:n_texts], "keys": [list("abcde")] * n_texts}
    maps = recorded(lambda: translate(model, *given) if is_outside else model(*given), **names)
    assert called(maps) == " ".join(["xyz/abcde", "XYZ/abcde", "uvw/abcde"][:n_texts])


def test_a_source_as_long_as_what_is_written_has_names_of_its_own_where_a_function_reads_both() -> None:
    encode, decode = (of(16, 2, batch_first=True) for of in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer))
    states, names = drawn(1, 2, 2, 5, 16), [[list("abcde")] * 2, [list("vwxyz")] * 2]
    run = lambda: decode.eval()(states[0], encode.eval()(states[1]))  # noqa: E731
    maps = recorded(run, tokens=names[0], keys=names[1])
    assert called(maps[::2]) == "vwxyz abcde abcde/vwxyz"
    assert not any(one.provenance.facts.guess for one in maps)


def test_what_reads_the_same_states_again_takes_no_step() -> None:
    """As where a script calls a model that pools states once an epoch."""

    def pool(own: Any, states: Tensor) -> Any:
        read = torch.cat([own.learned.expand(2, 1, 16), own.read(states)[0]], dim=1)
        return by_softmax(read[:, :1], read, read)

    model = Module(pool, read=nn.GRU(16, 16, batch_first=True), learned=nn.Parameter(drawn(1, 16)))
    states = drawn(2, 2, 5, 16)
    assert [one.weights.shape for one in recorded(lambda: [model(states), model(states)])] == [(1, 1, 1, 6)] * 4
