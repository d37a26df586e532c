"""Which layer, which keys, and what was not seen: small modules of the structures that people publish."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import attnviz
from attnviz.errors import InvalidOption, InvalidRecord
from attnviz.measures.weighing import rollout
from attnviz.models.recording.record import Recording
from tests.models.captures import SDPA, drawn, recorded
from tests.models.structures import STATES, Attention, Mix, Module, Stack, by_softmax, called, linears


def by_talking_heads(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """A linear map over heads, between softmax and values (Shazeer et al. 2020)."""
    weights = (query @ key.mT / 2).softmax(-1)
    return torch.einsum("bhij,hg->bgij", weights, nn.Parameter(drawn(1, 4, 4))) @ value


def groups(maps: Recording) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    return [(one.provenance.facts.group, one.layer_numbers, one.weights.shape) for one in maps]


def test_layers_that_are_lists_count_by_the_outer_number() -> None:
    layers = [nn.ModuleList([nn.LayerNorm(16), Attention(n), nn.Identity()]) for n in (4, 4, 2)]
    maps = recorded(lambda: Stack(layers).eval()(STATES))
    assert groups(maps) == [("layers.0-1.*", (0, 1), (2, 4, 5, 5)), ("layers.2.*", (2,), (1, 2, 5, 5))]


def test_stages_of_different_sizes_are_a_group_each() -> None:
    """As in Swin or a U-Net, where several tokens become one between two stages. Two texts stay two."""
    pool = Module(lambda own, states: functional.avg_pool1d(own.conv(states.mT), 3).mT, conv=nn.Conv1d(16, 16, 3, 1, 2))
    stages = [nn.Sequential(Attention(2), Attention(2)), pool, nn.Sequential(*(Attention(4) for _ in range(3)))]
    maps = recorded(lambda: nn.Sequential(*stages).eval()(drawn(2, 2, 5, 16)))
    assert groups(maps) == [("0.*", (0, 1), (2, 2, 5, 5))] * 2 + [("2.*", (0, 1, 2), (3, 4, 2, 2))] * 2
    assert maps.not_seen.endswith(": 1.conv (convolution).")


def test_what_was_changed_before_the_values_is_said() -> None:
    talking = [Attention(mix=by_talking_heads), Attention(mix=by_talking_heads), Attention()]
    maps = recorded(lambda: Stack(talking).eval()(STATES))
    said = "Not in here: attention whose weights were changed before the values: layers.0 (linear), layers.1 (linear)."
    assert groups(maps) == [("layers.*", (2,), (1, 4, 5, 5))]
    assert maps.not_seen == maps[0].provenance.facts.guess == dict(maps[0].provenance.settings)["guess"] == said
    assert said in repr(maps)
    with pytest.raises(InvalidRecord, match=r"changed before the values: this block \(linear\)"), attnviz.record():
        Attention(mix=by_talking_heads)(STATES)


def test_weights_that_are_only_looked_at_are_not_changed() -> None:
    def look(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        weights = (query @ key.mT / 2).softmax(-1)
        (weights * weights.log()).sum(-1)
        return weights @ value

    maps = recorded(lambda: Attention(mix=look)(STATES))
    assert (len(maps), maps.not_seen) == (1, "")


@pytest.mark.parametrize("tokens", [list("abcde"), None])
def test_memory_before_the_tokens_is_called_so(tokens: list[str] | None) -> None:
    def with_memory(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        memory = drawn(1, 2, 1, 4, 3, 4)
        keys, values = torch.cat([memory[0], key], 2), torch.cat([memory[1], value], 2)
        return functional.scaled_dot_product_attention(query, keys, values)

    maps = recorded(lambda: Attention(mix=with_memory)(STATES), tokens=tokens)
    names = "".join(tokens or "01234")
    assert called(maps) == f"{names}/⟨before 1⟩⟨before 2⟩⟨before 3⟩{names}"


@pytest.mark.parametrize("is_shifted", [False, True])
def test_rows_that_are_windows_are_called_so(is_shifted: bool, tmp_path: Path) -> None:
    """Swin puts windows on the axis of the batch; they are neither texts, nor the same tokens in the next layer."""

    def swin(own: Any, states: Tensor) -> Tensor:
        for number, block in enumerate(own.blocks):
            shift = 2 * number * is_shifted
            windows = block(states.roll(-shift, 1).view(-1, 4, 16))
            states = states + windows.view(len(states), 16, 16).roll(shift, 1)
        return states

    model = Module(swin, blocks=nn.ModuleList([Attention(2), Attention(2)]))
    names = [[f"{text}{place}" for place in range(16)] for text in "ab"]
    maps = recorded(lambda: model(torch.randn(2, 16, 16)), tokens=names)
    assert [one.provenance.text_name for one in maps[-4:]] == [f"window {n} of 4" for n in (1, 2, 3, 4)]
    assert {one.weights.shape for one in maps} == {(2 - is_shifted, 2, 4, 4)}
    assert maps.groups == (("blocks.0", "blocks.1") if is_shifted else ("blocks.*",))
    last = names[1][2:] + names[1][:2] if is_shifted else names[1]
    assert [list(one.keys.pieces) for one in maps[-4:]] == [last[at : at + 4] for at in (0, 4, 8, 12)]
    with pytest.raises(InvalidOption, match="rollout needs attention over a whole text, and this is window 3"):
        rollout(maps[2])
    short = recorded(lambda: model(torch.randn(1, 16, 16)), keys=attnviz.Grid(2, 2))
    assert "Names were given that fit a window and no whole text" in short[0].provenance.facts.guess
    attnviz.save(maps[2], tmp_path / "attention.safetensors")
    again = attnviz.load(tmp_path / "attention.safetensors").provenance.facts
    assert (again.window, again.n_windows) == (2, 4)


@pytest.mark.parametrize(
    ("read", "called"),
    [
        (lambda states: SDPA(x := states[:, [0, 2, 4, 0, 0]], x, x, attn_mask=torch.arange(5) < 3), "⟨before 1⟩ac"),
        (lambda states: SDPA(states[:, :1], states, states), "⟨query⟩"),
        (lambda states: states[:, 0] + states[:, 1], "⟨before 1⟩⟨before 2⟩abcde"),
    ],
)
def test_what_is_learned_stays_so_behind_attention(read: Callable[[Tensor], Tensor], called: str) -> None:
    """Of two before the words one stands in several places as padding, or asks alone, or both give one answer."""
    parts = {"attend": Attention(), "learned": nn.Parameter(drawn(1, 1, 2, 16))}
    model = Module(lambda own, words: read(own.attend(torch.cat([own.learned, words], dim=1))), **parts)
    maps = recorded(lambda: model(STATES), tokens=list("abcde"))
    assert "".join(maps[-1].queries.pieces) == called
    assert maps.not_seen == ""


@pytest.mark.parametrize(
    ("tokens", "called"),
    [
        ([list("abc"), list("xy")], "abc xy"),
        (list("abcxy"), "abc xy"),
        ([list("abc"), list("xy"), list("z")], "012 34"),
        (list("abc"), "012 34"),
    ],
)
def test_names_of_graphs_in_one_batch(tokens: Any, called: str) -> None:
    """Of 3 and 2 nodes one after another, which are laid out as the rows of a batch (GPS; Rampášek et al. 2022)."""

    def forward(_: Any, nodes: Tensor) -> Tensor:
        dense = torch.zeros(6, 16)
        dense[torch.arange(5)] = nodes
        dense = dense.view(2, 3, 16)
        return SDPA(dense, dense, dense, attn_mask=(torch.arange(6) < 5).view(2, 1, 3))

    maps = recorded(lambda: Module(forward)(STATES[0]), tokens=tokens)
    assert " ".join("".join(one.keys.pieces) for one in maps) == called
    assert [("tokens are called by their places" in one.provenance.facts.guess) for one in maps] == ["0" in called] * 2


def cross() -> Module:
    """One head that reads other states than its own, or its own."""

    def forward(own: Any, states: Tensor, read: Tensor) -> Any:
        key, value = own.both(read).chunk(2, -1)
        return (own.query(states) @ key.mT / 4).softmax(-1) @ value

    return Module(forward, **linears(query=16, both=32))


@pytest.mark.parametrize("n", [3, 5])
def test_latents_that_read_the_tokens_are_not_called_like_them(n: int) -> None:
    """Perceiver (Jaegle et al. 2021): the last of the tokens stood for latents, and then nothing was recorded.

    Nor are as many of them as tokens, unless they have names of their own.
    """

    def forward(own: Any, states: Tensor) -> Any:
        latents = own.read(own.latents.expand(len(states), -1, -1), states)
        return own.read(own.own(latents, latents), states)

    model = Module(forward, latents=nn.Parameter(torch.randn(1, n, 16)), read=cross(), own=cross())
    maps = recorded(lambda: model(STATES), tokens=list("abcde"))
    asking, mixed = ("".join(f"⟨{kind} {place}⟩" for place in range(n)) for kind in ("query", "mixed"))
    assert called(maps) == f"{asking}/abcde {mixed}"
    maps = recorded(lambda: model(STATES), tokens=list("vwxyz")[:n], keys=list("abcde"))
    assert [one.queries.pieces for one in maps] == [tuple("vwxyz")[:n]] * 2
    with pytest.raises(InvalidRecord, match="4 names in tokens"), attnviz.record(tokens=list("abcd")):
        model(STATES)


@pytest.mark.parametrize("double", [lambda states: torch.cat([states] * 2), lambda states: states.repeat(2, 1, 1)])
@pytest.mark.parametrize("is_within", [False, True])
def test_a_text_that_is_read_twice_is_two_texts(double: Callable[[Tensor], Tensor], is_within: bool) -> None:
    """As under guidance, where each step of a diffusion reads its own result with a prompt and without one."""
    attend, empty = Module(lambda own, *of: own.attend(torch.cat(of, 1)), attend=Attention()), STATES[:, :0]
    within = Module(lambda own, states: own.inner(double(states), empty.expand(2, -1, -1)), inner=attend)
    read_twice = within if is_within else partial(within.does, within)
    maps = recorded(lambda: read_twice(attend(STATES, empty)))
    assert [each.weights.shape for each in maps] == [maps[0].weights.shape] * 3
    assert maps.not_seen == ""  # also beside a memory that is still empty


def in_pieces(pairs: Iterable[tuple[Any, Any]]) -> Mix:
    """Attend a part of the rows of all heads and of the queries at a time, as where memory is short."""

    def mix(*sides: Tensor) -> Tensor:
        query, key, value = (side.flatten(0, 1) for side in sides)
        found = torch.zeros_like(query)
        for rows, asking in pairs:
            found[rows, asking] = torch.bmm((torch.bmm(query[rows, asking], key[rows].mT) / 2).softmax(-1), value[rows])
        return found.view(sides[0].shape)

    return mix


@pytest.mark.parametrize("n_rows", [2, 4, 8])
@pytest.mark.parametrize("n_queries", [2, 3, 4])
def test_pieces_of_one_attention_are_joined(n_rows: int, n_queries: int) -> None:
    """By heads, as in diffusers' slices, by texts, and by queries; none of them is said to be another head or text."""
    rows, asking = ([slice(at, at + n) for at in range(0, end, n)] for n, end in ((n_rows, 8), (n_queries, 4)))
    model = Attention(mix=in_pieces([*product(rows, asking)]))
    states, names = drawn(3, 2, 4, 16), [[*"abcd"], [*"efgh"]]
    pieces = recorded(lambda: model(states), tokens=names)
    model.mix = by_softmax
    for joined, whole in zip(pieces, recorded(lambda: model(states), tokens=names), strict=True):
        assert joined.queries == joined.keys == whole.keys
        np.testing.assert_allclose(joined.weights, whole.weights, atol=1e-6)


