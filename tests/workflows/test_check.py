"""Batches against a baseline: what is found, and what is written."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import attnviz
from attnviz import store
from attnviz.differences import EXACT, BatchDiff, Difference, Tolerances
from attnviz.errors import InputError, InvalidOption, InvalidSource, TooLarge
from attnviz.manifest import Entry, File, Manifest, Numbers
from attnviz.models.sizes import BASE
from attnviz.options import build, with_values
from attnviz.specs.batch import CheckSpec
from attnviz.views.check import first_differences
from attnviz.workflows.batch_diff.batches import compare_numbers, differences, load_batch
from attnviz.workflows.batch_diff.files import Compared, heads_in_words, is_same_text
from attnviz.workflows.check import check
from tests import batches
from tests.events import result


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A batch of two jobs. Not to be changed."""
    folder = tmp_path_factory.mktemp("batch") / "made"
    batches.batch(folder, batches.SPEC, with_values(batches.SPEC, text=("the plot was thin",)))
    return folder


@pytest.fixture
def pair(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the same batch twice, as `baseline` and as `figures`; the tests run in it."""
    for name in ("baseline", "figures"):
        shutil.copytree(made, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


SPEC = build(CheckSpec, folder="figures", baseline="baseline")


def found(spec: CheckSpec = SPEC) -> tuple[Difference, ...]:
    result(check(spec))  # which writes what shows them
    return diff(spec).differences


def diff(spec: CheckSpec = SPEC) -> BatchDiff:
    """As `check` compares, less what it writes."""
    tolerances = Tolerances(spec.tolerance, spec.pixels)
    return differences(load_batch(Path(spec.baseline)), load_batch(Path(spec.folder)), tolerances)


def only(spec: CheckSpec = SPEC) -> Difference:
    (unlike,) = found(spec)
    return unlike


def compared(expected: Numbers, actual: Numbers, tolerance: float = 0.0) -> list[Compared]:
    one, other = (Entry("job", "heatmap", {}, "", {}, numbers, (), ()) for numbers in (expected, actual))
    return list(compare_numbers(one, other, tolerance))


def written(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def painted(data: bytes, by: int = 100) -> bytes:
    """The same picture with one pixel changed."""
    with Image.open(BytesIO(data)) as image:
        pixels = np.array(image.convert("RGB"))
    pixels[5, 7, 1] ^= by
    file = BytesIO()
    Image.fromarray(pixels).save(file, format="png")
    return file.getvalue()


def recompressed(data: bytes) -> bytes:
    """The same pixels in other bytes."""
    file = BytesIO()
    with Image.open(BytesIO(data)) as image:
        image.save(file, format="png", compress_level=1)
    return file.getvalue()


def test_a_batch_and_itself_do_not_differ_and_nothing_is_written(pair: Path) -> None:
    outcome = result(check(SPEC))
    assert diff().differences == ()
    assert (outcome.files, outcome.notices) == ((), ())
    assert diff().n_numbers == 2 * 4 * 2  # jobs, measures of the headline, heads
    assert diff().n_files == sum(len(entry.files) for entry in batches.read(pair / "figures").jobs)
    assert [case.failed for case in outcome.cases] == [False, False]
    assert sorted(path.name for path in pair.iterdir()) == ["baseline", "figures"]


@pytest.mark.parametrize(("by", "n_found"), [(0.9e-4, 0), (1.1e-4, 1), (-1.1e-4, 1)])
def test_a_number_may_differ_by_the_tolerance(pair: Path, by: float, n_found: int) -> None:
    batches.change(pair / "figures", "first", lambda entry: batches.shifted(entry, "entropy", 0, 1, by))
    differences = found()
    assert len(differences) == n_found
    if differences:
        (one,) = differences
        assert (one.kind, one.job, one.measure, one.layer, one.head) == ("number", "first", "entropy", 0, 1)
        assert isinstance(one.expected, float)
        assert isinstance(one.actual, float)
        assert one.actual - one.expected == pytest.approx(by)
    assert found(replace(SPEC, tolerance=0.01)) == ()


def test_another_number_of_heads_is_a_difference() -> None:
    four = {"text": {"entropy": [[1.0, 2.0, 3.0, 4.0]]}}
    two = {"text": {"entropy": [[1.0, 2.0]]}}
    (unlike,) = compared(two, four, 1.0)
    assert isinstance(unlike, Difference)
    assert (unlike.kind, unlike.expected, unlike.actual) == ("heads", "1 layer of 2 heads", "1 layer of 4 heads")
    assert heads_in_words([[1.0], [1.0, 2.0]]) == "2 layers of 1 or 2 heads"
    assert heads_in_words([]) == "no layers"


def test_only_what_is_compared_is_counted() -> None:
    one = {"a": {"entropy": [[1.0, 2.0]], "peak": [[1.0, 2.0]], "gini": [[1.0]]}, "b": {"entropy": [[1.0]]}}
    other = {"a": {"entropy": [[1.0, 2.0]], "peak": [[1.0]]}}
    assert compared(one, one) == ["same number"] * 6
    assert compared(one, other).count("same number") == compared(other, one).count("same number") == 2


def test_texts_and_measures_that_only_one_has() -> None:
    one = {"a": {"entropy": [[1.0]], "peak": [[1.0]]}, "b": {}}
    other = {"a": {"entropy": [[1.0]], "gini": [[1.0]]}, "c": {}}
    found = compared(one, other)
    assert [(each.kind, each.text, each.measure) for each in found if isinstance(each, Difference)] == [
        ("missing numbers", "a", "peak"),
        ("new numbers", "a", "gini"),
        ("missing numbers", "b", ""),
        ("new numbers", "c", ""),
    ]


def test_what_is_not_a_number_is_beyond_any_tolerance() -> None:
    (unlike,) = compared({"t": {"m": [[1.0]]}}, {"t": {"m": [[float("nan")]]}}, 9)
    assert isinstance(unlike, Difference)
    assert unlike.kind == "number"


def test_a_picture_is_compared_by_its_pixels(pair: Path) -> None:
    path = "first/overview.png"
    data = (pair / "figures" / path).read_bytes()
    batches.put(pair / "figures", path, recompressed(data))
    outcome = result(check(SPEC))
    assert (diff().differences, diff().n_other_bytes, outcome.files) == ((), 1, ())
    batches.put(pair / "figures", path, painted(data))
    unlike = only()
    assert (unlike.kind, unlike.file) == ("picture", path)
    assert isinstance(unlike.actual, float)
    assert found(replace(SPEC, pixels=unlike.actual)) == ()
    assert len(found(replace(SPEC, pixels=unlike.actual * 0.99))) == 1


def test_what_differs_is_written_and_only_that(pair: Path) -> None:
    path = "first/overview.png"
    data = (pair / "figures" / path).read_bytes()
    batches.put(pair / "figures", path, painted(data))
    outcome = result(check(SPEC))
    assert written(pair / "differences") == [
        "differences.json",
        "first/overview-actual.png",
        "first/overview-difference.png",
        "first/overview-expected.png",
    ]
    assert sorted(file.as_posix() for file in outcome.files) == [
        f"differences/{name}" for name in written(pair / "differences")
    ]
    out = pair / "differences"
    assert (out / "first/overview-expected.png").read_bytes() == data
    assert (out / "first/overview-actual.png").read_bytes() == painted(data)
    with Image.open(out / "first/overview-difference.png") as image, Image.open(BytesIO(data)) as expected:
        assert image.size == expected.size
    document = json.loads((out / "differences.json").read_text())
    assert not document["same"]
    (one,) = document["differences"]
    assert (one["kind"], one["job"], one["file"]) == ("picture", "first", path)
    first = {file: (out / file).read_bytes() for file in written(out)}
    check(SPEC)
    assert {file: (out / file).read_bytes() for file in written(out)} == first


@pytest.mark.parametrize(
    ("size", "said"), [((30, 20), ("picture", "another size")), (None, ("file", "not a PNG that can be read"))]
)
def test_another_size_or_no_picture_differs_whatever_the_tolerance(
    pair: Path, size: tuple[int, int] | None, said: tuple[str, str]
) -> None:
    file = BytesIO(b"not a picture")
    if size:
        Image.new("RGB", size).save(file, format="png")
    batches.put(pair / "figures", "first/overview.png", file.getvalue())
    unlike = only(replace(SPEC, pixels=255))
    assert (unlike.kind, unlike.said) == said
    assert len(written(pair / "differences")) == (4 if size else 1)
    assert not size or unlike.actual == "30 × 20 pixels"


def test_vectors_are_compared_by_bytes(pair: Path) -> None:
    data = (pair / "figures" / "first/overview.svg").read_bytes()
    for folder, number in (("baseline", b"0.12345"), ("figures", b"0.12346")):
        batches.put(pair / folder, "first/overview.svg", data + b"<!-- %s -->" % number)
    assert only(replace(SPEC, tolerance=9, pixels=9)).kind == "file"


def test_a_record_is_compared_by_its_weights(pair: Path) -> None:
    path = "first/attention.safetensors"
    maps = store.load(pair / "figures" / path)
    later = replace(maps.provenance, versions=(("torch", "9"),))
    batches.put(pair / "figures", path, store.record_bytes(replace(maps, provenance=later)))
    assert found() == ()
    weights = maps.weights.copy()
    weights[0, 1, 2, 3] += 0.0009
    batches.put(pair / "figures", path, store.record_bytes(replace(maps, weights=weights)))
    unlike = only()
    assert (unlike.kind, unlike.layer, unlike.head, unlike.said) == ("record", 0, 1, "query 2 good, key 3 film")
    assert found(replace(SPEC, tolerance=1e-3)) == ()
    other = (pair / "figures" / "second/attention.safetensors").read_bytes()
    batches.put(pair / "figures", path, other)
    assert "token 0 is 'not' in A and 'the' in B" in only().said
    batches.put(pair / "figures", path, b"no record")
    assert only().kind == "file"


def test_what_a_gathered_record_becomes_is_counted(pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is a tenth of that."""
    monkeypatch.setattr("attnviz.store.factored.MANY_TOKENS", 1_000)  # to make and compare 4,096 tokens takes 20 s
    maps = attnviz.attention("a " * 1_000, factored=True, model="single")
    later = replace(maps, provenance=replace(maps.provenance, versions=(("torch", "9"),)))
    for folder, each in (("baseline", maps), ("figures", later)):
        batches.put(pair / folder, "first/attention.safetensors", store.record_bytes(each))
    files = [pair / folder / "first/attention.safetensors" for folder in ("baseline", "figures")]
    held, sizes = sum(map(store.held_bytes, files)), sum(path.stat().st_size for path in files)
    assert held > 10 * sizes
    with pytest.raises(TooLarge, match=r"first/attention\.safetensors and its baseline need"):
        found(replace(SPEC, max_memory=(BASE + held) / 2**30))
    assert found(replace(SPEC, max_memory=(BASE + held + sizes + 1) / 2**30)) == ()


def test_a_record_of_other_heads_differs(pair: Path) -> None:
    path = "first/attention.safetensors"
    maps = store.load(pair / "figures" / path)
    of_one = replace(maps, weights=maps.weights[:, :1].copy(), value_norms=None, head_numbers=())
    batches.put(pair / "figures", path, store.record_bytes(of_one))
    unlike = only()
    assert (unlike.kind, unlike.expected, unlike.actual) == ("record", "1 layer of 2 heads", "1 layer of 1 head")
    for other, *said in (
        (replace(maps, layer_numbers=(3,)), "layers 0", "layers 3"),
        (replace(maps, head_numbers=(0, 2)), "heads 0, 1", "heads 0, 2"),
    ):
        batches.put(pair / "figures", path, store.record_bytes(other))
        unlike = only()
        assert [unlike.kind, unlike.expected, unlike.actual] == ["record", *said]


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
    assert is_same_text(one.encode(), one.encode(), 0)
    assert not is_same_text(b"\xff", one.encode(), 1)


def test_files_and_jobs_that_only_one_has(pair: Path) -> None:
    batches.change(pair / "figures", "first", lambda entry: batches.without(entry, "first/overview.svg"))
    batches.change(pair / "baseline", "first", lambda entry: batches.without(entry, "first/overview.png"))
    kinds = {(each.kind, each.file) for each in found()}
    assert kinds == {("missing file", "first/overview.svg"), ("new file", "first/overview.png")}
    batches.change(pair / "figures", "first", lambda entry: None)
    batches.change(pair / "baseline", "second", lambda entry: None)
    assert [(each.kind, each.job) for each in found()] == [("new job", "second"), ("missing job", "first")]
    assert written(pair / "differences") == ["differences.json"]


@pytest.mark.parametrize("folder", ["figures", "baseline"])
def test_what_was_changed_after_it_was_made_is_an_error_of_its_own(pair: Path, folder: str) -> None:
    there = pair / folder / "first"
    data = (there / "overview.svg").read_bytes()
    (there / "overview.png").unlink()
    (there / "overview.svg").write_bytes(data[:-1])
    (there / "layer-0-head-0.svg").write_bytes((there / "layer-0-head-0.svg").read_bytes()[:-1] + b"x")
    told = {each.file: each.said for each in found() if each.kind == "changed file"}
    where = "in the baseline " if folder == "baseline" else ""
    assert told == {
        "first/overview.png": f"{where}is gone",
        "first/overview.svg": f"{where}has another size than when it was made",
        "first/layer-0-head-0.svg": f"{where}has other bytes than when it was made",
    }
    assert len(found()) == 3


@pytest.mark.parametrize(("before", "after"), [("", "no such text"), ("no such text", ""), ("a", "b")])
def test_a_job_that_fails_is_a_difference(pair: Path, before: str, after: str) -> None:
    for folder, error in (("baseline", before), ("figures", after)):
        batches.change(pair / folder, "first", failing(error))
    unlike = only()
    assert (unlike.kind, unlike.expected, unlike.actual) == ("failed job", before, after)


def test_a_job_that_fails_as_before_is_none_and_is_told(pair: Path) -> None:
    for folder in ("baseline", "figures"):
        batches.change(pair / folder, "first", failing("no such text"))
    outcome = result(check(SPEC))
    assert diff().differences == ()
    assert diff().failed_alike == ("first",)
    assert [finding.level for finding in outcome.cases[0].findings] == ["warning"]


def failing(error: str) -> Callable[[Entry], Entry]:
    def how(entry: Entry) -> Entry:
        return replace(entry, error=error, files=(), numbers={}) if error else entry

    return how


def test_what_a_job_was_made_from_is_told_where_it_differs(pair: Path) -> None:
    def how(entry: Entry) -> Entry:
        entry = batches.shifted(entry, "entropy", 0, 0, 1)
        return replace(entry, settings={"model": "multi:4"}, inputs={"texts": "0" * 64, "new": ""}, command="compare")

    batches.change(pair / "figures", "first", how)
    manifest = batches.read(pair / "figures")
    batches.write(pair / "figures", replace(manifest, versions={"torch": "2.14.0", "numpy": "3"}))
    checked = diff()
    assert checked.causes["first"] == (
        "the command is compare, not heatmap",
        "other settings (model, text)",
        "other texts",
    )
    assert checked.versions == (("torch", "2.13.0", "2.14.0"), ("numpy", "none", "3"))
    assert checked.config == "figures.yaml"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../outside.png", "is no path within 'first'"),
        ("/etc/hostname", "is no path within 'first'"),
        ("first/link/outside.png", "is a link out of its folder"),
    ],
)
def test_a_file_outside_the_folder_is_refused(pair: Path, path: str, said: str) -> None:
    (pair / "outside.png").write_bytes(b"x")
    (pair / "figures/first/link").symlink_to(pair)
    outside = File(path, "0" * 64, 1)
    batches.change(pair / "figures", "first", lambda entry: replace(entry, files=(outside,)))
    with pytest.raises(InputError, match=said):
        check(SPEC)


