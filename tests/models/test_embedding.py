"""What a transformer reads, by hand. There are ten words, so the pair of word 3 and then word 5 has the key 35."""

from __future__ import annotations

import math
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from attnviz.models.attention import causal
from attnviz.models.embedding import PAD_ID, SCALE, Bigrams, TextEmbedding, pair_keys, positions
from attnviz.models.encoder import Encoder, EncoderConfig

N_WORDS = 10
words = st.integers(0, N_WORDS - 1)
listed = st.sets(st.integers(0, N_WORDS**2 - 1), min_size=1, max_size=30).map(sorted)


def bigrams(*pairs: int) -> Bigrams:
    made = Bigrams(N_WORDS, len(pairs))
    made.pairs.copy_(torch.tensor(pairs))
    return made


def embedding(*pairs: int, d_model: int = 6, word_dropout: float = 0.0) -> TextEmbedding:
    """Not in training; a pair has a vector of its own, as after training."""
    torch.manual_seed(0)
    made = TextEmbedding(N_WORDS, d_model, len(pairs), word_dropout)
    if pairs:
        assert made.of_bigrams is not None
        made.bigrams = bigrams(*pairs)
        nn.init.normal_(made.of_bigrams.weight[1:])
    return made.eval()


def embedded(of: TextEmbedding, *ids: int) -> Tensor:
    with torch.no_grad():
        return torch.as_tensor(of(torch.tensor(ids)))


def test_a_pair_is_first_times_words_plus_second() -> None:
    assert pair_keys(torch.tensor([3, 5, 0, 9]), N_WORDS).tolist() == [35, 50, 9]
    assert pair_keys(torch.tensor([7]), N_WORDS).tolist() == []


def test_a_pair_is_counted_at_its_second_word() -> None:
    assert bigrams(35, 53, 99)(torch.tensor([3, 5, 3, 9, 9, 9, 5])).tolist() == [0, 1, 2, 0, 3, 3, 0]
    assert bigrams(35)(torch.tensor([5])).tolist() == [0]


def test_a_vocabulary_of_any_size_has_pairs() -> None:
    """In four bytes, the last pair of 50,000 words would be another."""
    made = Bigrams(50_000, 1)
    made.pairs.fill_(50_000**2 - 1)
    assert made(torch.tensor([49_999, 49_999, 49_998])).tolist() == [0, 1, 0]


@given(listed, st.lists(words, min_size=1, max_size=12))
def test_numbers_are_places_in_the_list(pairs: list[int], ids: list[int]) -> None:
    keys = [10 * first + second for first, second in pairwise(ids)]
    expected = [0] + [pairs.index(key) + 1 if key in pairs else 0 for key in keys]
    assert bigrams(*pairs)(torch.tensor([ids, ids])).tolist() == [expected, expected]


def test_a_listed_pair_adds_its_vector_to_its_second_word() -> None:
    with_pairs = embedding(35, 47)
    assert with_pairs.of_bigrams is not None
    added = embedded(with_pairs, 1, 3, 5, 2, 4, 7) - embedded(embedding(), 1, 3, 5, 2, 4, 7)
    torch.testing.assert_close(added[[2, 5]], with_pairs.of_bigrams.weight.detach()[1:])
    assert not added[[0, 1, 3, 4]].any()


def test_an_unlisted_pair_adds_nothing() -> None:
    assert embedded(embedding(35, 47), 5, 3, 7, 4).equal(embedded(embedding(), 5, 3, 7, 4))


def test_a_pair_adds_nothing_before_training() -> None:
    torch.manual_seed(0)
    fresh = TextEmbedding(N_WORDS, 6, n_bigrams=100).eval()  # each pair is listed
    assert embedded(fresh, 3, 5, 5).equal(embedded(embedding(), 3, 5, 5))


@settings(max_examples=40)
@given(listed, st.lists(words, min_size=1, max_size=10), st.data())
def test_a_word_changes_its_own_vector_and_the_next(pairs: list[int], ids: list[int], data: st.DataObject) -> None:
    made = embedding(*pairs)
    place = data.draw(st.integers(0, len(ids) - 1))
    other = [*ids[:place], data.draw(words), *ids[place + 1 :]]
    changed = (embedded(made, *ids) != embedded(made, *other)).any(dim=-1).nonzero().flatten().tolist()
    assert set(changed) <= {place, place + 1}


@pytest.mark.parametrize("place", range(6))
def test_no_state_of_a_causal_encoder_depends_on_a_later_word(place: int) -> None:
    torch.manual_seed(1)
    sizes = EncoderConfig(N_WORDS, d_model=8, n_heads=2, n_layers=2, d_feed_forward=16, n_bigrams=100)
    encoder = Encoder(sizes).eval()
    assert encoder.embedding.of_bigrams is not None
    nn.init.normal_(encoder.embedding.of_bigrams.weight)
    ids = torch.tensor([3, 5, 3, 9, 9, 5])
    other = ids.clone()
    other[place] = 1
    with torch.no_grad():
        states, other_states = encoder(ids, causal(6)), encoder(other, causal(6))
    torch.testing.assert_close(other_states[:place], states[:place])
    assert not torch.isclose(other_states[place:], states[place:]).all(dim=-1).any()


def test_padding_is_nothing() -> None:
    fresh = TextEmbedding(N_WORDS, 6, n_bigrams=3).eval()
    assert fresh.of_bigrams is not None
    assert not fresh.words.weight[PAD_ID].any()
    assert not fresh.of_bigrams.weight[PAD_ID].any()
    assert embedded(fresh, PAD_ID, PAD_ID).equal(SCALE * positions(2, 6))


