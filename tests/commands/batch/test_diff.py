"""What differs between two records, and what `diff` refuses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import attnviz
from attnviz import store
from attnviz.commands.batch.diff import diff
from attnviz.commands.batch.spec import DiffSpec
from attnviz.errors import DifferencesFound, InputError, TooLarge
from attnviz.measures import MEASURES
from attnviz.models.sizes import BASE
from attnviz.records import AttentionMaps, factored, walk
from attnviz.records.differences import Diff, Difference, Tolerances
from attnviz.store.manifest import Manifest
from attnviz.views.differences import describe_difference
from attnviz.views.record_changes import compare_maps, measure_changes
from tests import events
from tests.attacks.endings import RunHere
from tests.commands.batch import batches
from tests.events import report, result
from tests.made import cross_maps, random_maps

pytestmark = pytest.mark.usefixtures("here")
LONG = "the film was not good , but the acting saved it and the cast was fine . " * 2
SPEC = DiffSpec(before="a.safetensors", after="b.safetensors")


def records(one: AttentionMaps, other: AttentionMaps) -> None:
    store.save(one, "a.safetensors")
    store.save(other, "b.safetensors")


def data(spec: DiffSpec = SPEC) -> Any:
    return events.data(result(diff(spec)))


def said(spec: DiffSpec = SPEC) -> list[str]:
    """What differs, and what is told beside it."""
    found = result(diff(spec))
    listed = [{name: each[name] for name in each if name != "kind"} for each in events.data(found)["differences"]]
    differences = [describe_difference(Difference(**each)) for each in listed]
    return differences + [note.text for note in report(found).notes if not note.leads]


def numbers(spec: DiffSpec = SPEC, measure: str = "jsd") -> dict[int, Any]:
    """Of each head, in the order in which they are listed, its number on both sides."""
    return {each["head"]: each for each in data(spec)["changes"] if each["measure"] == measure}


def test_the_same_record_has_no_difference() -> None:
    records(random_maps(), random_maps())
    for spec in (SPEC, replace(SPEC, exact=True), replace(SPEC, tolerance=("jsd=0,top_key=0", "peak=0"))):
        found = result(diff(spec))
        assert (found.failure, report(found).title, said(spec)) == (None, "No difference", [])
        assert {each["after"] for each in numbers(spec).values()} == {0}


def test_every_change_of_a_weight_is_one_unless_it_is_tolerated() -> None:
    one = random_maps(n_heads=2)
    weights = one.weights.copy()
    weights[0, 1, 2, :2] += [1e-6, -1e-6]
    records(one, replace(one, weights=weights))
    found = result(diff(SPEC))
    assert isinstance(found.failure, DifferencesFound)
    assert str(found.failure) == "1 difference between a.safetensors and b.safetensors"
    assert said()[0].startswith("weight of layer 0, head 1: 0.")
    assert result(diff(replace(SPEC, tolerance=("1e-5",)))).failure is None
    assert result(diff(replace(SPEC, tolerance=("weight=1e-5",)))).failure is None
    assert result(diff(replace(SPEC, tolerance=("1,weight=0",)))).failure is not None


def test_a_head_is_held_to_what_a_tolerance_names() -> None:
    one, other = random_maps(n_heads=1, sharpness=1.0), random_maps(n_heads=1, sharpness=4.0)
    for pair in ((one, other), (other, one)):
        records(*pair)
        apart = numbers()[0]["after"]
        for named, beyond in ((f"jsd={apart!r}", 0), (f"jsd={apart * 0.99!r}", 1), ("peak=0.05", 1), ("peak=1", 0)):
            found = [each["measure"] for each in data(replace(SPEC, tolerance=("1", named)))["differences"]]
            assert len(found) == beyond, named
    changes = data(replace(SPEC, tolerance=("peak=0.05,jsd=1",)))["changes"]
    assert [each["measure"] for each in changes] == ["jsd", "top_key", "entropy", "peak"]


def test_another_model_text_or_setting_is_a_difference_though_no_weight_moved() -> None:
    one = random_maps()
    text = replace(one.provenance, text_sha256="0" * 64)
    settings = replace(one.provenance, settings=(("seed", 7),))
    facts = replace(one.provenance, facts=replace(one.provenance.facts, known_heads=("itself 0.50", "")))
    for changed in (replace(one.provenance, model="other"), text, settings, facts):
        records(one, replace(one, provenance=changed))
        assert result(diff(replace(SPEC, tolerance=("1",)))).failure is not None
    assert said() == ["known heads: none became itself 0.50, –."]
    norms = np.ones((1, 2, len(one.keys)), np.float32)
    records(replace(one, value_norms=norms), replace(one, value_norms=2 * norms))
    assert said() == ["value norms: by up to 1."]
    records(one, replace(one, value_norms=norms))
    assert said() == ["value norms is only in AFTER."]
    versions = (("attnviz", "0.1.0"), ("torch", "9"))
    records(one, replace(one, provenance=replace(one.provenance, versions=versions)))
    assert result(diff(SPEC)).failure is None
    assert said() == ["Made by other versions: torch none → 9.", "Other bytes that say the same: 1 file."]
    assert result(diff(replace(SPEC, exact=True))).failure is not None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (random_maps(n_heads=2), random_maps(n_heads=1), "head 1 is only in BEFORE."),
        (random_maps(), random_maps(n_layers=2), "layer 1 is only in AFTER."),
        (random_maps(), random_maps(causal=True), "mask of layer 0: other keys may be attended to."),
    ],
)
def test_what_stands_on_one_side_only_is_a_difference_whatever_the_tolerance(
    one: AttentionMaps, other: AttentionMaps, expected: str
) -> None:
    records(one, other)
    spec = replace(SPEC, tolerance=("1",))
    assert expected in said(spec)
    assert result(diff(spec)).failure is not None


def test_records_of_too_many_weights_are_compared_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those that hold their weights, head by head."""

    def both(seed: int, causal: bool) -> tuple[AttentionMaps, AttentionMaps]:
        of = {"model": "random:4", "seed": seed, "causal": causal}
        return attnviz.attention(LONG, **of), attnviz.attention(LONG, factored=True, **of)  # type: ignore[arg-type]

    for name, few in (("CELLS_AT_ONCE", 200), ("MIN_ROWS", 2)):
        monkeypatch.setattr(walk, name, few)
    (one, one_long), (other, other_long), (masked, masked_long) = both(0, False), both(1, False), both(1, True)
    monkeypatch.setattr(factored, "MAX_CELLS", 10)
    records(one_long, masked_long)
    assert "mask of layer 0: other keys may be attended to." in said()
    found = {head: each["after"] for head, each in numbers().items()}
    expected = {each.head: each.after for each in measure_changes(one, masked) if each.measure == "jsd"}
    assert found == pytest.approx(expected, abs=1e-5)
    assert list(compare_maps(one_long, replace(one_long), Tolerances())) == []
    moved, shown = (
        [each for each in compare_maps(*pair, Tolerances(1e-3)) if each.what == "weight"]
        for pair in ((one_long, other_long), (one, other))
    )
    assert [(each.where, each.said) for each in moved] == [(each.where, each.said) for each in shown]
    assert [each.change for each in moved] == pytest.approx([each.change for each in shown], abs=1e-5)
    assert len(moved) == one.n_heads