def by_distances(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Add what each key says of its distance, as in DeBERTa (He et al. 2020)."""
    n_tokens = key.shape[-2]
    distances = torch.arange(n_tokens) - torch.arange(n_tokens)[:, None] + n_tokens - 1
    of_keys = (key @ nn.Parameter(drawn(5, 4, 2 * n_tokens - 1))).gather(-1, distances.expand(*key.shape[:3], -1))
    return ((query @ key.mT + of_keys.mT) / 2).softmax(-1) @ value


def by_one_key(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Let all heads read the first one's keys and values, with heads on the axis of rows (Shazeer 2019)."""
    keys, values = (torch.cat([each[:, 0]] * 4) for each in (key, value))
    return ((query[0] @ keys.mT / 2).softmax(-1) @ values)[None]


def by_cell(own: Any, states: Tensor, read: Any = Tensor.contiguous) -> Tensor:
    """Attend to what a cell makes of each token and of those before it."""
    state, made = None, []
    for token in states.unbind(1):
        state = own.cell(read(token), state)
        made.append(state[0])
    return own.by_softmax(torch.stack(made, 1))  # type: ignore[no-any-return]


def step_by_step(is_joined: bool, is_backward: bool) -> Callable[[Any, Tensor], Tensor]:
    """Attend to what a cell of one's own makes of each token and of those before it, or of those behind it."""

    def forward(own: Any, states: Tensor) -> Tensor:
        state, made = torch.zeros(1, 16), {}
        tokens = list(enumerate(states.unbind(1)))
        for place, token in reversed(tokens) if is_backward else tokens:
            new = own.joined(torch.cat([token, state], 1)) if is_joined else own.token(token) + own.state(state)
            made[place] = state = state + torch.sigmoid(own.gate(token)) * (new.tanh() - state)
        return own.by_softmax(torch.stack([made[place] for place in sorted(made)], 1))  # type: ignore[no-any-return]

    return forward


def by_spans(own: Any, states: Tensor) -> Tensor:
    """Attend to stretches of a text, each of which is its first and its last word (Lee et al. 2017)."""
    spans = [own.joined(torch.cat([states[:, at], states[:, end]], 1)) for at, end in ((0, 1), (0, 2), (1, 4), (3, 4))]
    return own.by_softmax(torch.stack(spans, 1))  # type: ignore[no-any-return]


def by_scores(score: Callable[[Tensor, Tensor], Tensor]) -> Mix:
    def mix(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return score(query.unsqueeze(-2), key.unsqueeze(-3)).sum(-1).softmax(-1)[..., range(5), :] @ value

    return mix


def of_both(query: Tensor, key: Tensor) -> Tensor:
    """Put both sides beside each other, as in the first graph attention networks (Veličković et al. 2018)."""
    several = [side.expand(1, 4, 5, 5, 4) for side in (query, key)]
    return torch.where(torch.eye(5)[..., None] < 1, torch.cat(several, -1) @ nn.Parameter(drawn(4, 8, 1)), -9e15)


def by_pairs(own: Any, states: Tensor) -> Tensor:
    """Attend among all pairs with one token, as in AlphaFold (Jumper et al. 2021)."""
    return own.by_softmax((states[:, :, None] + states[:, None]).flatten(0, 1))  # type: ignore[no-any-return]


def added_to(*places: int) -> Callable[[Any, Tensor], Tensor]:
    """Attend to sums of the tokens that go to one place."""
    index = torch.tensor(places)[None, :, None].expand_as(STATES)
    return lambda own, states: own.by_softmax(torch.zeros(1, max(places) + 1, 16).scatter_add(1, index, states))


def over_depth(own: Any, states: Tensor) -> Tensor:
    """Attend to what a learned query sees in two states of each token, in a kernel."""
    both = torch.stack([states, own.token(states)], 2)
    return own.by_softmax(SDPA(own.token.bias.expand(1, 5, 1, 16), both, both)[:, :, 0])  # type: ignore[no-any-return]


def repeated(at: list[int], own: Any, states: Tensor) -> Tensor:
    """Attend among tokens that stand as often as they last, as where speech is made of a text."""
    return own.by_softmax(states[:, at])  # type: ignore[no-any-return]


def by_pooled(_: Any, states: Tensor) -> Tensor:
    """Attend to all tokens, and to one that is pooled of them, with weights for each feature."""
    keys = torch.cat([states, (states * states.softmax(1)).sum(1, keepdim=True)], 1)
    return by_softmax(states, keys, keys)


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        (over_depth, "abcde"),
        (by_pooled, "abcde/abcde⟨mixed 0⟩"),
        *((partial(repeated, at), "".join("abcde"[n] for n in at)) for at in ([0, 0, 1, 1, 2, 2], [0, 0, 1, 2, 2, 2])),
        (lambda own, states: own.by_softmax(own.conv(functional.pad(states.mT, (2, 0))).mT), "abcde"),
        (lambda own, states: own.by_one_key(own.by_distances(states)), "abcde"),
        (lambda own, states: own.by_softmax(states.index_add(1, torch.tensor([1, 2]), states[:, :2])), "abcde"),
        (by_cell, "abcde"),
        (lambda own, states: by_cell(own, states.unfold(1, 2, 2).flatten(2), own.joined), "⟨mixed 0⟩⟨mixed 1⟩"),
        *((step_by_step(*each), "abcde") for each in product((False, True), repeat=2)),
        (lambda own, states: own.by_sums(states), "abcde"),
        (lambda own, states: own.by_both(states), "abcde"),
        (by_spans, "⟨mixed 0⟩⟨mixed 1⟩⟨mixed 2⟩⟨mixed 3⟩"),
        (by_pairs, "⟨mixed 16⟩⟨mixed 17⟩⟨mixed 18⟩⟨mixed 19⟩e"),
        (added_to(0, 0, 1, 1, 2), "⟨mixed 0⟩⟨mixed 1⟩⟨mixed 2⟩"),
    ],
)
def test_names_stay_with_their_tokens(forward: Callable[[Any, Tensor], Tensor], expected: str) -> None:
    mixes = {each.__name__: Attention(mix=each) for each in (by_distances, by_one_key, by_softmax)}
    mixes |= {"by_sums": Attention(mix=by_scores(torch.add)), "by_both": Attention(mix=by_scores(of_both))}
    parts = {"conv": nn.Conv1d(16, 16, 3), "cell": nn.LSTMCell(16, 16), "joined": nn.Linear(32, 16)}
    model = nn.Sequential(Attention(), Module(forward, **mixes, **parts, **linears(token=16, state=16, gate=16)))
    first, *_, last = recorded(lambda: model(STATES), tokens=list("abcde"))
    assert called([first, last]) == f"abcde {expected}"


