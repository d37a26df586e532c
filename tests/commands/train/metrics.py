"""The metrics of a training that never was."""

from attnviz.commands.train.spec import TrainSpec
from attnviz.options import list_values
from attnviz.records.training_metrics import Metrics, ValidationMetrics
from attnviz.table.intervals import Interval
from tests.made import HISTORY

METRICS = Metrics(
    settings={
        **{name: value for name, value in list_values(TrainSpec()).items() if value is not None},
        "seed": 7,
        "heads": 2,
        "d_model": 16,
        "learning_rate": 0.005,
    },
    data="sample train[:20]",
    data_sha256="da" * 32,
    n_texts=1800,
    labels=("negative", "positive"),
    sizes={
        "n_words": 12_345,
        "d_model": 16,
        "n_heads": 2,
        "n_layers": 3,
        "d_feed_forward": 64,
        "norm": "pre",
        "max_distance": 48,
    },
    n_parameters=208_258,
    weights_sha256="feed" * 16,
    versions={"attnviz": "0.1.0", "torch": "2.13.0"},
    computed_on="cpu, 1 thread",
    history=HISTORY,
    held_out=ValidationMetrics(200, Interval(0.75, 0.6858, 0.8049), 0.5643, 0.0254, 0.4125, labels_changed=3),
)
