"""A training run in words: what was learned from what, how well, and the command that does it again.

A card says what somebody needs who finds the model in a folder. Every number of the run is in metrics.json beside it.
"""

import shlex
from collections.abc import Iterator
from dataclasses import asdict

from attnviz.commands.train.spec import TrainSpec
from attnviz.display import escape_for_display, format_count
from attnviz.options import list_options
from attnviz.records.answers import HeadMetrics, History, Metrics, name_heads
from attnviz.records.head_names import MIN_SHARE, NO_NAME
from attnviz.report import Chart, Charts, Column, Note, Report, Row, Table
from attnviz.table.intervals import Interval

MAX_VALUE_LENGTH = 200
FORM = ("norm", "pool", "max_distance", "storage")  # settings that say how the model is built and kept
FACTS = (Column("what"), Column("value", digits=4))
HEADS = (Column("layer"), Column("head"), Column("looks at"), Column("share", digits=3))
TRAINING, HELD_OUT = "training (with dropout)", "held out"
LIMITS = (
    "Attention weights say where a head looked, not why the model decided what it did (Jain & Wallace 2019; "
    "Wiegreffe & Pinter 2019). `attnviz attribute --card` tests what does say it.",
    "Texts of another kind than those that it has learned from get a label and a probability all the same; a text of "
    "which it knows less than half of the tokens gets none.",
    "The command repeats the weights bit by bit on a CPU, with the same versions on the same kind of machine "
    "with as many threads (OMP_NUM_THREADS); elsewhere it repeats the recipe, and the last bits differ.",
    "Texts held out are the last of each label in the order of the data, since neighbours may be about the same "
    "thing. Epoch and temperature are chosen on them. Training is measured with dropout and label smoothing, so that "
    "it may look worse.",
)


def card_report(metrics: Metrics) -> Report:
    """Describe a trained model: its card, what the terminal shows at the end of training, and its figures."""
    sizes, settings, held_out = metrics.sizes, metrics.settings, metrics.held_out
    n_heads, d_model = int(sizes["n_heads"] or 1), int(sizes["d_model"] or 0)
    name = escape_for_display(metrics.data, MAX_VALUE_LENGTH)
    command = escape_for_display(format_command(metrics), 1000)
    heads = f"{format_count(n_heads, 'heads')} of width {d_model // n_heads}"
    model: list[Row] = [
        ("layers", f"{sizes['n_layers']}, each with {heads} (d_model {d_model})"),
        ("built and kept", ", ".join(f"{each} {settings[each]}" for each in FORM)),
        ("vocabulary", f"{int(sizes['n_words'] or 0):,} entries"),
        ("reads", f"at most {settings['max_tokens']} tokens of a text (--keep {settings['keep']})"),
        ("labels", escape_for_display(", ".join(metrics.labels), MAX_VALUE_LENGTH)),
    ]
    recipe: list[Row] = [
        ("data", f"{name}: {metrics.n_texts:,} texts, and {held_out.n_texts:,} held out"),
        ("sha256 of the data", metrics.data_sha256),
        ("command", command),
        ("versions", ", ".join(f"{package} {version}" for package, version in metrics.versions.items())),
        ("computed on", escape_for_display(metrics.computed_on, MAX_VALUE_LENGTH)),
    ]
    return Report(
        title=f"Transformer encoder with {format_count(n_heads, 'heads')}, trained on {name}",
        subtitle=f"weights sha256 {metrics.weights_sha256[:8]}… · {metrics.n_parameters:,} parameters",
        blocks=(
            Note(f"Right on {_write_accuracy(held_out.accuracy)} of {held_out.n_texts:,} texts held out.", leads=True),
            Table("results", "How often it is right", "facts", FACTS, [*_list_results(metrics)]),
            *_heads(metrics.heads),
            Table("model", "The model", "facts", FACTS, model),
            Table("recipe", "How it was made", "facts", FACTS, recipe),
            draw_learning(metrics.history),
            *map(Note, LIMITS),
        ),
        facts=(("weights sha256", metrics.weights_sha256), ("data", name), ("command", command)),
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


def _list_results(metrics: Metrics) -> Iterator[Row]:
    """Yield how often the model is right on the texts held out, and on those of a test, where there are any."""
    held, bound = metrics.held_out, metrics.held_out.calibration_bound
    drawn = f"; by chance 95 % below {bound:.4f}" if bound is not None else ""
    yield "log loss, calibrated (nats)", held.loss
    yield f"calibration error (ECE{drawn})", held.calibration_error
    yield "temperature", held.temperature
    yield "labels that rounding the weights changed", f"{held.labels_changed} of {held.n_texts:,}"
    if (loss := metrics.history.masked_word_loss) is not None:
        yield "loss of masked words after pretraining (nats)", loss
    if tested := metrics.tested:
        texts = f"{tested.n_texts:,} texts of {escape_for_display(tested.data, MAX_VALUE_LENGTH)}"
        seeds = format_count(len(tested.seeds), "seeds")
        yield f"right on {texts}, {seeds}", _write_accuracy(tested.mean)


def _write_accuracy(share: Interval) -> str:
    return f"{share.value:.1%} (95 % interval {share.low:.1%} to {share.high:.1%})"


def _heads(measured: HeadMetrics | None) -> Iterator[Table | Note]:
    if measured is None:
        return
    rows: list[Row] = []
    for layer, of_layer in enumerate(name_heads(measured)):
        for head, name in enumerate(of_layer):
            rows.append((layer, head, name.pattern or NO_NAME, name.share if name.pattern else "-"))
    yield Table("heads", "What the heads look at", "facts", HEADS, tuple(rows))
    yield Note(
        f"Means over the queries of {measured.n_texts:,} texts held out, up to {measured.n_tokens} tokens of each. "
        f"A head has the name of its largest share, from {MIN_SHARE:.0%} on, where that lies as far again beyond all "
        f"heads of {measured.n_random} encoders with random weights as these lie beyond an equal share. A name "
        "says what a head looks at, not what that is good for."
    )


def draw_learning(history: History) -> Charts:
    """Draw loss and accuracy over the epochs, in training and on texts held out."""
    kept = None if history.best is None else (float(history.best.number), "kept")
    units, curves = {"loss": "cross-entropy (nats)", "accuracy": "share of texts labelled correctly"}, list[Chart]()
    for name, unit in units.items():
        rows = [(point.epoch, getattr(point, name), TRAINING) for point in history.points]
        rows += [(float(epoch.number), getattr(epoch, name), HELD_OUT) for epoch in history.epochs]
        curves.append(Chart("line", name, "epoch", unit, ("x", "y", "group"), tuple(rows), at=kept))
    return Charts("learning-curve", "loss and accuracy", tuple(curves))