def test_exactly_the_same_is_asked_of_bytes_and_links_are_not_followed(pair: Path) -> None:
    path = "first/overview.png"
    batches.put(pair / "figures", path, recompressed((pair / "figures" / path).read_bytes()))
    batches.change(pair / "figures", "first", lambda entry: batches.shifted(entry, "entropy", 0, 1, 1e-9))
    (pair / "secret").write_bytes((pair / "baseline/second/overview.png").read_bytes())
    (pair / "baseline/second/overview.png").unlink()
    (pair / "baseline/second/overview.png").symlink_to(pair / "secret")
    before, after = load_batch(Path("baseline")), load_batch(Path("figures"))
    exact = differences(before, after, EXACT)
    assert [(each.kind, each.file) for each in exact.differences] == [
        ("number", ""),
        ("file", path),
        ("changed file", "second/overview.png"),
    ]
    number, file = first_differences(exact, "2 jobs")
    assert re.fullmatch(
        "first difference in numbers: in first, entropy of layer 0, head 1 "
        f"in “{batches.TEXT}”: [0-9.]+ became [0-9.]+",
        number,
    )
    assert re.fullmatch(
        r"first difference in files: in first, overview.png has other bytes "
        r"\([0-9,]+ with sha256 .{8}… became [0-9,]+ with .+\)",
        file,
    )
    with pytest.raises(InvalidSource, match="is a link out of its folder"):
        differences(before, after, Tolerances())


