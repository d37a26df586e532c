"""Shards of a batch and how they are put together: the files of one run, or one line and nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnviz.configs.manifests import from_file
from attnviz.errors import ExecutionError, InputError
from attnviz.manifest import NAME, Shard
from attnviz.options import build
from attnviz.specs.batch import BatchSpec, CheckSpec, VerifySpec
from attnviz.specs.survey import MergeSpec
from attnviz.workflows import Result
from attnviz.workflows.batch import batch
from attnviz.workflows.check import check
from attnviz.workflows.merge import merge
from attnviz.workflows.verify import verify
from tests.events import data, result
from tests.made import content

CONFIG = """\
jobs:
  - {name: a, heatmap: {model: dot, dpi: 40, format: [png, html], text: one}}
  - {name: b, predict: {text: good}}
  - {name: c, predict: {text: bad}}
  - {name: d, predict: {text: '%s'}}
"""


def made(folder: Path, out: str, **options: Any) -> Result:
    spec = build(BatchSpec, configs=(str(folder / "figures.yaml"),), out=str(folder / out), workers=1, **options)
    return result(batch(spec))


def merged(folder: Path, *parts: str, out: str = "whole", **options: Any) -> Result:
    return result(merge(build(MergeSpec, parts=tuple(map(str, parts)), out=str(folder / out), **options)))


@pytest.fixture(scope="module")
def made_parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three shards of four jobs, of which the last fails, and the whole at once. Not to be changed."""
    folder = tmp_path_factory.mktemp("shards")
    (folder / "figures.yaml").write_text(CONFIG % "", encoding="utf-8")
    for number in (1, 2, 3):
        made(folder, f"part-{number}", shard=f"{number}/3")
    made(folder, "one")
    return folder


@pytest.fixture
def parts(made_parts: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made_parts, tmp_path / "made")


def test_shards_in_any_order_give_the_bytes_of_one_run(made_parts: Path, tmp_path: Path) -> None:
    """Manifest, files, the page of all; also of jobs that failed."""
    names = [[entry.name for entry in from_file(made_parts / f"part-{n}" / NAME).jobs] for n in (1, 2, 3)]
    assert names == [["a", "d"], ["b"], ["c"]]
    assert from_file(made_parts / "part-2" / NAME).shard == Shard(2, 3, 4)
    found = merged(tmp_path, *(f"{made_parts}/part-{n}" for n in (3, 1)), f"{made_parts}/part-2/{NAME}")
    assert content(tmp_path / "whole") == content(made_parts / "one")
    assert "index.html" in content(tmp_path / "whole")
    assert [job["ended"] for job in data(found)["jobs"]] == ["merged", "merged", "merged", "failed"]
    assert isinstance(found.failure, ExecutionError)
    assert str(found.failure) == "1 of 4 jobs failed. The manifest says why."
    folders = {"folder": str(tmp_path / "whole"), "baseline": str(made_parts / "one")}
    checked = result(check(build(CheckSpec, **folders, out=str(tmp_path / "differences"))))
    assert [(case.name, case.failed) for case in checked.cases] == [(name, False) for name in "abcd"]


def test_more_shards_than_jobs(parts: Path) -> None:
    (parts / "figures.yaml").write_text("jobs: [{name: a, predict: {text: good}}]", encoding="utf-8")
    made(parts, "alone")
    assert made(parts, "empty", shard="2/2").closing == (f"part 2/2: no jobs; wrote {parts}/empty/{NAME}",)
    made(parts, "first", shard="1/2")
    merged(parts, f"{parts}/empty", f"{parts}/first")
    assert content(parts / "whole") == content(parts / "alone")
    assert result(verify(VerifySpec(folder=str(parts / "whole")))).lines[0].endswith("the same byte for byte")


