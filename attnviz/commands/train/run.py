"""`attnviz train`: from labelled texts to a checkpoint, its learning curve and its model card.

Numbers of the outcome are measured on the files that a run left. What heads look at over held-out texts is measured by
the patterns that name heads in one text.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
import torch

from attnviz import store
from attnviz.bounded import exists
from attnviz.commands.train.inputs import STATE, refuse_to_overwrite
from attnviz.commands.train.model_card import card_report
from attnviz.commands.train.recipe import Run, begin
from attnviz.commands.train.spec import TrainSpec
from attnviz.commands.train.training import TrainingStep, load_state, name_file_in_errors, state_bytes
from attnviz.errors import InvalidOption, InvalidSource
from attnviz.inputs import Inputs, digest_texts
from attnviz.measures.classification import accuracy, calibration_error, draw_calibrated_error, log_loss
from attnviz.measures.concentration import make_uniform
from attnviz.measures.patterns import measure_patterns
from attnviz.models.checkpoint import Checkpoint, Classifier, load_checkpoint, save_checkpoint
from attnviz.models.classifier_model import checkpoint_model
from attnviz.models.device import describe_device, keep_freed_memory, pick, versions
from attnviz.models.encoder_model import EncoderModel, size_of
from attnviz.models.predicting import logits, probabilities
from attnviz.models.protocols import MEASURED
from attnviz.monitor.watch import Watch
from attnviz.options import list_values
from attnviz.records import AttentionMaps, Setting
from attnviz.records.answers import HeadMetrics, HeadScore, Metrics, ValidationMetrics
from attnviz.renderers.documents.markdown import document
from attnviz.renderers.figure.files import png
from attnviz.report import FigureStyle
from attnviz.running import Events, Progress, Result
from attnviz.running.metrics import NAME as METRICS
from attnviz.running.metrics import encode_metrics
from attnviz.shapes import PerHead
from attnviz.specs import ModelOptions, PrintOptions

N_TOKENS = 128  # read of each text
N_RANDOM = 20  # encoders with random weights: what chance gives


def describe_heads(model: EncoderModel, texts: Sequence[str]) -> HeadMetrics | None:
    """Measure what each head gives to each pattern, beside an equal share and the most that a random encoder's gives.

    None where no text has any pattern.
    """
    shares = _average_shares(model.attention(text, choice=MEASURED) for text in texts)
    equal = _average_shares(make_uniform(model.attention(text, choice=MEASURED)) for text in texts)
    chance: dict[str, float] = {}
    on_cpu = replace(model, device=torch.device("cpu"))  # no device is waited for, text by text
    for seed in range(N_RANDOM):  # on the same texts, since shares go with their lengths
        attend = on_cpu.with_first_weights(seed).attention
        for name, of_heads in _average_shares(attend(text, choice=MEASURED) for text in texts).items():
            chance[name] = max(chance.get(name, 0.0), float(of_heads.max()))
    scores = tuple(
        HeadScore(name, tuple(map(tuple, of_heads.tolist())), float(equal[name].mean()))
        for name, of_heads in shares.items()
    )
    return HeadMetrics(len(texts), N_TOKENS, scores, N_RANDOM, chance) if scores else None


def _average_shares(several: Iterable[AttentionMaps]) -> dict[str, PerHead]:
    """Return by pattern the mean share of each head over the texts that have it."""
    found = defaultdict[str, list[PerHead]](list)
    for maps in several:
        for name, shares, _ in measure_patterns(maps):
            found[name].append(shares)
    return {name: np.mean(of_texts, axis=0) for name, of_texts in found.items()}


CHECKPOINT = ("model.safetensors", "tokenizer.json", "config.json")
CARD = "README.md"


def measure(folder: Path, run: Run, settings: Mapping[str, Setting], data: str, data_sha256: str) -> Metrics:
    """Measure what lies in the folder, not what is in memory: the files are what others get."""
    saved = load_checkpoint(folder)
    config, device = saved.classifier.config, pick(str(run.training.spec.device))
    model = checkpoint_model(saved, folder, CARD, ModelOptions(max_tokens=N_TOKENS), device)
    return Metrics(
        settings=dict(settings),
        data=data,
        data_sha256=data_sha256,
        n_texts=len(run.training.examples),
        labels=config.labels,
        sizes=asdict(config.encoder),
        n_parameters=size_of(run.training.classifier),
        weights_sha256=saved.revision,
        versions=dict(versions("tokenizers")),
        computed_on=describe_device(device),
        history=run.training.history,
        held_out=_validate(run, saved.classifier),
        heads=describe_heads(model, run.described),
    )


def _validate(run: Run, stored: Classifier) -> ValidationMetrics:
    held_out = run.training.held_out
    before, after = logits(run.training.copy_best(), held_out.texts), logits(stored, held_out.texts)
    answers = probabilities(stored, after)
    predicted, confidence = answers.argmax(axis=1), answers.max(axis=1)
    return ValidationMetrics(
        n_texts=len(held_out),
        accuracy=accuracy(held_out.labels, predicted),
        loss=log_loss(answers, held_out.labels),
        calibration_error=calibration_error(confidence, predicted == held_out.labels),
        temperature=stored.temperature.item(),
        labels_changed=int((before.argmax(dim=-1) != after.argmax(dim=-1)).sum()),
        calibration_bound=draw_calibrated_error(confidence)[1],
    )


def write_card(folder: Path, metrics: Metrics) -> Result:
    """Draw and describe a run that ended. The same metrics give the same files."""
    report = card_report(metrics)
    pictures = dict(png(report, FigureStyle()))
    for name, data in pictures.items():
        store.write(folder / name, data)
    store.write(folder / CARD, document(report, {Path(name).stem: name for name in pictures}).encode())
    return Result(report, tuple(folder / name for name in (*CHECKPOINT, METRICS, CARD, *pictures)))


PRINT_OPTIONS = tuple(field.name for field in fields(PrintOptions))
NOT_IN_IDENTITY = ("dataset", "split", "device", "out", "resume", *PRINT_OPTIONS)  # what the weights do not depend on


def train(spec: TrainSpec, inputs: Inputs) -> Events:
    """Train, keep the best epoch in `--out`, and say at each step how it goes.

    The folder always holds where the last whole epoch ended, which `--resume` goes on from. Raises InvalidOption,
    InvalidSource or InvalidText before anything is written.
    """
    folder, corpus = inputs.out, inputs.corpus
    with store.locked(folder):
        refuse_to_overwrite(folder, spec.resume)  # again: another run may have ended in between
        if unlabelled := [document.name for document in corpus.documents if document.label is None]:
            hint = " ".join(("Training needs a label for every text.", *corpus.notices))
            raise InvalidSource(f"{unlabelled[0]} has no label", hint=hint)
        texts, names = corpus.texts, [document.name for document in corpus.documents]
        labels = [document.label for document in corpus.documents if document.label is not None]
        settings = {name: v for name, v in list_values(spec).items() if name not in NOT_IN_IDENTITY and v is not None}
        identity = {**settings, "data_sha256": digest_texts(corpus.documents)}
        notices, state = corpus.notices, None
        if exists(folder / STATE):
            *state, earlier = load_state(folder / STATE)
            _refuse_another_run(folder, earlier, identity)
        elif spec.resume:
            notices = (*notices, f"{folder} holds no training run to go on with: starting from the beginning")
        run = begin(texts, labels, spec, names)
        if state is not None:
            with name_file_in_errors(folder / STATE):
                run.training.restore(*state)
        log = _TrainingLog(run)
        keep_freed_memory()
        yield log.begin(corpus.name, notices)
        # A disk that refuses does so before the work.
        store.write(folder / STATE, state_bytes(*run.training.capture_state(), identity))
        watch = Watch(run.training.classifier.encoder, is_quiet=True)
        with closing(watch):
            watch.begin(run.training.n_done)
            for step in run.training.steps():
                new = watch.end()
                if step.ends_epoch:
                    where_it_ends = state_bytes(*run.training.capture_state(), identity)  # raises for NaN
                    if step.improved:
                        best = Checkpoint(run.training.copy_best(), run.tokenizer, spec.max_tokens, spec.keep)
                        save_checkpoint(folder, best, spec.storage)
                    store.write(folder / STATE, where_it_ends)
                progress = log.add(step)
                yield replace(progress, log=(*progress.log, *(f"attention alarm, {alarm}" for alarm in new)))
                watch.begin(run.training.n_done)
        metrics = measure(folder, run, settings, corpus.name, identity["data_sha256"])
        store.write(folder / METRICS, encode_metrics(metrics))
        result = write_card(folder, metrics)
        store.remove(folder / STATE)
        yield result


class _TrainingLog:
    """The log of a training: how it goes by the last point of the learning curve, a line at the end of each epoch."""

    def __init__(self, run: Run) -> None:
        self.training = run.training
        self.spec = run.training.spec
        self.saved = self.training.n_done  # steps that another run need not do again
        self.n_texts, self.since = 0, time.monotonic()  # since training with labels began, in seconds

    def begin(self, data: str, notices: tuple[str, ...]) -> Progress:
        """Describe the run before its first step."""
        training = self.training
        n_texts, n_held_out = len(training.examples), len(training.held_out)
        texts = f"{n_texts:,} texts of {data}, {n_held_out:,} held out"
        what = f"training on {texts}; {size_of(training.classifier):,} parameters"
        later = [f"going on after step {self.saved:,} of {training.n_all:,}"] if self.saved else []
        return replace(self._progress("training", what, *later), notices=notices)

    def add(self, step: TrainingStep) -> Progress:
        """Describe how it goes after one step."""
        if step.pretraining:
            self.since, epochs = time.monotonic(), f"pretraining epoch {step.epoch}/{self.spec.pretrain}"
            line = f"{epochs}  loss of masked words {step.loss:.3f}  found {step.accuracy:.3f}"
        else:
            self.n_texts += step.n_texts
            speed, epochs = self.n_texts / max(1e-9, time.monotonic() - self.since), f"{step.epoch}/{self.spec.epochs}"
            mean = (self.training.history.points or (step,))[-1]
            line = f"epoch {epochs}  loss {mean.loss:.3f}  accuracy {mean.accuracy:.3f}  {speed:,.0f} texts/s"
        if not step.ends_epoch:
            return self._progress(line)
        held, self.saved = step.held_out, self.training.n_done
        measured = f"; held out: loss {held.loss:.4f}, accuracy {held.accuracy:.4f}" if held else ""
        best = " (best so far)" if step.improved else ""
        return self._progress(line, f"{line}{measured}{best}")

    def _progress(self, label: str, *log: str) -> Progress:
        done, n_steps = self.training.n_done, self.training.n_all
        again = f"goes on after step {self.saved:,}" if self.saved else "starts from the beginning"
        left = (f"stopped after step {done:,} of {n_steps:,}", f"the same command with --resume {again}")
        return Progress(done, n_steps, "steps", label=label, log=log, if_left=left)


def _refuse_another_run(folder: Path, earlier: Mapping[str, Setting], identity: Mapping[str, Setting]) -> None:
    """Refuse to resume a different run than the one in the folder.

    Raises InvalidOption naming the first setting that differs.
    """
    for name in {**identity, **earlier}:
        before, now = earlier.get(name), identity.get(name)
        if before != now:
            option = f"--{name.replace('_', '-')}"
            what = "other texts" if name == "data_sha256" else f"{option} {before}, not {now}"
            raise InvalidOption(f"the run in {folder} has {what}", hint="Resume it as it was, or choose another --out.")
