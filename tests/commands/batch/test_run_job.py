"""One job, performed: its files, its numbers, and what its fingerprint follows from."""

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from attnviz import store
from attnviz.commands.batch.jobs import Job
from attnviz.commands.batch.run_job import fingerprint, read_job, run_job
from attnviz.commands.compare.spec import CompareSpec
from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.commands.train.spec import PredictSpec, VocabSpec
from attnviz.measures.concentration import entropy
from attnviz.options import build, replace_values
from tests.events import result
from tests.starting import vocab

TEXT = "a fine film , and not a long one"
HEATMAP = build(HeatmapSpec, text=(TEXT,), model="multi:2", dpi=40)


def job(spec: Any, command: str = "heatmap") -> Job:
    return Job("mine", command, spec)


def print_of(spec: Any) -> str:
    return fingerprint(job(spec), read_job(job(spec), Path("out")).sha256())


def test_a_heatmap_with_its_numbers(tmp_path: Path) -> None:
    entry = run_job(job(HEATMAP), tmp_path)
    paths = {file.path for file in entry.files}
    assert {"mine/overview.png", "mine/attention.safetensors", "mine/report.md"} < paths
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")} == paths
    for file in entry.files:
        data = (tmp_path / file.path).read_bytes()
        assert (file.sha256, file.size) == (hashlib.sha256(data).hexdigest(), len(data))
    (numbers,) = entry.numbers
    expected = entropy(store.load(tmp_path / "mine/attention.safetensors")).values.ravel().tolist()
    assert (numbers.values["entropy"], numbers.layer, numbers.head) == (expected, [0, 0, 1, 1], [0, 1, 0, 1])
    assert entry.settings == {"text": (TEXT,), "model": "multi:2", "dpi": 40, "seed": 0}
    assert "![" in (tmp_path / "mine/report.md").read_text(encoding="utf-8")


def test_a_comparison_is_the_same_each_time(tmp_path: Path) -> None:
    spec = build(CompareSpec, models=("single", "multi:2"), text=(TEXT,), dpi=40)
    entry = run_job(job(spec, "compare"), tmp_path)
    expected = {"mine/maps-layer-0.png", "mine/maps-layer-1.png", "mine/measures.csv", "mine/report.md"}
    assert expected <= {file.path for file in entry.files}
    (numbers,) = entry.numbers
    assert (len(numbers.values["entropy"]), numbers.of) == (2, ["single", "multi:2"])
    assert run_job(job(spec, "compare"), tmp_path / "again") == entry


def test_predictions(tmp_path: Path) -> None:
    spec = build(PredictSpec, dataset="sample", split="test", index=("0-1",), model="single")
    entry = run_job(job(spec, "predict"), tmp_path)
    assert {"mine/predictions.csv", "mine/report.md"} <= {f.path for f in entry.files}
    assert [of.text for of in entry.numbers] == ["sample test[0]", "sample test[1]"]
    assert sum(entry.numbers[1].values["probabilities"]) == pytest.approx(1)


@pytest.mark.parametrize("package", ["attnviz", "matplotlib", "torch"])
def test_the_fingerprint_follows_from_versions(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else figures of before an upgrade would pass for new ones."""
    same = print_of(HEATMAP)
    monkeypatch.setattr("attnviz.running.versions.version", lambda name: "0" if name == package else version(name))
    assert print_of(HEATMAP) != same


def test_the_fingerprint_follows_from_all_that_the_files_do() -> None:
    same = print_of(HEATMAP)
    assert print_of(replace_values(HEATMAP, out="elsewhere", json=True, table="full")) == same
    for other in (
        replace_values(HEATMAP, dpi=41),
        replace_values(HEATMAP, text=(TEXT + " ",)),
        replace_values(HEATMAP, model="multi:4"),
        replace_values(HEATMAP, head=("0",)),
    ):
        assert print_of(other) != same
    assert fingerprint(job(HEATMAP, "predict"), read_job(job(HEATMAP), Path("out")).sha256()) != same


def test_another_text_of_the_data_set_matters_to_a_model_that_is_made_of_it(tmp_path: Path) -> None:
    def prints(last: str) -> list[str]:
        (tmp_path / "texts.csv").write_text(f"text\nfirst one\n{last}\n", encoding="utf-8")
        data = str(tmp_path / "texts.csv")
        return [print_of(build(HeatmapSpec, dataset=data, model=model)) for model in ("single", "random:2")]

    before, after = prints("second"), prints("another")
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_a_vocabulary_is_an_input(tmp_path: Path) -> None:
    made = result(vocab(build(VocabSpec, dataset="sample", size=50, out=str(tmp_path))))
    spec = build(HeatmapSpec, text=(TEXT,), model="random:2", vocab=str(tmp_path))
    before = read_job(job(spec), Path("out")).sha256()["vocabulary"]
    assert before == hashlib.sha256(made.files[0].read_bytes()).hexdigest()