def test_what_long_records_take_is_not_what_their_weights_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 5,000 tokens a dense record would have 0.8 GiB of copies."""
    maps = attnviz.attention("a " * 5_000, factored=True, model="multi", heads=2, layer=0)
    records(maps, maps)
    monkeypatch.setattr("attnviz.commands.batch.diff.compare_records", lambda *_: Diff([]))
    assert result(diff(SPEC)).failure is None
    held = 2 * Path("a.safetensors").stat().st_size
    with pytest.raises(TooLarge, match=r"b\.safetensors on both sides need"):
        diff(replace(SPEC, max_memory=(BASE + held) / 2**30))


def test_measures_are_chosen() -> None:
    records(random_maps(n_heads=1), random_maps(n_heads=1, seed=1))
    chosen = replace(SPEC, measure=("to_next,peak",))
    assert [each["measure"] for each in data(chosen)["changes"]] == ["jsd", "top_key", "to_next", "peak"]
    (table,) = (table for table in report(result(diff(chosen))).tables if table.name == "numbers")
    assert [str(row[0]).split()[0] for row in table.rows] == ["jsd", "top_key", "to_next", "peak"]
    assert len(data(replace(SPEC, measure=("all",)))["changes"]) == 2 + sum(
        each.level == "head" and not each.of_some_texts for each in MEASURES
    )
    records(cross_maps(), cross_maps(seed=1))
    assert "distance" not in [each["measure"] for each in data(replace(SPEC, measure=("all",)))["changes"]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"tolerance": ("jsd",)}, "is not a number or NAME=N"),
        ({"tolerance": ("jsd=-1",)}, "--tolerance jsd=-1.0 is not a tolerance"),
        ({"tolerance": ("jsd=1,jsd=2",)}, "two tolerances of jsd"),
        ({"tolerance": ("1",), "exact": True}, "--exact leaves no tolerance"),
        ({"pixels": 1.0}, "--pixels is of pictures"),
        ({"pixels": -1.0}, "--pixels -1.0 is not a tolerance"),
        ({"root": "x"}, "--root is where --again starts from"),
        ({"again": True}, "--again compares BEFORE with itself"),
        ({"again": True, "after": None}, "a.safetensors"),
        ({"after": None}, "nothing to compare with"),
        ({"after": "nowhere"}, "cannot read nowhere: No such file"),
        ({"after": "batch"}, "are not of one kind"),
        ({"after": "folder"}, r"holds no manifest\.json, no attention\.safetensors, no attended"),
        ({"after": "text.safetensors"}, "is not a whole safetensors file"),
        ({"measure": ("entrop",)}, "Did you mean 'entropy'"),
        ({"measure": ("vendi_score",)}, "no measure 'vendi_score' in what is compared"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], expected: str) -> None:
    records(random_maps(), random_maps())
    batches.write(Path("batch"), Manifest({}, {}, ()))
    Path("folder").mkdir()
    Path("text.safetensors").write_text("no record")
    with pytest.raises(InputError, match=expected):
        diff(replace(SPEC, **options))


def test_a_folder_stands_for_what_it_holds() -> None:
    records(random_maps(), random_maps())
    store.make_folder(Path("folder"))
    store.save(random_maps(), Path("folder") / store.RECORD)
    assert result(diff(replace(SPEC, before="folder"))).failure is None


@pytest.mark.parametrize(
    ("names", "code", "said"),
    [
        (("a.npy", "b.npy"), 3, "weight of layer 0, head 1: 0.25 became 0.5 (query 2 2, key 0 0)."),
        (("a.npy", "b.npy", "--tolerance", "0.3"), 0, "Other bytes that say the same: 1 file."),
        (("a.npy", "b.npy", "--tolerance", "1,jsd=0.01", "--measure", "peak"), 3, "jsd of layer 0, head 1: 0 became"),
        (("a.npz", "b.npz"), 3, "2 weights of heads differ by up to 0.25: weight of layer 0, head 1."),  # two layers
        (("b.npz", "c.npz"), 3, "layer 1 is only in BEFORE. layer 2 is only in AFTER."),
        (("a.npy", "d.npz"), 2, "Choose one, as by attnviz render --array x"),
        (("a.png", "b.png"), 3, "b.png: 1 pixel, by 1 of 255 (root mean square)."),
        (("a.png", "b.png", "--pixels", "1"), 0, "Other bytes that say the same: 1 file."),
        (("a.png", "c.png", "--pixels", "255"), 3, "c.png: 2 × 2 pixels became 2 × 1 pixels."),
        (("a.npy", "objects.npy"), 2, "Python objects, which only a pickle can hold"),
        (("a.npy", "b.npy", "--max-memory", "0.1"), 2, "b.npy on both sides need"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_weights_and_pictures_are_compared_as_a_command(
    names: tuple[str, ...], code: int, said: str, run_here: RunHere
) -> None:
    before = np.full((1, 2, 4, 4), 0.25, np.float32)
    after = before.copy()
    after[0, 1, 2] = [0.5, 0.25, 0.25, 0]
    for name, weights in (("a", before), ("b", after)):
        np.save(f"{name}.npy", weights)
        np.savez(f"{name}.npz", layer_0=weights[0], layer_1=weights[0])
    np.savez("c.npz", layer_0=after[0], layer_2=after[0])
    np.savez("d.npz", x=after[0], y=after[0])
    np.save("objects.npy", np.array([{}]), allow_pickle=True)
    image = Image.new("RGB", (2, 2))
    image.save("a.png")
    image.crop((0, 0, 2, 1)).save("c.png")
    image.putpixel((1, 1), (4, 0, 0))
    image.save("b.png")
    run = run_here("diff", *names)
    assert run.exit_code == code
    assert said in (run.stderr if code == 2 else " ".join(run.stdout.split()))
