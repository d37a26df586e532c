"""Words and pairs beside the encoder, by hand: of ten words, the pair of word 3 and then word 5 has the key 35."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attnviz.commands.train.examples import Examples, find_informative_bigrams, fit_ngrams
from attnviz.models.batches import pad
from attnviz.models.classifier import NgramClassifier
from attnviz.models.encoder import pair_keys

N_WORDS = 10
texts = st.lists(st.lists(st.integers(1, N_WORDS - 1), min_size=1, max_size=9), min_size=1, max_size=4)


def counting(*pairs: int) -> NgramClassifier:
    """Whose weights are 1, 2, 3 … in the order of words and pairs, for one label; negative for the other."""
    made = NgramClassifier(N_WORDS, len(pairs), 2)
    made.pairs.copy_(torch.tensor(pairs))
    numbers = torch.arange(N_WORDS + len(pairs), dtype=torch.float32)
    made.weights.weight.copy_(torch.stack([-numbers, numbers], dim=1))
    return made


def read(by: NgramClassifier, *ids: list[int]) -> Tensor:
    return torch.as_tensor(by(*pad([np.array(text) for text in ids])))


def test_a_pair_is_first_times_words_plus_second() -> None:
    assert pair_keys(torch.tensor([3, 5, 0, 9]), N_WORDS).tolist() == [35, 50, 9]
    assert pair_keys(torch.tensor([50_000 - 1] * 2), 50_000).tolist() == [50_000**2 - 1]  # more than four bytes


def test_each_word_and_listed_pair_counts_once_and_special_tokens_never() -> None:
    """3 5 3 5 1: words 3 and 5, pairs 35 (number 10) and 53 (number 11); 51 is not listed, 1 and 2 are special."""
    given = pad([np.array([3, 5, 3, 5, 1]), np.array([2])])
    found, counted = counting(35, 53).distinct(*given)
    assert found[0][counted[0]].tolist() == [3, 5, 10, 11]
    assert not counted[1].any()


def test_the_logit_is_the_sum_over_the_root_of_their_number() -> None:
    assert read(counting(35, 53), [3, 5, 3, 5, 1])[0].tolist() == pytest.approx([-29 / 2, 29 / 2])
    assert read(counting(35), [1, 2]).tolist() == [[0, 0]]


@settings(max_examples=25)
@given(texts)
def test_a_text_beside_others_is_weighed_as_it_is_alone(ids: list[list[int]]) -> None:
    alone = torch.cat([read(counting(35, 47), text) for text in ids])
    torch.testing.assert_close(read(counting(35, 47), *ids), alone)


def examples() -> Examples:
    """7 8 tells label 1 and 8 7 label 0: words alone tell nothing."""
    return Examples([np.array([8, 7, 5])] * 9 + [np.array([7, 8, 5])] * 9, np.array([0] * 9 + [1] * 9))


def test_fitted_weights_tell_what_the_pairs_tell() -> None:
    found = fit_ngrams(examples(), N_WORDS, 99)
    assert found is not None
    assert found.pairs.tolist() == [75, 78, 85, 87]
    assert read(found, [7, 8]).argmax().item() == 1
    assert read(found, [8, 7]).argmax().item() == 0
    torch.testing.assert_close(read(found, [7]), found.bias.unsqueeze(0), atol=1e-4, rtol=0)
    assert not found.weights.weight[:3].any()
    again = fit_ngrams(examples(), N_WORDS, 99)
    assert again is not None
    assert again.weights.weight.equal(found.weights.weight)
    assert fit_ngrams(Examples([np.array([3])] * 9, np.array([0] * 4 + [1] * 5)), N_WORDS, 99) is None  # no pairs


def test_telling_pairs_tell() -> None:
    """2 3 stands in each text of label 0, 4 5 in most of label 1, 6 6 in every second one of both, 8 9 in one."""
    both = [[], [6, 6], [6, 6], []]
    texts = (
        [np.array([2, 3, *more]) for more in both] + [np.array([4, 5, *more]) for more in both[:3]] + [np.array([8, 9])]
    )
    examples = Examples(texts, np.array([0] * 4 + [1] * 4))
    assert find_informative_bigrams(examples, 10, 2, 2).tolist() == [23, 45]
    assert find_informative_bigrams(examples, 10, 99, 2).tolist() == [23, 36, 45, 56, 66]
    assert find_informative_bigrams(examples, 10, 99, 1).tolist() == [23, 36, 45, 56, 66, 89]
    assert find_informative_bigrams(examples, 10, 0, 1).tolist() == []
