"""Models of others on the command line."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from attnviz.running.executors import open_executor
from tests import pretrained as made
from tests.attacks.endings import RunHere, worked

pytest.importorskip("transformers", reason=made.NEEDS)

TEXT = "the acting saved the film but not the cat"


def test_a_batch_is_made_once_and_again_where_the_weights_change(
    tmp_path: Path, attnviz: RunHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First in a process of its own; then here, since each such process imports transformers: three seconds."""
    folder = made.saved(tmp_path / "model", "bert")
    job = {"name": "theirs", "heatmap": {"model": "./model", "text": TEXT, "layer": "0", "head": "0-1"}}
    (tmp_path / "figures.yaml").write_text(json.dumps({"jobs": [job]}))
    run = ("batch", "figures.yaml", "--workers", "1")
    assert "made theirs" in worked(attnviz(*run)).stdout
    for module in ("commands.batch.run", "running.executors"):
        monkeypatch.setattr(f"attnviz.{module}.open_executor", partial(open_executor, inline=True))
    assert "unchanged theirs" in worked(attnviz(*run)).stdout
    manifest = json.loads((tmp_path / "figures" / "manifest.json").read_text())
    assert {"transformers", "weights of ./model"} <= set(manifest["jobs"][0]["inputs"])
    assert worked(attnviz("diff", "figures", "--again")).stdout.startswith("No difference\n")
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights["embeddings.word_embeddings.weight"] = -np.asarray(weights["embeddings.word_embeddings.weight"])
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert "made theirs" in worked(attnviz(*run)).stdout
