"""What is recorded of Hugging Face's models is what they say of themselves, whichever kernel they run with."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from attnviz.errors import InvalidRecord
from attnviz.models.attentions.attentions import from_attentions
from attnviz.models.recording.record import record
from tests.pretrained import NEEDS, built

pytestmark = pytest.mark.filterwarnings("ignore")  # the library warns of its own future

transformers = pytest.importorskip("transformers", reason=NEEDS)

TEXTS = ([5, 9, 7, 3, 8, 11, 4, 6, 12], [5, 10, 3, 6, 4])  # ids; the second is padded to the first
PADDING_ID = 0
BOTH = ("eager", "sdpa")
# By kind, the kernels that it runs with: sdpa has no soft-capping and no sinks, and DeBERTa's class refuses it.
ENCODERS = {"bert": BOTH, "modernbert": ("sdpa",), "deberta-v2": ("eager",)}
DECODERS = {"gpt2": BOTH, "mistral": ("sdpa",), "gemma2": ("eager",), "gpt_oss": ("eager",)}
TEXT_FAMILIES = [
    *((kind, kernel, "right") for kind, kernels in ENCODERS.items() for kernel in kernels),
    *((kind, kernel, "left") for kind, kernels in DECODERS.items() for kernel in kernels),
]


def batch(side: str, n_texts: int = 2) -> tuple[Tensor, Tensor, list[list[str]]]:
    """Ids padded on a side, which of them are real, and what the tokens of each text are called."""
    texts = TEXTS[:n_texts]
    ids = pad_sequence([*map(torch.tensor, texts)], batch_first=True, padding_value=PADDING_ID, padding_side=side)
    return ids, (ids != PADDING_ID).long(), [[f"w{token}" for token in text] for text in texts]


@pytest.mark.parametrize(("kind", "kernel", "side"), TEXT_FAMILIES)
def test_weights_are_the_models_own(kind: str, kernel: str, side: str) -> None:
    """With padding; without it, test_architectures has these and many more."""
    ids, real, tokens = batch(side)
    inputs = {"input_ids": ids, "attention_mask": real}
    with torch.no_grad():
        own = built(kind, "eager")(**inputs, output_attentions=True).attentions
        with record(tokens, attention_mask=real) as maps:
            built(kind, kernel)(**inputs)
    assert len(maps.groups) == 1
    for row, (of_row, expected) in enumerate(zip(maps, tokens, strict=True)):
        theirs = torch.stack(own)[:, row][:, :, real[row].bool()][..., real[row].bool()]
        np.testing.assert_allclose(of_row.weights, theirs, atol=1e-5)
        assert list(of_row.queries.pieces) == expected
        assert of_row.self_attention
    if maps[0].sink is None:
        for row, of_row in enumerate(maps):
            given = from_attentions(own, tokens, row=row, attention_mask=real)
            np.testing.assert_allclose(given.weights, of_row.weights, atol=1e-5)
            assert given.queries == of_row.queries
            assert given.provenance.facts.causal == (kind in DECODERS)


def generated(model: Any, **inputs: Any) -> Tensor:
    made = model.generate(**inputs, max_new_tokens=4, min_new_tokens=4, do_sample=False, pad_token_id=PADDING_ID)
    assert isinstance(made, Tensor)
    return made


@pytest.mark.parametrize(
    ("kind", "kernel", "n_texts"),
    [
        *[("gpt2", "eager", 1), ("gpt2", "sdpa", 2), ("mistral", "sdpa", 2), ("gpt_oss", "eager", 2)],
        *[("qwen3_next", "eager", 2), ("falcon_h1", "sdpa", 2), ("diffllama", "sdpa", 2)],
    ],
)
def test_the_steps_of_a_generation_are_one_record(kind: str, kernel: str, n_texts: int) -> None:
    """That of a pass over prompt and answer, but for the last token: it was chosen and never read.

    In a step of grouped-query attention, the library hands heads to sdpa as if they were queries. Windows forget what
    their layers cannot see.
    """
    model = built(kind, kernel, "AutoModelForCausalLM")
    ids, real, tokens = batch("left", n_texts)
    called = [list(of_row) for of_row in tokens]
    with torch.no_grad():
        with record(called, attention_mask=real) as maps:
            made = generated(model, input_ids=ids, attention_mask=real)
            called[0].append("what it chose")
        whole_mask = torch.cat([real, torch.ones(len(ids), 3, dtype=torch.long)], dim=1)
        positions = (whole_mask.cumsum(dim=1) - 1).clamp(min=0)
        with record(attention_mask=whole_mask) as whole:
            model(made[:, :-1], attention_mask=whole_mask, position_ids=positions, use_cache=False)
    assert len(maps) == len(whole) == len(ids)
    for one, one_pass, names_of_row in zip(maps, whole, tokens, strict=True):
        assert one.self_attention
        np.testing.assert_allclose(one.weights, one_pass.weights, atol=1e-5)
        np.testing.assert_array_equal(one.attendable, one_pass.attendable)
        assert one.keys.pieces[: len(names_of_row)] == tuple(names_of_row)
        assert dict(one.provenance.settings)["steps_joined"] == 4
    n_prompt = len(tokens[0])
    assert maps[0].keys.pieces[n_prompt:] == ("what it chose", f"⟨{n_prompt + 1}⟩", f"⟨{n_prompt + 2}⟩")


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize(("n_named", "use_cache"), [(None, True), (None, False), (-1, True), (4, True), (4, False)])
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_names_of_padded_texts_that_grow(kind: str, n_named: int | None, use_cache: bool, is_padded: bool) -> None:
    """Of the words, or of the padding, too; also with the word that was chosen last: as in one pass over all."""
    model = built(kind, "sdpa", "AutoModelForCausalLM")
    ids = torch.tensor([[5, 9, 7, 3], [PADDING_ID, 6, 4, 8]])
    made = generated(model, input_ids=ids, attention_mask=ids.ne(PADDING_ID).long())
    names = [[f"w{each}" if each else "[PAD]" for each in row] for row in made[:, :n_named].tolist()]
    given = names if is_padded else [[name for name in row if name != "[PAD]"] for row in names]
    real = made[:, :-1].ne(PADDING_ID).long()
    with torch.no_grad(), record(given) as maps:
        generated(model, input_ids=ids, attention_mask=real[:, :4], use_cache=use_cache)
    positions = (real.cumsum(dim=1) - 1).clamp(min=0)
    with torch.no_grad(), record(attention_mask=real) as whole:
        model(made[:, :-1], attention_mask=real, position_ids=positions, use_cache=False)
    for of_row, expected, called in zip(maps[-2:], whole, given if not is_padded else names, strict=True):
        np.testing.assert_allclose(of_row.weights, expected.weights, atol=1e-5)
        words = [name for name in called if name != "[PAD]"]
        words += [f"⟨{place}⟩" for place in range(len(words), len(of_row.keys))]
        assert list(of_row.queries.pieces) == list(of_row.keys.pieces) == words[: len(of_row.keys)]


@pytest.mark.parametrize("n_named", [4, 6])
def test_beams_that_read_their_texts_again_go_on_from_words_of_one_another(n_named: int) -> None:
    """Without a cache: who holds which of the words behind the prompt is not known, and no name is given to them."""
    model, ids = built("gpt2", "sdpa", "AutoModelForCausalLM"), torch.tensor([[5, 9, 7, 3]])
    made = generated(model, input_ids=ids, num_beams=3, num_return_sequences=3, use_cache=False)
    names = [[f"w{each}" for each in row] for row in made[:, :n_named].tolist()]
    with pytest.raises(InvalidRecord, match="6 names") if n_named > 4 else nullcontext(), record(names) as maps:
        generated(model, input_ids=ids, num_beams=3, use_cache=False)
    for one in maps:
        behind = tuple(f"⟨{place}⟩" for place in range(4, len(one.keys)))
        assert one.keys.pieces == ("w5", "w9", "w7", "w3", *behind)


def test_beams_that_change_places_are_not_joined() -> None:
    """A row of one step goes on from another row of the step before."""
    model = built("gpt2", "sdpa", "AutoModelForCausalLM")
    ids, _, _ = batch("left", 1)
    with torch.no_grad(), record() as maps:
        generated(model, input_ids=ids, num_beams=3)
    assert len(maps) == 3 * 4
    assert "tokens of other rows than its own" in repr(maps)
    assert "beam search" in str(dict(maps[-1].provenance.settings)["not_joined"])
    assert maps[-1].weights.shape[2:] == (1, 12)


def test_a_text_that_begins_with_padding_needs_no_names() -> None:
    """As `generate` finds it where the prompt holds the id of padding; also with words that it tried and took back."""
    model, ids = built("gpt2", "sdpa", "AutoModelForCausalLM"), torch.tensor([[0, 3, 4, 5, 3, 4, 5, 3]])
    with record() as maps:
        generated(model, input_ids=ids)
    with record() as tried:
        generated(model, input_ids=ids, prompt_lookup_num_tokens=3)
    assert maps[0].queries.pieces == tried[0].queries.pieces == tried[0].keys.pieces == tuple("0123456789")
    np.testing.assert_allclose(tried[0].weights, maps[0].weights, atol=1e-6)
