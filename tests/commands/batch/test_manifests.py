"""Manifests come back as they were, and what is none is told."""

import hashlib
import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from attnviz import store
from attnviz.commands.batch.jobs import Job
from attnviz.commands.batch.manifests import from_file, job_from_manifest, to_bytes
from attnviz.commands.batch.workers import fingerprint, read_job, run_job
from attnviz.commands.compare.spec import CompareSpec
from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.commands.train.spec import PredictSpec
from attnviz.errors import InvalidConfig
from attnviz.measures.concentration import entropy
from attnviz.options import build, replace_values
from attnviz.store.manifest import Entry, File, Manifest, TextNumbers
from tests.events import result
from tests.starting import vocab

SETTINGS = {"models": ["single", "multi"], "title": "猫 \x1b\u202e", "max_memory": 2.5}
ENTRY = Entry(
    "a",
    "compare",
    SETTINGS,
    "f" * 64,
    {"weights of multi:8": "1", "texts": "2"},
    (TextNumbers("z", {"entropy": [0.1, 1e-300], "a": [-0.0, 1.0]}, [1, 3], [0, "mean"]), TextNumbers("a", {})),
    ("one", "two"),
    (File("a/b.png", "0" * 64, 12345),),
)
FAILED = Entry("b", "heatmap", {}, "", {}, (), (), (), "no such thing")
MANIFEST = Manifest({"b.yaml": "1", "a.yaml": "2"}, {"torch": "2", "attnviz": "1"}, (ENTRY, FAILED))


def of_one(entry: Entry) -> Manifest:
    return Manifest({}, {}, (entry,))


def test_a_manifest_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(to_bytes(MANIFEST))
    found = from_file(path)
    assert found == MANIFEST
    assert to_bytes(found) == to_bytes(MANIFEST)


def test_half_a_character_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    path.write_bytes(to_bytes(of_one(replace(FAILED, error="\ud800", settings={"text": ["\udfff"]}))))
    assert from_file(path) == of_one(replace(FAILED, error="\ufffd", settings={"text": ["\ufffd"]}))


def test_there_is_no_json_of_infinity() -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_bytes(of_one(replace(ENTRY, numbers=(TextNumbers("a", {"b": [float("nan")]}),))))


GOOD = json.loads(to_bytes(MANIFEST))
ENTROPY: list[str | int] = ["jobs", 0, "numbers", 0, "values", "entropy"]


def changed(where: list[str | int], value: object) -> str:
    data = json.loads(json.dumps(GOOD))
    inner = data
    for step in where[:-1]:
        inner = inner[step]
    inner[where[-1]] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{\n"a":', ": is not JSON in UTF-8: Expecting value: line 2 column 5"),
        (b"\xff", ": is not JSON in UTF-8: "),
        ("[" * 10**5, ": is not JSON in UTF-8: "),
        ("[]", ": the whole is not of type Manifest"),
        ("{}", ": the whole holds other names than configs, versions, jobs, schema"),
        (changed(["schema"], 1), ": schema: this attnviz reads 2, not 1; make the batch again"),
        (changed(["schema"], "x" * 1000), f": schema: this attnviz reads 2, not '{'x' * 39}; make the batch again"),
        (changed(["jobs", 1, "more"], 2), ": jobs[1] holds other names than name, command, "),
        (changed(["jobs", 0, "files", 0, "size"], "3"), ": jobs[0].files[0].size is not of type int"),
        (changed(["jobs", 0, "name"], "../up"), ": '../up' cannot be a name: "),
        (changed(["jobs", 1, "name"], "A"), ": the name 'A' is there twice, whatever the case"),
        *((changed(["jobs", 0, "files", 0, "path"], path), f": {path!r} is not a path within 'a'")
          for path in ("", "a", "b/c", "/a/b", "../a/b", "a/../b", "a/./b", "a//b", "./a/b", "a\\b", "a/b\\c", "a/b:c",
                       "a/\0")),
        (changed(["jobs", 0, "files", 0, "path"], "a/" + "é" * 128), ": 'a/ééé"),
        (changed(["jobs"], {}), ": jobs is not of type tuple"),
        (changed(["jobs", 0, "inputs"], []), ": jobs[0].inputs is not of type dict"),
        (changed([*ENTROPY, 1], "x"), ": jobs[0].numbers[0].values.entropy[1] is not of type float"),
        (changed([*ENTROPY, 1], float("nan")), ": NaN is not a finite number"),
        (changed([*ENTROPY, 1], 1), ""),
        (changed(ENTROPY, [1.0]), ": the columns of numbers of 'z' are of several lengths"),
        (changed([*ENTROPY[:-2], "layer", 0], 2**63), ": jobs[0].numbers[0].layer[0] is not of type int"),
        (to_bytes(MANIFEST).decode().replace("1e-300", "1e999"), ": 1e999 is not a finite number"),
        (to_bytes(MANIFEST).decode().replace("no such", "\\ud800"), ": is not JSON in UTF-8: "),
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_told(text: str | bytes, line: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if not line:
        assert from_file(path)
        return
    with pytest.raises(InvalidConfig) as caught:
        from_file(path)
    assert caught.value.lines[0].startswith(f"{path}{line}")


def test_a_job_without_what_its_command_needs_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"m\.json: a: models is missing"):
        job_from_manifest(replace(ENTRY, settings={}), Path(), "m.json")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"cannot read .*nix: No such file"):
        from_file(tmp_path / "nix")
    with pytest.raises(InvalidConfig, match=r"cannot read .*: Is a directory"):
        from_file(tmp_path)
    with (tmp_path / "long").open("wb") as file:
        file.truncate(2**27 + 1)
    with pytest.raises(InvalidConfig, match=r"long is 128 MiB long, at most 128 MiB are read"):
        from_file(tmp_path / "long")


# --- A job: its files, its numbers, and the fingerprint that says whether it has to be made again ---


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
    made = result(vocab(dataset="sample", size=50, out=str(tmp_path)))
    spec = build(HeatmapSpec, text=(TEXT,), model="random:2", vocab=str(tmp_path))
    before = read_job(job(spec), Path("out")).sha256()["vocabulary"]
    assert before == hashlib.sha256(made.files[0].read_bytes()).hexdigest()
