"""The outcome of a training run: numbers measured on the files that it left, learning curves and the model card."""

from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from attnviz import store
from attnviz.commands.train.head_scores import N_TOKENS, describe_heads
from attnviz.commands.train.model_card import card_report
from attnviz.commands.train.recipe import Run
from attnviz.measures.classification import accuracy, calibration_error, draw_calibrated_error, log_loss
from attnviz.models.checkpoint import load_checkpoint
from attnviz.models.classifier import Classifier
from attnviz.models.classifier_model import checkpoint_model
from attnviz.models.device import describe_device, pick
from attnviz.models.predicting import logits, probabilities
from attnviz.records import Setting
from attnviz.records.training_metrics import Metrics, ValidationMetrics
from attnviz.renderers.documents.markdown import document
from attnviz.renderers.figure.files import png
from attnviz.report import FigureStyle
from attnviz.running import Result
from attnviz.running.metrics import NAME as METRICS
from attnviz.specs import ModelOptions

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
        n_parameters=run.n_parameters,
        weights_sha256=saved.revision,
        versions={package: version(package) for package in ("attnviz", "numpy", "tokenizers", "torch")},
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
