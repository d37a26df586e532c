"""What tuning changed: heads that were touched are named, others are not, and chance is beaten or said to be."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnviz.commands.changed.run import find_beyond
from tests import pretrained as made
from tests.attacks.endings import RunHere, document, refused, worked

pytestmark = pytest.mark.usefixtures("undrawn")

CAUSAL = "AutoModelForCausalLM"
SHORT = ("--noise", "3", "--texts", "2")
LLAMA_Q = "model.layers.0.self_attn.q_proj.weight"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("texts") / "texts.txt"
    file.write_text("\n".join(f"the {a} was {b} good and it sat" for a in made.WORDS[:5] for b in ("not", "but")))
    return file


@pytest.fixture
def tuned(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """A model, and a copy of it with other numbers in some of its weights."""

    def make(kind: str, auto: str, name: str, change: Callable[[torch.Tensor], object]) -> tuple[Path, Path]:
        base = made.saved(tmp_path / "base", kind, auto=auto, **made.ENDLESS)
        model = made.built(kind, auto=auto, **made.ENDLESS)
        with torch.no_grad():
            change(model.get_parameter(name))
        model.save_pretrained(tmp_path / "tuned")
        made.tokenizer().save_pretrained(tmp_path / "tuned")
        return base, tmp_path / "tuned"

    return make


def ask(run_here: RunHere, *options: str | Path) -> Any:
    return document(worked(run_here("changed", *options, *SHORT, "--json")))


def name_tuned(found: Any) -> list[str]:
    return sorted(f"{row['layer']}.{row['head']}" for row in found["heads"] if row["tuned"])


@pytest.mark.parametrize(
    ("kind", "auto", "name", "rows", "columns", "heads"),
    [
        ("llama", CAUSAL, LLAMA_Q, slice(4, 8), slice(None), ["0.1"]),
        ("llama", CAUSAL, LLAMA_Q.replace("q_proj", "k_proj"), slice(0, 4), slice(None), ["0.0", "0.1"]),  # a group
        ("llama", CAUSAL, "model.layers.0.mlp.up_proj.weight", slice(None), slice(None), []),
        ("gpt2", CAUSAL, "transformer.h.0.attn.c_attn.weight", slice(None), slice(36, 40), ["0.1"]),  # values
        ("bert", "AutoModel", "encoder.layer.0.attention.self.query.weight", slice(12, 16), slice(None), ["0.3"]),
    ],
)
def test_the_heads_whose_weights_changed_are_named_and_no_others(
    kind: str, auto: str, name: str, rows: slice, columns: slice, heads: list[str],
    tuned: Callable[..., tuple[Path, Path]], texts: Path, run_here: RunHere,
) -> None:  # fmt: skip
    found = ask(run_here, *tuned(kind, auto, name, lambda weight: weight[rows, columns].mul_(1.5)), "--dataset", texts)
    assert name_tuned(found) == heads
    assert any(row["moved"] > row["own"] for row in found["heads"]), "later ones read something else"
    for row in found["heads"]:
        assert (row["own"] > 0) <= row["tuned"]
        if len(heads) == 1 and row["tuned"]:  # all of the change is this head's
            assert row["brings"] == pytest.approx(1, abs=1e-3)
            assert row["lost"] == pytest.approx(1, abs=1e-3)


def test_lora_of_three_heads_is_what_peft_would_merge(
    tuned: Callable[..., tuple[Path, Path]], texts: Path, tmp_path: Path, run_here: RunHere
) -> None:
    from safetensors.torch import save_file

    up = torch.zeros(16, 2)
    up[4:16] = 0.5
    base, merged_by_hand = tuned("llama", CAUSAL, LLAMA_Q, lambda weight: weight.add_(2 * up @ torch.ones(2, 16)))
    where = "base_model.model." + LLAMA_Q.removesuffix(".weight")
    (tmp_path / "lora").mkdir()
    tensors = {f"{where}.lora_A.weight": torch.ones(2, 16), f"{where}.lora_B.weight": up}
    save_file(tensors, tmp_path / "lora" / "adapter_model.safetensors")
    settings = {"peft_type": "LORA", "lora_alpha": 4, "r": 2}
    (tmp_path / "lora" / "adapter_config.json").write_text(json.dumps(settings))
    found = ask(run_here, base, tmp_path / "lora", "--dataset", texts)
    assert name_tuned(found) == ["0.1", "0.2", "0.3"]
    merged = ask(run_here, base, merged_by_hand, "--dataset", texts)
    assert [row["moved"] for row in merged["heads"]] == pytest.approx([row["moved"] for row in found["heads"]])
    (tmp_path / "lora" / "adapter_config.json").write_text(json.dumps(settings | {"use_dora": True}))
    refused(run_here("changed", base, tmp_path / "lora", "--dataset", texts), "is no LoRA of this model")


def test_the_same_weights_changed_nothing(texts: Path, tmp_path: Path, run_here: RunHere) -> None:
    base = made.saved(tmp_path / "base", "llama", auto=CAUSAL, **made.ENDLESS)
    run = worked(run_here("changed", base, base, *("--text", "the cat sat") * 2, *SHORT))
    assert "note: leaving out 1 of 2 texts: the same text stands there before\n" in run.stderr
    assert "Nothing changed: the weights that both have are the same, number for number." in run.out.decode()
    other = made.saved(tmp_path / "other", "llama", auto=CAUSAL, num_hidden_layers=3, **made.ENDLESS)
    refused(run_here("changed", base, other, "--dataset", texts), "layers.2.self_attn.q_proj.weight is missing in")
    wide = made.saved(tmp_path / "wide", "llama", auto=CAUSAL, vocab_size=40, **made.ENDLESS)
    refused(run_here("changed", base, wide, "--dataset", texts), "embed_tokens.weight is (32, 16) in base")
    refused(run_here("changed", "multi", base, "--dataset", texts), "is not of transformers")


def test_noise_is_beyond_noise_in_one_run_of_twenty() -> None:
    rng = np.random.default_rng(0)
    runs = [rng.gamma(2.0, size=(20, 3, 30)) * rng.gamma(1.0, size=30) for _ in range(200)]
    beyond = np.array([find_beyond(run[0], list(run[1:])).any(axis=1) for run in runs])
    assert (beyond.mean(axis=0) < 0.1).all()
    assert 0.05 < beyond[:, 1:].any(axis=1).mean() < 0.15, "of two numbers in 2 of 20, as is said"
    assert find_beyond(runs[0].mean(axis=0) * 99, list(runs[0][1:])).all()
