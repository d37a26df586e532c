"""Training, one step after the other. Yields what happened and never prints; knows no texts and no files.

Whatever a step draws at random follows from the seed and the step's number alone. So a run that was stopped and taken
up again from its `state` at the end of an epoch ends with the weights of a run that never stopped.

The state is a file of tensors and JSON that `--resume` goes on from.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from safetensors.torch import load, save
from torch import Tensor
from torch.nn import functional

from attnviz.bounded import decode_json, read_bytes
from attnviz.commands.train.optimizer import Optimizer
from attnviz.commands.train.pretraining import Pretraining, Windows
from attnviz.commands.train.spec import TrainSpec
from attnviz.display import shorten_name
from attnviz.errors import MALFORMED, ExecutionError, InvalidModel, raising, summarize
from attnviz.models.checkpoint import Classifier, fit_temperature
from attnviz.models.device import seeded
from attnviz.models.encoder import PAD_ID
from attnviz.models.predicting import Ids, cut_text, logits, pad, shuffle_batches, stretch
from attnviz.records.answers import Epoch, History, Point
from attnviz.store.tensors import read_header

WORD_WEIGHT = 0.2  # of the masked-word loss beside that of the label, after pretraining
MAX_HIDDEN = 300  # words to be found in a step: the logits of more would take half of its time
AVERAGED_SHARE = 0.3  # of the steps, the last ones: weights are averaged (Izmailov et al. 2018, arXiv:1803.05407)
WIDTH_MULTIPLE = 32  # tokens that widths of batches are multiples of, so that memory that was freed fits again
POINTS_PER_EPOCH = 20  # of the learning curve
DIVERGED = "A smaller --learning-rate may help."


@dataclass(frozen=True, eq=False)
class Examples:
    """Whole texts as ids, and the label of each."""

    texts: Sequence[Ids]
    labels: Int[np.ndarray, " text"]

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, chosen: Int[np.ndarray, " chosen"]) -> "Examples":
        """Return some of the examples, by their numbers."""
        return Examples([self.texts[text] for text in chosen], self.labels[chosen])


@dataclass(frozen=True)
class TrainingStep:
    """One step: means over its batch, and at the end of an epoch how the model does on the texts held out.

    The loss is that of labels, whatever else is learned beside them; in pretraining it is that of masked words, and the
    accuracy is the share of them that is found.
    """

    n_texts: int  # in this batch
    loss: float
    accuracy: float
    epoch: int  # from 1
    ends_epoch: bool = False
    held_out: Epoch | None = None  # at the end of an epoch
    improved: bool = False  # the best so far: worth keeping
    pretraining: bool = False


class Training:
    """A classifier, its examples and its optimizers. `steps` trains; `state` and `restore` stop and take up again."""

    def __init__(self, classifier: Classifier, examples: Examples, held_out: Examples, spec: TrainSpec) -> None:
        self.classifier = classifier
        windows = Windows(examples.texts)
        self.pretraining = Pretraining(classifier.encoder, windows, spec.pretrain, spec.seed, spec.pretrain_rate)
        self.examples = examples
        self.n_markers = int(spec.pool == "cls")
        cut = [cut_text(text, spec.max_tokens, spec.keep, self.n_markers) for text in held_out.texts]
        self.held_out = Examples(cut, held_out.labels)  # as the model will read them
        self.spec = spec
        self.device = next(classifier.parameters()).device
        self.steps_per_epoch = -(-len(examples) // spec.batch_size)
        self.n_steps = self.steps_per_epoch * spec.epochs
        self.done = 0  # steps, those of pretraining left out
        self.history = History()
        self.best_weights: dict[str, Tensor] = {}  # of the best epoch
        self._since_point: list[tuple[float, float]] = []  # loss and accuracy of each step since the last point
        self.average: dict[str, Tensor] = {}  # of the weights of the last steps
        self.optimizer = Optimizer((classifier,), spec.learning_rate, self.n_steps)
        self._optimizers = self.optimizer.adamw, self.pretraining.optimizer.adamw
        self._held_windows = Windows(held_out.texts)

    def steps(self) -> Iterator[TrainingStep]:
        """Train to the last epoch, or until `patience` epochs brought nothing better; pretraining comes first.

        Begins after the last whole epoch that is done.
        """
        for loss, found in self.pretraining.steps():
            if self.pretraining.done == self.pretraining.n_steps:
                held = self.pretraining.measure_held_out_loss(self._held_windows)
                self.history = replace(self.history, masked_word_loss=held)
            epoch, into_epoch = divmod(self.pretraining.done, self.pretraining.steps_per_epoch)
            number = epoch + bool(into_epoch)
            yield TrainingStep(0, loss, found, number, ends_epoch=not into_epoch, pretraining=True)
        lengths = [min(len(text), self.spec.crop) for text in self.examples.texts]
        while self.done < self.n_steps:
            best = self.history.best
            if best is not None and len(self.history.epochs) - best.number >= self.spec.patience:
                return
            epoch = self.done // self.steps_per_epoch
            generator = np.random.default_rng((self.spec.seed, epoch, self.n_steps))
            for batch in shuffle_batches(lengths, self.spec.batch_size, generator):
                yield self._step(batch, epoch)

    @property
    def n_done(self) -> int:
        """Count the steps of both stages that are done."""
        return self.done + self.pretraining.done

    @property
    def n_all(self) -> int:
        """Count the steps of both stages."""
        return self.n_steps + self.pretraining.n_steps

    def _step(self, batch: Int[np.ndarray, " text"], epoch: int) -> TrainingStep:
        loss, accuracy = self._learn(batch)
        self.done += 1
        self._average()
        self._note(loss, accuracy)
        step = TrainingStep(len(batch), loss, accuracy, epoch + 1)
        if self.done % self.steps_per_epoch:
            return step
        candidate = self._copy_with({**self.classifier.state_dict(), **self.average})
        # Texts held out say how good it is, and set its temperature.
        found, labels = logits(candidate, self.held_out.texts), torch.from_numpy(self.held_out.labels)
        candidate.temperature.fill_(fit_temperature(found, labels))
        right = (found.argmax(dim=-1) == labels).cpu().double().mean().item()
        measured = Epoch(epoch + 1, functional.cross_entropy(found, labels).item(), right)
        self.history = replace(self.history, epochs=(*self.history.epochs, measured))
        improved = self.history.best is measured
        if improved:
            self.best_weights = {name: tensor.clone() for name, tensor in candidate.state_dict().items()}
        return replace(step, ends_epoch=True, held_out=measured, improved=improved)

    def _learn(self, batch: Int[np.ndarray, " text"]) -> tuple[float, float]:
        spec = self.spec
        generator = np.random.default_rng((spec.seed, self.done))
        texts = self.examples.texts
        ids, real = pad([stretch(texts[i], spec.crop, generator, self.n_markers) for i in batch], WIDTH_MULTIPLE)
        ids, real = ids.to(self.device), real.to(self.device)
        labels = torch.from_numpy(self.examples.labels[batch]).to(self.device)
        hidden = torch.from_numpy(generator.random(tuple(real.shape)) < spec.word_dropout).to(self.device) & real
        self.classifier.train()
        with seeded(int(generator.integers(2**63)), self.device):  # dropout draws from the one generator of the device
            states = self.classifier.states(ids.masked_fill(hidden, PAD_ID), real)
            answers = self.classifier.classify(states, real)
        loss = of_labels = functional.cross_entropy(answers, labels, label_smoothing=spec.label_smoothing)
        if self.pretraining.n_steps and hidden.any():  # else heads forget what they looked for
            places = hidden.nonzero().cpu().numpy()
            text, token = generator.permutation(places)[:MAX_HIDDEN].T
            encoder, objectives = self.classifier.encoder, self.pretraining.objectives
            found = objectives.compute_word_logits(encoder, states[text, token])
            loss = loss + WORD_WEIGHT * functional.cross_entropy(found, ids[text, token])
        if not loss.isfinite():
            raise ExecutionError(f"training diverged: the loss of step {self.done + 1} is {loss.item()}", hint=DIVERGED)
        self.optimizer.step(loss, self.done)
        return of_labels.item(), (answers.argmax(dim=-1) == labels).float().mean().item()

    def _average(self) -> None:
        """Update the mean of all weights that learn over the last steps of the run: it does better than the last."""
        n_averaged = self.done - math.floor((1 - AVERAGED_SHARE) * self.n_steps)
        if n_averaged <= 0:
            return
        with torch.no_grad():
            for name, weight in self.classifier.named_parameters():
                if name in self.average:
                    self.average[name].lerp_(weight, 1 / n_averaged)
                elif weight.requires_grad:
                    self.average[name] = weight.detach().clone()

    def _note(self, loss: float, accuracy: float) -> None:
        """Add a point to the learning curve every so often, and at the end of each epoch."""
        self._since_point.append((loss, accuracy))
        before, now = ((self.done - n) % self.steps_per_epoch * POINTS_PER_EPOCH for n in (1, 0))
        if not now or now // self.steps_per_epoch != before // self.steps_per_epoch:
            point = Point(self.done / self.steps_per_epoch, *np.mean(self._since_point, axis=0).tolist())
            self.history = replace(self.history, points=(*self.history.points, point))
            self._since_point = []

    def copy_best(self) -> Classifier:
        """Return the classifier as it was at the end of its best epoch, or as it is now where none has ended."""
        return self._copy_with(self.best_weights or self.classifier.state_dict())

    def _copy_with(self, weights: Mapping[str, Tensor]) -> Classifier:
        """Return a classifier of the same shape with other weights."""
        with torch.device("meta"):  # no first weights, which would be drawn from the caller's random numbers
            classifier = Classifier(self.classifier.config)
        classifier.load_state_dict({name: tensor.detach().clone() for name, tensor in weights.items()}, assign=True)
        return classifier.eval()

    def capture_state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return where the run stands at the end of an epoch: all that another process goes on from, beside the
        settings and the texts. In words, how far it is; as tensors, weights and what the optimizers remember.
        """
        parts = {"model": self.classifier.state_dict(), "best": self.best_weights, "average": self.average}
        parts["objectives"] = self.pretraining.objectives.state_dict()
        for place, optimizer in enumerate(self._optimizers):
            for parameter, values in optimizer.state_dict()["state"].items():
                parts[f"optimizer.{place}.{parameter}"] = values
        tensors = {f"{part}.{name}": value.detach().cpu() for part, of in parts.items() for name, value in of.items()}
        return {"done": self.done, "pretrained": self.pretraining.done, "history": asdict(self.history)}, tensors

    def restore(self, about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Go on from what `capture_state` gave. Raises KeyError, RuntimeError or ValueError for another run's."""

        def select(part: str) -> dict[str, Tensor]:
            found = {name: tensor for name, tensor in tensors.items() if name.startswith(f"{part}.")}
            return {name.removeprefix(f"{part}."): tensor.to(self.device) for name, tensor in found.items()}

        self.classifier.load_state_dict(select("model"))
        self.best_weights, self.average = select("best"), select("average")
        self.pretraining.objectives.load_state_dict(select("objectives"))
        for place, optimizer in enumerate(self._optimizers):
            found: dict[int, dict[str, Tensor]] = {}
            for name, tensor in select(f"optimizer.{place}").items():
                parameter, _, value = name.partition(".")
                found.setdefault(int(parameter), {})[value] = tensor
            optimizer.load_state_dict({**optimizer.state_dict(), "state": found})
        self.done, self.pretraining.done = about["done"], about["pretrained"]
        self.history = decode_json(History, about["history"], "history")


MAX_BYTES = 2**34
MAX_REASON = 200  # characters: torch lists every tensor that does not fit, and the hint is to be seen
HINT = "Choose another --out to start from the beginning."


def state_bytes(about: Mapping[str, Any], tensors: dict[str, Tensor], run: Mapping[str, Any]) -> bytes:
    """Return a file of the state; `run` says of which run. Raises ExecutionError where a number is not finite."""
    what = f"after step {about['done'] + about['pretrained']:,} weights or losses are not finite"
    with raising(ExecutionError, f"training diverged: {what}", DIVERGED, (ValueError,)):
        if not all(tensor.isfinite().all() for tensor in tensors.values()):
            raise ValueError("weights are not finite")
        told = json.dumps({"run": dict(run), **about}, allow_nan=False)  # raises, as JSON has no NaN
    return save(tensors, {"state": told, "sha256": _sha256(tensors, told)})


def load_state(file: Path) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Any]]:
    """Read what `state_bytes` was given. Raises InvalidModel for anything else or a changed bit."""
    with name_file_in_errors(file):
        meta, tensors = read_header(file, InvalidModel, HINT).metadata, load(read_bytes(file, MAX_BYTES, InvalidModel))
        if meta["sha256"] != _sha256(tensors, meta["state"]):
            raise ValueError("its contents do not match its checksum")
        about = json.loads(meta["state"])
        run = about.pop("run")
        return about, tensors, run


def name_file_in_errors(file: Path) -> AbstractContextManager[None]:
    """Raise InvalidModel, which names the file, for whatever its contents bring about: it is of another model."""
    problem, told = f"{file} is not a state of this training run:", (*MALFORMED, RuntimeError)
    return raising(InvalidModel, problem, HINT, told, lambda error: shorten_name(summarize(error, None), MAX_REASON))


def _sha256(tensors: dict[str, Tensor], told: str) -> str:
    """Hash the file as it is without this hash: of one entry beside the tensors its bytes are always the same."""
    return hashlib.sha256(save(tensors, {"state": told})).hexdigest()
