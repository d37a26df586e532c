"""A training run in words: what was learned from what, how well, and the command that does it again."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import asdict

from attnviz.commands.train.spec import TrainSpec
from attnviz.display import escape_for_display, pluralize
from attnviz.measures.classification import compute_score_interval
from attnviz.options import list_options
from attnviz.records.head_names import MIN_SHARE, NO_NAME
from attnviz.records.training_metrics import HeadMetrics, History, Metrics, TestMetrics, name_heads
from attnviz.report import Block, Chart, Charts, Column, Note, Report, Row, Table
from attnviz.table.intervals import write_p_value

MAX_VALUE_LENGTH = 200
NORM_TEXTS = {"pre": "before each sublayer", "post": "after each sublayer"}
POOL_TEXTS = {"mean": "the mean over the tokens", "cls": "the state of [CLS]", "attention": "a learned weighted mean"}
FAR = re.compile("[0-9]+ (before|after)")  # places that only name heads
HEADS = (Column("layer"), Column("head"), Column("looks at"), Column("share", digits=3))
COSTS = (Column("without"), Column("accuracy lost", digits=4), *map(Column, ("low", "high", "p", "mean over seeds")))
EPOCHS = (Column("epoch"), Column("held-out loss", "nats", 4), Column("held-out accuracy", digits=4), Column("kept"))
TRAINING, HELD_OUT = "training (with dropout)", "held out"
KEEP_TEXTS = {"head": "the first {}", "head-tail": "{}, half from the beginning and half from the end"}


def card_report(metrics: Metrics) -> Report:
    """Describe a trained model: its card, what the terminal shows at the end of training, and its figures."""
    heads = metrics.sizes["n_heads"]
    name = escape_for_display(metrics.data, MAX_VALUE_LENGTH)
    return Report(
        title=f"Transformer encoder with {heads} head{'' if heads == 1 else 's'}, trained on {name}",
        subtitle=f"weights sha256 {metrics.weights_sha256[:8]}… · {metrics.n_parameters:,} parameters",
        blocks=(
            _facts_table("model", "The model", _model_rows(metrics)),
            _facts_table("recipe", "How it was made", _recipe_rows(metrics)),
            *_list_results(metrics),
            *_costs(metrics.tested),
            *_heads(metrics.heads),
            *show_learning(metrics.history),
            *_limit_notes(metrics),
        ),
        facts=(
            ("weights sha256", metrics.weights_sha256),
            ("data", name),
            ("command", escape_for_display(format_command(metrics), 1000)),
        ),
        data=asdict(metrics),
    )


def format_command(metrics: Metrics) -> str:
    """Write the command that trains this model. What it does not say is at its default."""
    data, _, split = metrics.data.rpartition(" ")
    words = ["attnviz", "train", "--dataset", data, "--split", split]
    for setting in list_options(TrainSpec):
        value = metrics.settings.get(setting.name, setting.default)
        if value != setting.default:
            words += [setting.flag, str(value)]
    return shlex.join(words)


def _facts_table(name: str, title: str, rows: list[Row]) -> Table:
    return Table(name, title, "facts", (Column("what"), Column("value", digits=4)), tuple(rows))


def _model_rows(metrics: Metrics) -> list[Row]:
    sizes, settings = metrics.sizes, metrics.settings
    d_model, n_heads = int(sizes["d_model"] or 0), int(sizes["n_heads"] or 1)
    heads = f"{n_heads} {pluralize(n_heads, 'heads')} of width {d_model // n_heads}"
    farthest = int(sizes.get("max_distance") or 0)
    biases = f"a bias per head on each score, by the distance of a key up to {farthest} either way"
    return [
        ("layers", f"{sizes['n_layers']}, each with {heads} (d_model {d_model})"),
        ("feed-forward width", str(sizes["d_feed_forward"])),
        ("layer norm", NORM_TEXTS[str(settings["norm"])]),
        *([("positions", biases)] if farthest else []),
        ("classified from", POOL_TEXTS[str(settings["pool"])]),
        ("vocabulary", f"{int(sizes['n_words'] or 0):,} entries"),
        ("parameters", f"{metrics.n_parameters:,}"),
        ("reads", "at most " + KEEP_TEXTS[str(settings["keep"])].format(f"{settings['max_tokens']} tokens of a text")),
        ("labels", escape_for_display(", ".join(metrics.labels), MAX_VALUE_LENGTH)),
        ("stored as", f"{settings['storage']} embeddings, all else float32"),
    ]


def _recipe_rows(metrics: Metrics) -> list[Row]:
    versions = ", ".join(f"{name} {version}" for name, version in metrics.versions.items())
    held = metrics.held_out.n_texts if metrics.held_out else 0
    name = escape_for_display(metrics.data, MAX_VALUE_LENGTH)
    return [
        ("data", f"{name}: {metrics.n_texts:,} texts, and {held:,} held out"),
        ("sha256 of the data", metrics.data_sha256),
        ("command", escape_for_display(format_command(metrics), 1000)),
        ("seed", str(metrics.settings["seed"])),
        ("versions", versions),
        ("computed on", escape_for_display(metrics.computed_on, MAX_VALUE_LENGTH)),
    ]


def _list_results(metrics: Metrics) -> Iterator[Table]:
    """Say how often the model is right on the texts held out, and on those of a test, where there are any."""
    if held := metrics.held_out:
        interval = f"95 % interval over texts {held.accuracy.low:.4f} to {held.accuracy.high:.4f}"
        bound = held.calibration_bound
        drawn = f"; by chance 95 % below {bound:.4f}" if bound is not None else ""
        rows: list[Row] = [
            ("texts", f"{held.n_texts:,}"),
            (f"accuracy ({interval})", held.accuracy.value),
            ("log loss, calibrated (nats)", held.loss),
            (f"calibration error (ECE{drawn})", held.calibration_error),
            ("temperature", held.temperature),
            ("labels that rounding the weights changed", f"{held.labels_changed} of {held.n_texts:,}"),
        ]
        if (loss := metrics.history.masked_word_loss) is not None:
            rows.append(("loss of masked words after pretraining (nats)", loss))
        yield _facts_table("held-out", "On texts held out from training", rows)
    if (tested := metrics.tested) is None:
        return
    rows = [("texts", f"{escape_for_display(tested.data, MAX_VALUE_LENGTH)}: {tested.n_texts:,}")]
    for seed, accuracy in zip(tested.seeds, tested.accuracies, strict=True):
        over_texts = compute_score_interval(accuracy, tested.n_texts)
        interval = f"95 % interval over texts {over_texts.low:.4f} to {over_texts.high:.4f}"
        rows.append((f"accuracy with seed {seed} ({interval})", accuracy))
    if len(tested.seeds) > 1:
        interval = f"95 % interval over seeds of training {tested.mean.low:.4f} to {tested.mean.high:.4f}, Student's t"
        rows.append((f"mean on these texts ({interval})", tested.mean.value))
    yield _facts_table("tested", "On texts that were not learned from", rows)


def _costs(tested: TestMetrics | None) -> Iterator[Table | Note]:
    """What goes with the attention, taken away in parts."""
    if tested is None or not tested.costs:
        return
    rows = []
    for cost in tested.costs:
        seeds = "-" if cost.seeds is None else f"{cost.seeds.value:.4f} ({cost.seeds.low:.4f} to {cost.seeds.high:.4f})"
        low, high, p = f"{cost.texts.low:.4f}", f"{cost.texts.high:.4f}", write_p_value(cost.p_value)
        rows.append((cost.what, cost.texts.value, low, high, p, seeds))
    yield Table("costs", "What its attention is worth", "facts", COSTS, tuple(rows))
    yield Note(
        f"Accuracy that goes where attention is changed, on {tested.n_cost_texts:,} texts that were not learned from, "
        "paired by text: the difference, its 95 % interval over texts, p of no difference, corrected for the number of "
        "rows (Holm 1979), and the mean over seeds of training with its 95 % interval. Every key alike: all heads "
        "attend to each token as much. Queries of another text: heads attend as at the same places of another review."
    )


def _heads(measured: HeadMetrics | None) -> Iterator[Table | Note]:
    if measured is None:
        return
    rows: list[Row] = []
    for layer, of_layer in enumerate(name_heads(measured)):
        for head, name in enumerate(of_layer):
            rows.append((layer, head, name.pattern or NO_NAME, name.share if name.pattern else "-"))
    yield Table("heads", "What the heads look at", "facts", HEADS, tuple(rows))
    listed = [name for name in measured.chance if not FAR.fullmatch(name)]
    chance = ", ".join(f"{name} {measured.chance[name]:.3f}" for name in listed)
    yield Note(
        f"Means over the queries of {measured.n_texts:,} texts held out, up to {measured.n_tokens} tokens of each. "
        f"A head has the name of its largest share, from {MIN_SHARE:.0%} on, where that lies as far again beyond all "
        f"heads of {measured.n_random} encoders with random weights as these lie beyond an equal share. "
        f"Random weights, on the same texts, reach: {chance}. A name "
        "says what a head looks at, not what that is good for."
    )


def show_learning(history: History) -> Iterator[Block]:
    """Show loss and accuracy over the epochs, in training and on texts held out. What was not measured is not drawn."""
    if history.points or history.epochs:
        kept = None if history.best is None else (float(history.best.number), "kept")
        losses = [(point.epoch, point.loss, TRAINING) for point in history.points]
        shares = [(point.epoch, point.accuracy, TRAINING) for point in history.points]
        losses += [(float(epoch.number), epoch.loss, HELD_OUT) for epoch in history.epochs]
        shares += [(float(epoch.number), epoch.accuracy, HELD_OUT) for epoch in history.epochs]
        names, correct = ("x", "y", "group"), "share of texts labelled correctly"
        curves = (
            Chart("line", "loss", "epoch", "cross-entropy (nats)", names, tuple(losses), at=kept),
            Chart("line", "accuracy", "epoch", correct, names, tuple(shares), at=kept),
        )
        yield Charts("learning-curve", "loss and accuracy", curves)
    if history.epochs:
        marks = ("kept" if epoch == history.best else "-" for epoch in history.epochs)
        rows = ((e.number, e.loss, e.accuracy, mark) for e, mark in zip(history.epochs, marks, strict=True))
        yield Table("epochs", "epochs", "facts", EPOCHS, tuple(rows))
    else:
        yield Note("No epoch was measured on texts held out.")
    if history.points:
        yield Note(
            "Training is measured with dropout and label smoothing, so that it may look worse than the held-out texts: "
            "a higher loss, a lower accuracy."
        )


def _limit_notes(metrics: Metrics) -> Iterator[Note]:
    yield Note(
        "Attention weights say where a head looked, not why the model decided what it did (Jain & Wallace 2019; "
        "Wiegreffe & Pinter 2019). `attnviz attribute --card` tests what does say it."
    )
    yield Note(
        f"It has learned from {escape_for_display(metrics.data, MAX_VALUE_LENGTH)} and from nothing else: texts of "
        "another kind get a label and a probability all the same; a text of which it knows less than half of the "
        "tokens gets none."
    )
    if metrics.computed_on.startswith("cpu"):
        yield Note(
            "The command repeats the weights bit by bit with the same versions on the same kind of machine with as "
            "many threads (OMP_NUM_THREADS); elsewhere it repeats the recipe, and the last bits differ."
        )
    else:
        yield Note(
            "The command repeats the recipe and not every bit: an accelerator adds gradients in no fixed order. "
            "--device cpu repeats its weights bit by bit."
        )
    if metrics.held_out:
        yield Note(
            "The held-out texts are the last of each label in the order of the data, since neighbours may be about the "
            "same thing. Epoch and temperature were chosen on them."
        )