def along_edges(own: Any, states: Tensor) -> Tensor:
    """Let a graph's nodes look at their neighbours, by scores that are sums (Veličković et al. 2018)."""
    scores = own.score(states) + own.score(states).mT
    return torch.where(torch.eye(5, dtype=torch.int64) < 1, scores, torch.full_like(scores, -9e15)).softmax(-1) @ states


def among_patches(own: Any, states: Tensor) -> Tensor:
    """Look around each place, as in stand-alone self-attention (Ramachandran et al. 2019): padding is no place."""
    around = functional.unfold(states.mT.unsqueeze(2), (1, 3), padding=(0, 1)).view(16, 3, 5).permute(2, 1, 0)
    return SDPA(states.transpose(0, 1), around, around)


def in_copies(own: Any, states: Tensor) -> Tensor:
    """Copy a weight for each feature before it is multiplied."""
    weights: Tensor = own.score(states).softmax(1)
    return (weights.repeat(1, 1, 16) * states).sum(1)


def in_heads(own: Any, states: Tensor) -> Tensor:
    """Cut features into heads before they are mapped and divided, as much code to learn from does."""
    parts = own.part(states.view(1, 5, 2, 8)).transpose(1, 2)
    return SDPA(parts / torch.tensor([2.0]), parts, parts)


