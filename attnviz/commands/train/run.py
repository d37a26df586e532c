"""`attnviz train`: from labelled texts to a checkpoint, its learning curve and its model card."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

from attnviz import store
from attnviz.bounded import exists
from attnviz.commands.train.inputs import STATE, refuse_to_overwrite
from attnviz.commands.train.outcome import measure, write_card
from attnviz.commands.train.recipe import Run, begin
from attnviz.commands.train.spec import TrainSpec
from attnviz.commands.train.state import load_state, name_file_in_errors, state_bytes
from attnviz.commands.train.training import TrainingStep
from attnviz.errors import InvalidOption, InvalidSource
from attnviz.inputs import Inputs
from attnviz.models.checkpoint import save_checkpoint
from attnviz.models.device import keep_freed_memory
from attnviz.monitor.watch import Watch
from attnviz.options import list_values
from attnviz.records import Setting
from attnviz.running import Events, Progress
from attnviz.running.metrics import NAME as METRICS
from attnviz.running.metrics import encode_metrics
from attnviz.specs import PrintOptions

PRINT_OPTIONS = tuple(field.name for field in fields(PrintOptions))
NOT_IN_IDENTITY = ("dataset", "split", "device", "out", "resume", *PRINT_OPTIONS)  # what the weights do not depend on


def train(spec: TrainSpec, inputs: Inputs) -> Events:
    """Train, keep the best epoch in `--out`, and say at each step how it goes.

    The folder always holds where the last whole epoch ended, which `--resume` goes on from. Raises InvalidOption,
    InvalidSource or InvalidText before anything is written.
    """
    folder, corpus = inputs.out, inputs.corpus
    with store.locked(folder):
        refuse_to_overwrite(folder, spec)  # again: another run may have ended in between
        if unlabelled := [document.name for document in corpus.documents if document.label is None]:
            raise InvalidSource(f"{unlabelled[0]} has no label", hint="Training needs a label for every text.")
        texts, names = corpus.texts, [document.name for document in corpus.documents]
        labels = [document.label for document in corpus.documents if document.label is not None]
        settings = {name: v for name, v in list_values(spec).items() if name not in NOT_IN_IDENTITY and v is not None}
        identity = {**settings, "data_sha256": _sha256(texts, labels)}
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
                        save_checkpoint(folder, run.checkpoint, spec.storage)
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
        self.run = run
        self.training = run.training
        self.spec = run.training.spec
        self.saved = self.training.n_done  # steps that another run need not do again
        self.n_texts, self.since = 0, time.monotonic()  # since training with labels began, in seconds

    def begin(self, data: str, notices: tuple[str, ...]) -> Progress:
        """Describe the run before its first step."""
        training = self.training
        n_texts, n_held_out = len(training.examples), len(training.held_out)
        texts = f"{n_texts:,} texts of {data}, {n_held_out:,} held out"
        what = f"training on {texts}; {self.run.n_parameters:,} parameters"
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


def _sha256(texts: Sequence[str], labels: Sequence[int]) -> str:
    digest = hashlib.sha256()
    for text, label in zip(texts, labels, strict=True):
        digest.update(f"{label} {len(text)} {text}".encode())
    return digest.hexdigest()


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
