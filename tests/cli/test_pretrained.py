"""Models of others on the command line."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from attnviz.running.executors import open_executor
from tests import pretrained as made
from tests.attacks.endings import RunHere, document, worked

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


@pytest.mark.parametrize("kind", ["minilm", "stories"])
def test_real_models_from_the_command_line(kind: str, attnviz: RunHere) -> None:
    folder = made.minilm() if kind == "minilm" else made.stories()
    found = document(
        worked(
            attnviz(
                "heatmap",
                "--model",
                folder,
                "--text",
                "Unbelievably 猫坐 a 👩‍👩‍👧",
                "--layer",
                "0",
                "--head",
                "0",
                "--json",
            )
        )
    )
    (only,) = found["texts"]
    assert "".join(only["queries"]["pieces"]).replace("[CLS]", "").replace("[SEP]", "").replace("<s>", "").strip()
    assert only["settings"]["largest_error"] < 1e-5


def test_which_heads_of_a_real_model_look_at_the_token_before(attnviz: RunHere) -> None:
    """Head 2 of layer 0 of MiniLM looks at the token before, as anybody can see; the table says so first."""
    text = "the quick brown fox jumps over the lazy dog and runs into the woods"
    run = worked(attnviz("heatmap", "--model", made.minilm(), "--text", text, "--sort", "to_previous", "--out", "a"))
    rows = [line.split() for line in run.stdout.splitlines()]
    heads = [row for row in rows if len(row) > 5 and row[0].isdigit() and row[1].isdigit()]
    assert heads[0][:2] == ["0", "2"]