def by_few_keys(own: Any, states: Tensor) -> Tensor:
    """Attend to keys that a matrix makes of all tokens, as in Linformer (Wang et al. 2020)."""
    keys = own.over(states.mT).mT
    return by_softmax(own.query(states), keys, keys)


def before_one_number(own: Any, words: Tensor, lengths: Tensor, of_text: Tensor) -> Any:
    """Put what a text has one of behind its words, which are packed by their number."""
    packed = nn.utils.rnn.pack_padded_sequence(own.words(words), lengths, batch_first=True)
    states, _ = nn.utils.rnn.pad_packed_sequence(own.read(packed)[0], batch_first=True)
    return own.attend(torch.cat([states, own.query(of_text).unsqueeze(1)], 1))


def by_space_and_time(own: Any, video: Tensor) -> Any:
    """Attend among the patches of a frame, with a learned token, as in ViViT (Arnab et al. 2021)."""
    states = torch.cat([own.learned[:1].expand(2, 3, 1, 16), own.of_patch(video)], dim=2)
    states = own.attend(states.flatten(0, 1)).unflatten(0, (2, 3))
    return own.by_softmax(states.transpose(1, 2).flatten(0, 1))


def beside_learned(own: Any, states: Tensor) -> Any:
    """Put states of four axes, which no map or norm has read before, beside what is learned."""
    learned = own.learned[:1].expand(len(states), 1, 1, -1)
    return own.by_softmax(torch.cat([learned, states], dim=2).flatten(0, 1))


