"""What heads look at over several texts, by hand: of "a ( b ) . a" and its seven words."""

from pathlib import Path

import numpy as np
import pytest
import torch

from attnviz.commands.train.head_scores import describe_heads
from attnviz.models.checkpoint import load_checkpoint
from attnviz.models.classifier_model import checkpoint_model
from attnviz.models.encoder_model import EncoderModel
from attnviz.specs import ModelOptions
from tests.made import known, save_classifier

pytestmark = pytest.mark.usefixtures("few_probes")
TEXT = "a ( b ) . a"
NAMES = {"itself", "previous token", "next token", "2 before", "2 after", "same word", "own bracket", "punctuation"}


@pytest.fixture
def model(tmp_path: Path) -> EncoderModel:
    """Of two heads with position biases."""
    folder = save_classifier(tmp_path / "model", TEXT, n_heads=2, n_layers=1, max_distance=2)
    return checkpoint_model(load_checkpoint(folder), folder, "model", ModelOptions(), torch.device("cpu"))


def parameter(model: EncoderModel, name: str) -> torch.nn.Parameter:
    return known(model.encoder).get_parameter(f"blocks.0.attention.{name}")


@torch.no_grad()
def test_heads_that_favour_nothing_give_an_equal_share(model: EncoderModel) -> None:
    for name in ("query.weight", "query.bias", "position.bias"):
        parameter(model, name).zero_()
    found = known(describe_heads(model, [TEXT]))
    assert {score.name for score in found.scores} >= NAMES
    for score in found.scores:
        assert np.array(score.shares) == pytest.approx(np.full((1, 2), score.equal), abs=1e-6)


@torch.no_grad()
def test_a_head_whose_bias_favours_the_key_before_is_found_and_texts_count_alike(model: EncoderModel) -> None:
    """The first token of a text has no key before it, and shares are of the queries that have one."""
    parameter(model, "position.bias")[1, 1] = 50.0
    found = known(describe_heads(model, [TEXT, "a b"]))
    assert (found.n_texts, found.n_random) == (2, 2)
    (score,) = (score for score in found.scores if score.name == "previous token")
    assert score.shares[0][1] == pytest.approx(1.0)
    assert score.equal == pytest.approx((1 / 6 + 1 / 2) / 2)
    assert score.equal < found.chance["previous token"] < 0.7


def test_what_no_text_has_is_left_out(model: EncoderModel) -> None:
    found = known(describe_heads(model, ["a b"]))
    assert {score.name for score in found.scores} == {"itself", "previous token", "next token", "first token"}
    assert describe_heads(model, ["a"]) is None
