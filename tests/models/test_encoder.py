"""The core and the encoder against torch's own, with the same weights in both, and against laws by hand."""

import math
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from attnviz.errors import InvalidOption
from attnviz.models.attention import MultiHeadAttention, attend_fused, attention_weights, causal
from attnviz.models.encoder import PAD_ID, SCALE, Encoder, EncoderConfig, TextEmbedding, positions
from attnviz.specs import NormKind
from tests.models.captures import drawn

N_WORDS = 10


def torchs_layer(ours: Any, pre: bool) -> nn.TransformerEncoderLayer:
    """torch's layer with the weights of our block in it."""
    own = ours.attention
    attention = nn.MultiheadAttention(own.query.in_features, own.n_heads, batch_first=True)
    with torch.no_grad():
        attention.in_proj_weight.copy_(torch.cat([own.query.weight, own.key.weight, own.value.weight]))
        attention.in_proj_bias.copy_(torch.cat([own.query.bias, own.key.bias, own.value.bias]))
    attention.out_proj.load_state_dict(own.output.state_dict())
    sizes = (attention.embed_dim, attention.num_heads, ours.feed_forward[0].out_features)
    theirs = nn.TransformerEncoderLayer(*sizes, dropout=0.0, activation="gelu", batch_first=True, norm_first=pre)
    theirs.self_attn = attention
    for mine, other in (
        (ours.attention_residual.norm, theirs.norm1),
        (ours.feed_forward[0], theirs.linear1),
        (ours.feed_forward[2], theirs.linear2),
        (ours.feed_forward_residual.norm, theirs.norm2),
    ):
        other.load_state_dict(mine.state_dict())
    return theirs


def position_mask(block: Any, n_heads: int, attendable: Tensor | None) -> Tensor:
    """What torch adds to the scores of three texts of seven tokens: a number by distance, the same beyond 2."""
    mask = torch.full((n_heads, 7, 7), -torch.inf)
    for head, query, key in product(range(n_heads), range(7), range(7)):
        if attendable is None or attendable[query, key]:
            mask[head, query, key] = block.attention.position.bias[head, min(max(key - query, -2), 2) + 2]
    return mask.repeat(3, 1, 1)


@pytest.mark.parametrize("n_heads", [1, 4])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("attendable", [None, causal(7)])
@pytest.mark.parametrize("max_distance", [0, 2])
def test_encoder_is_torchs_encoder(n_heads: int, norm: NormKind, attendable: Tensor | None, max_distance: int) -> None:
    torch.manual_seed(n_heads)
    sizes = EncoderConfig(20, 16, n_heads, n_layers=2, d_feed_forward=24, norm=norm, max_distance=max_distance)
    encoder = Encoder(sizes).eval()
    ids = torch.randint(20, (3, 7))
    with torch.no_grad():
        for parameter in encoder.parameters():  # norms begin as the identity and biases as zero: nothing would show
            parameter.add_(0.1 * torch.randn_like(parameter))
        expected = encoder.embedding(ids)
        for block in encoder.blocks:
            mask = None if attendable is None else ~attendable
            if max_distance:
                mask = position_mask(block, n_heads, attendable)
            expected = torchs_layer(block, norm == "pre")(expected, src_mask=mask)
        torch.testing.assert_close(encoder(ids, attendable), encoder.norm(expected), atol=1e-5, rtol=1e-5)


def embedding(d_model: int = 6) -> TextEmbedding:
    """Not in training."""
    torch.manual_seed(0)
    return TextEmbedding(N_WORDS, d_model).eval()


def embedded(of: TextEmbedding, *ids: int) -> Tensor:
    with torch.no_grad():
        return torch.as_tensor(of(torch.tensor(ids)))


def test_padding_is_nothing() -> None:
    fresh = embedding()
    assert not fresh.words.weight[PAD_ID].any()
    assert embedded(fresh, PAD_ID, PAD_ID).equal(SCALE * positions(2, 6))
    torch.testing.assert_close(embedded(fresh, 4, 4), fresh.words.weight.detach()[4] + SCALE * positions(2, 6))


def test_training_changes_only_the_words_that_it_read_and_never_padding() -> None:
    made = embedding()
    made(torch.tensor([[3, 5, PAD_ID], [PAD_ID, PAD_ID, 1]])).square().sum().backward()
    assert made.words.weight.grad is not None
    assert made.words.weight.grad.any(dim=-1).nonzero().flatten().tolist() == [1, 3, 5]


@pytest.mark.parametrize("d_model", [1, 6, 7])
def test_positions_are_those_of_the_paper(d_model: int) -> None:
    expected = [
        [(math.cos if i % 2 else math.sin)(token / 10_000 ** ((i - i % 2) / d_model)) for i in range(d_model)]
        for token in range(50)
    ]
    np.testing.assert_allclose(positions(50, d_model).numpy(), np.array(expected), atol=1e-5)


@given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from([1, 6, 7, 32]))
def test_positions_from_anywhere_on_are_a_piece_of_the_long_table(start: int, n_tokens: int, d_model: int) -> None:
    """Bit for bit, and made without what is before them."""
    assert positions(n_tokens, d_model, start).equal(positions(start + n_tokens, d_model)[start:])
    made = TextEmbedding(N_WORDS, d_model, reach=start + n_tokens).train()
    with mock.patch("torch.randint", return_value=torch.tensor(start)):
        assert embedded(made, *[PAD_ID] * n_tokens).equal(SCALE * positions(start + n_tokens, d_model)[start:])