def classified(own: Any, states: Tensor) -> Any:
    """Put a class before all, and add what is learned of positions that the model counts up, as in CLIP."""
    states = torch.cat([own.learned[:1].expand(2, 1, 16), states], dim=1)
    return own.attend(states + own.words(torch.arange(states.shape[1])[None]))


def joined_and_turned(own: Any, *ids: Tensor) -> Any:
    """Attend in a batch of two texts, and again with the second before the first."""
    return own.by_softmax(own.attend(own.words(torch.cat(ids))).flip(0))


def by_columns(own: Any, table: Tensor) -> Any:
    return own.attend(torch.stack([own.embed(one) for one in torch.split(table, 1, 1)], 1))


def by_stretches(own: Any, series: Tensor) -> Any:
    return own.by_softmax(own.of_two(series.unfold(-1, 2, 2)).flatten(0, 1))


def by_variables(own: Any, series: Tensor) -> Any:
    """Attend among the variables of a series, each read over all times (Liu et al. 2024)."""
    return own.attend(own.of_time(series.mT))


def behind_learned(own: Any, series: Tensor) -> Any:
    return own.stack(torch.cat([own.learned.unsqueeze(0), own.of_time(series.mT)], dim=1))


def cut(own: Any, image: Tensor) -> Any:
    """Cut an image [channel, row, column] into patches of two rows and columns."""
    return own.attend(own.of_patch(image.view(3, 2, 2, 3, 2).permute(1, 3, 0, 2, 4).reshape(1, 6, 12)))


