"""The metrics of a training run as a file: `metrics.json` out and in."""

import json
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

from attnviz.bounded import MAX_JSON, decode_versioned, read_bytes
from attnviz.errors import InvalidModel, raising
from attnviz.models.protocols import AttentionModel, Classifies
from attnviz.records import AttentionMaps
from attnviz.records.answers import Metrics, name_heads

SCHEMA = 6
NAME = "metrics.json"
REQUIRED_SIZES = {"n_words", "d_model", "n_heads", "n_layers", "d_feed_forward"}


def encode_metrics(metrics: Metrics) -> bytes:
    """Encode metrics as a JSON file."""
    return (json.dumps({"schema": SCHEMA, **asdict(metrics)}, indent=2, allow_nan=False) + "\n").encode()


def load_metrics(folder: Path) -> Metrics:
    """Load what `encode_metrics` wrote. Raises InvalidModel naming the file."""
    file = folder / NAME
    with raising(InvalidModel, f"{file} holds no attnviz metrics:", "Copy the folder again."):
        data = read_bytes(file, MAX_JSON, InvalidModel, "Copy the folder again.")
        metrics: Metrics = decode_versioned(Metrics, data, SCHEMA, NAME)
        if missing := [name for name in REQUIRED_SIZES if type(metrics.sizes.get(name)) is not int]:
            raise ValueError(f"sizes lack {', '.join(sorted(missing))}")
    return metrics


def load_model_metrics(model: AttentionModel) -> Metrics | None:
    """Load what was measured when a model was trained; None where no file of it says so."""
    folder = model.folder if isinstance(model, Classifies) else None
    return load_metrics(folder) if folder is not None and (folder / NAME).is_file() else None


def find_known_heads(model: AttentionModel) -> tuple[str, ...]:
    """Find what each head looks at over many texts, layer after layer.

    "" is for no single pattern; () if nobody measured.
    """
    metrics = load_model_metrics(model)
    if metrics is None or metrics.heads is None:
        return ()
    return tuple(
        f"{name.pattern} {name.share:.2f}" * bool(name.pattern) for of in name_heads(metrics.heads) for name in of
    )


def add_known_heads(maps: AttentionMaps, heads: tuple[str, ...]) -> AttentionMaps:
    """Add to a record what its heads look at over many texts: `heads` are those of the whole model."""
    if not heads:
        return maps
    n_heads = maps.n_heads + len(maps.unseen_heads)
    here = tuple(heads[layer * n_heads + head] for layer, head in product(maps.layer_numbers, maps.head_numbers))
    facts = replace(maps.provenance.facts, known_heads=here)
    return replace(maps, provenance=replace(maps.provenance, facts=facts))
