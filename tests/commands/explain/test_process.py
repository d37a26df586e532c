"""`attnviz explain --by-hand`: what stands on stdout, and how it ends; mistakes are in tests/cli/test_mistakes.py."""

import json
from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz.models import attention
from tests.attacks.endings import RunHere, notes, refused, worked

pytestmark = pytest.mark.usefixtures("undrawn")
TEXT = "the film was not good but the acting saved it"
UNTRAINED = ("--model", "random:4", "--d-model", "16")
LESSON = 'attnviz lesson "a sentence" makes a page of the same steps, to explore'


def test_scores_and_weights_on_stdout_and_a_picture_of_all_steps(run_here: RunHere, tmp_path: Path) -> None:
    run = worked(run_here("explain", "--text", TEXT, "--by-hand", "--query", "good", "--head", "0.1"))
    assert run.stderr == f"note: wrote explanation/steps-layer-0-head-1.png\nnote: {LESSON}\n"
    assert run.stdout.startswith("Attention from token 4 good in multi:8, step by step\ntrained · “the film was")
    (header,) = (line for line in run.stdout.splitlines() if line.startswith("key"))
    assert header.split() == ["key", "q", "·", "k", "b", "/", "√16", "+", "b", "/", "Σ", "exp(s)"]
    assert len(run.stdout.splitlines()) <= 28
    assert max(map(len, run.stdout.splitlines())) <= 80
    assert [path.name for path in tmp_path.rglob("*.*")] == ["steps-layer-0-head-1.png"]


def test_the_weights_are_those_of_the_record(run_here: RunHere, tmp_path: Path) -> None:
    asked = ("--text", TEXT, "--layers", "2", *UNTRAINED)
    worked(run_here("heatmap", *asked, "--table", "none"))
    maps = attnviz.load(tmp_path / "attention" / "attention.safetensors")
    found = json.loads(worked(run_here("explain", *asked, "--query", "acting", "--head", "1.0", "--json")).out)
    assert (found["layer"], found["query"]) == (1, 7)
    weights = np.array([head["weights"] for head in found["heads"]])
    assert np.abs(weights - maps.weights[1, :, 7]).max() < 1e-6
    assert found["largest_error"] <= found["allowed_error"]
    assert np.abs(np.array(found["output"]) - found["model_output"]).max() == found["largest_error"]


def test_without_a_query_it_is_the_first_token_or_of_a_causal_model_the_last(run_here: RunHere) -> None:
    run = worked(run_here("explain", "--text", TEXT, *UNTRAINED, "--json"))
    assert json.loads(run.out)["query"] == 0
    assert notes(run) == ["explaining token 0 'the'; --query chooses others", LESSON]
    run = worked(run_here("explain", "--text", TEXT, *UNTRAINED, "--json", "--causal"))
    assert json.loads(run.out)["query"] == 9
    assert json.loads(worked(run_here("explain", "--text", TEXT, "--by-hand", "--causal", "--json")).out)["query"] == 9


def test_without_a_text_it_is_the_first_of_the_sample(run_here: RunHere) -> None:
    run = worked(run_here("explain", "--by-hand", "--query", "0"))
    assert notes(run) == ["explaining sample train[0]; --text and --index choose others", LESSON]
    assert "· “The film was not loud, but the quiet in…” ·" in run.stdout
    second = worked(
        run_here("explain", "--by-hand", "--query", "0", "--dataset", "sample", "--split", "test", "--index", "1")
    )
    assert "· “There is no film here, only a very…” ·" in second.stdout


def test_arithmetic_that_does_not_give_the_models_output_ends_in_failure(
    run_here: RunHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "TOLERANCE", 0.0)
    refused(run_here("explain", "--text", TEXT, "--by-hand"), "does not give what layer 0 of the model gives", code=1)


# Very short texts, and padding


@pytest.mark.parametrize("model", ["multi", "dot"])
@pytest.mark.parametrize("causal", [(), ("--causal",)])
def test_a_text_of_one_token(model: str, causal: tuple[str, ...], run_here: RunHere) -> None:
    asked = ("explain", "--text", "good", "--model", model, "--by-hand", *causal)
    found = json.loads(worked(run_here(*asked, "--json")).out)
    assert all(head["weights"] == [1.0] for head in found["heads"])
    assert "0 good" in worked(run_here(*asked)).stdout


@pytest.mark.parametrize("asked", [("--max-tokens", "1"), ("--keep", "head-tail")])
def test_nothing_is_not_a_number(asked: tuple[str, ...], run_here: RunHere) -> None:
    for writing in ((), ("--print", "markdown"), ("--print", "latex"), ("--json",)):
        text = worked(run_here("explain", "--text", "a fine film", "--query", "-1", "--model", "dot", *asked, *writing))
        assert "nan" not in text.stdout.lower()