def by_where(own: Any, states: Tensor, lengths: Tensor) -> Any:
    """Forbid keys by a number in the place of their scores, as GPT-2 does."""
    scores = torch.where(torch.ones([int(lengths.sum())] * 2).tril() > 0, states @ states.mT, torch.tensor(-1e9))
    return scores.softmax(-1) @ states


def from_nothing(own: Any, states: Tensor) -> Any:
    """Begin with zeros where learned queries are, as in DETR (Carion et al. 2020)."""
    return by_softmax(torch.zeros_like(states[:, :2]) + own.learned, states, states)


def from_a_table(own: Any, states: Tensor) -> Any:
    """Ask with what a model has in a tensor that is no parameter."""
    rows = functional.embedding(torch.arange(2), drawn(9, 3, 16))
    return by_softmax(own.query(rows.expand(1, 2, 16)), states, states)


CONV = partial(functional.conv1d, weight=drawn(5, 16, 1, 8), stride=8)
TWO, IMAGES = torch.arange(6).view(2, 3), drawn(4, 2, 16, 2, 3)
FRAMES = "⟨before 1⟩ab ⟨before 1⟩cd ⟨before 1⟩ef ⟨before 1⟩uv ⟨before 1⟩wx ⟨before 1⟩yz"
TIMES = "⟨mixed 0⟩⟨mixed 3⟩⟨mixed 6⟩ ace bdf ⟨mixed 0⟩⟨mixed 3⟩⟨mixed 6⟩ uwy vxz"


