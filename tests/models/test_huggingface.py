"""Models of others: read safely, run under their own kernel, recorded as they attend."""

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnviz.document import Chat
from attnviz.errors import ExecutionError, InvalidModel, InvalidOption, InvalidText, TooLarge
from attnviz.models.loading import find_model
from attnviz.records import AttentionMaps
from attnviz.specs import ModelOptions, PretrainedOptions
from tests import pretrained as made

pytest.importorskip("transformers", reason=made.NEEDS)

from attnviz.models.huggingface.model import HuggingFaceModel

pytestmark = pytest.mark.filterwarnings("ignore")  # the library warns of its own future

TEXT = "The acting saved the film, but not the cat"


def opened(folder: Path, spec: ModelOptions | None = None, **asked: Any) -> HuggingFaceModel:
    model = find_model(replace(spec or ModelOptions(), model=str(folder)), PretrainedOptions(**asked)).open(())
    assert isinstance(model, HuggingFaceModel)
    return model


@lru_cache(maxsize=2)
def eager(folder: Path) -> Any:
    import transformers

    return transformers.AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()


def own(folder: Path, name: str = "attentions", **inputs: list[int]) -> np.ndarray:
    """What the model itself says, with its attention written out."""
    with torch.no_grad():
        output = eager(folder)(**{key: torch.tensor([ids]) for key, ids in inputs.items()}, output_attentions=True)
    return torch.stack(getattr(output, name))[:, 0].numpy()


def close(maps: AttentionMaps, theirs: np.ndarray) -> None:
    np.testing.assert_allclose(maps.weights, theirs, atol=1e-5)


def test_what_a_library_prints_of_a_file_reaches_nobody(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """tokenizers prints names that it does not know, past Python: between our numbers, and escapes to a terminal."""
    folder = made.saved(tmp_path / "bert", "bert")
    content = json.loads((folder / "tokenizer.json").read_text())
    content["added_tokens"][0]["\x1b[31m"] = False
    (folder / "tokenizer.json").write_text(json.dumps(content))
    opened(folder)
    print("ours")
    assert capfd.readouterr().out == "ours\n"


@pytest.mark.parametrize("kind", ["bert", "gpt2", "modernbert", "gemma2", "gpt_oss", "deberta-v2"])
def test_weights_are_the_models_own(kind: str, tmp_path: Path) -> None:
    folder = made.saved(tmp_path / kind, kind)
    attender = opened(folder)
    maps = attender.attention(TEXT, "mine")
    close(maps, own(folder, input_ids=list(attender.encode(TEXT).source.ids)))
    assert maps.queries.pieces[:4] == ("[CLS]", "The", "acting", "saved")
    assert maps.queries.special == (True, *(False,) * 10, True)
    assert (maps.n_layers, maps.n_heads) == (attender.n_layers, attender.n_heads)
    told = dict(maps.provenance.settings)
    is_eager = kind in ("gemma2", "gpt_oss", "deberta-v2")
    assert told["kernel"] == ("eager" if is_eager else "scaled_dot_product_attention")
    assert 0 <= float(str(told["largest_error"])) < 1e-5
    assert maps.provenance.model == kind
    assert maps.provenance.trained is None


def test_what_a_model_does_not_take_is_said_in_its_own_words(tmp_path: Path) -> None:
    """Nystromformer wants lengths that its landmarks divide."""
    model = opened(made.saved(tmp_path / "a", "nystromformer", num_landmarks=4, segment_means_seq_len=40))
    with pytest.raises(ExecutionError, match=r"^\S+ fails by itself: RuntimeError: shape .* is invalid[^\n]*$"):
        model.attention(TEXT)


def test_a_model_that_reads_no_text_says_what_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidModel, match=r"^perceiver is a PerceiverModel, which reads inputs, not text\. .*record"):
        opened(made.saved(tmp_path / "perceiver", "perceiver"))
    parts = [made.configuration(f"clip_{part}_model").to_dict() for part in ("text", "vision")]
    monkeypatch.setitem(made.FAMILIES, "clip", {"text_config": parts[0], "vision_config": parts[1]})
    with pytest.raises(InvalidModel, match="is a CLIPModel, which reads pixel_values beside text"):
        opened(made.saved(tmp_path / "clip", "clip"))