def test_training_changes_only_the_words_and_pairs_that_it_read_and_never_padding() -> None:
    made = embedding(1, 35, 47)
    assert made.of_bigrams is not None
    made(torch.tensor([[3, 5, PAD_ID], [PAD_ID, PAD_ID, 1]])).square().sum().backward()
    for vectors, read in ((made.words, [1, 3, 5]), (made.of_bigrams, [1, 2])):
        assert vectors.weight.grad is not None
        assert vectors.weight.grad.is_sparse
        assert vectors.weight.grad.to_dense().any(dim=-1).nonzero().flatten().tolist() == read


def test_word_and_position_are_added() -> None:
    made = embedding(d_model=7)
    torch.testing.assert_close(embedded(made, 4, 4), made.words.weight.detach()[4] + SCALE * positions(2, 7))


@pytest.mark.parametrize("d_model", [1, 6, 7])
def test_positions_are_those_of_the_paper(d_model: int) -> None:
    expected = [
        [(math.cos if i % 2 else math.sin)(token / 10_000 ** ((i - i % 2) / d_model)) for i in range(d_model)]
        for token in range(50)
    ]
    np.testing.assert_allclose(positions(50, d_model).numpy(), np.array(expected), atol=1e-5)


@given(st.integers(1, 40), st.integers(0, 40))
def test_a_longer_text_begins_with_the_same_positions(n_tokens: int, n_more: int) -> None:
    assert positions(n_tokens + n_more, 6)[:n_tokens].equal(positions(n_tokens, 6))


@given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from([1, 6, 7, 32]))
def test_positions_from_anywhere_on_are_a_piece_of_the_long_table(start: int, n_tokens: int, d_model: int) -> None:
    """Bit for bit, and made without what is before them."""
    assert positions(n_tokens, d_model, start).equal(positions(start + n_tokens, d_model)[start:])
    made = TextEmbedding(N_WORDS, d_model, reach=start + n_tokens).train()
    with mock.patch.object(TextEmbedding, "_start", return_value=start):
        assert embedded(made, *[PAD_ID] * n_tokens).equal(SCALE * positions(start + n_tokens, d_model)[start:])


def test_a_far_place_takes_no_longer_than_a_near_one() -> None:
    """A table of all positions before it would not fit into any memory."""
    made = TextEmbedding(N_WORDS, 6, reach=10**15).train()
    assert embedded(made, PAD_ID).shape == (1, 6)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_training_leaves_out_the_asked_share_of_words_and_of_pairs_each_on_its_own(share: float) -> None:
    """A word is the vector (1, 0) here and a pair (0, 1), so a sum shows which of them was left out."""
    made = embedding(*range(11, 100), d_model=2, word_dropout=share).train()
    assert made.of_bigrams is not None
    with torch.no_grad():
        made.words.weight[1:] = torch.tensor([1.0, 0.0])
        made.of_bigrams.weight[1:] = torch.tensor([0.0, 1.0])
        n_tokens = 10_000
        read = (made(torch.randint(1, N_WORDS, (n_tokens,))) - SCALE * positions(n_tokens, 2))[1:].round(decimals=4)
    assert set(read.flatten().tolist()) == {0.0, 1.0}
    left_out = 1 - read
    torch.testing.assert_close(left_out.mean(dim=0), torch.tensor([share, share]), atol=0.02, rtol=0)
    assert left_out.prod(dim=-1).mean().item() == pytest.approx(share**2, abs=0.02)  # both: by chance only


def test_nothing_is_left_out_but_in_training() -> None:
    assert embedded(embedding(35, word_dropout=0.9), 3, 5, 3, 5).equal(embedded(embedding(35), 3, 5, 3, 5))
    assert embedded(embedding(35).train(), 3, 5, 3, 5).equal(embedded(embedding(35), 3, 5, 3, 5))


def test_dropout_of_the_embedding_zeroes_its_share_and_makes_up_for_it() -> None:
    """An encoder without blocks gives its embedding."""
    torch.manual_seed(2)
    encoder = Encoder(EncoderConfig(N_WORDS, d_model=64, n_layers=0, norm="post"), dropout=0.2)
    ids = torch.randint(1, N_WORDS, (100,))
    with torch.no_grad():
        dropped, whole = encoder(ids), encoder.eval()(ids)
        assert whole.equal(encoder.embedding(ids))
    torch.testing.assert_close(dropped, torch.where(dropped == 0, 0, whole / 0.8))
    assert (dropped == 0).float().mean().item() == pytest.approx(0.2, abs=0.02)


def starts(n_tokens: int, reach: int, *, training: bool = True) -> set[int]:
    """Where texts of padding begin, read from the positions that are all there is to them."""
    torch.manual_seed(3)
    made = TextEmbedding(N_WORDS, 6, reach=reach).train(training)
    first, found = SCALE * positions(20, 6), set()
    for _ in range(40):
        read = embedded(made, *[PAD_ID] * n_tokens)
        start = int((first - read[0]).abs().sum(dim=-1).argmin())
        torch.testing.assert_close(read, first[start : start + n_tokens])
        found.add(start)
    return found


def test_texts_begin_anywhere_within_reach_in_training() -> None:
    assert starts(4, reach=7) == {0, 1, 2, 3}
    assert starts(1, reach=2) == {0, 1}


@pytest.mark.parametrize(("reach", "training"), [(0, True), (3, True), (4, True), (7, False)])
def test_texts_begin_at_the_first_position_else(reach: int, training: bool) -> None:
    assert starts(4, reach, training=training) == {0}
