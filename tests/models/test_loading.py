"""What `--model` names, and where models come from: the package, a folder, the hub, or what it left in the cache."""

import shutil
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from attnviz.errors import InvalidModel, InvalidOption
from attnviz.models import PACKAGED
from attnviz.models.built_in import SHIPPED, TrainedReference
from attnviz.models.huggingface import files
from attnviz.models.huggingface.files import check_installed
from attnviz.models.huggingface.reference import HuggingFaceReference
from attnviz.models.loading import find_model, folder_name
from attnviz.models.protocols import AttentionModel, Classifies, Traceable
from attnviz.specs import ModelOptions
from tests import pretrained
from tests.hub import GATED, REVISION, Hub, ask, running


@pytest.mark.parametrize(
    ("spec", "name", "n_heads", "folder"),
    [
        (ModelOptions(), "multi:8", 8, "multi-8"),
        (ModelOptions(heads=4), "multi:4", 4, "multi-4"),
        (ModelOptions(heads=1), "single", 1, "single"),
        (ModelOptions(model="multi:2", heads=2, seed=3, max_tokens=9, causal=True), "multi:2", 2, "multi-2"),
        (ModelOptions(model="recall"), "recall:8", 8, "recall-8"),
        (ModelOptions(heads=16), "multi:16", 16, None),  # a trained model is taken as it is or not at all
        (ModelOptions(vocab="vocabulary"), "multi:8", 8, None),
        (ModelOptions(model="random", heads=4), "random:4", 4, None),
        (ModelOptions(model="dot", d_model=7), "dot", 1, None),
    ],
)
def test_names_and_what_is_trained(spec: ModelOptions, name: str, n_heads: int, folder: str | None) -> None:
    found = find_model(spec)
    assert (str(found), found.name, found.n_heads) == (name, name, n_heads)
    shipped = found.folder if isinstance(found, TrainedReference) else None
    assert (shipped and shipped.name) == folder
    assert shipped is None or (shipped / "model.safetensors").is_file()


def test_a_folder_is_a_checkpoint_and_is_taken_as_it_is(tmp_path: Path) -> None:
    spec = ModelOptions(model=str(tmp_path))
    found = find_model(spec)
    assert (str(found), found.name, found.n_heads) == (tmp_path.name, tmp_path.name, None)  # only its files know
    find_model(replace(spec, heads=2))  # of an empty folder something else is said, when it is opened
    (tmp_path / "config.json").touch()
    chosen: list[dict[str, Any]] = [{"d_model": 32}, {"layers": 1}, {"tokenizer": "word"}, {"vocab": "vocabulary"}]
    for option in ({"heads": 2}, *chosen):
        with pytest.raises(InvalidOption, match="checkpoint"):
            find_model(replace(spec, **option))


# Slips and paths are not asked of the hub.
UNKNOWN = ["mutli", "singel", "single:2", "a/b/c", "../x", "org/", "/x", "x y", "", "ünïcode", "@main"]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (ModelOptions(d_model=0), "d_model 0 is not a size"),
        (ModelOptions(model="dot", layers=2), "one layer"),
        (ModelOptions(model="multi:4", heads=8), "--heads 8 contradicts --model multi:4"),
        (ModelOptions(model="mlti"), "Did you mean 'multi'"),
        (ModelOptions(model="recall", heads=2), "--heads cannot be chosen for recall"),
        *((ModelOptions(model=f"recall:{kind}"), f"no model 'recall:{kind}'") for kind in ("3", "../single")),
        *((ModelOptions(model=f"multi:{kind}"), f"no model 'multi:{kind}'") for kind in ("", "x", "-1", "²")),
        *((ModelOptions(model=name), "no model or checkpoint folder") for name in UNKNOWN),
    ],
)
def test_contradictions_and_unknown_names_are_refused(spec: ModelOptions, problem: str) -> None:
    with pytest.raises((InvalidOption, InvalidModel), match=problem):
        find_model(spec)


@pytest.mark.parametrize(
    ("path", "called"),
    [
        ("mine", "mine"),
        ("minilm/model", "minilm/model"),
        ("models--org--a-name/snapshots/0123abcd", "org/a-name"),
        ("models--org--a-name/other/0123abcd", "0123abcd"),
    ],
)
def test_a_folder_is_called_so_that_it_tells_which_model_it_holds(path: str, called: str, tmp_path: Path) -> None:
    assert folder_name(tmp_path / path) == called


@pytest.mark.parametrize(
    ("kind", "can"),
    [
        ("single", {Traceable, Classifies}),
        ("multi", {Traceable, Classifies}),
        ("single-zh", {Traceable, Classifies}),
        ("multi-zh", {Traceable, Classifies}),
        ("random", {Traceable}),
        ("dot", {Traceable}),
        ("recall", {Traceable, Classifies}),
        ("minilm", set()),
        ("checkpoint", {Traceable, Classifies}),
        ("huggingface", set()),
    ],
)
def test_a_reference_says_what_its_model_can_do(kind: str, can: set[type], tmp_path: Path) -> None:
    """Of every line of the tables; a hub's model is the one of a folder once it is fetched.

    In the place of smollm2, which takes half a minute to convert, a small one is asked where packages are tested.
    """
    name = kind
    if kind == "checkpoint":
        name = str(tmp_path / "trained")
        shutil.copytree(SHIPPED / "multi-2", name)
    elif kind == "huggingface":
        name = str(pretrained.saved(tmp_path / "bert", "bert"))
    packaged = [plugin.name for plugin in PACKAGED]
    reference = pretrained.packaged(name) if kind in packaged else find_model(ModelOptions(model=name))
    reference.check()
    model = reference.open(["a text"])
    assert isinstance(model, AttentionModel)
    assert model.name == reference.name
    for capability in (Traceable, Classifies):
        assert isinstance(model, capability) == (capability in can)
        with nullcontext() if capability in can else pytest.raises((InvalidModel, InvalidOption)):
            reference.check(capability)