def test_every_attention_of_an_encoder_decoder(tmp_path: Path) -> None:
    for kind, n_decoder_layers, begin in (("bart", 3, ["[SEP]", "[CLS]"]), ("t5", 2, ["[PAD]", "[CLS]"])):
        folder = made.saved(tmp_path / kind, kind)
        target = "it was good"
        both = opened(folder, target_text=target)
        read = both.encode(TEXT)
        assert read.target is not None
        inputs = {"input_ids": list(read.source.ids), "decoder_input_ids": list(read.target.ids)}
        encoder = opened(folder).attention(TEXT)
        close(encoder, own(folder, "encoder_attentions", **inputs))
        decoder = opened(folder, attention="decoder", target_text=target).attention(TEXT)
        close(decoder, own(folder, "decoder_attentions", **inputs))
        assert decoder.self_attention
        assert decoder.n_layers == n_decoder_layers
        cross = both.attention(TEXT)
        close(cross, own(folder, "cross_attentions", **inputs))
        assert cross.queries.pieces == (*begin, "it", "was", "good")
        assert cross.keys.pieces[:3] == ("[CLS]", "The", "acting")
        assert not cross.self_attention
        assert encoder.provenance.text_sha256 != cross.provenance.text_sha256


@pytest.mark.parametrize(
    ("kind", "asked", "problem"),
    [
        ("bert", {"attention": "cross"}, "--attention cross is for encoder-decoders, and a is none"),
        ("bert", {"target_text": "a"}, "--target-text is for encoder-decoders"),
        ("bart", {"attention": "self"}, "a has three attentions"),
        ("bart", {"attention": "cross"}, "--attention cross needs --target-text"),
        ("bart", {"attention": "encoder", "target_text": "a"}, "--attention encoder reads no target text"),
        ("bart", {"target_text": " "}, "no tokens in the target text"),
    ],
)
def test_an_attention_that_there_is_not(kind: str, asked: dict[str, Any], problem: str, tmp_path: Path) -> None:
    with pytest.raises((InvalidOption, InvalidText), match=problem):
        opened(made.saved(tmp_path / "a", kind), **asked).attention(TEXT)


@pytest.mark.parametrize("window", [4, 64])
def test_attention_in_pieces_is_named_where_it_is_all_there_is_and_beside_others(window: int, tmp_path: Path) -> None:
    pieces = "softmaxes over scores in pieces, which were not multiplied with values as they were: "
    with pytest.raises(InvalidModel, match=rf"no self attention was seen in a\. .*{pieces}encoder\.layer\.0"):
        opened(made.saved(tmp_path / "a", "longformer", attention_window=window)).attention(TEXT)
    maps = opened(
        made.saved(tmp_path / "b", "led", attention_window=window), attention="decoder", target_text=TEXT
    ).attention(TEXT)
    assert f"{pieces}encoder.layers.0.self_attn" in maps.provenance.facts.guess


def test_two_texts(tmp_path: Path) -> None:
    folder = made.saved(tmp_path / "a", "bert")
    attender = opened(folder, pair="not good")
    read = attender.encode("The cat")
    assert read.source.tokens.pieces == ("[CLS]", "The", "cat", "[SEP]", "not", "good", "[SEP]")
    assert read.source.tokens.offsets[4:6] == ((8, 11), (12, 16))
    assert read.source.types == (0, 0, 0, 0, 1, 1, 1)
    theirs = own(folder, input_ids=list(read.source.ids), token_type_ids=list(read.source.types))
    close(attender.attention("The cat"), theirs)


def test_a_text_that_is_too_long_is_refused_and_the_hint_is_true(tmp_path: Path) -> None:
    for kind, most in (("bert", 40), ("roberta", 39), ("gpt2", 40)):
        folder = made.saved(tmp_path / kind, kind)
        with pytest.raises(TooLarge, match=rf"52 tokens, and {kind} reads at most {most}\. --max-tokens {most} reads"):
            opened(folder).encode("cat " * 50)
        spec = ModelOptions(model=str(folder), max_tokens=most, keep="head-tail")
        maps = opened(folder, spec).attention("cat " * 50)
        assert len(maps.queries) == most
        assert dict(maps.provenance.settings)["tokens_in_text"] == 50


def test_memory_is_checked_before_it_is_taken(tmp_path: Path) -> None:
    folder = made.saved(tmp_path / "a", "bert", vocab_size=40_000)
    said = r"the weights of .* as float32 need 0\.00\d+ GiB, allowed are 0\.001. --max-memory 0\.01 allows"
    with pytest.raises(TooLarge, match=said):
        opened(folder, ModelOptions(model=str(folder), max_memory=0.001))
    small = opened(made.saved(tmp_path / "b", "bert"), ModelOptions(model=str(tmp_path / "b"), max_memory=0.79))
    assert small.attention(TEXT).n_layers == 2
    small = replace(small, spec=replace(small.spec, max_memory=0.5))  # less than the process takes for any text
    with pytest.raises(TooLarge, match=r"40 tokens × 4 heads × 2 layers need .* --max-memory 0\.\d+ allows it"):
        small.attention("cat " * 38)


