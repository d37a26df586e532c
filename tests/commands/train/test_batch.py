"""`train` and `vocab` as jobs of a batch: made once, again where something changed, and read by other jobs."""

from pathlib import Path

import pytest

from attnviz.commands.batch.manifests import from_file
from attnviz.errors import ExecutionError
from attnviz.store.manifest import NAME, PAGE, Entry
from tests.commands.batch.batches import run_batch
from tests.commands.train.runs import FILES
from tests.made import content
from tests.text.corpora import write_csv

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_probes")]
TEXTS = [(f"{'good' if number % 2 else 'bad'} film {number}", number % 2) for number in range(24)]
CONFIG = """\
out: {out}
jobs:
  - name: answers
    predict: {{text: good film, model: {out}/model}}
  - name: model
    train: {{dataset: reviews.csv, epochs: 1, pretrain: 0, d_model: 8, heads: {heads}, min_frequency: 1}}
  - name: words
    vocab: {{dataset: reviews.csv, min_frequency: 1}}
"""


def write(folder: Path, heads: int = 2) -> Path:
    write_csv(folder / "reviews.csv", TEXTS)
    config = folder / "models.yaml"
    config.write_text(CONFIG.format(out=folder / "out", heads=heads), encoding="utf-8")
    return config


def run(config: Path) -> tuple[dict[str, str], dict[str, Entry]]:
    """How each job ended, in the order in which they did, and what the manifest says of each."""
    ended, _ = run_batch(config, workers=2)
    return ended, {entry.name: entry for entry in from_file(config.parent / "out" / NAME).jobs}


def test_models_are_made_once_and_again_where_something_changed(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    config, out = write(tmp_path), tmp_path / "out"
    ended, first = run(config)
    assert ended == {"model": "made", "words": "made", "answers": "made"}
    assert list(ended)[-1] == "answers"  # written first, and waits for the model that it reads
    files = {file.path for file in first["model"].files}
    assert files == {f"model/{name}" for name in (*FILES, "report.md")}
    assert {file.path for file in first["words"].files} == {"words/tokenizer.json", "words/report.md"}
    before = content(out)
    assert {*before} == {NAME, PAGE, *(file.path for entry in first.values() for file in entry.files)}
    assert first["model"].warnings == ()  # how fast it went, say, is another each time

    request.getfixturevalue("in_this_process")
    assert set(run(config)[0].values()) == {"unchanged"}
    assert content(out) == before

    ended, second = run(write(tmp_path, heads=4))
    assert ended == {"model": "made", "words": "unchanged", "answers": "made"}
    assert second["answers"].inputs != first["answers"].inputs


@pytest.mark.usefixtures("in_this_process")
def test_a_job_does_not_read_an_older_model_than_its_config_makes(tmp_path: Path) -> None:
    config = write(tmp_path)
    run(config)
    (tmp_path / "reviews.csv").write_text("text,label\nonly one label,0\n", encoding="utf-8")
    _, last = run_batch(config, workers=2)
    assert isinstance(last.failure, ExecutionError)
    entries = {entry.name: entry for entry in from_file(tmp_path / "out" / NAME).jobs}
    assert entries["answers"].error == "the job 'model', whose files it reads, failed"