# --- Where models of others come from: a folder, the hub, or what the hub left in the cache ---


REPOSITORY = "some-org/tiny-bert"
EXTRA = {"pytorch_model.bin": b"not to be fetched", "modeling.py": b"raise SystemExit", "onnx/model.onnx": b"no"}

ASK = """
import json, sys
from attnviz.errors import AttnvizError
from attnviz.models.loading import find_model
from attnviz.models.huggingface.files import find_files
from attnviz.specs import ModelOptions
for name, room in json.loads(sys.argv[1]):
    try:
        model = find_model(ModelOptions(model=name, max_memory=room))
        model.check()
        files = find_files(model.folder, model.hub, room)
        said = [str(files.folder), model.name, files.revision()]
    except AttnvizError as error:
        said = [str(error)]
    print(json.dumps({"said": said, "torch": "torch" in sys.modules}))
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretrained.saved(tmp_path_factory.mktemp("whole") / "bert", "bert")


def asked(cache: Path, *names: str, room: float = 4.0, **environment: str) -> list[Any]:
    """What is found under each name."""
    return ask(ASK, [(name, room) for name in names], cache, HF_HUB_DISABLE_PROGRESS_BARS="1", **environment)


def hub(folder: Path) -> AbstractContextManager[Hub]:
    """With the files of a folder, and others beside them."""
    files = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
    return running(Hub("models", REPOSITORY, files | EXTRA))


def test_a_model_is_fetched_and_then_found_without_the_hub(whole: Path, tmp_path: Path) -> None:
    with hub(whole) as server:
        online = asked(tmp_path, REPOSITORY, f"{REPOSITORY}@{REVISION}", HF_ENDPOINT=server.address)
        assert not set(server.asked) & set(EXTRA)  # no pickles, no code
        assert {"model.safetensors", "config.json", "tokenizer.json"} <= set(server.asked)
    folder, called, revision = online[0].said
    assert online[1].said == online[0].said
    assert called == REPOSITORY
    local = asked(tmp_path, str(whole))[0].said
    assert local[2:] == [revision]
    assert not any(name in {file.name for file in Path(folder).iterdir()} for name in EXTRA)
    assert asked(tmp_path, REPOSITORY, HF_HUB_OFFLINE="1")[0].said == online[0].said


def test_what_the_hub_does_not_give(whole: Path, tmp_path: Path) -> None:
    with hub(whole) as server:
        names = ("some-org/none", GATED, f"{REPOSITORY}@nowhere", "nothing-like-ours")
        told = [each.said[0] for each in asked(tmp_path, *names, HF_ENDPOINT=server.address)]
        small = asked(tmp_path, REPOSITORY, room=1e-6, HF_ENDPOINT=server.address)[0].said[0]
        assert server.asked == []  # refused before anything was fetched
    assert "'some-org/none' cannot be had from the hub: there is no such model, or it is private" in told[0]
    assert "its owner has to let you in first" in told[1]
    assert "it has no such revision" in told[2]
    assert "There are single, multi, single-zh, multi-zh, random, dot" in told[3]
    assert f"the weights of {REPOSITORY} need" in small


def test_without_a_network_the_answer_says_so(tmp_path: Path) -> None:
    cases = (
        asked(tmp_path, "some-org/none", "gpt9", HF_HUB_OFFLINE="1"),
        asked(tmp_path, "some-org/none", HF_ENDPOINT="http://127.0.0.1:9"),
    )
    for each in (*cases[0], *cases[1]):
        assert "no model or folder" in each.said[0]
        assert "Give the folder of a model, or a name: single, multi" in each.said[0]
        assert not each.torch
    assert "HF_HUB_OFFLINE is set" in cases[0][0].said[0]
    assert "127.0.0.1 cannot be reached" in cases[1][0].said[0]


@pytest.mark.parametrize("name", ["org/name", "org/name@v1.0", "bert-base-uncased"])
def test_a_name_that_is_not_ours_is_one_of_the_hub(name: str) -> None:
    found = find_model(ModelOptions(model=name))
    assert isinstance(found, HuggingFaceReference)
    assert (found.hub, found.folder, found.learns_from_texts) == (name, None, False)
    with pytest.raises(InvalidOption, match="--heads cannot be chosen for a pretrained model"):
        find_model(ModelOptions(model=name, heads=2))


def test_a_folder_in_the_form_of_hugging_face_is_pretrained(tmp_path: Path) -> None:
    for content, kind in (
        ('{"model_type": "bert"}', HuggingFaceReference),
        ('{"architectures": ["BertModel"]}', HuggingFaceReference),
        ('{"schema": 2}', TrainedReference),
        ("[]", TrainedReference),
        ("{", TrainedReference),
        ("[" * 100_000, TrainedReference),
    ):
        (tmp_path / "config.json").write_text(content)
        assert type(find_model(ModelOptions(model=str(tmp_path)))) is kind


@pytest.mark.parametrize(
    ("installed", "says"), [(None, "need the package transformers"), ("4.57.1", "4.57.1 is too old")]
)
def test_transformers_is_asked_for_by_name(installed: str | None, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        assert package == "transformers"
        if installed is None:
            raise PackageNotFoundError(package)
        return installed

    monkeypatch.setattr(files, "version", version)
    with pytest.raises(InvalidModel, match=says) as error:
        check_installed()
    assert "pip install 'attnviz[hf]'" in error.value.hint