@pytest.mark.parametrize(
    ("forward", "given", "names", "expected"),
    [
        (in_heads, [STATES], "abcde", "abcde"),
        (along_edges, [STATES], "abcde", "abcde"),
        (among_patches, [STATES], "abcde", "a/⟨before 1⟩ab b/abc c/bcd d/cde e/de⟨after 1⟩"),
        (in_copies, [STATES], "abcde", "⟨query⟩/abcde"),
        (by_few_keys, [STATES], "abcde", "abcde/⟨mixed 0⟩⟨mixed 1⟩⟨mixed 2⟩"),
        (before_one_number, [TWO[:1], torch.tensor([3]), drawn(5, 1, 16)], "abcA", "abcA"),
        (before_one_number, [TWO, torch.tensor([3, 3]), drawn(5, 2, 16)], "abcA defD", "abcA defD"),
        (classified, [drawn(2, 2, 3, 16)], "abc xyz", "⟨before 1⟩abc ⟨before 1⟩xyz"),
        (lambda own, places, ids: own.attend(own.words(places) + own.words(ids)), [TWO[:1], TWO], "abc xyz", "abc xyz"),
        (joined_and_turned, [TWO[:1], TWO[1:]], "abc xyz", "abc xyz abc xyz"),
        (by_space_and_time, [drawn(2, 2, 3, 2, 12)], "abcdef uvwxyz", f"{FRAMES} {TIMES}"),
        (beside_learned, [drawn(2, 2, 1, 2, 16)], "Cab Cxy", "Cab Cxy"),
        (lambda own, series: own.attend(own.embed(series.unsqueeze(-1))), [drawn(3, 1, 5)], "abcde", "abcde"),
        (by_columns, [drawn(3, 1, 5)], "abcde", "abcde"),
        (by_stretches, [drawn(3, 1, 1, 10)], "abcde", "abcde"),
        (by_variables, [drawn(3, 1, 7, 5)], "abcde", "abcde"),
        (behind_learned, [drawn(3, 1, 7, 3)], "abcde", "abcde"),
        # what only puts axes in another order does not say which of them are features
        (lambda own, image: own.attend(own.turn(image.flatten(2))), [IMAGES], "abcdef uvwxyz", "abcdef uvwxyz"),
        (lambda own, image: own.attend(own.norm(image).flatten(2).mT), [IMAGES], "abcdef uvwxyz", "abcdef uvwxyz"),
        (cut, [drawn(4, 3, 4, 6)], "abcdef", "abcdef"),
        (by_where, [STATES, torch.tensor([5])], "abcde", "abcde"),
        (lambda own, sound: own.attend(CONV(sound[:, None]).mT), [drawn(2, 2, 40)], "", "01234 01234"),
        (lambda _, states: by_softmax(*[states[[0, 0, 1]]] * 3), [drawn(2, 2, 3, 16)], "abc xyz", "abc abc xyz"),
        (lambda _, states: SDPA(states, states, states.roll(1, 1)), [STATES], "abcde", "abcde"),
        (lambda own: own.attend(own.words(torch.tensor([[2, 3, 4]]))), [], "abc", "abc"),  # which it reads in a string
        (from_nothing, [STATES], "abcde", "⟨query 0⟩⟨query 1⟩/abcde"),
        (from_a_table, [STATES], "abcde", "⟨query 0⟩⟨query 1⟩/abcde"),
        # the nearest vectors of a code book in the place of states (van den Oord et al. 2017)
        (lambda own, x: own.attend(own.learned[(x @ own.learned.mT).argmax(-1)]), [STATES], "abcde", "abcde"),
    ],
)
def test_what_a_model_is_given_keeps_its_names(forward: Any, given: list[Tensor], names: str, expected: str) -> None:
    parts: dict[str, Any] = {"embed": nn.Linear(1, 16), "of_two": nn.Linear(2, 16), "of_patch": nn.Linear(12, 16)}
    parts |= {"of_time": nn.Linear(7, 16), "over": nn.Linear(5, 3), "part": nn.Linear(8, 8)}
    parts |= {"words": nn.Embedding(9, 16), "read": nn.GRU(16, 16, batch_first=True), "norm": nn.LayerNorm([16, 2, 3])}
    parts |= {"turn": Module(lambda _, states: states.mT), "stack": Stack([Attention(), Attention()])}
    parts |= {"attend": Attention(), "by_softmax": Attention(mix=by_softmax), "learned": nn.Parameter(drawn(4, 2, 16))}
    module = Module(forward, **parts, **linears(score=1, query=16))
    maps = recorded(lambda: module(*given), tokens=[*map(list, names.split())] or None)
    assert called(maps) == expected
    is_mixing = forward in (by_few_keys, before_one_number, by_variables, behind_learned)  # tokens, by a map or a loop
    assert (maps.not_seen != "") == is_mixing
    assert maps[0].provenance.facts.guess == maps.not_seen


