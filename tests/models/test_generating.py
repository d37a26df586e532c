"""Models of others that write: what they read and wrote is one record, that of the steps in which they wrote it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnviz.errors import AttnvizError, InvalidModel, InvalidOption, TooLarge
from attnviz.models.loading import find_model
from attnviz.models.protocols import AttentionModel, Generates
from attnviz.models.recording.record import record
from attnviz.records import AttentionMaps
from attnviz.specs import ModelOptions, PretrainedOptions
from tests import pretrained as made

pytestmark = pytest.mark.filterwarnings("ignore")  # the library warns of its own future

transformers = pytest.importorskip("transformers", reason=made.NEEDS)

TEXT = "the acting saved the film"
SEQ2SEQ = ("bart", "t5")


def saved(folder: Path, kind: str, **settings: Any) -> Path:
    """A folder of a model that can write, by default without an end."""
    auto = "AutoModelForSeq2SeqLM" if kind in SEQ2SEQ else "AutoModelForCausalLM"
    return made.saved(folder, kind, auto=auto, **{**made.ENDLESS, **settings})


def opened(folder: Path, seed: int = 0, **asked: Any) -> AttentionModel:
    reference = find_model(ModelOptions(model=str(folder), seed=seed), PretrainedOptions(**asked))
    reference.check(Generates)
    return reference.open(())


def ids_of(maps: AttentionMaps) -> list[int]:
    return [int(each) for each in str(dict(maps.provenance.settings)["generated_ids"]).split(",")]


@pytest.mark.parametrize(
    ("kind", "attention"), [("mistral", None), ("gpt_oss", None), ("bart", "cross"), ("t5", "decoder")]
)
def test_the_record_is_that_of_the_steps(kind: str, attention: str | None, tmp_path: Path) -> None:
    """Of the model's own `generate`, watched step by step: the same tokens, the same attention."""
    folder = saved(tmp_path / kind, kind)
    maps = opened(folder, generate=6, attention=attention).attention(TEXT)
    model = (transformers.AutoModelForSeq2SeqLM if attention else transformers.AutoModelForCausalLM).from_pretrained(
        folder, attn_implementation="eager" if kind == "gpt_oss" else "sdpa"
    )
    inputs = transformers.AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt", return_token_type_ids=False)
    with torch.inference_mode(), record() as steps:
        ids = model.eval().generate(**inputs, max_new_tokens=6, do_sample=False)[0].tolist()
    assert ids_of(maps) == ids[-6:]
    shape = (maps.weights.shape[2:], maps.self_attention)
    (own,) = [each for each in steps if (each.weights.shape[2:], each.self_attention) == shape]
    np.testing.assert_allclose(maps.weights, own.weights, atol=1e-5)
    np.testing.assert_array_equal(maps.attendable, own.attendable)
    assert maps.self_attention is (attention != "cross")
    n_prompt = 1 if attention else inputs["input_ids"].shape[1]
    assert len(maps.queries) == n_prompt + 5
    assert len(maps.chosen) == 6
    assert maps.queries.pieces[n_prompt:] == maps.chosen[:-1]


def test_greedy_is_greedy_whatever_the_models_files_say(tmp_path: Path) -> None:
    folder = saved(tmp_path / "a", "gpt2")
    plain = opened(folder, generate=12).attention(TEXT)
    file = folder / "generation_config.json"
    asked = {"do_sample": True, "temperature": 9.0, "repetition_penalty": 50.0}
    file.write_text(json.dumps(json.loads(file.read_text()) | asked))
    again = opened(folder, generate=12).attention(TEXT)
    assert ids_of(again) == ids_of(plain)
    assert again.provenance.text_name == "text and 12 tokens that it wrote (greedy)"


def test_a_model_that_ends_writes_no_more(tmp_path: Path) -> None:
    """Its end marker was chosen and never read."""
    first, *_ = ids_of(opened(saved(tmp_path / "a", "gpt2"), generate=4).attention(TEXT))
    maps = opened(saved(tmp_path / "b", "gpt2", eos_token_id=first), generate=4).attention(TEXT)
    assert ids_of(maps) == [first]
    assert maps.queries.pieces == ("[CLS]", *TEXT.split(), "[SEP]")
    assert len(maps.chosen) == 1


@pytest.mark.parametrize(
    ("kind", "asked", "error", "says"),
    [
        ("gpt2", {"generate": 35}, TooLarge, "35 after 7 of the text is beyond the 40 positions .* --generate 34 fits"),
        ("bart", {"generate": 41}, TooLarge, "--generate 41 is beyond the 40 positions .* --generate 40 fits"),
        ("t5", {"generate": 10**9}, TooLarge, "GiB"),
        ("bart", {"generate": 2, "target_text": "it"}, InvalidOption, "both say what the decoder writes"),
        ("bart", {"generate": 2, "attention": "encoder"}, InvalidOption, "--attention encoder reads no target text"),
    ],
)
def test_what_cannot_be_written_is_refused(
    kind: str, asked: dict[str, Any], error: type[AttnvizError], says: str, tmp_path: Path
) -> None:
    folder = saved(tmp_path / kind, kind)
    with pytest.raises(error, match=says):
        opened(folder, **asked).encode(TEXT)


@pytest.mark.parametrize(
    ("model", "error"), [("multi", InvalidOption), ("recall", InvalidOption), ("bert", InvalidModel)]
)
def test_a_model_that_writes_nothing_says_what_would(model: str, error: type[AttnvizError], tmp_path: Path) -> None:
    name = model if model != "bert" else str(made.saved(tmp_path / "bert", "bert"))
    with pytest.raises(error, match=r"writes? no(ne| text)\. --generate takes a decoder such as Llama"):
        find_model(ModelOptions(model=name), PretrainedOptions(generate=3)).check(Generates)


def test_bytes_of_one_character_cover_it_together() -> None:
    model: Any = opened(made.stories(), generate=1)
    tokenizer = model.loaded.tokenizer
    (*before, last) = tokenizer.encode("a").ids
    ids = tokenizer.encode("a猫é").ids[len(before) + 1 :]
    tokens = tokenizer.decode_written([*before, last], [*ids, 2], 10)
    assert tokens.pieces == ("猫", "猫", "猫", "é", "</s>")
    assert tokens.offsets == ((10, 11), (10, 11), (10, 11), (11, 12), (12, 12))
    assert tokens.special == (False,) * 4 + (True,)