def test_names_of_what_is_written_are_safe_and_none_twice(pair: Path) -> None:
    jobs = ("up", "differences.json", "x" * 64)
    png = (pair / "figures" / "first/overview.png").read_bytes()
    for folder, data in (("baseline", png), ("figures", painted(png))):
        entries = []
        for name in jobs:
            paths = [f"{name}/{'ç' * 99}.png", f"{name}/p/a.png", f"{name}/p-a.png"]  # the last two would be one name
            for path in paths:
                (pair / folder / path).parent.mkdir(parents=True, exist_ok=True)
                (pair / folder / path).write_bytes(data)
            files = tuple(batches.file_of(pair / folder, path) for path in paths)
            entries.append(Entry(name, "heatmap", {}, "", {}, {}, (), files))
        batches.write(pair / folder, Manifest({}, {}, tuple(entries)))
    outcome = result(check(SPEC))
    out = (pair / "differences").resolve()
    assert all(file.resolve().is_relative_to(out) for file in outcome.files)
    assert len({str(file).lower() for file in outcome.files}) == len(outcome.files) == 3 * 3 * 3 + 1
    assert {len(file.parts) for file in outcome.files[1:]} == {3}  # differences, job, name
    assert all(len(file.name) < 100 and file.name.isascii() for file in outcome.files)