def test_keys_that_every_query_forbids_itself_are_forbidden() -> None:
    """Look at the best of all keys so far but the last, which the last query may look at, and does not."""

    def by_the_best(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        weights = (query @ key.mT).masked_fill(torch.ones(5, 5).triu(1) > 0, -torch.inf).softmax(-1)
        best = weights * (weights == weights[..., :-1].amax(-1, keepdim=True))
        return best / best.sum(-1, keepdim=True) @ value

    maps = recorded(lambda: Attention(1, by_the_best)(STATES), tokens=list("abcde"))
    assert called(maps) == "abcde"
    assert maps[0].attendable[0, 0].sum() == 1


def test_the_outermost_module_reads_tokens_also_if_nothing_in_it_is_learned() -> None:
    attend = Module(lambda _, states: by_softmax(*[states[:, [4, 2, 0, 1, 3]]] * 3))
    assert called(recorded(lambda: attend(STATES), tokens=list("abcde"))) == "ecabd"


def test_names_that_go_by_how_many_tokens_there_are_are_a_guess() -> None:
    lost = Module(lambda _, states: by_softmax(*[torch.from_numpy(states.numpy())] * 3))
    assert "which tokens they are of is not known" in recorded(lambda: lost(STATES))[0].provenance.facts.guess
    asking = Module(lambda _, states: by_softmax(states, *[torch.from_numpy(states.numpy())] * 2))
    assert "which tokens they are of is not known" in recorded(lambda: asking(STATES))[0].provenance.facts.guess


def test_queries_and_keys_that_a_text_has_none_of_are_left_out() -> None:
    """As where a model packs several images into one text and asks once for each, and where a memory is still empty."""
    asked = torch.ones(2, 2, 5, dtype=torch.bool)
    asked[0, 1] = False

    def forward(own: Any, states: Tensor) -> Tensor:
        states = own.attend(states) + by_softmax(states, states[:, :0], states[:, :0])
        return SDPA(own.learned.expand(2, -1, -1), states, states, attn_mask=asked)

    model = Module(forward, attend=Attention(), learned=nn.Parameter(drawn(1, 2, 16)))
    maps = recorded(lambda: model(drawn(2, 2, 5, 16)))
    assert [one.queries.pieces for one in maps[2:]] == [("⟨query⟩",), ("⟨query 0⟩", "⟨query 1⟩")]
    assert maps.not_seen == ""


def each_other(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    scores = one @ other.mT
    return scores.softmax(-1) @ other, scores.mT.softmax(-1) @ one


def itself_too(one: Tensor, other: Tensor) -> Tensor:
    return by_softmax(one, both := torch.cat([one, other], dim=1), both)


@pytest.mark.parametrize(
    ("read", "names", "expected"),
    [
        (each_other, {}, "012/01234 01234/012"),
        (each_other, {"tokens": list("xyz"), "keys": list("abcde")}, "xyz/abcde abcde/xyz"),
        (itself_too, {"keys": list("abc")}, "012/012abc"),
        (itself_too, {"tokens": list("xyz"), "keys": list("abc")}, "xyz/xyzabc"),
    ],
)
def test_two_texts_have_their_own_names(read: Callable[..., Any], names: dict[str, Any], expected: str) -> None:
    both = Module(lambda _, one, other: read(one, other))
    other = STATES[:, : len(names.get("keys", "abcde"))].clone()
    assert called(recorded(lambda: both(STATES[:, :3], other), **names)) == expected


def test_a_text_with_an_image_in_it_grows() -> None:
    """Patches that attended to one another before are tokens of the text, too."""

    def forward(own: Any, ids: Tensor, *patches: Tensor) -> Tensor:
        states = own.words(ids)
        states = torch.cat([states[:, :1], *map(own.image, patches), states[:, 1:]], dim=1)
        own.read = torch.cat([own.read, states], dim=1)
        allowed = torch.ones(states.shape[1], own.read.shape[1], dtype=torch.bool)
        keys = own.read[:, None]
        return SDPA(states[:, None], keys, keys, attn_mask=allowed.tril(keys.shape[2] - states.shape[1]))

    model = Module(forward, words=nn.Embedding(9, 16), image=Attention(), read=torch.zeros(1, 0, 16))
    with torch.no_grad(), attnviz.record() as maps:
        model(torch.tensor([[1, 2]]), STATES[:, :3])
        for word in (3, 4):
            model(torch.tensor([[word]]))
    (text,) = maps.only("")
    assert text.queries.pieces == text.keys.pieces == tuple("0123456")
    np.testing.assert_array_equal(text.attendable[0], np.tri(7, dtype=bool))
