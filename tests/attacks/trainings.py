"""Tiny trainings that attacks begin, and what has to be true of every folder that one leaves."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.torch import load_file

from tests.attacks import endings

SIZES = (
    *("--batch-size", "8", "--d-model", "16", "--heads", "2", "--size", "300"),
    *("--pretrain", "0", "--learning-rate", "0.005"),
)
TINY = ("train", "--dataset", "sample", "--epochs", "2", *SIZES)
STATE, METRICS = "training.safetensors", "metrics.json"
CHECKPOINT = {"model.safetensors", "tokenizer.json", "config.json"}
FILES = {*CHECKPOINT, METRICS, "README.md", "learning-curve.png"}


def check_whole(folder: Path) -> set[str]:
    """Every file opens; what is half-written is hidden. Gives the others' names."""
    names = {
        path.name for path in folder.iterdir() if not (path.name.startswith(".") and path.suffix in (".part", ".lock"))
    }
    assert names <= {*FILES, STATE}
    for name in names:
        match Path(name).suffix:
            case ".safetensors":
                assert load_file(folder / name)
            case ".json":
                json.loads((folder / name).read_bytes())
            case ".png":
                endings.png(folder / name)
            case ".md":
                assert (folder / name).read_text(encoding="utf-8").endswith(".\n")
    return names
