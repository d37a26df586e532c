"""The study of capacity runs, and the models that it makes attend as what it trains does."""

import runpy
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from attnviz.models.checkpoint import load_checkpoint
from attnviz.specs import ModelOptions
from tests.made import load_encoder
from tests.study import STUDIES, study
from tests.text.corpora import write_csv


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a quick run writes, and the models of it. Both are run as scripts, and share what is imported."""
    study()  # which the second imports
    folder = str(tmp_path_factory.mktemp("study"))
    for command in (["capacity.py", "--quick", "--out", folder], ["recall_models.py", folder, folder]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", command)
            runpy.run_path(str(STUDIES / command[0]), run_name="__main__")
    return Path(folder)


@pytest.mark.parametrize("heads", [1, 8])
def test_models_attend_and_answer_as_the_trained_networks(heads: int, made: Path) -> None:
    """Scores and values that are looked up are those of a vector for every token."""
    capacity = study()
    kind = capacity.GRID[heads, 8]
    first = load_file(made / kind.slug)
    roles, values, _ = capacity.draw(kind, 1, 5, torch.Generator().manual_seed(0))
    weights = {name: weight.unsqueeze(0) for name, weight in first.items()}
    logits, attended = capacity.forward(kind, weights, roles, values)
    saved = load_checkpoint(made / f"recall-{heads}")
    model = load_encoder(ModelOptions(model=str(made / f"recall-{heads}")), [])
    for sequence in range(5):
        pairs = zip(roles[0, sequence].tolist(), values[0, sequence].tolist(), strict=True)
        text = " ".join(f"{' abcdefgh'[role].strip()}{value}" for role, value in pairs)
        ids = torch.tensor([saved.tokenizer.encode(text).ids])
        with torch.inference_mode():
            answers = saved.classifier(ids, torch.ones_like(ids, dtype=torch.bool))
        torch.testing.assert_close(torch.tensor(model.attention(text).weights[0, :, 0, 1:]), attended[0, sequence])
        torch.testing.assert_close(answers.view(8, 16), logits[0, sequence])


# --- docs/studies/words_and_pairs.py ---


def test_what_the_order_of_words_tells_is_learned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Words alone tell nothing here; one text of ten has the other label."""
    texts = [("bad not so", 0), ("not bad so", 1)]
    for name, rows in (("train", texts * 10), ("test", [*texts * 9, ("bad not", 1), ("not bad", 0)])):
        write_csv(tmp_path / f"{name}.csv", rows)
    study("words_and_pairs").main(str(tmp_path))
    said = capsys.readouterr().out
    assert "learned from 18 texts; of 20 others" in said
    assert "accuracy 0.9000, 95 % interval over texts 0.6990 to 0.9721" in said
