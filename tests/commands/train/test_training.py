"""Training: it learns what can be learned, is the same each time, and goes on where it stopped."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from attnviz.commands.train.optimizer import compute_rate
from attnviz.commands.train.pretraining import Windows
from attnviz.commands.train.recipe import begin, choose_held_out
from attnviz.commands.train.run import describe_heads
from attnviz.commands.train.spec import TrainSpec
from attnviz.commands.train.training import Training
from attnviz.models.checkpoint import fit_temperature, load_checkpoint
from attnviz.models.classifier_model import checkpoint_model
from attnviz.models.encoder_model import EncoderModel
from attnviz.models.predicting import logits
from attnviz.options import build
from attnviz.specs import ModelOptions, PoolKind
from tests.made import known, save_classifier

pytestmark = pytest.mark.usefixtures("few_probes")
GOOD, BAD = ("a good film", "good acting , good plot", "so good"), ("a bad film", "bad acting , bad plot", "so bad")
TEXTS = [f"{text} number {n}" for text in (*BAD, *GOOD) for n in range(8)]
LABELS = [0] * 24 + [1] * 24
SPEC = build(
    TrainSpec,
    epochs=4,
    batch_size=8,
    d_model=16,
    heads=4,
    dropout=0.1,
    word_dropout=0.1,
    learning_rate=0.02,
    size=99,
    pretrain=0,
    max_distance=0,
)


PRETRAINED = replace(SPEC, pretrain=3, max_distance=4)


def run(spec: TrainSpec = SPEC) -> Training:
    return begin(TEXTS, LABELS, spec).training


def bytes_of(state: Mapping[str, torch.Tensor]) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in state.items()}


def weights(training: Training) -> dict[str, bytes]:
    return bytes_of(training.classifier.state_dict())


@pytest.mark.parametrize("pool", ["mean", "cls"])
def test_it_learns(pool: PoolKind) -> None:
    *_, last = run(replace(SPEC, pool=pool)).steps()
    held_out = known(last.held_out)
    assert held_out.accuracy == 1.0
    assert held_out.loss < 0.3 < np.log(2)


def test_epochs_are_measured_and_calibrated_on_texts_held_out() -> None:
    training = run(replace(SPEC, epochs=1))
    *_, last = training.steps()
    found, labels = logits(training.copy_best(), training.held_out.texts), torch.from_numpy(training.held_out.labels)
    assert known(last.held_out).loss == functional.cross_entropy(found, labels).item()
    assert training.copy_best().temperature.item() == np.float32(fit_temperature(found, labels))


def test_a_label_that_nothing_tells_is_not_learned() -> None:
    """Held-out accuracy is of texts that training has not seen: with labels by chance it stays near chance."""
    generator = np.random.default_rng(0)
    texts = [" ".join(map(str, generator.integers(0, 50, 10))) for _ in range(200)]
    training = begin(texts, [i % 2 for i in range(200)], replace(SPEC, validation=0.3)).training
    *_, last = training.steps()
    assert known(last.held_out).accuracy < 0.75


def test_another_seed_gives_other_weights() -> None:
    """That the same seed gives the same is tested of whole runs, byte by byte."""
    one, other = run(), run(replace(SPEC, seed=1))
    for training in (one, other):
        for _ in training.steps():
            pass
    assert weights(one) != weights(other)


def test_pretraining_finds_masked_and_replaced_words_by_their_neighbours() -> None:
    """Of two words in turn, the neighbours tell the hidden one; heads with a position bias find them."""
    texts = ["tick tock " * 200] * 4
    training = begin(texts, [0, 0, 1, 1], replace(PRETRAINED, d_model=32, pretrain=80, epochs=1)).training
    steps = [step for step in training.steps() if step.pretraining]
    assert len(steps) == training.n_all - 1 == 80
    assert steps[0].loss > np.log(2) > 0.3 > steps[-1].loss
    assert steps[-1].accuracy > 0.9
    windows, generator = Windows([training.examples.texts[0]]), np.random.default_rng(0)
    given = windows.corrupt(windows.shuffle(generator), generator)
    _, replaced, _ = training.pretraining.objectives.compute_losses(training.classifier.encoder, given)
    assert replaced < 0.2 < 0.41, "an answer by how many are replaced has the second"
    (bias,) = (each for name, each in training.classifier.named_parameters() if name.endswith("position.bias"))
    assert bias.abs().max() > 0.3  # it learned, and stays now
    assert not bias.requires_grad
    assert known(training.history.masked_word_loss) < 0.3, "of texts held out, too"


def test_the_loss_of_a_step_is_that_of_its_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is learned of masked words meanwhile: beside what texts held out lose it would be another number."""
    losses = []
    for weight in (0.2, 1000.0):
        monkeypatch.setattr("attnviz.commands.train.training.WORD_WEIGHT", weight)
        step = next(step for step in run(replace(PRETRAINED, word_dropout=0.5)).steps() if not step.pretraining)
        losses.append(step.loss)
    assert losses[0] == losses[1] < 2 * np.log(2)


def test_what_is_told_and_kept_step_by_step() -> None:
    """Of 24 steps: what each says, the curve's points, the best epoch, and the mean of the last eight that is kept."""
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    training, losses, weight, best = run(), [], [], {}
    for number, step in enumerate(training.steps(), 1):
        losses.append(step.loss)
        assert step.ends_epoch == (step.held_out is not None) == (number in (6, 12, 18, 24))
        if number > 0.7 * 24:
            weight.append(training.classifier.output.weight.detach().clone())
        if number == 12:  # before, it is that of the step
            torch.testing.assert_close(
                training.copy_best().output.weight.detach(), training.best_weights["output.weight"]
            )
            assert not training.average
        if step.improved:
            best = bytes_of(training.best_weights)
    assert torch.rand(1) == expected  # the caller's own
    assert len(losses) == training.n_done == training.n_all == 24
    assert bytes_of(training.copy_best().state_dict()) == best
    assert len(weight) == 8
    torch.testing.assert_close(training.average["output.weight"], torch.stack(weight).mean(dim=0))
    epochs = [point.epoch for point in training.history.points]
    assert {1.0, 2.0, 3.0, 4.0} <= set(epochs)
    assert epochs == sorted(epochs)
    assert [point.loss for point in training.history.points] == pytest.approx(losses)  # each step is a point


def test_three_labels_and_norms_behind() -> None:
    training = begin(TEXTS, [i % 3 for i in range(48)], replace(SPEC, norm="post", epochs=1)).training
    assert training.classifier.config.labels == ("0", "1", "2")
    assert sum(step.n_texts for step in training.steps()) == 48 - len(training.held_out) == 42


def test_the_rate_rises_then_falls() -> None:
    rates = [compute_rate(step, 1000) for step in range(1000)]
    assert rates[0] == pytest.approx(1 / 60)
    assert max(rates) == pytest.approx(0.944)
    assert rates.index(max(rates)) in range(50, 65)
    assert rates[-1] == pytest.approx(0.001)


def test_held_out_texts_are_the_last_of_each_label() -> None:
    assert choose_held_out(np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 1]), 0.25).tolist() == [3, 8, 9]
    assert choose_held_out(np.array([0, 1, 0, 1]), 0.01).tolist() == [2, 3]  # never none, and never all


# --- What heads look at over several texts, by hand: of "a ( b ) . a" and its seven words ---


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
