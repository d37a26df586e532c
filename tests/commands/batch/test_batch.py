"""`batch` and `diff --again` as functions: the manifest, what is skipped, fails, differs, and what is said of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file, save_file

from attnviz.commands.batch.diff import diff
from attnviz.commands.batch.manifests import from_file, to_bytes
from attnviz.commands.batch.run import PROGRESS, batch
from attnviz.commands.batch.spec import BatchSpec, DiffSpec
from attnviz.errors import DifferencesFound, InvalidConfig, InvalidOption, InvalidSource
from attnviz.options import build
from attnviz.running import Progress, Result
from attnviz.store.manifest import NAME, PAGE, Entry, File, Manifest
from tests import events
from tests.commands.batch.batches import run_batch
from tests.events import report, result
from tests.made import content, page_content
from tests.pretrained import saved

pytestmark = pytest.mark.usefixtures("in_this_process")
CONFIG = """\
defaults: {model: dot, d_model: 8, dpi: 40}
jobs:
  - name: one
    heatmap: {dataset: texts.csv}
  - name: two
    heatmap: {text: two words}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "texts.csv").write_text("text\na first text\n", encoding="utf-8")
    (tmp_path / "figures.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path / "figures.yaml"


def run(config: Path, **more: Any) -> tuple[dict[str, str], Result]:
    return run_batch(config, **{"out": str(config.parent / "out"), "workers": 1, **more})


def manifest_of(config: Path) -> Manifest:
    return from_file(config.parent / "out" / NAME)


def test_the_manifest_tells_what_was_made_and_of_what(config: Path) -> None:
    ended, _ = run(config)
    assert ended == {"one": "made", "two": "made"}
    manifest = manifest_of(config)
    assert list(manifest.configs) == ["figures.yaml"]
    files = content(config.parent / "out")
    assert set(files) == {NAME, PAGE, *(file.path for entry in manifest.jobs for file in entry.files)}
    assert manifest.jobs[1].said == "dot attends to “two words”"
    assert manifest.jobs[0].settings["dataset"] == "texts.csv"  # as it is written, wherever the config lies
    assert str(config.parent) not in files[NAME].decode()


def test_one_page_leads_to_all_jobs_with_a_picture_of_each_and_again_nothing_is_made(config: Path) -> None:
    config.write_text(CONFIG.replace("dpi: 40", "format: [png, html]"), encoding="utf-8")
    _, last = run(config)
    out = config.parent / "out"
    assert last.closing == (f"2 made; wrote {out / NAME} and {out / PAGE}",)
    jobs, numbers = page_content(out / PAGE)["tables"]
    assert jobs["links"] == ["one/attention.html", "two/attention.html"]
    assert all((out / link).is_file() for link in jobs["links"])
    assert all(thumb.startswith("data:image/webp;base64,UklGR") for thumb in jobs["thumbs"])
    assert jobs["rows"][1][4].startswith("dot attends to “two words”; untrained")
    (head,) = manifest_of(config).jobs[0].numbers[0].values["entropy"]
    assert numbers["rows"][0][2] == pytest.approx(head, rel=1e-5)
    before = content(out)
    assert run(config)[0] == {"one": "unchanged", "two": "unchanged"}
    assert content(out) == before


def test_force_makes_everything_and_the_same(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(config)
    before = content(config.parent / "out")
    monkeypatch.undo()  # two processes make what one did
    assert run(config, force=True, workers=2)[0] == {"one": "made", "two": "made"}
    assert content(config.parent / "out") == before


def test_a_run_that_was_broken_off_goes_on(config: Path) -> None:
    """When one of its two jobs was told to be done. There is no manifest, and half a picture of the other job."""
    whole, out = config.parent / "whole", config.parent / "out"
    run(config, out=str(whole))
    events = batch(build(BatchSpec, configs=(str(config),), out=str(out), workers=1))
    done = next(each.latest for each in events if isinstance(each, Progress))
    del events  # which goes no further
    (other,) = {"one", "two"} - {done}
    assert not (out / NAME).exists()
    (out / other).mkdir(exist_ok=True)
    (out / other / "layer-0-head-0.png").write_bytes(b"half")
    assert run(config)[0] == {done: "unchanged", other: "made"}
    assert content(out) == content(whole)


def test_what_a_job_made_before_it_failed_is_known_to_the_next_run(config: Path) -> None:
    config.write_text(CONFIG.replace("dpi: 40", "dpi: 40, format: [png, svg]"), encoding="utf-8")
    run(config)
    config.write_text(CONFIG.replace("two words", "two words, head: 5"), encoding="utf-8")
    ended, _ = run(config, force=True)
    assert ended == {"one": "made", "two": "failed"}
    out = config.parent / "out"
    assert (out / "two/layer-0-head-0.svg").is_file()
    assert not (out / "one/layer-0-head-0.svg").exists()  # of the other format, also by --force
    config.write_text(CONFIG, encoding="utf-8")
    assert run(config)[0] == {"one": "unchanged", "two": "made"}
    assert not list(out.rglob("*.svg"))
    assert not (out / PROGRESS).exists()


def test_a_manifest_of_somebody_else_removes_and_writes_nothing_outside(config: Path, tmp_path: Path) -> None:
    """As a pull request may bring it. To make the batch anew it counts as none."""
    run(config)
    (tmp_path / "secret.txt").write_bytes(b"secret")
    manifest = from_file(tmp_path / "out" / NAME)
    old = manifest.jobs[0]
    for path in ("../secret.txt", "one/../../secret.txt", str(tmp_path / "secret.txt")):
        files = (*old.files, File(path, "", 6))
        hostile = replace(manifest, jobs=(replace(old, fingerprint="", files=files), *manifest.jobs[1:]))
        (tmp_path / "out" / NAME).write_bytes(to_bytes(hostile))
        with pytest.raises(InvalidConfig, match="is not a path within 'one'"):
            remade(config)
    assert run(config)[0] == {"one": "made", "two": "made"}
    assert (tmp_path / "secret.txt").read_bytes() == b"secret"


def test_a_folder_of_progress_or_of_a_job_that_is_a_link_is_not_followed(config: Path, tmp_path: Path) -> None:
    theirs, out = tmp_path / "theirs", tmp_path / "out"
    theirs.mkdir()
    (theirs / "one.json").write_bytes(b"{}")
    out.mkdir()
    (out / PROGRESS).symlink_to("../theirs")
    with pytest.raises(InvalidOption, match="is a symbolic link, which is not followed"):
        run(config)
    (out / PROGRESS).unlink()
    (out / "one").symlink_to("../theirs")
    assert run(config)[0] == {"one": "failed", "two": "made"}
    assert content(theirs) == {"one.json": b"{}"}


@pytest.mark.parametrize("name", [NAME, PAGE])
def test_a_page_or_manifest_that_attnviz_did_not_write_stays(config: Path, name: str) -> None:
    (config.parent / "out").mkdir()
    theirs = config.parent / "out" / name
    theirs.write_bytes(b"{}")
    with pytest.raises(InvalidOption, match=f"{name} was not written by attnviz"):
        run(config)
    assert theirs.read_bytes() == b"{}"
    assert [*theirs.parent.iterdir()] == [theirs]


@pytest.mark.parametrize("theirs", [True, False])
def test_a_file_that_somebody_put_in_the_place_of_one_stays(config: Path, theirs: bool) -> None:
    """What an earlier manifest lists goes only while it is what the batch made."""
    run(config)
    (picture,) = (config.parent / "out/two").glob("*.png")
    if theirs:
        picture.write_bytes(b"my own notes")
    config.write_text(CONFIG.replace("{text: two words}", "{text: two words, format: svg}"), encoding="utf-8")
    run(config)
    assert picture.with_suffix(".svg").exists()
    assert picture.exists() == theirs


def test_jobs_that_a_config_no_longer_has_are_named(config: Path) -> None:
    run(config)
    config.write_text(CONFIG[: CONFIG.index("  - name: two")], encoding="utf-8")
    _, last = run(config)
    assert len(last.notices) == 1
    assert last.notices[0].endswith("also holds jobs of an earlier config: two")


# made again


def remade(config: Path, **options: Any) -> Result:
    return result(diff(DiffSpec(before=str(config.parent / "out"), again=True, root=str(config.parent), **options)))


def told(found: Result) -> list[str]:
    return [note.text for note in report(found).notes]


def test_what_was_made_can_be_made_again(config: Path) -> None:
    run(config)
    found = remade(config)
    n_files = len(content(config.parent / "out")) - 2  # without what tells of them
    assert found.failure is None
    assert told(found) == [f"Compared: 2 jobs, {2 * 4} numbers, {n_files} files."]
    manifest, out = manifest_of(config), config.parent / "out"
    (out / "two/report.md").write_text("other", encoding="utf-8")
    found = remade(config)
    assert told(found)[0].startswith("two: report.md: ")
    assert told(found)[0].endswith("two/report.md has other bytes than when it was made.")
    assert isinstance(found.failure, DifferencesFound)
    (config.parent / "texts.csv").write_text("text\nanother one with more words\n", encoding="utf-8")
    found = remade(config)
    assert any(each["what"] == "texts" for each in events.data(found)["differences"])
    assert str(next(report(found).tables).rows[0][0]).startswith("one: ")
    older = Manifest(manifest.configs, {**manifest.versions, "torch": "1.0"}, manifest.jobs)
    (out / NAME).write_bytes(to_bytes(older))
    assert any(note.startswith("Made by other versions: torch 1.0 → ") for note in told(remade(config)))


def test_a_job_is_made_again_where_the_weights_of_a_third_party_model_change(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At last in a process of its own."""
    weights = saved(config.parent / "model", "bert") / "model.safetensors"
    theirs = "{model: ./model, text: the acting saved the film, layer: 0, head: 0-1}"
    config.write_text(f"jobs: [{{name: theirs, heatmap: {theirs}}}]", encoding="utf-8")
    assert [run(config)[0]["theirs"] for _ in range(2)] == ["made", "unchanged"]
    assert {"transformers", "weights"} <= {name.split()[0] for name in manifest_of(config).jobs[0].inputs}
    assert remade(config).failure is None
    turned = {name: -tensor if "word" in name else tensor for name, tensor in load_file(weights).items()}
    save_file(turned, weights, metadata={"format": "pt"})
    monkeypatch.undo()
    assert run(config)[0] == {"theirs": "made"}


def test_a_job_that_failed_is_tried_with_its_settings_again(config: Path) -> None:
    config.write_text("jobs: [{name: a, heatmap: {text: a b, head: 9, model: dot}}]", encoding="utf-8")
    run(config)
    found = remade(config)
    assert (found.failure, events.data(found)["failed_alike"]) == (None, ["a"])
    assert told(found)[0] == "Failed on both sides with the same error: a."


def test_a_manifest_of_a_setting_that_there_is_not(tmp_path: Path) -> None:
    job = Entry("a", "heatmap", {"heds": 8}, "", {}, (), (), ())
    (tmp_path / NAME).write_bytes(to_bytes(Manifest({}, {}, (job,))))
    with pytest.raises(InvalidConfig, match=r"a: .*heads"):
        next(diff(DiffSpec(before=str(tmp_path), again=True)))
    (tmp_path / NAME).write_bytes(to_bytes(Manifest({}, {}, ())))
    with pytest.raises(InvalidSource, match=r"manifest\.json holds no jobs"):
        next(diff(DiffSpec(before=str(tmp_path), again=True)))
