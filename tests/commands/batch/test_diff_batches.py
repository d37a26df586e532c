"""What differs between two batches: what they are made from, their jobs, numbers and files."""

import re
import shutil
from base64 import b64decode
from collections import Counter
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from attnviz import store
from attnviz.commands.batch.diff import diff
from attnviz.commands.batch.diff_batches import compare_batches, compare_numbers, is_same_text
from attnviz.commands.batch.manifests import from_file
from attnviz.commands.batch.spec import DiffSpec
from attnviz.options import replace_values
from attnviz.records.differences import OTHER_BYTES, Diff, Difference, Tolerances
from attnviz.store.manifest import Entry, Manifest, TextNumbers
from attnviz.views.differences import describe_difference
from tests.attacks.endings import RunHere
from tests.commands.batch import batches
from tests.events import result
from tests.made import page_content

SPEC = DiffSpec(before="baseline", after="figures")
PNG, RECORD = "first/overview.png", "first/attention.safetensors"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A batch of two jobs. Not to be changed."""
    folder = tmp_path_factory.mktemp("batch") / "made"
    batches.batch(folder, batches.SPEC, replace_values(batches.SPEC, text=("the plot was thin",)))
    return folder


@pytest.fixture
def pair(made: Path, here: Path) -> Path:
    """A folder with the same batch twice, as `baseline` and as `figures`; the tests run in it."""
    for name in ("baseline", "figures"):
        shutil.copytree(made, here / name)
    return here


def diffed(tolerances: Tolerances = Tolerances()) -> Diff:  # noqa: B008, frozen
    folders = Path("baseline"), Path("figures")
    return compare_batches(folders, [from_file(folder / "manifest.json") for folder in folders], tolerances)


def said(tolerances: Tolerances = Tolerances()) -> list[str]:  # noqa: B008, frozen
    return [describe_difference(each) for each in diffed(tolerances).differences]


def change(**what: Any) -> None:
    """Another first job in `figures`, of which these settings or inputs are others."""

    def changed(entry: Entry) -> Entry:
        old = {name: getattr(entry, name) for name in what}
        return replace(entry, **{name: old[name] | new if isinstance(new, dict) else new for name, new in what.items()})

    batches.change(Path("figures"), "first", changed)


def compared(*sides: tuple[TextNumbers, ...], tolerance: float = 0.0) -> list[Difference]:
    one, other = (Entry("job", "heatmap", {}, "", {}, numbers, (), ()) for numbers in sides)
    return list(compare_numbers(one, other, Tolerances(tolerance), Counter()))


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ({"settings": {"text": ["another"]}}, "first: setting text: "),
        ({"settings": {"model": "random:2"}}, "first: setting model: multi:2 became random:2."),
        ({"inputs": {"texts": "0" * 64}}, "first: texts: sha256 "),
        ({"fingerprint": "0" * 64}, "first: fingerprint (of the defaults and the code): sha256 "),
        ({"command": "explain"}, "first: command: heatmap became explain."),
    ],
)
def test_another_text_model_or_setting_is_a_difference_where_no_number_changed(
    what: dict[str, Any], sentence: str, pair: Path
) -> None:
    change(**what)
    assert said(Tolerances(9, pixels=255))[0].startswith(sentence)
    assert result(diff(SPEC)).failure is not None


def test_a_renamed_job_and_another_config_are_differences(pair: Path) -> None:
    manifest = batches.read(pair / "figures")
    first, second = manifest.jobs
    batches.write(pair / "figures", replace(manifest, configs={"figures.yaml": "1" * 64, "b.yaml": ""}, jobs=(first,)))
    assert said() == [
        "config figures.yaml: sha256 00000000… became sha256 11111111….",
        "job second is only in BEFORE.",
        "config b.yaml is only in AFTER (none).",
    ]
    batches.write(pair / "figures", replace(manifest, jobs=(first, replace(second, name="renamed", files=()))))
    assert said() == ["job second is only in BEFORE.", "job renamed is only in AFTER."]


def test_other_versions_are_told_and_no_difference(pair: Path) -> None:
    manifest = batches.read(pair / "figures")
    batches.write(pair / "figures", replace(manifest, versions={"torch": "2.14.0", "numpy": "3"}))
    change(fingerprint="0" * 64)  # which follows from them
    assert said() == []
    assert diffed().versions == [("torch", "2.13.0", "2.14.0"), ("numpy", "none", "3")]


@pytest.mark.parametrize(("by", "n_found"), [(0.9e-4, 0), (1.1e-4, 1), (-1.1e-4, 1)])
def test_a_number_may_differ_by_the_tolerance(pair: Path, by: float, n_found: int) -> None:
    batches.change(pair / "figures", "first", lambda entry: batches.shifted(entry, "entropy", 0, 1, by))
    found = diffed(Tolerances(1e-4)).differences
    assert len(found) == n_found
    for one in found:
        assert (one.kind, one.what, one.job, one.measure, one.layer, one.head) == (
            *("differs", "number", "first", "entropy", 0, 1),
        )
        assert one.change == pytest.approx(by)
    assert len(diffed().differences) == 1
    assert diffed(Tolerances(named={"entropy": 0.01})).differences == []
    assert len(diffed(Tolerances(1, {"entropy": 0})).differences) == 1


def test_what_only_one_has_of_texts_measures_and_heads() -> None:
    one = (TextNumbers("a", {"entropy": [1.0, 2.0], "peak": [1.0, 1.0]}, [0, 0], [0, 1]), TextNumbers("b", {}))
    other = (TextNumbers("a", {"entropy": [1.0], "to_next": [1.0]}, [0], [0]), TextNumbers("c", {}))
    assert {describe_difference(each) for each in compared(one, other, tolerance=1.0)} == {
        "job: entropy of layer 0, head 1 in a is only in BEFORE (2).",
        "job: peak of layer 0, head 0 in a is only in BEFORE (1).",
        "job: peak of layer 0, head 1 in a is only in BEFORE (1).",
        "job: to_next of layer 0, head 0 in a is only in AFTER (1).",
        "job: text b is only in BEFORE.",
        "job: text c is only in AFTER.",
    }


def test_what_is_not_a_number_is_beyond_any_tolerance() -> None:
    sides = ((TextNumbers("t", {"m": [number]}, of=["single"]),) for number in (1.0, float("nan")))
    (unlike,) = compared(*sides, tolerance=9)
    assert unlike.kind == "differs"
    assert not Tolerances(9).allow(unlike)


def test_a_picture_is_compared_by_its_pixels(pair: Path) -> None:
    same, painted = BytesIO(), BytesIO()
    with Image.open(pair / "figures" / PNG) as image:
        image.save(same, format="png", compress_level=1)
        pixels = np.array(image.convert("RGB"))
    pixels[5, 7, 1] ^= 100
    Image.fromarray(pixels).save(painted, format="png")
    batches.put(pair / "figures", PNG, same.getvalue())
    assert (said(), diffed().counts[OTHER_BYTES]) == ([], 1)
    assert said(Tolerances(exact=True))[0].startswith("first: overview.png: ")
    batches.put(pair / "figures", PNG, painted.getvalue())
    (sentence,) = said()
    assert sentence.startswith("first: overview.png: 1 pixel, by ")
    rms = float(sentence.split()[5])
    assert said(Tolerances(pixels=rms * 1.01)) == []
    assert len(said(Tolerances(pixels=rms * 0.99))) == 1


def test_what_is_no_picture_differs_whatever_the_tolerance(pair: Path) -> None:
    batches.put(pair / "figures", PNG, b"not a picture")
    (found,) = said(Tolerances(pixels=255))
    assert "not a PNG that can be read" in found


def test_vectors_are_compared_by_bytes(pair: Path) -> None:
    data = (pair / "figures" / "first/overview.svg").read_bytes()
    for folder, number in (("baseline", b"0.12345"), ("figures", b"0.12346")):
        batches.put(pair / folder, "first/overview.svg", data + b"<!-- %s -->" % number)
    assert len(said(Tolerances(9, pixels=9))) == 1


def test_a_record_is_compared_by_its_weights(pair: Path) -> None:
    maps = store.load(pair / "figures" / RECORD)
    later = replace(maps.provenance, versions=(("torch", "9"),))
    batches.put(pair / "figures", RECORD, store.encode_record(replace(maps, provenance=later)))
    assert (said(), diffed().counts[OTHER_BYTES]) == ([], 1)
    weights = maps.weights.copy()
    weights[0, 1, 2, 3] += 0.0009
    batches.put(pair / "figures", RECORD, store.encode_record(replace(maps, weights=weights)))
    (sentence,) = said()
    assert sentence.startswith("first: attention.safetensors: weight of layer 0, head 1: ")
    assert sentence.endswith("(query 2 good, key 3 film).")
    assert said(Tolerances(1e-3)) == said(Tolerances(named={"weight": 1e-3})) == []
    batches.put(pair / "figures", RECORD, b"no record")
    assert len(said(Tolerances(9))) == 1


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("entropy,0.12345678", "entropy,0.12349", True),
        ("entropy,0.1234", "entropy,0.1244", False),
        ("0.123", "0.124", True),  # rounded up and down
        ("0.123", "0.125", False),
        ("-0.001 and", "0.000 and", True),
        ("1e-05", "0.0", True),
        ("7 heads", "8 heads", False),
        ("torch 2.13.0", "torch 2.12.0", False),
        ("0.5 a", "0.5 b", False),
        ("0.5", "0.5 0.5", False),
        ("layer-0.5x", "layer-0.6x", False),
    ],
)
def test_texts_may_differ_in_their_numbers(one: str, other: str, alike: bool) -> None:
    for pair in ((one, other), (other, one)):
        assert is_same_text(pair[0].encode(), pair[1].encode(), 1e-4) == alike
        assert not is_same_text(pair[0].encode(), pair[1].encode(), 0)
    assert is_same_text(one.encode(), one.encode(), 0)
    assert not is_same_text(b"\xff", one.encode(), 1)


def test_files_that_only_one_has_also_such_as_were_put_there(pair: Path) -> None:
    batches.change(pair / "figures", "first", lambda entry: batches.without(entry, "first/overview.svg"))
    (pair / "figures/first/overview.svg").unlink()
    (pair / "figures/first/added.txt").write_text("by hand")
    (pair / "figures/first/.hidden").write_text("by an editor")
    assert said(Tolerances(9)) == ["first: overview.svg is only in BEFORE.", "first: added.txt is only in AFTER."]
    (pair / "baseline/first/added.txt").write_text("by hand")
    assert said() == ["first: overview.svg is only in BEFORE."]


@pytest.mark.parametrize("folder", ["figures", "baseline"])
def test_what_was_changed_after_it_was_made_is_said_so_and_links_are_not_followed(pair: Path, folder: str) -> None:
    there = pair / folder / "first"
    data = (there / "overview.svg").read_bytes()
    (pair / "secret").write_bytes((there / "layer-0-head-1.svg").read_bytes())
    (there / "overview.png").unlink()
    (there / "overview.svg").write_bytes(data[:-1])
    (there / "layer-0-head-0.svg").write_bytes((there / "layer-0-head-0.svg").read_bytes()[:-1] + b"x")
    (there / "layer-0-head-1.svg").unlink()
    (there / "layer-0-head-1.svg").symlink_to(pair / "secret")
    for tolerances in (Tolerances(9, pixels=255), Tolerances(exact=True)):
        assert sorted(said(tolerances)) == [
            f"first: layer-0-head-0.svg: {folder}/first/layer-0-head-0.svg has other bytes than when it was made.",
            f"first: layer-0-head-1.svg: {folder}/first/layer-0-head-1.svg is a link out of its folder.",
            f"first: overview.png: cannot read {folder}/first/overview.png: No such file or directory.",
            f"first: overview.svg: {folder}/first/overview.svg has other bytes than when it was made.",
        ]


@pytest.mark.parametrize(("before", "after"), [("none", "no such text"), ("no such text", "none"), ("a", "b")])
def test_a_job_that_fails_is_a_difference(pair: Path, before: str, after: str) -> None:
    for folder, error in (("baseline", before), ("figures", after)):
        if error != "none":
            failed = partial(replace, error=error, files=(), numbers=())
            batches.change(pair / folder, "first", failed)
    assert said() == [f"first: error: {before} became {after}."]


def test_a_difference_has_its_own_exit_code(pair: Path, run_here: RunHere) -> None:
    run = run_here("diff", "baseline", "figures", "--format", "html")
    assert (run.exit_code, run.stderr) == (0, "note: wrote differences/diff.html\n")
    assert run.stdout.startswith("No difference\n")
    batches.change(pair / "figures", "first", lambda entry: batches.shifted(entry, "entropy", 0, 1, 0.25))
    (pair / "figures" / "second" / "overview.png").unlink()
    run = run_here("diff", "baseline", "figures")
    assert (run.exit_code, run.stderr) == (3, "error: 2 differences between baseline and figures\n")
    assert run.stdout.startswith("2 differences\nBEFORE baseline · AFTER figures\n")
    assert "second: overview.png: cannot read figures/second/overview.png" in run.stdout


def test_a_page_shows_both_sides_of_pictures_and_those_that_differ_most_first(pair: Path, run_here: RunHere) -> None:
    for side in ("baseline", "figures"):
        for name, grey in (("a", 10), ("b", 200)):
            written = BytesIO()
            Image.new("L", (64, 64), 255 - grey * (side == "figures")).save(written, "PNG")
            batches.put(pair / side, f"first/{name}.png", written.getvalue())
    assert run_here("diff", "baseline", "figures", "--out", "page").exit_code == 3
    page = str(page_content(pair / "page/diff.html"))
    assert page.rindex("first: b.png") < page.rindex("first: a.png")
    for strip, shade in zip(re.findall("data:image/webp;base64,([^']+)", page), (200, 10), strict=True):
        with Image.open(BytesIO(b64decode(strip))) as image:
            shown = [image.convert("L").getpixel((place, 32)) for place in (32, 672)]
        assert shown == pytest.approx([255, 255 - shade], abs=3)
    assert "diff draws no png" in run_here("diff", "baseline", "figures", "--format", "png").stderr


def test_a_manifest_is_named_or_its_folder(pair: Path) -> None:
    assert result(diff(replace(SPEC, before="baseline/manifest.json"))).failure is None
    batches.write(pair / "empty", Manifest({}, {}, ()))
    assert result(diff(DiffSpec(before="empty", after="empty"))).failure is None
