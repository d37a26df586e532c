"""Training, one step after the other. Yields what happened and never prints; knows no texts and no files.

Whatever a step draws at random follows from the seed and the step's number alone. So a run that was stopped after any
step and taken up again from its `state` ends with the weights of a run that never stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn
from torch.nn import functional

from attnviz.errors import ExecutionError
from attnviz.models.attention import PositionBias
from attnviz.models.batches import crop, cut, padded, shuffled
from attnviz.models.classifier import Classifier, fitted_temperature
from attnviz.models.embedding import PAD_ID
from attnviz.models.examples import Examples
from attnviz.models.predicting import logits
from attnviz.models.pretraining import Pretraining
from attnviz.specs.train import TrainSpec
from attnviz.training_metrics import Epoch, History, Point, WordPoint

WARM_UP = 0.1  # share of the steps in which the learning rate rises
FLOOR = 0.02  # share of the learning rate that is left at the end
WEIGHT_DECAY = 0.01
WORD_WEIGHT = 0.2  # of the masked-word loss beside that of the label, after pretraining
POINTS = 20  # of the learning curve per epoch
DIVERGED = "A smaller --learning-rate may help."


@dataclass(frozen=True)
class TrainingStep:
    """One step: means over its batch, and at the end of an epoch how the model does on the texts held out.

    In pretraining the loss is that of masked words, and the accuracy is the share of them that is found.
    """

    number: int  # from 1, pretraining counted in
    n_steps: int
    n_texts: int  # in this batch
    loss: float
    accuracy: float
    epoch: int  # from 1
    ends_epoch: bool = False
    held_out: Epoch | None = None  # at the end of an epoch, where texts are held out
    improved: bool = False  # the best so far: worth keeping
    pretraining: bool = False


class Training:
    """A classifier, its examples and its optimizers. `steps` trains; `state` and `restore` stop and take up again."""

    def __init__(
        self,
        classifier: Classifier,
        examples: Examples,
        held_out: Examples,
        spec: TrainSpec,
        pretraining: Pretraining | None = None,
    ) -> None:
        self.classifier = classifier
        self.pretraining = pretraining
        self.examples = examples
        self.n_markers = 1 if spec.pool == "cls" else 0
        cuts = [cut(text, spec.max_tokens, spec.keep, self.n_markers) for text in held_out.texts]
        self.held_out = Examples(cuts, held_out.labels)
        left_out = [len(whole) - len(kept) for whole, kept in zip(held_out.texts, self.held_out.texts, strict=True)]
        self.n_cut, self.n_left_out = sum(map(bool, left_out)), sum(left_out)  # texts held out, and their tokens
        self.spec = spec
        self.device = next(classifier.parameters()).device
        self.steps_per_epoch = -(-len(examples) // spec.batch_size)
        self.n_steps = self.steps_per_epoch * spec.epochs
        self.done = 0  # steps, those of pretraining left out
        self.history = History()
        self.best_weights: dict[str, Tensor] = {}  # of the best epoch
        self._since_point: list[
            tuple[float, ...]
        ] = []  # loss, accuracy (and the second loss of pretraining) of each step since the last point
        self._optimizers = _optimizers(classifier, pretraining, spec.learning_rate)

    def steps(self) -> Iterator[TrainingStep]:
        """Train to the last epoch, or until `patience` epochs brought nothing better; pretraining comes first."""
        if self.pretraining is not None:
            yield from self._pretrain(self.pretraining)
        while self.done < self.n_steps and not self._out_of_patience():
            epoch, first = divmod(self.done, self.steps_per_epoch)
            for batch in self._batches(epoch)[first:]:
                yield self._step(batch, epoch)

    @property
    def n_done(self) -> int:
        """Steps of both stages, as `TrainingStep.number` counts them."""
        return self.done + (0 if self.pretraining is None else self.pretraining.done)

    @property
    def n_all(self) -> int:
        """Steps of both stages."""
        return self.n_steps + (0 if self.pretraining is None else self.pretraining.n_steps)

    def _pretrain(self, pretraining: Pretraining) -> Iterator[TrainingStep]:
        for loss, replaced_loss, found in pretraining.steps():
            epoch, into_epoch = divmod(pretraining.done, pretraining.steps_per_epoch)
            self._since_point.append((loss, found, replaced_loss))
            if not into_epoch or into_epoch * POINTS // pretraining.steps_per_epoch != (
                (into_epoch - 1) * POINTS // pretraining.steps_per_epoch
            ):
                means = np.mean(self._since_point, axis=0)
                point = WordPoint(pretraining.done / pretraining.steps_per_epoch, float(means[0]), float(means[2]))
                self.history = replace(self.history, words=(*self.history.words, point))
                self._since_point = []
            number = epoch + bool(into_epoch)
            yield TrainingStep(
                self.n_done, self.n_all, 0, loss, found, number, ends_epoch=not into_epoch, pretraining=True
            )

    def _step(self, batch: Int[np.ndarray, " text"], epoch: int) -> TrainingStep:
        loss, accuracy = self._learn(batch)
        self.done += 1
        self._note(loss, accuracy)
        step = TrainingStep(self.n_done, self.n_all, len(batch), loss, accuracy, epoch + 1)
        if self.done % self.steps_per_epoch:
            return step
        measured = self._evaluate(epoch + 1) if len(self.held_out) else None
        improved = self.history.best is measured  # without texts held out, the latest is the best
        if improved:
            self.best_weights = {name: tensor.clone() for name, tensor in self.classifier.state_dict().items()}
        return replace(step, ends_epoch=True, held_out=measured, improved=improved)

    def _learn(self, batch: Int[np.ndarray, " text"]) -> tuple[float, float]:
        spec = self.spec
        generator = np.random.default_rng((spec.seed, self.done))
        texts = self.examples.texts
        ids, real = padded([crop(texts[i], spec.crop, generator, self.n_markers) for i in batch])
        ids, real = ids.to(self.device), real.to(self.device)
        labels = torch.from_numpy(self.examples.labels[batch]).to(self.device)
        for optimizer in self._optimizers:
            optimizer.zero_grad()
            for group in optimizer.param_groups:
                group["lr"] = spec.learning_rate * rate(self.done, self.n_steps)
        self.classifier.train()
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(int(generator.integers(2**63)))  # dropout draws from the one generator of the device
            masked = None if self.pretraining is None else self._masked(real, generator)
            states = self.classifier.states(ids if masked is None else ids.masked_fill(masked, PAD_ID), real)
            answers = self.classifier.classify(states, real)
        loss = functional.cross_entropy(answers, labels, label_smoothing=spec.label_smoothing)
        if masked is not None and self.pretraining is not None and masked.any():
            objectives = self.pretraining.objectives
            loss = loss + WORD_WEIGHT * objectives.masked_word_loss(
                self.classifier.encoder, states[masked], ids[masked]
            )
        if not loss.isfinite():
            raise ExecutionError(
                f"training went astray: the loss of step {self.done + 1} is {loss.item()}", hint=DIVERGED
            )
        loss.backward()  # type: ignore[no-untyped-call]
        for optimizer in self._optimizers:
            optimizer.step()
        return loss.item(), (answers.argmax(dim=-1) == labels).float().mean().item()

    def _masked(self, real: Bool[Tensor, "text token"], generator: np.random.Generator) -> Bool[Tensor, "text token"]:
        """Which words are hidden, to be found out besides the label: without it, heads forget what they looked for."""
        chosen = generator.random(tuple(real.shape)) < self.spec.word_dropout
        return torch.from_numpy(chosen).to(real.device) & real

    def _evaluate(self, epoch: int) -> Epoch:
        """How the classifier does on the texts held out, and the temperature that suits it."""
        found = logits(self.classifier, self.held_out.texts)
        labels = torch.from_numpy(self.held_out.labels)
        self.classifier.temperature.fill_(fitted_temperature(found, labels))
        accuracy = (found.argmax(dim=-1) == labels).double().mean().item()
        measured = Epoch(epoch, functional.cross_entropy(found, labels).item(), accuracy)
        self.history = replace(self.history, epochs=(*self.history.epochs, measured))
        return measured

    def _note(self, loss: float, accuracy: float) -> None:
        """Add a point to the learning curve every so often, and at the end of each epoch."""
        self._since_point.append((loss, accuracy))
        into_epoch = self.done % self.steps_per_epoch
        if into_epoch * POINTS // self.steps_per_epoch != (into_epoch - 1) * POINTS // self.steps_per_epoch:
            means = np.mean(self._since_point, axis=0)
            point = Point(self.done / self.steps_per_epoch, float(means[0]), float(means[1]))
            self.history = replace(self.history, points=(*self.history.points, point))
            self._since_point = []

    def _out_of_patience(self) -> bool:
        best = self.history.best
        at_the_end_of_an_epoch = self.done % self.steps_per_epoch == 0
        return (
            best is not None and at_the_end_of_an_epoch and len(self.history.epochs) - best.number >= self.spec.patience
        )

    def _batches(self, epoch: int) -> list[Int[np.ndarray, " text"]]:
        lengths = [min(len(text), self.spec.crop) for text in self.examples.texts]
        return shuffled(lengths, self.spec.batch_size, np.random.default_rng((self.spec.seed, epoch, self.n_steps)))

    def best(self) -> Classifier:
        """The classifier as it was at the end of its best epoch."""
        classifier = Classifier(self.classifier.config).to(self.device)
        classifier.load_state_dict(self.best_weights)
        return classifier.eval()

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors, and the rest as what JSON can hold: all that `restore` needs."""
        tensors = {f"model.{name}": tensor for name, tensor in self.classifier.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in self.best_weights.items()}
        for place, optimizer in enumerate(self._all_optimizers):
            for parameter, values in optimizer.state_dict()["state"].items():
                for name, value in values.items():
                    tensors[f"optimizer.{place}.{parameter}.{name}"] = torch.as_tensor(value)
        if self.pretraining is not None:
            objectives = self.pretraining.objectives.state_dict()
            tensors |= {f"objectives.{name}": tensor for name, tensor in objectives.items()}
        pretrained = 0 if self.pretraining is None else self.pretraining.done
        rest = {
            "done": self.done,
            "pretrained": pretrained,
            "history": asdict(self.history),
            "since_point": self._since_point,
        }
        return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, rest

    @property
    def _all_optimizers(self) -> tuple[torch.optim.Optimizer, ...]:
        return self._optimizers if self.pretraining is None else (*self._optimizers, self.pretraining.optimizer)

    def restore(self, tensors: Mapping[str, Tensor], rest: Mapping[str, Any]) -> None:
        """Take up a run from its `state`. Raises KeyError, RuntimeError or ValueError for one of another run."""
        self.classifier.load_state_dict(_under("model.", tensors))
        self.best_weights = _under("best.", tensors)
        if self.pretraining is not None:
            self.pretraining.objectives.load_state_dict(_under("objectives.", tensors))
            self.pretraining.done = rest["pretrained"]
        for place, optimizer in enumerate(self._all_optimizers):
            found: dict[int, dict[str, Any]] = {}
            for name, tensor in _under(f"optimizer.{place}.", tensors).items():
                parameter, _, value = name.partition(".")
                # SparseAdam counts its steps in a plain number, AdamW in a tensor.
                plain = value == "step" and isinstance(optimizer, torch.optim.SparseAdam)
                found.setdefault(int(parameter), {})[value] = int(tensor) if plain else tensor
            optimizer.load_state_dict({**optimizer.state_dict(), "state": found})
        self.done = rest["done"]
        points = tuple(Point(**point) for point in rest["history"]["points"])
        epochs = tuple(Epoch(**epoch) for epoch in rest["history"]["epochs"])
        self.history = History(points, epochs, tuple(WordPoint(**point) for point in rest["history"]["words"]))
        self._since_point = [tuple(values) for values in rest["since_point"]]
        if not (0 <= self.done <= self.n_steps and 0 <= self.n_done - self.done <= self.n_all - self.n_steps):
            raise ValueError(f"{self.done} of {self.n_steps} steps are done")
        if self.done >= self.steps_per_epoch:
            self.best()  # raises RuntimeError where weights are missing or of another shape
        begun = {id(optimizer): self.done for optimizer in self._optimizers}
        for optimizer in self._all_optimizers:
            for parameter in (parameter for group in optimizer.param_groups for parameter in group["params"]):
                averages = optimizer.state.get(parameter, {})
                if (
                    begun.get(id(optimizer), self.n_done - self.done)
                    and averages.get("exp_avg", torch.empty(0)).shape != parameter.shape
                ):
                    raise ValueError("the optimizer's averages are missing or of another shape")


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def rate(step: int, n_steps: int) -> float:
    """The share of the learning rate at a step: a linear rise, then a linear fall to `FLOOR`."""
    rising = (step + 1) / max(1.0, WARM_UP * n_steps)
    return min(1.0, rising, max(FLOOR, 1 - step / n_steps))


def _optimizers(
    classifier: Classifier, pretraining: Pretraining | None, learning_rate: float
) -> tuple[torch.optim.Optimizer, ...]:
    """Adam that touches only the embeddings of the words in the batch, and AdamW for all else.

    After pretraining, words get a gradient from being found out too, and position biases none.
    """
    embeddings = [module for module in classifier.modules() if isinstance(module, nn.Embedding)]
    sparse = [embedding.weight for embedding in embeddings if embedding.sparse]
    ours = {id(weight) for weight in sparse}
    if pretraining is not None:
        ours |= {id(module.bias) for module in classifier.modules() if isinstance(module, PositionBias)}
    dense = [parameter for parameter in classifier.parameters() if id(parameter) not in ours]
    adamw = torch.optim.AdamW(dense, lr=learning_rate, weight_decay=WEIGHT_DECAY)
    return (torch.optim.SparseAdam(sparse, lr=learning_rate), adamw) if sparse else (adamw,)