def test_dropout_of_the_embedding_zeroes_its_share_and_makes_up_for_it() -> None:
    """An encoder without blocks gives its embedding."""
    torch.manual_seed(2)
    encoder = Encoder(EncoderConfig(N_WORDS, d_model=64, n_layers=0, norm="post"))
    ids = torch.randint(1, N_WORDS, (100,))
    with torch.no_grad():
        dropped, whole = encoder(ids), encoder.eval()(ids)
        assert whole.equal(encoder.embedding(ids))
    torch.testing.assert_close(dropped, torch.where(dropped == 0, 0, whole / 0.9))
    assert (dropped == 0).float().mean().item() == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize(
    ("n_tokens", "reach", "training", "expected"),
    [(4, 7, True, {0, 1, 2, 3}), (1, 2, True, {0, 1}), (4, 0, True, {0}), (4, 4, True, {0}), (4, 7, False, {0})],
)
def test_texts_begin_anywhere_in_training(n_tokens: int, reach: int, training: bool, expected: set[int]) -> None:
    """Texts of padding, whose beginning is read from the positions that are all there is to them."""
    torch.manual_seed(3)
    made = TextEmbedding(N_WORDS, 6, reach=reach).train(training)
    first, found = SCALE * positions(20, 6), set()
    for _ in range(40):
        read = embedded(made, *[PAD_ID] * n_tokens)
        start = int((first - read[0]).abs().sum(dim=-1).argmin())
        torch.testing.assert_close(read, first[start : start + n_tokens])
        found.add(start)
    assert found == expected


# --- The core against torch's own, against the formula, and against laws that can be checked by hand ---


sizes = st.integers(1, 9)
seeds = st.integers(0, 2**16)


def test_what_is_given_stays_as_it_is_and_gets_gradients() -> None:
    """Scores are worked on in place: neither queries and keys nor what may be attended to are."""
    query, key, attendable = drawn(0, 4, 3).requires_grad_(), drawn(1, 5, 3).requires_grad_(), drawn(2, 4, 5) > -1
    attendable[:, 0] = True
    before = [each.clone() for each in (query, key, attendable)]
    weights = attention_weights(query, key, attendable)
    assert all(torch.equal(one, other) for one, other in zip(before, (query, key, attendable), strict=True))
    plain = (query @ key.T / math.sqrt(3)).masked_fill(~attendable, -torch.inf).softmax(dim=-1)
    gradients = (torch.autograd.grad((each**2).sum(), (query, key)) for each in (weights, plain))
    for ours, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, expected)


def test_a_query_that_may_attend_to_nothing_is_refused() -> None:
    attendable = causal(3)
    attendable[2] = False
    with pytest.raises(InvalidOption, match="query 2 may attend to no key"):
        attention_weights(drawn(1, 3, 4), drawn(2, 3, 4), attendable)
    with pytest.raises(InvalidOption, match="query 2 may attend to no key"):
        attend_fused(drawn(1, 3, 4), drawn(2, 3, 4), drawn(3, 3, 4), attendable)


@pytest.mark.parametrize("n_heads", [0, -1, 7, 10**9])
def test_heads_that_do_not_divide_the_width_are_refused(n_heads: int) -> None:
    with pytest.raises(InvalidOption, match=rf"64 is not divisible by {n_heads} \(try 1, 2, 4, 8 …\)"):
        MultiHeadAttention(64, n_heads)


@pytest.mark.parametrize("rows", ["none", "one for all queries", "one per query", "one per head"])
@given(biased=st.booleans(), seed=seeds, n_queries=sizes, n_keys=sizes)
def test_fused_is_attend_of_attention_weights(rows: str, biased: bool, seed: int, n_queries: int, n_keys: int) -> None:
    """And both are the softmax of the scores with the bias of every pair, looked up by its distance."""
    query, key, value = (drawn(seed + i, 2, 3, n, 4) for i, n in enumerate((n_queries, n_keys, n_keys)))
    shapes = {"one for all queries": (2, 1, 1, n_keys), "one per query": (n_queries, n_keys)}
    attendable = None
    if rows != "none":
        attendable = drawn(seed + 3, *shapes.get(rows, (2, 3, n_queries, n_keys))) > 0
        attendable[..., seed % n_keys] = True
    by_distance = drawn(seed + 4, 3, n_queries + n_keys - 1) if biased else None
    scores = query @ key.transpose(-2, -1) / 2
    if by_distance is not None:
        scores += by_distance[:, torch.arange(n_keys) - torch.arange(n_queries)[:, None] + n_queries - 1]
    if attendable is not None:
        scores = scores.masked_fill(~attendable, -torch.inf)
    with torch.no_grad():
        weights = attention_weights(query, key, attendable, by_distance)
        torch.testing.assert_close(weights, scores.softmax(dim=-1), atol=1e-6, rtol=1e-5)
        output = attend_fused(query, key, value, attendable, by_distance)
    torch.testing.assert_close(output, weights @ value, atol=1e-6, rtol=1e-5)
