"""Third-party models recorded by their factors: every number is that of the record with weights."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import attnviz
from attnviz.errors import InvalidOption, InvalidRecord, InvalidSelection
from attnviz.models.capture import factored
from attnviz.models.recording.record import Recording, record
from attnviz.records import AttentionMaps
from attnviz.records.factored import FactoredMaps
from tests import pretrained
from tests.models.captures import SDPA, drawn, recorded

pytestmark = pytest.mark.filterwarnings("ignore")  # the library warns of its own future

TEXT = "the cat sat on the mat and it was good but the film was not"


def same(found: AttentionMaps, dense: AttentionMaps, atol: float = 5e-6) -> FactoredMaps:
    """Asserts that one is the other; a factored record."""
    assert isinstance(found, FactoredMaps)
    assert not isinstance(dense, FactoredMaps)
    np.testing.assert_allclose(found.weights, dense.weights, atol=atol)
    assert np.array_equal(found.attendable, dense.attendable)
    assert np.array_equal(found.real_queries, dense.real_queries)
    assert found.layer_numbers == dense.layer_numbers
    assert (found.queries, found.keys) == (dense.queries, dense.keys)
    assert found.provenance.facts == dense.provenance.facts
    return found


def both(model: Any, inputs: dict[str, Tensor], **asked: Any) -> tuple[Recording, Recording]:
    with torch.inference_mode():
        plain = model(**inputs)[0]
        with record(factored=True, **asked) as found:
            output = model(**inputs)[0]
        dense = recorded(lambda: model(**inputs), **asked)
    assert torch.equal(plain, output)  # to the bit: the kernel ran in the place of the function
    return found, dense


def padded(side: str) -> tuple[Tensor, Tensor]:
    """Ids of two texts, of which the second has seven tokens, and which are real."""
    ids = torch.randint(4, 32, (2, 12), generator=torch.Generator().manual_seed(0))
    real = torch.ones_like(ids)
    real[1, slice(0, 5) if side == "left" else slice(7, 12)] = 0
    return ids * real, real


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("kind", ["bert", "gpt2", "mistral", "modernbert"])
def test_every_family_under_a_fused_kernel(kind: str, side: str) -> None:
    model = pretrained.built(kind, "sdpa")
    ids, real = padded(side)
    for given in (real, None):
        found, dense = both(model, {"input_ids": ids, "attention_mask": real}, attention_mask=given)
        assert len(found) == len(dense) == len(ids)
        for one, other in zip(found, dense, strict=True):
            same(one, other)
    windows = {of.window for of in found[0].factors}  # type: ignore[attr-defined]
    known = {"mistral": {(3, 0)}, "modernbert": {(2, 2), (None, None)}, "gpt2": {(None, 0)}}
    assert windows == known.get(kind, windows)


@pytest.mark.parametrize("n_heads", [2, 4])
def test_keys_that_heads_share_are_kept_once(n_heads: int) -> None:
    """Also where the library repeats them before the kernel, as it does where there is a mask."""
    model = pretrained.built("mistral", "sdpa", num_key_value_heads=n_heads, sliding_window=None)
    ids = torch.arange(4, 16)[None]
    for mask in (None, torch.tensor([[0, *[1] * 11]])):
        inputs = {"input_ids": ids} if mask is None else {"input_ids": ids, "attention_mask": mask}
        found, dense = both(model, inputs, attention_mask=mask)
        assert same(found[0], dense[0]).factors[0].key.shape[0] == n_heads


def test_layers_that_are_one_operator_have_factors() -> None:
    texts = drawn(1, 2, 6, 8)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    with torch.no_grad(), record(factored=True) as found:
        model(texts)
    same(found[0], recorded(lambda: model(texts))[0])


@pytest.mark.parametrize("kind", ["gemma2", "gpt_oss", "deberta-v2"])
def test_a_folder_that_writes_its_attention_out_is_refused(kind: str, tmp_path: Path) -> None:
    folder = pretrained.saved(tmp_path / kind, kind)
    with pytest.raises(InvalidOption, match="writes its attention out"):
        attnviz.attention(TEXT, model=str(folder), factored=True)


STATES = drawn(0, 1, 2, 6, 4)
attend = partial(SDPA, STATES, STATES, STATES)
TRIANGLE = torch.ones(6, 6).tril()
BAND = TRIANGLE.triu(-2)
PREFIX = torch.maximum(TRIANGLE, torch.tensor([1.0, 1, 1, 0, 0, 0]))
HOLE = TRIANGLE.clone()
HOLE[4, 2] = 0


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (partial(attend, attn_mask=PREFIX.bool()), "a mask that is not a window: query 1"),
        (partial(attend, attn_mask=HOLE.bool()), "a mask that is not a window: query 4"),
        (partial(attend, attn_mask=torch.stack([TRIANGLE, torch.ones(6, 6)])[None].bool()), "masks heads differently"),
        (partial(attend, attn_mask=torch.linspace(0, 1, 36).view(6, 6) ** 2), "a bias to its scores that is none"),
        (partial(attend, attn_mask=torch.zeros(6, 6).bool()), "nobody attend"),
        (partial(attend, dropout_p=0.1), "in training mode"),
        (lambda: (STATES @ STATES.mT).softmax(dim=-1) @ STATES, "written out"),
    ],
)
def test_what_is_not_made_of_factors_is_refused(run: Callable[[], Any], said: str) -> None:
    with pytest.raises(InvalidRecord, match=said):
        recorded(run, factored=True)


@pytest.mark.parametrize(
    ("mask", "window"),
    [
        (TRIANGLE.bool(), (None, 0)),
        (TRIANGLE.log().clamp(min=torch.finfo(torch.float32).min), (None, 0)),
        (BAND.bool(), (2, 0)),
        (torch.maximum(BAND, BAND.T).log(), (2, 2)),
        (BAND.T.bool(), (0, 2)),
        (torch.ones(1, 6).bool(), (None, None)),
        (torch.zeros(6, 6), (None, None)),
        (TRIANGLE.T.bool(), (0, None)),
    ],
)
def test_masks_are_known_by_their_cells(mask: Tensor, window: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factored, "CELLS_AT_ONCE", 12)
    found, dense = (recorded(partial(attend, attn_mask=mask), factored=each) for each in (True, False))
    assert same(found[0], dense[0]).factors[0].window == window


FALLING = torch.stack([head * (torch.arange(6) - torch.arange(6)[:, None]).clamp(-2, 3) / 5 for head in (1, -2)])
LOW = torch.finfo(torch.float32).min


@pytest.mark.parametrize("keys", [[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
@pytest.mark.parametrize(("window", "farthest"), [((None, None), 3), ((None, 0), 2), ((2, 2), 2)])
def test_a_bias_is_known_by_its_cells(keys: list[int], window: tuple[int | None, int | None], farthest: int) -> None:
    """As T5 adds one to its masks, each head another."""
    within = torch.ones(6, 6).tril(6 if window[1] is None else window[1]).triu(-6 if window[0] is None else -window[0])
    given = FALLING + LOW * (1 - within) + LOW * (1 - torch.tensor(keys))
    run = partial(attend, attn_mask=given.clamp(min=LOW)[None])
    found, dense = (recorded(run, factored=each, attention_mask=[keys]) for each in (True, False))
    (factors,) = same(found[0], dense[0]).factors
    assert factors.window == window
    assert factors.bias is not None
    assert factors.bias.shape == (2, 2 * farthest + 1)


@pytest.mark.parametrize("side", ["right", "left"])
def test_t5_by_its_factors(side: str) -> None:
    """Distances of its encoder, and of its decoder; across, where it adds nothing, padding lies anywhere."""
    model = pretrained.built("t5", "sdpa")
    ids, real = padded(side)
    inputs = {"input_ids": ids, "attention_mask": real, "decoder_input_ids": ids[:, :6]}
    found, dense = both(model, inputs, attention_mask=real)
    assert len(found) == len(dense) == 3 * len(ids)
    for one, other in zip(found, dense, strict=True):
        (biases,) = {of.bias is None for of in same(one, other).factors}
        assert biases == ("cross" in one.provenance.facts.group or "EncDec" in one.provenance.facts.group)


@pytest.mark.parametrize("factored", [False, True])
def test_layers_and_heads_are_chosen_before_anything_is_kept(factored: bool) -> None:
    model = pretrained.built("mistral", "sdpa", num_hidden_layers=4)
    inputs = {"input_ids": torch.arange(4, 16)[None]}
    with torch.no_grad():
        every = recorded(lambda: model(**inputs))
        for heads in ([3], [1, 2], [0, 1], [3, 0]):
            found = recorded(lambda: model(**inputs), factored=factored, layers=[1, 3], heads=heads)
            (maps,) = found
            assert maps.layer_numbers == (1, 3)
            assert maps.head_numbers == tuple(sorted(heads))
            assert maps.provenance.facts == replace(every[0].provenance.facts, n_heads_in_model=4)
            np.testing.assert_allclose(maps.weights, every[0].weights[[1, 3]][:, sorted(heads)], atol=5e-6)


@pytest.mark.parametrize(
    ("asked", "said"),
    [({"layers": [1, 7]}, "layer 7"), ({"heads": [4]}, "no head 4"), ({"layers": [-1]}, "chooses none")],
)
def test_layers_and_heads_that_there_are_not(asked: dict[str, Any], said: str) -> None:
    model = pretrained.built("gpt2", "sdpa")
    with pytest.raises(InvalidSelection, match=said), torch.no_grad(), record(factored=True, **asked):
        model(input_ids=torch.arange(4, 16)[None])


def test_the_steps_of_a_generation_are_refused() -> None:
    model = pretrained.built("gpt2", "sdpa", auto="AutoModelForCausalLM")
    with pytest.raises(InvalidRecord, match="steps of a text"), record(factored=True):
        model.generate(torch.tensor([[5, 6, 7]]), max_new_tokens=3, do_sample=False, pad_token_id=0)
