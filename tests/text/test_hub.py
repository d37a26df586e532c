"""The hub: with it, without it, and with the copy that it left behind."""

import os
import socket
from pathlib import Path
from threading import Event
from typing import Any

import datasets
import pytest
from huggingface_hub import constants

from attnviz.errors import InvalidSource
from attnviz.text import hub as module
from tests.hub import Hub, ask, running
from tests.text.corpora import opened

REPOSITORY = "some-org/TinyReviews"
FILES = {
    "train.jsonl": b'{"text": "one", "label": 0}\n{"text": "two", "label": 1}\n{"text": "three", "label": 1}\n',
    "test.jsonl": b'{"text": "four", "label": 1}\n',
}

ASK = """
import json, sys
from attnviz.errors import InvalidSource
from attnviz.specs import TextOptions
from attnviz.text import load_corpus
for dataset, split in json.loads(sys.argv[1]):
    try:
        corpus = load_corpus(TextOptions(dataset=dataset, split=split))
        said = [[d.text, d.name, d.label] for d in corpus.documents], corpus.notices
    except InvalidSource as error:
        said = str(error), []
    print(json.dumps({"said": said[0], "notices": said[1], "heavy": "datasets" in sys.modules}))
"""


def test_without_a_network_the_answer_says_so(tmp_path: Path) -> None:
    """`.invalid` never resolves (RFC 2606)."""
    for answer in ask(ASK, [("imdb", None), ("some/thing", "train[:5]")], tmp_path, HF_ENDPOINT="https://hub.invalid"):
        assert "is not on this machine, and hub.invalid cannot be reached" in answer.said
        assert answer.said.endswith("Use a local copy with --dataset PATH, or the packaged --dataset sample.")
        assert not answer.heavy


def test_offline_by_wish(tmp_path: Path) -> None:
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        (answer,) = ask(ASK, [("imdb", None)], tmp_path, **{name: "1"})
        assert answer.said.startswith("data set 'imdb' is not on this machine, and HF_HUB_OFFLINE is set. Use a local")
        assert not answer.heavy


@pytest.mark.slow
def test_a_data_set_of_the_hub_and_later_its_copy(tmp_path: Path) -> None:
    train = [["one", f"{REPOSITORY} train[0]", 0], ["two", f"{REPOSITORY} train[1]", 1]]
    questions = [(REPOSITORY, "train[:2]"), (REPOSITORY, "test"), (REPOSITORY, "tset"), ("nobody/nothing", None)]
    with running(Hub("datasets", REPOSITORY, FILES)) as hub:
        first, test, slip, unknown = ask(ASK, questions, tmp_path, HF_ENDPOINT=hub.address)
    assert first.said == train
    assert first.notices == []
    assert test.said == [["four", f"{REPOSITORY} test[0]", 1]]
    assert slip.said == f"{REPOSITORY} has no split 'tset'. Did you mean 'test'?"
    assert unknown.said.startswith("data set 'nobody/nothing' cannot be loaded: Dataset 'nobody/nothing' doesn't exist")

    copy, other = ask(ASK, [(REPOSITORY, "train[:2]"), ("nobody/nothing", None)], tmp_path, HF_ENDPOINT=hub.address)
    assert copy.said == train
    assert copy.notices == [f"{REPOSITORY}: 127.0.0.1 cannot be reached, so the copy in the cache is used"]
    assert "is not on this machine" in other.said


@pytest.mark.slow
def test_pictures_of_the_hub_are_not_fetched(tmp_path: Path) -> None:
    with running(Hub("datasets", REPOSITORY, {f"{name}.png": b"%!PS-Adobe-3.0" for name in ("train", "test")})) as hub:
        (answer,) = ask(ASK, [(REPOSITORY, None)], tmp_path, HF_ENDPOINT=hub.address)
        assert not hub.asked
    said = f"data set {REPOSITORY!r} is not a table of texts: its files are read as imagefolder. Formats that can"
    assert answer.said.startswith(said)


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process believes that it may ask the hub."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for name in [name for name in os.environ if name.upper().endswith("_PROXY")]:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("online")
def test_a_look_up_that_hangs_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    released, ended = Event(), list[bool]()

    def hang(*_: object) -> list[object]:
        ended.append(released.wait(60))
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with pytest.raises(InvalidSource, match="cannot be reached"):
        opened("imdb")
    assert ended == [], "it was not waited for"
    released.set()


@pytest.mark.usefixtures("online")
def test_a_proxy_stands_for_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "https://hub.invalid")
    for proxy in ("http://proxy.invalid:3128", "proxy.invalid:3128"):
        monkeypatch.setenv("https_proxy", proxy)
        with pytest.raises(InvalidSource, match=r"proxy\.invalid cannot be reached"):
            opened("imdb")
    monkeypatch.setenv("no_proxy", ".invalid")
    with pytest.raises(InvalidSource, match=r"hub\.invalid cannot be reached"):
        opened("imdb")


def test_a_folder_of_the_same_name_is_mentioned(here: Path) -> None:
    (here / "imdb").mkdir()
    with pytest.raises(InvalidSource, match=r"the folder here is --dataset \./imdb"):
        opened("imdb")


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (lambda: ValueError("Config name is missing.\nPlease pick one:\n a\n b"), "Config name is missing"),
        (lambda: ConnectionError("Couldn't reach the hub (timed out)"), "Couldn't reach the hub (timed out)"),
        (lambda: StopIteration(), "StopIteration"),
    ],
)
def test_the_real_reason_is_one_line(failure: Any, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise failure()

    monkeypatch.setattr(datasets, "load_dataset_builder", fail)
    monkeypatch.setattr(module, "explain_offline", lambda _: "")
    with pytest.raises(InvalidSource) as error:
        opened("imdb")
    assert error.value.problem == f"data set 'imdb' cannot be loaded: {reason}"