def edited(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    """The manifest of the second part with another content."""

    def edit(folder: Path) -> None:
        file = folder / "part-2" / NAME
        manifest = json.loads(file.read_bytes())
        change(manifest)
        file.write_text(json.dumps(manifest), encoding="utf-8")

    return edit


@pytest.mark.parametrize(
    ("harm", "parts_named", "problem"),
    [
        (None, "1 3", "of 3 parts part 2 is missing"),
        (None, "3", "of 3 parts parts 1, 2 are missing"),
        (None, "1 2 3 2", "part-2/manifest.json are both part 2/3"),
        (None, "1 2 one", "one/manifest.json is of a whole batch"),
        (edited(lambda of: of["configs"].update({"figures.yaml": ""})), "1 2 3", "different batches: other configs"),
        (edited(lambda of: of["versions"].update(torch="1.0")), "1 2 3", "different batches: torch 1.0 and 2"),
        (edited(lambda of: of["shard"].update(of=4)), "1 2 3", "different batches: part 2/4 of 4 jobs and 1/3 of 4"),
        (edited(lambda of: of["shard"].update(number=4)), "1 2 3", "part-2/manifest.json: shard: '4/3' is no part"),
        (edited(lambda of: of.update(jobs=[])), "1 2 3", "holds 0 of the 1 jobs of part 2/3"),
        (edited(lambda of: of["jobs"][0].update(name="A", files=[])), "1 2 3", "the name 'A' is there twice"),
        (edited(lambda of: of.update(schema=9)), "1 2 3", "schema: this attnviz reads 1, not 9"),
        (lambda folder: (folder / "part-2" / NAME).write_bytes(b"{"), "1 2 3", "part-2/manifest.json:1:2: is not JSON"),
        (lambda folder: (folder / "part-2/b/report.md").write_bytes(b"x"), "1 2 3", "report.md is not what .* says"),
        (lambda folder: (folder / "part-2/b/report.md").unlink(), "1 2 3", "cannot read .*report.md: No such file"),
        (lambda folder: (folder / "whole").mkdir(), "1 2 3", "whole is there already"),
        (lambda folder: (folder / "whole").symlink_to("nowhere"), "1 2 3", "whole is (there already|not a folder)"),
        (lambda folder: (folder / "part-2/survey.safetensors").touch(), "1 2 3", "holds a batch and a survey"),
        (lambda folder: (folder / "s").mkdir() or (folder / "s/survey.safetensors").touch(), "1 s", "of a survey"),
        (lambda folder: (folder / "s").mkdir(), "1 s", "holds no manifest.json and no survey.safetensors"),
    ],
)  # fmt: skip
def test_what_does_not_belong_together_is_refused(
    harm: Callable[[Path], object] | None, parts_named: str, problem: str, parts: Path
) -> None:
    if harm:
        harm(parts)
    named = [str(parts / (name if name.isalpha() else f"part-{name}")) for name in parts_named.split()]
    before = sorted(parts.rglob("*"))
    with pytest.raises(InputError, match=problem) as raised:
        merged(parts, *named)
    assert len(str(raised.value).splitlines()) == 1
    assert sorted(parts.rglob("*")) == before


def test_what_is_about_surveys_is_no_option_of_batches(parts: Path) -> None:
    with pytest.raises(InputError, match="--dpi is about surveys"):
        merged(parts, str(parts / "part-1"), dpi=40)


def test_left_in_the_middle_nothing_is_there_and_what_a_killed_run_left_goes(
    parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three = [str(parts / f"part-{number}") for number in (1, 2, 3)]
    events = merge(build(MergeSpec, parts=tuple(three), out=str(parts / "new" / "whole")))
    next(events)
    assert [path.name.endswith(".attnviz.part") for path in (parts / "new").iterdir()] == [True]
    events.close()  # type: ignore[attr-defined]
    assert not (parts / "new").exists()
    killed = parts / f".whole.{2**22 + 1}.attnviz.part"  # no process has this number
    (killed / "a").mkdir(parents=True)
    merged(parts, *three)
    assert not killed.exists()
    assert content(parts / "whole") == content(parts / "one")
