"""The encoder against torch's own, with the same weights in both."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnviz.models.attention import causal
from attnviz.models.encoder import Encoder, EncoderConfig
from attnviz.specs import NormKind


def torchs_own(ours: Any, n_heads: int, pre: bool) -> nn.TransformerEncoderLayer:
    """torch's layer with the weights of our block in it."""
    d_model = ours.attention.query.in_features
    d_feed_forward = ours.feed_forward[0].out_features
    theirs = nn.TransformerEncoderLayer(
        d_model, n_heads, d_feed_forward, dropout=0.0, activation="gelu", batch_first=True, norm_first=pre
    )
    projections = (ours.attention.query, ours.attention.key, ours.attention.value)
    with torch.no_grad():
        theirs.self_attn.in_proj_weight.copy_(torch.cat([each.weight for each in projections]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([each.bias for each in projections]))
        for mine, other in (
            (ours.attention.output, theirs.self_attn.out_proj),
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
            expected = torchs_own(block, n_heads, norm == "pre")(expected, src_mask=mask)
        torch.testing.assert_close(encoder(ids, attendable), encoder.norm(expected), atol=1e-5, rtol=1e-5)


def test_recording_reads_the_weights_of_the_same_forward_pass() -> None:
    """Layer by layer, each map is that of the block on what the block before it gave."""
    torch.manual_seed(0)
    encoder = Encoder(EncoderConfig(n_words=20, d_model=16, n_heads=4, n_layers=3, d_feed_forward=24)).eval()
    ids = torch.randint(20, (5,))
    with torch.no_grad():
        states = encoder.embedding(ids)
        for block, recorded in zip(encoder.blocks, encoder.attention(ids), strict=True):
            states, weights = block(states)
            torch.testing.assert_close(recorded, weights)
        torch.testing.assert_close(encoder.norm(states), encoder(ids))


def test_recording_leaves_out_what_comes_after_the_last_weights() -> None:
    encoder = Encoder(EncoderConfig(n_words=20, d_model=16, n_heads=4, n_layers=2, d_feed_forward=24)).eval()
    thought: list[nn.Module] = []
    for block in encoder.blocks:
        block.get_submodule("feed_forward").register_forward_hook(lambda module, *_: thought.append(module))
    ids = torch.randint(20, (5,))
    with torch.no_grad():
        assert len(list(encoder.attention(ids))) == 2
        first, last = (block.get_submodule("feed_forward") for block in encoder.blocks)
        assert thought == [first]
        encoder(ids)
    assert thought == [first, first, last]
