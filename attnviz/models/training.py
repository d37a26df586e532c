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
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn import functional

from attnviz.errors import WorkFailed
from attnviz.models.batches import crop, cut, padded, shuffled
from attnviz.models.classifier import Classifier, fitted_temperature
from attnviz.models.examples import Examples
from attnviz.models.predicting import logits
from attnviz.outcomes import Epoch, History, Point
from attnviz.specs.train import TrainSpec

WARM_UP = 0.1  # share of the steps in which the learning rate rises
FLOOR = 0.02  # share of the learning rate that is left at the end
WEIGHT_DECAY = 0.01
POINTS = 20  # of the learning curve per epoch
ASTRAY = "A smaller --learning-rate may help."


@dataclass(frozen=True)
class TrainingStep:
    """One step: means over its batch, and at the end of an epoch how the model does on the texts held out."""

    number: int  # from 1
    n_steps: int
    n_texts: int  # in this batch
    loss: float
    accuracy: float
    epoch: int  # from 1
    ends_epoch: bool = False
    held_out: Epoch | None = None  # at the end of an epoch, where texts are held out
    improved: bool = False  # the best so far: worth keeping


class Training:
    """A classifier, its examples and its optimizers. `steps` trains; `state` and `restore` stop and take up again."""

    def __init__(self, classifier: Classifier, examples: Examples, held_out: Examples, spec: TrainSpec) -> None:
        self.classifier = classifier
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
        self.done = 0  # steps
        self.history = History()
        self.best_weights: dict[str, Tensor] = {}  # of the best epoch
        self._since_point: list[tuple[float, float]] = []  # loss and accuracy of each step since the last point
        self._optimizers = _optimizers(classifier, spec.learning_rate)

    def steps(self) -> Iterator[TrainingStep]:
        """Train to the last epoch, or until `patience` epochs brought nothing better."""
        while self.done < self.n_steps and not self._out_of_patience():
            epoch, first = divmod(self.done, self.steps_per_epoch)
            for batch in self._batches(epoch)[first:]:
                yield self._step(batch, epoch)

    def _step(self, batch: Int[np.ndarray, " text"], epoch: int) -> TrainingStep:
        loss, accuracy = self._learn(batch)
        self.done += 1
        self._note(loss, accuracy)
        step = TrainingStep(self.done, self.n_steps, len(batch), loss, accuracy, epoch + 1)
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
        labels = torch.from_numpy(self.examples.labels[batch]).to(self.device)
        for optimizer in self._optimizers:
            optimizer.zero_grad()
            for group in optimizer.param_groups:
                group["lr"] = spec.learning_rate * rate(self.done, self.n_steps)
        self.classifier.train()
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(int(generator.integers(2**63)))  # dropout draws from the one generator of the device
            answers = self.classifier(ids.to(self.device), real.to(self.device))
        loss = functional.cross_entropy(answers, labels, label_smoothing=spec.label_smoothing)
        if not loss.isfinite():
            raise WorkFailed(f"training went astray: the loss of step {self.done + 1} is {loss.item()}", hint=ASTRAY)
        loss.backward()  # type: ignore[no-untyped-call]
        for optimizer in self._optimizers:
            optimizer.step()
        return loss.item(), (answers.argmax(dim=-1) == labels).float().mean().item()

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
        for place, optimizer in enumerate(self._optimizers):
            for parameter, values in optimizer.state_dict()["state"].items():
                for name, value in values.items():
                    tensors[f"optimizer.{place}.{parameter}.{name}"] = torch.as_tensor(value)
        rest = {"done": self.done, "history": asdict(self.history), "since_point": self._since_point}
        return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, rest

    def restore(self, tensors: Mapping[str, Tensor], rest: Mapping[str, Any]) -> None:
        """Take up a run from its `state`. Raises KeyError, RuntimeError or ValueError for one of another run."""
        self.classifier.load_state_dict(_under("model.", tensors))
        self.best_weights = _under("best.", tensors)
        for place, optimizer in enumerate(self._optimizers):
            found: dict[int, dict[str, Any]] = {}
            for name, tensor in _under(f"optimizer.{place}.", tensors).items():
                parameter, _, value = name.partition(".")
                # SparseAdam counts its steps in a plain number, AdamW in a tensor.
                plain = value == "step" and isinstance(optimizer, torch.optim.SparseAdam)
                found.setdefault(int(parameter), {})[value] = int(tensor) if plain else tensor
            optimizer.load_state_dict({**optimizer.state_dict(), "state": found})
        self.done = rest["done"]
        points = tuple(Point(**point) for point in rest["history"]["points"])
        self.history = History(points, tuple(Epoch(**epoch) for epoch in rest["history"]["epochs"]))
        self._since_point = [(loss, accuracy) for loss, accuracy in rest["since_point"]]
        if not 0 <= self.done <= self.n_steps:
            raise ValueError(f"{self.done} of {self.n_steps} steps are done")
        if self.done >= self.steps_per_epoch:
            self.best()  # raises RuntimeError where weights are missing or of another shape
        for optimizer in self._optimizers:
            for parameter in optimizer.param_groups[0]["params"]:
                averages = optimizer.state.get(parameter, {})
                if self.done and averages.get("exp_avg", torch.empty(0)).shape != parameter.shape:
                    raise ValueError("the optimizer's averages are missing or of another shape")


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def rate(step: int, n_steps: int) -> float:
    """The share of the learning rate at a step: a linear rise, then a linear fall to `FLOOR`."""
    rising = (step + 1) / max(1.0, WARM_UP * n_steps)
    return min(1.0, rising, max(FLOOR, 1 - step / n_steps))


def _optimizers(classifier: Classifier, learning_rate: float) -> tuple[torch.optim.Optimizer, torch.optim.Optimizer]:
    """Adam that touches only the embeddings of the words in the batch, and AdamW for all else."""
    embeddings = [module for module in classifier.modules() if isinstance(module, nn.Embedding)]
    sparse = [embedding.weight for embedding in embeddings if embedding.sparse]
    ours = {id(weight) for weight in sparse}
    dense = [parameter for parameter in classifier.parameters() if id(parameter) not in ours]
    return (
        torch.optim.SparseAdam(sparse, lr=learning_rate),
        torch.optim.AdamW(dense, lr=learning_rate, weight_decay=WEIGHT_DECAY),
    )