@pytest.mark.parametrize("kind", ["minilm", "stories"])
@pytest.mark.parametrize("text", ["Unbelievably, the acting didn't save it!", "猫坐 👩‍👩‍👧 and e\u0301"])
def test_real_models_on_real_texts(kind: str, text: str) -> None:
    import transformers

    folder = made.minilm() if kind == "minilm" else made.stories()
    attender = opened(folder)
    maps = attender.attention(text)
    ids = transformers.AutoTokenizer.from_pretrained(folder)(text).input_ids
    close(maps, own(folder, input_ids=ids))
    assert "".join(maps.queries.pieces).isascii() == text.isascii()  # real characters, whatever the vocabulary says
    tokens = maps.queries
    for piece, (start, end), special in zip(tokens.pieces, tokens.offsets, tokens.special, strict=True):
        assert special or end == start or piece == text[start:end]


def test_weights_that_nobody_uses_may_be_missing_and_others_may_not(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = made.saved(tmp_path / "a", "bert")
    whole = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in whole.items() if not name.startswith("pooler.")}
    assert len(kept) < len(whole)
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    assert opened(folder).attention(TEXT).n_layers == 2
    del kept["encoder.layer.1.attention.self.query.weight"]
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InvalidModel, match=r"lacks weights .*: encoder\.layer\.1\.attention\.self\.query\.weight\."):
        opened(folder)


def test_an_unknown_token_that_has_no_entry(tmp_path: Path) -> None:
    """transformers looks for its id without end; here nothing is unknown then."""
    folder = made.saved(tmp_path / "a", "bert")
    known = opened(folder).attention(TEXT)
    settings = json.loads((folder / "tokenizer_config.json").read_bytes())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "unk_token": ""}), encoding="utf-8")
    maps = opened(folder).attention(TEXT)
    assert maps.queries.pieces == known.queries.pieces
    assert not any(maps.queries.unknown)


def test_ids_of_a_text_are_attended_to_as_the_text_is_between_the_same_markers(tmp_path: Path) -> None:
    reader = opened(made.saved(tmp_path / "bert", "bert"), ModelOptions(max_tokens=12))
    read, text = reader.encode(TEXT).source, reader.attention(TEXT)
    ids = [number for number, special in zip(read.ids, read.tokens.special, strict=True) if not special]
    maps = reader.attention_of_ids(ids)
    assert np.array_equal(maps.weights, text.weights)
    assert maps.queries.special == text.queries.special
    assert " ".join(maps.queries.pieces) == "[CLS] the acting saved the film [UNK] but not the cat [SEP]"
    assert reader.list_ids() == tuple(range(4, 22))  # the markers come before
    assert reader.find_max_ids() == 12 - 2
    assert opened(tmp_path / "bert").find_max_ids() == 40 - 2
    with pytest.raises(TooLarge, match="reads at most 40"):
        reader.attention_of_ids([4] * 39)


def test_ids_begin_with_the_models_first_marker_also_where_its_tokenizer_leaves_it_out(tmp_path: Path) -> None:
    folder = made.saved(tmp_path / "gpt2", "gpt2")
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"post_processor": None}))
    reader = opened(folder)
    assert reader.attention("the cat").queries.pieces == ("the", "cat")
    assert reader.attention_of_ids([4, 12]).queries.pieces == ("[CLS]", "the", "cat")
    assert not np.triu(reader.attention_of_ids([4, 12]).weights, 1).any()


TEMPLATE = "{% for m in messages %}[CLS] {{ m.role }} {{ m.content }} [SEP]{% endfor %}"
TEMPLATE += "{% if add_generation_prompt %}a{% endif %}"


def test_messages_are_written_by_the_models_own_template(tmp_path: Path) -> None:
    folder = made.saved(tmp_path / "bert", "bert")
    chat = Chat('[{"role": "the", "content": "cat"}, {"role": "a", "content": "film was good"}]')
    reference = find_model(ModelOptions(model=str(folder)))
    assert reference.find_notices(["a film"]) == ()
    with pytest.raises(InvalidOption, match="no template of chats"):
        opened(folder).encode(chat)
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    maps = opened(folder).attention(chat)
    assert maps.queries.pieces == ("[CLS]", "the", "cat", "[SEP]", "[CLS]", "a", "film", "was", "good", "[SEP]", "a")
    assert maps.provenance.facts.tokens_in_text == 11 - sum(maps.queries.special) == 7
    assert dict(maps.provenance.settings)["messages"] == "the 2:3, a 6:9"
    of_text = opened(folder, ModelOptions(chat=True)).attention("cat")
    assert of_text.queries.pieces == ("[CLS]", "[UNK]", "cat", "[SEP]", "a")
    assert "--chat reads a text as a message" in reference.find_notices(["a film"])[0]
    assert find_model(ModelOptions(model=str(folder), chat=True)).find_notices(["a film"]) == ()
    (folder / "chat_template.jinja").write_text("{{ raise_exception('by turns') }}", encoding="utf-8")
    with pytest.raises(InvalidText, match="refuses the messages: by turns"):
        opened(folder).encode(chat)
    with pytest.raises(InvalidOption, match="no template of chats"):
        find_model(ModelOptions(model="multi")).open(()).encode(chat)
