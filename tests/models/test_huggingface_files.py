"""Where models of others come from: a folder, the hub, or what the hub left in the cache."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from attnviz.errors import InvalidModel, InvalidOption
from attnviz.models.built_in import TrainedReference
from attnviz.models.huggingface import files
from attnviz.models.huggingface.files import check_installed
from attnviz.models.huggingface.reference import HuggingFaceReference
from attnviz.models.loading import find_model
from attnviz.specs import ModelOptions
from tests import pretrained as made
from tests.hub import GATED, REVISION, Hub, ask, running

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
        said = [str(files.folder), model.name, files.n_parameters, files.revision()]
    except AttnvizError as error:
        said = [str(error)]
    print(json.dumps({"said": said, "torch": "torch" in sys.modules}))
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers", reason=made.NEEDS)
    return made.saved(tmp_path_factory.mktemp("whole") / "bert", "bert")


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
    folder, called, n_parameters, revision = online[0].said
    assert online[1].said == online[0].said
    assert called == REPOSITORY
    local = asked(tmp_path, str(whole))[0].said
    assert [n_parameters, revision] == local[2:]
    assert not any(name in {file.name for file in Path(folder).iterdir()} for name in EXTRA)
    offline = asked(tmp_path, REPOSITORY, HF_HUB_OFFLINE="1")
    assert offline[0].said == online[0].said


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


@pytest.mark.parametrize("name", ["mutli", "singel", "a/b/c", "../x", "org/", "/x", "x y", "", "ünïcode", "@main"])
def test_slips_and_paths_are_not_asked_of_the_hub(name: str) -> None:
    with pytest.raises(InvalidModel, match="no model or checkpoint folder"):
        find_model(ModelOptions(model=name))


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
