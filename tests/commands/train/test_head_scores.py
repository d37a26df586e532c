"""What heads look at, by hand: of "a ( b ) . a" and its seven words."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnviz.commands.train.examples import Examples
from attnviz.commands.train.head_scores import HeadTargets, choose_head_targets, score_heads, score_random_heads
from attnviz.models.encoder import Encoder, EncoderConfig
from attnviz.models.tokenizer import train
from attnviz.specs import VocabularyOptions

PIECES = ("[PAD]", "[UNK]", "[CLS]", "a", "(", "b", ")", ".")
TEXT = np.array([3, 4, 5, 6, 7, 3])
SIZES = EncoderConfig(len(PIECES), d_model=8, n_heads=2, d_feed_forward=8, max_distance=2)


def targets(*texts: np.ndarray, pieces: tuple[str, ...] = PIECES) -> HeadTargets:
    return HeadTargets(texts or (TEXT,), pieces, {"positive": np.array([5])})


@pytest.mark.parametrize("signs", ["().", "（）。", "【】！", "「」？"])
def test_which_keys_count_for_which_queries(signs: str) -> None:
    pieces = tuple(dict(zip("().", signs, strict=True)).get(piece, piece) for piece in PIECES)
    found = {
        name: (keys[queries].nonzero()[1].tolist(), queries.nonzero()[0].tolist())
        for name, (keys, queries) in targets(pieces=pieces).list_targets(TEXT)
    }
    assert found["previous token"] == ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5])
    assert found["next token"] == ([1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5])
    assert found["own bracket"] == ([1], [3])
    assert found["same word"] == ([5, 0], [0, 1, 2, 3, 4, 5])
    assert found["punctuation"][0] == [1, 3, 4] * 6
    assert found["sentence start"] == ([0, 0, 0, 0], [1, 2, 3, 4])
    assert found["words for positive"][0] == [2] * 6


def test_each_text_held_out_is_looked_at_once() -> None:
    """Of three texts no five are made: what heads look at would be said to be of more than there are."""
    vocabulary = train(["a b c"], VocabularyOptions(min_frequency=1))
    texts = [np.array([first, 4]) for first in range(3, 6)]
    held = Examples(texts, np.array([0, 0, 1]))
    for wanted, expected in ((2, [3, 5]), (3, [3, 4, 5]), (4, [3, 4, 5]), (200, [3, 4, 5])):
        found = choose_head_targets(held, held, ("negative", "positive"), vocabulary, wanted).texts
        assert [int(ids[0]) for ids in found] == expected


def test_heads_that_favour_nothing_give_an_equal_share() -> None:
    keys, queries = dict(targets().list_targets(np.array([4, 4, 6, 6, 6])))[
        "own bracket"
    ]  # nested ones have each their own
    assert [keys[query].nonzero()[0].tolist() for query in queries.nonzero()[0]] == [[1], [0]]
    encoder = Encoder(SIZES)
    torch.nn.init.zeros_(encoder.get_parameter("blocks.0.attention.query.weight"))
    for score in score_heads(encoder, targets()):
        assert np.array(score.shares) == pytest.approx(np.full((1, 2), score.equal), abs=1e-6)


def test_a_head_whose_bias_favours_the_key_before_is_found() -> None:
    encoder = Encoder(SIZES)
    with torch.no_grad():
        encoder.get_parameter("blocks.0.attention.position.bias")[1, 1] = 50.0
    (score,) = (score for score in score_heads(encoder, targets()) if score.name == "previous token")
    assert score.shares[0][1] == score.best > 0.83 > score.shares[0][0]
    assert score_random_heads(SIZES, targets())["previous token"] < 0.5


def test_what_no_text_has_is_left_out() -> None:
    names = {score.name for score in score_heads(Encoder(SIZES), targets(np.array([3, 5])))}
    assert names == {"previous token", "next token", "itself", "sentence start", "words for positive"}