def test_what_an_earlier_check_left_is_told(pair: Path) -> None:
    path = "first/overview.png"
    data = (pair / "figures" / path).read_bytes()
    batches.put(pair / "figures", path, painted(data))
    assert result(check(SPEC)).notices == ()
    batches.put(pair / "figures", path, data)
    (notice,) = result(check(SPEC)).notices
    assert notice == "differences also holds 4 files of an earlier check, such as differences.json"


def test_folders_without_a_manifest_are_refused(pair: Path) -> None:
    (pair / "empty").mkdir()
    for spec in (replace(SPEC, folder="empty"), replace(SPEC, baseline="empty"), replace(SPEC, baseline="missing")):
        with pytest.raises(InvalidSource, match=r"holds no manifest\.json"):
            check(spec)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_a_tolerance_that_is_none_is_refused(pair: Path, value: float) -> None:
    for spec in (replace(SPEC, tolerance=value), replace(SPEC, pixels=value)):
        with pytest.raises(InvalidOption, match="is no tolerance"):
            check(spec)


def test_out_is_not_one_of_the_folders(pair: Path) -> None:
    for out in ("figures", "./baseline", str(pair / "figures")):
        with pytest.raises(InvalidOption, match="--out"):
            check(replace(SPEC, out=out))


def test_cases_are_the_jobs(pair: Path) -> None:
    batches.change(pair / "figures", "second", lambda entry: batches.shifted(entry, "peak", 0, 0, 0.1))
    outcome = result(check(SPEC))
    assert [(case.name, case.failed) for case in outcome.cases] == [("first", False), ("second", True)]
    (finding,) = outcome.cases[1].findings
    assert finding.file == "figures.yaml"
    assert finding.title == "second: 1 number differs"
    assert Counter(each.kind for each in diff().differences) == {"number": 1}
