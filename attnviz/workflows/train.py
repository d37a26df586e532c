"""`attnviz train`: from labelled texts to a checkpoint, its learning curve and its model card."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from attnviz import store
from attnviz.errors import ExecutionError, InvalidModel, InvalidOption, InvalidSource
from attnviz.measures.classification import accuracy, calibration_error, log_loss
from attnviz.models.sizes import head_size
from attnviz.options import flat_values
from attnviz.records import Setting
from attnviz.report import FigureStyle, Report
from attnviz.specs import PrintOptions
from attnviz.specs.train import TrainSpec
from attnviz.text import Corpus, load_corpus
from attnviz.training_metrics import HeadMetrics, Metrics, ValidationMetrics
from attnviz.views.model_card import card_report
from attnviz.workflows.metrics import NAME as METRICS
from attnviz.workflows.metrics import load_metrics, metrics_bytes

if TYPE_CHECKING:
    from attnviz.models.classifier import Classifier
    from attnviz.models.recipe import Run
    from attnviz.models.training import Training, TrainingStep

WEIGHTS, VOCABULARY, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
STATE, CARD = "training.safetensors", "README.md"
SAVED_EVERY = 15.0  # seconds between two states on disk; each epoch's end is saved too
PRINTED = tuple(field.name for field in fields(PrintOptions))
NOT_OF_THE_RUN = ("dataset", "split", "device", "out", "resume", *PRINTED)  # what no weight follows from
MAX_LAYERS = 1_000  # that a checkpoint may have, known here without torch
MAX_TOKENS = 1_000_000  # far beyond any text; neighbours still have positions of their own in float32


@dataclass(frozen=True, eq=False)
class Started:
    """What is about to be trained, and what the user has to know."""

    data: str
    n_texts: int
    n_held_out: int
    n_parameters: int
    n_done: int  # steps, in an earlier run
    n_kept: int  # which epoch that run kept, from 1; 0 where none had ended
    n_steps: int
    notices: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Trained:
    """The end: the report, and the files that were written."""

    report: Report
    metrics: Metrics
    files: tuple[Path, ...]
    run: Run | None = None  # None where it had ended before


Event: TypeAlias = "Started | TrainingStep | Trained"


def train(spec: TrainSpec) -> Generator[Event]:
    """Train, keep the best epoch in `--out`, and say at each step how it goes.

    Where the iteration is left between two steps, the state is saved for `--resume`. Raises InvalidOption,
    InvalidSource or InvalidText before anything is written.
    """
    check(spec)
    folder = store.output_folder(spec.out)
    _refuse_to_overwrite(folder, spec)
    corpus = load_corpus(spec.text)
    return store.while_locked(folder, _trained(spec, folder, corpus))


def check(spec: TrainSpec) -> None:
    """Raises InvalidOption for a number that cannot be. Imports nothing heavy."""
    whole = {"epochs": 1, "batch_size": 1, "crop": 2, "max_tokens": 2, "patience": 1, "bigrams": 0, "layers": 1}
    whole |= {"pretrain": 0, "max_distance": 0}
    for name, least in whole.items():
        if (getattr(spec, name) or 0) < least:
            raise InvalidOption(f"{_option(name)} {getattr(spec, name)} is too small", hint=f"It is at least {least}.")
    if not 0 <= spec.seed < 2**63:
        raise InvalidOption(f"--seed {spec.seed} is out of range", hint=f"It is 0 to {2**63 - 1}.")
    for name, limit in {"dropout": 1, "word_dropout": 1, "label_smoothing": 1, "validation": 0.5}.items():
        if not 0 <= getattr(spec, name) < limit:
            raise InvalidOption(
                f"{_option(name)} {getattr(spec, name):g} is no share", hint=f"It is 0 to below {limit}."
            )
    if not 0 < spec.learning_rate <= 1:
        raise InvalidOption(f"--learning-rate {spec.learning_rate:g} is no rate", hint="It is above 0 and at most 1.")
    for name, most in {"layers": MAX_LAYERS, "max_tokens": MAX_TOKENS, "max_distance": MAX_TOKENS}.items():
        if (getattr(spec, name) or 0) > most:
            raise InvalidOption(f"{_option(name)} {getattr(spec, name)} is too large", hint=f"It is at most {most:,}.")
    head_size(spec.d_model or 0, spec.heads or 0)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _refuse_to_overwrite(folder: Path, spec: TrainSpec) -> None:
    """Raises InvalidOption where a model or a run would be lost, and for a model without a run to go on with."""
    if _holds(folder, WEIGHTS) and not (_holds(folder, STATE) or _holds(folder, METRICS)):
        raise InvalidOption(
            f"{folder} holds a model, but nothing of the run that made it", hint="Choose another --out."
        )
    for name, what in ((STATE, "an unfinished training run"), (WEIGHTS, "a model")):
        if not spec.resume and _holds(folder, name):
            raise InvalidOption(f"{folder} holds {what}", hint="Go on with it by --resume, or choose another --out.")


def _holds(folder: Path, name: str) -> bool:
    with suppress(OSError):  # a name that is too long, say: `make_folder` tells what is wrong
        return (folder / name).exists()
    return False


def _trained(spec: TrainSpec, folder: Path, corpus: Corpus) -> Generator[Event]:
    from attnviz.models.recipe import begin
    from attnviz.models.resuming import resume

    _refuse_to_overwrite(folder, spec)  # again: another run may have ended in between
    texts, labels, names = _labelled(corpus)
    settings = {name: v for name, v in flat_values(spec).items() if name not in NOT_OF_THE_RUN and v is not None}
    data_sha256 = _sha256(texts, labels)
    notices = corpus.notices
    going_on = spec.resume and _same_run(folder, {**settings, "data_sha256": data_sha256})
    if spec.resume and not going_on:
        if _holds(folder, METRICS):
            metrics = load_metrics(folder)
            _refuse_other_weights(folder, metrics)
            yield ended(folder, metrics)
            return
        notices = (*notices, f"{folder} holds no training run to go on with: starting from the beginning")
    run = begin(texts, labels, spec, names)
    if going_on:
        resume(run.training, folder / STATE)
    yield Started(
        data=corpus.name,
        n_texts=len(run.training.examples),
        n_held_out=len(run.training.held_out),
        n_parameters=run.n_parameters,
        n_done=run.training.n_done,
        n_kept=_kept(run),
        n_steps=run.training.n_all,
        notices=(*notices, *_cut(run.training)),
    )
    yield from _steps(folder, run, {**settings, "data_sha256": data_sha256})
    metrics = _metrics(folder, run, settings, corpus.name, data_sha256)
    store.write(folder / METRICS, metrics_bytes(metrics))
    last = replace(ended(folder, metrics), run=run)
    store.remove(folder / STATE)
    yield last


def _cut(training: Training) -> Iterator[str]:
    """Training takes stretches from anywhere; what is beyond `--max-tokens` is never read in measuring."""
    if training.n_cut:
        verb, left = "is" if training.n_cut == 1 else "are", training.n_left_out
        texts = f"{training.n_cut:,} of {len(training.held_out):,} texts held out {verb} longer"
        tokens = "1 token is" if left == 1 else f"{left:,} tokens are"
        yield f"{texts} than {training.spec.max_tokens} tokens: {tokens} not read"


def _steps(folder: Path, run: Run, identity: Mapping[str, Setting]) -> Iterator[TrainingStep]:
    """Train and keep what is best. Broken off within a step, the state that was last saved stands.

    Raises ExecutionError where the loss is no number any more.
    """
    from attnviz.models.checkpoint import save_checkpoint
    from attnviz.models.device import keep_freed_memory
    from attnviz.models.resuming import state_bytes
    from attnviz.models.training import DIVERGED

    keep_freed_memory()
    store.write(folder / STATE, state_bytes(run.training, identity))  # a disk that refuses does so before the work
    saved_at = time.monotonic()
    for step in run.training.steps():
        if step.held_out and not math.isfinite(step.held_out.loss):
            raise ExecutionError(f"training went astray: the held-out loss is {step.held_out.loss}", hint=DIVERGED)
        if step.improved:
            save_checkpoint(folder, run.checkpoint, run.training.spec.storage)
        if step.ends_epoch or time.monotonic() - saved_at > SAVED_EVERY:
            store.write(folder / STATE, state_bytes(run.training, identity))
            saved_at = time.monotonic()
        try:
            yield step
        except GeneratorExit:
            store.write(folder / STATE, state_bytes(run.training, identity))
            raise


def _kept(run: Run) -> int:
    """The epoch whose weights lie in the folder: the best one, or the last where no text is held out."""
    best = run.training.history.best
    return best.number if best else run.training.done // run.training.steps_per_epoch


def _refuse_other_weights(folder: Path, metrics: Metrics) -> None:
    """Raises InvalidModel where the weights that the metrics tell of are gone or changed."""
    file = folder / WEIGHTS
    if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != metrics.weights_sha256:
        raise InvalidModel(
            f"{file} is not what {METRICS} tells of", hint="Choose another --out to train from the beginning."
        )


def _labelled(corpus: Corpus) -> tuple[list[str], list[int], list[str]]:
    """Texts, labels and names. Raises InvalidSource for a text without a label, named."""
    labels = []
    for document in corpus.documents:
        if document.label is None:
            raise InvalidSource(f"{document.name} has no label", hint="Training needs a label for every text.")
        labels.append(document.label)
    return [document.text for document in corpus.documents], labels, [document.name for document in corpus.documents]


def _sha256(texts: Sequence[str], labels: Sequence[int]) -> str:
    digest = hashlib.sha256()
    for text, label in zip(texts, labels, strict=True):
        digest.update(f"{label} {len(text)} {text}".encode())
    return digest.hexdigest()


def _same_run(folder: Path, identity: Mapping[str, Setting]) -> bool:
    """Whether a run to go on with lies in the folder. Raises InvalidOption where a run there is another."""
    from attnviz.models.resuming import state_identity

    if _holds(folder, STATE):
        earlier: Mapping[str, Setting] = state_identity(folder / STATE)
    elif _holds(folder, METRICS):
        metrics = load_metrics(folder)
        earlier = {**metrics.settings, "data_sha256": metrics.data_sha256}
    else:
        return False
    for name, value in identity.items():
        if earlier.get(name) != value:
            what = "other texts" if name == "data_sha256" else f"{_option(name)} {earlier.get(name)}, not {value}"
            raise InvalidOption(f"the run in {folder} has {what}", hint="Resume it as it was, or choose another --out.")
    return _holds(folder, STATE)


def _metrics(folder: Path, run: Run, settings: Mapping[str, Setting], data: str, data_sha256: str) -> Metrics:
    """What lies in the folder is measured, not what is in memory: the files are what others get."""
    from attnviz.models.checkpoint import load_checkpoint
    from attnviz.models.device import described, pick

    saved = load_checkpoint(folder)
    config = saved.classifier.config
    return Metrics(
        settings=dict(settings),
        data=data,
        data_sha256=data_sha256,
        n_texts=len(run.training.examples),
        labels=config.labels,
        sizes={**asdict(config.encoder), "n_bigrams": config.n_bigrams},
        n_parameters=run.n_parameters,
        weights_sha256=saved.revision,
        versions={package: version(package) for package in ("attnviz", "numpy", "tokenizers", "torch")},
        computed_on=described(pick(str(run.training.spec.device))),
        history=run.training.history,
        held_out=_held_out(run, saved.classifier) if len(run.training.held_out) else None,
        heads=_heads(run, saved.classifier),
    )


def _heads(run: Run, stored: Classifier) -> HeadMetrics | None:
    from attnviz.models.head_scores import N_RANDOM, N_TOKENS, chance, head_scores

    targets = run.training.targets
    if targets is None:
        return None
    scores, random = head_scores(stored.encoder, targets), chance(stored.config.encoder, targets)
    return HeadMetrics(len(targets.texts), N_TOKENS, scores, N_RANDOM, random) if scores else None


def _held_out(run: Run, stored: Classifier) -> ValidationMetrics:
    from attnviz.models.predicting import logits, probabilities

    held_out = run.training.held_out
    before, after = logits(run.training.best(), held_out.texts), logits(stored, held_out.texts)
    answers = probabilities(stored, after)
    predicted = answers.argmax(axis=1)
    return ValidationMetrics(
        n_texts=len(held_out),
        accuracy=accuracy(held_out.labels, predicted),
        loss=log_loss(answers, held_out.labels),
        calibration_error=calibration_error(answers.max(axis=1), predicted == held_out.labels),
        temperature=stored.temperature.item(),
        labels_changed=int((before.argmax(dim=-1) != after.argmax(dim=-1)).sum()),
    )


def ended(folder: Path, metrics: Metrics) -> Trained:
    """Draw and describe a run that ended. The same metrics give the same files."""
    from attnviz.renderers.figure.files import png
    from attnviz.renderers.markdown import document

    report = card_report(metrics)
    pictures = dict(png(report, FigureStyle()))
    for name, data in pictures.items():
        store.write(folder / name, data)
    store.write(folder / CARD, document(report, {Path(name).stem: name for name in pictures}).encode())
    names = (WEIGHTS, VOCABULARY, CONFIG, METRICS, CARD, *pictures)
    return Trained(report, metrics, tuple(folder / name for name in names))
