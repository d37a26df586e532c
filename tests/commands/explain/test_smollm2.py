"""What is known of a real decoder: its induction heads, and the heads that name the one who is given a drink.

All of it is held against SmolLM2-135M in four bits, which a package carries.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attnviz.commands.explain.answer.why import N_RANDOM, explain_answer, find_reason
from attnviz.models.decomposition import Decomposable
from attnviz.models.decomposition.stream import Stream
from attnviz.records.attribution import Question
from attnviz.records.explanation import HeadName, Writer
from tests.pretrained import decoder

WORDS = (
    "river lemon seven window honest paper drum cloud market silver yellow pencil garden winter bottle island mirror"
)
GIVEN = "When Mary and John went to the store, John gave a drink to"
INDUCTION = (HeadName(18, 6), HeadName(17, 3), HeadName(17, 4))
PREVIOUS_TOKEN = Writer("head", 16, 0)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def smollm2() -> Decomposable:
    model = decoder()
    assert isinstance(model, Decomposable)
    return model


@pytest.fixture(scope="module")
def repeated(smollm2: Decomposable) -> Stream:
    """Words that come twice."""
    return take_apart(smollm2, f" {WORDS} {WORDS}")


def take_apart(model: Decomposable, text: str, against: str | None = None) -> Stream:
    return model.take_apart(text, "text", Question(against=against))


@pytest.mark.parametrize("head", INDUCTION, ids=str)
def test_induction_heads_look_for_what_one_head_wrote(repeated: Stream, head: HeadName) -> None:
    """Where words come twice, they look behind the first time, because 16.0 wrote there what stood before."""
    n_words = len(WORDS.split())
    assert len(repeated.subject.ids) == 2 * n_words
    for query in range(n_words + 4, 2 * n_words - 1, 4):
        key = query - n_words + 1
        look = find_reason(repeated, head, query, key)
        assert look.weight > 0.5
        assert look.named is not None
        assert look.named.writer == PREVIOUS_TOKEN
        assert look.source == key - 1
        assert look.weight_without is not None
        assert look.weight_without <= 0.03
        assert len(look.random) >= N_RANDOM - 1
        assert min(look.random) > 0.6 * look.weight


def test_the_heads_that_name_who_is_given_a_drink(smollm2: Decomposable) -> None:
    found = explain_answer(take_apart(smollm2, GIVEN, against=" John"))
    assert (found.target.name, found.target.against) == (" Mary", " John")
    assert found.total == pytest.approx(found.logit, rel=1e-5)
    assert found.logit == pytest.approx(6.12, abs=0.01)
    heads = {str(each.head): each for each in found.contributions}
    read = {name: found.tokens.pieces[each.source].strip() for name, each in heads.items()}
    assert {name: read[name] for name in ("23.3", "24.4", "23.0")} == {"23.3": "John", "24.4": "Mary", "23.0": "Mary"}
    assert heads["23.3"].from_source == pytest.approx(2.87, abs=0.02)
    assert heads["24.4"].from_source == pytest.approx(-1.17, abs=0.02)
    assert heads["23.0"].written > 0.8
    assert abs(heads["23.0"].removal) < 0.1  # what it writes others make up for


def test_a_word_is_taken_with_its_space(smollm2: Decomposable) -> None:
    """Both are tokens; the one that the model is rather going to write is meant."""
    questions = [Question(target=f"{space}Mary", against=f"{space}John") for space in ("", " ")]
    plain, spaced = (smollm2.take_apart(GIVEN, "text", question) for question in questions)
    assert plain.subject.target == spaced.subject.target
    assert (plain.subject.answer, plain.subject.against) == (spaced.subject.answer, spaced.subject.against)


def test_every_row_of_weights_is_the_sum_of_who_wrote_the_keys(smollm2: Decomposable) -> None:
    stream, rng = take_apart(smollm2, GIVEN), np.random.default_rng(0)
    for layer in range(len(stream.blocks)):
        head, query = rng.integers(9), rng.integers(1, len(stream.subject.ids))
        stream.split_scores(HeadName(layer, int(head)), int(query))  # raises where it misses a weight by 5e-6
    for answer, against in rng.choice(len(stream.logits), (20, 2)):
        stream.split_logit(int(answer), int(against))  # or a logit by a share of 1e-5


# Who is given something, who gives it, where they go and what is given. Each sentence has 14 tokens.
GIFTS = (
    *(("Mary", "John", "store", "drink"), ("John", "Mary", "store", "drink"), ("Tom", "Mary", "park", "ball")),
    *(("Mary", "Tom", "school", "book"), ("John", "Paul", "office", "key"), ("Paul", "Anna", "garden", "cup")),
    *(("Mark", "Sarah", "station", "ticket"), ("Sarah", "Mark", "house", "drink")),
)


def test_contributions_by_head_and_sentence_go_with_the_cost_of_removal(smollm2: Decomposable) -> None:
    """What a head gives at the last token is replaced by its mean over the sentences.

    Nothing changes before the last token: the others are read once, and all heads of a layer are tried side by side.
    """
    written, ids, answers = [], [], []
    for number, (taker, giver, place, thing) in enumerate(GIFTS):
        first, second = (taker, giver) if number % 2 == 0 else (giver, taker)
        text = f"When {first} and {second} went to the {place}, {giver} gave a {thing} to"
        stream = smollm2.take_apart(text, "text", Question(f" {taker}", f" {giver}"))
        assert stream.subject.against is not None
        answers.append((stream.subject.answer, stream.subject.against))
        written.append(stream.split_logit(*answers[-1]).heads.sum(axis=2))
        ids.append(stream.subject.ids)
    contributions = np.stack(written)
    n_texts, n_layers, n_heads = contributions.shape
    model: Any = getattr(smollm2, "headed")  # noqa: B009
    read, asked = (torch.tensor(each).repeat(n_heads, 1) for each in (ids, answers))
    projections = [layer.self_attn.o_proj for layer in model.model.layers]
    with torch.inference_mode():
        before = model(input_ids=read[:, :-1], use_cache=True, logits_to_keep=1).past_key_values

    def answer_with(layer: int, change: Callable[[Tensor], Tensor]) -> np.ndarray:
        hook = projections[layer].register_forward_pre_hook(lambda _, given: (change(given[0].clone()),))
        with torch.inference_mode(), hook:
            logits = model(input_ids=read[:, -1:], past_key_values=deepcopy(before)).logits[:, -1]
        gained = (logits.gather(1, asked[:, :1]) - logits.gather(1, asked[:, 1:])).double()
        return np.asarray(gained.reshape(n_heads, n_texts).T)

    def average(given: Tensor) -> Tensor:
        """Of the n-th copy of the sentences, the n-th head."""
        copies = given.view(n_heads, n_texts, n_heads, -1)
        for head in range(n_heads):
            copies[head, :, head] = copies[head, :, head].mean(dim=0)
        return given

    whole = answer_with(0, lambda given: given)
    costs = np.stack([whole - answer_with(layer, average) for layer in range(n_layers)], axis=1)
    r = np.corrcoef(contributions.ravel(), costs.ravel())[0, 1]
    largest = [set(np.argsort(-np.abs(each), axis=None)[:10].tolist()) for each in (contributions, costs)]
    assert r == pytest.approx(0.82, abs=0.02)
    assert len(largest[0] & largest[1]) >= 8
