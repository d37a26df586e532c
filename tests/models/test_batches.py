"""Texts as numbers: what is cut, what is padded, and that batches hold each text once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.models.encoder import PAD_ID
from attnviz.models.predicting import BUCKET, batch_by_length, crop, cut_text, pad, shuffle_batches
from attnviz.models.sizes import count_kept
from attnviz.specs import KeepKind

lengths = st.lists(st.integers(1, 30), min_size=1, max_size=200)
batch_sizes = st.integers(1, 9)
seeds = st.integers(0, 2**16)
keeps: st.SearchStrategy[KeepKind] = st.sampled_from(["head", "head-tail"])


def text(n_tokens: int) -> np.ndarray:
    """Each token is its place, from 1."""
    return np.arange(1, n_tokens + 1, dtype=np.int32)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any))
def test_padded_texts_are_the_texts_and_then_padding(n_tokens: list[int]) -> None:
    ids, real = pad([text(n) for n in n_tokens])
    assert ids.shape == real.shape == (len(n_tokens), max(n_tokens))
    for row, n in enumerate(n_tokens):
        assert ids[row].tolist() == [*range(1, n + 1)] + [PAD_ID] * (max(n_tokens) - n)
        assert real[row].tolist() == [True] * n + [False] * (max(n_tokens) - n)


@given(st.integers(0, 99), st.integers(1, 99), keeps)
def test_head_and_tail_are_as_many_as_asked(n_tokens: int, max_tokens: int, keep: KeepKind) -> None:
    head, tail = count_kept(n_tokens, max_tokens, keep)
    assert head + tail == min(n_tokens, max_tokens)
    assert count_kept(n_tokens, None, keep) == (n_tokens, 0)
    if keep == "head" or n_tokens <= max_tokens:
        assert tail == 0
    else:
        assert head - tail in {0, 1}  # the odd one belongs to the head


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2), seeds)
def test_a_crop_is_head_and_tail_or_one_stretch(n_tokens: int, most: int, n_markers: int, seed: int) -> None:
    n_markers = min(n_markers, most - 1, n_tokens - 1)
    found = crop(text(n_tokens), most, np.random.default_rng(seed), n_markers)
    assert len(found) == min(n_tokens, most)
    if found.tolist() == cut_text(text(n_tokens), most, "head-tail", n_markers).tolist():
        return
    assert found[:n_markers].tolist() == text(n_tokens)[:n_markers].tolist()
    stretch = found[n_markers:]
    assert (np.diff(stretch) == 1).all()
    assert all(n_markers < token <= n_tokens for token in stretch)


def test_crops_are_as_often_head_and_tail_as_a_stretch_from_anywhere() -> None:
    generator = np.random.default_rng(0)
    crops = [tuple(crop(text(7), 4, generator, n_markers=1).tolist()) for _ in range(2000)]
    share = {found: crops.count(found) / len(crops) for found in sorted(set(crops))}
    assert list(share) == [(1, 2, 3, 4), (1, 2, 3, 7), (1, 3, 4, 5), (1, 4, 5, 6), (1, 5, 6, 7)]
    assert share.pop((1, 2, 3, 7)) == pytest.approx(1 / 2, abs=0.05)
    assert list(share.values()) == pytest.approx([1 / 8] * 4, abs=0.03)


@given(lengths, batch_sizes, seeds)
def test_shuffled_batches_hold_each_text_once(n_tokens: list[int], batch_size: int, seed: int) -> None:
    batches = shuffle_batches(n_tokens, batch_size, np.random.default_rng(seed))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(n_tokens)))
    assert len(batches) == -(-len(n_tokens) // batch_size)
    assert sorted(map(len, batches))[1:] == [batch_size] * (len(batches) - 1)  # one may be smaller
    again = shuffle_batches(n_tokens, batch_size, np.random.default_rng(seed))
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in batches]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=2 * BUCKET), st.integers(2, 9), seeds)
def test_a_batch_holds_texts_of_like_lengths(n_tokens: list[int], batch_size: int, seed: int) -> None:
    """Within a bucket the lengths of two batches do not overlap, so sorted they are the lengths sorted."""
    batches = shuffle_batches(n_tokens, batch_size, np.random.default_rng(seed))
    in_order = sorted(sorted(n_tokens[i] for i in batch) for batch in batches)
    assert sorted(n_tokens) == [n for batch in sorted(in_order, key=lambda b: (b[0], b[-1])) for n in batch]


@given(lengths, batch_sizes)
def test_batches_by_length_hold_each_text_once_the_shortest_first(n_tokens: list[int], batch_size: int) -> None:
    batches = [batch.tolist() for batch in batch_by_length(n_tokens, batch_size)]
    order = [i for batch in batches for i in batch]
    assert order == sorted(range(len(n_tokens)), key=lambda i: (n_tokens[i], i))
    assert [len(batch) for batch in batches[:-1]] == [batch_size] * (len(batches) - 1)
    assert 1 <= len(batches[-1]) <= batch_size
    few = [batch.tolist() for batch in batch_by_length([3, 9, 1, 4, 4, 30, 2], 3, 12)]  # 12 tokens in a batch at most
    assert few == [[2, 6, 0], [3, 4], [1], [5]]  # the last is longer than a batch, and alone
