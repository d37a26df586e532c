"""What changed from one record or batch to another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz import store
from attnviz.errors import InvalidConfig, InvalidOption, InvalidRecord, InvalidSource, TooLarge
from attnviz.manifest import Entry, Manifest
from attnviz.measures import MEASURES, changes
from attnviz.measures.concentration import entropy
from attnviz.models.sizes import BASE
from attnviz.records import AttentionMaps, factored, walk
from attnviz.specs.batch import DiffSpec
from attnviz.workflows import Result
from attnviz.workflows.batch_diff.files import compare_records
from attnviz.workflows.diff import diff
from tests import batches, events
from tests.events import report, result
from tests.made import cross_maps, random_maps

LONG = "the film was not good , but the acting saved it and the cast was fine . " * 2
SPEC = DiffSpec(before="a.safetensors", after="b.safetensors")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def records(one: AttentionMaps, other: AttentionMaps) -> None:
    store.save(one, "a.safetensors")
    store.save(other, "b.safetensors")


def data(spec: DiffSpec = SPEC) -> Any:
    return events.data(events.result(diff(spec)))


def entry(name: str = "first", **numbers: list[list[float]]) -> Entry:
    return Entry(name, "heatmap", {}, "f", {}, {"a text": dict(numbers)}, (), ())


def manifests(one: tuple[Entry, ...], other: tuple[Entry, ...]) -> DiffSpec:
    batches.write(Path("a"), Manifest({}, {}, one))
    batches.write(Path("b"), Manifest({}, {}, other))
    return DiffSpec(before="a", after="b")


def test_records_of_too_many_weights_are_compared_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those that hold their weights, head by head, by `diff` and by what `check` asks."""

    def both(model: str, seed: int, causal: bool) -> tuple[AttentionMaps, AttentionMaps]:
        return (
            attnviz.attention(LONG, model=model, seed=seed, causal=causal),
            attnviz.attention(LONG, model=model, seed=seed, causal=causal, factored=True),
        )

    for name, few in (("CELLS_AT_ONCE", 200), ("MIN_ROWS", 2)):
        monkeypatch.setattr(walk, name, few)
    (one, one_long), (other, other_long), (masked, masked_long) = (
        both(*of) for of in (("random:4", 0, False), ("random:4", 1, False), ("random:4", 1, True))
    )
    monkeypatch.setattr(factored, "MAX_CELLS", 10)
    records(one_long, masked_long)
    assert "A and B do not allow the same attention" in str(report(result(diff(SPEC))).blocks)
    found = {head["head"]: head["jsd"] for head in data()["heads"]}
    assert found == pytest.approx({each.head: each.jsd for each in changes.changes(one, masked)}, abs=1e-5)
    assert [each.said for each in compare_records(one_long, masked_long, 0.0)] == ["other keys may be attended to"]
    assert compare_records(one_long, replace(one_long), 0.0) == []
    moved, expected = compare_records(one_long, other_long, 1e-3), compare_records(one, other, 1e-3)
    assert [(each.where, each.said) for each in moved] == [(each.where, each.said) for each in expected]
    assert [each.change for each in moved] == pytest.approx([each.change for each in expected], abs=1e-5)
    assert len(moved) == one.n_heads


def test_what_long_records_take_is_not_what_their_weights_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 tokens, of whose weights a dense record would have 12 GiB of copies; what is gathered counts as held."""
    maps = attnviz.attention("a " * 20_000, factored=True, model="multi", heads=2)
    records(maps, maps)
    compared = Result()
    monkeypatch.setattr("attnviz.workflows.diff._records", lambda *_: compared)
    assert list(diff(SPEC)) == [compared]
    held = 2 * store.held_bytes("a.safetensors")
    assert held > 10 * Path("a.safetensors").stat().st_size
    with pytest.raises(TooLarge, match="the two records need"):
        diff(replace(SPEC, max_memory=(BASE + held) / 2**30))


def test_heads_come_the_most_different_first() -> None:
    one, other = random_maps(n_heads=4), random_maps(n_heads=4, seed=1)
    records(one, other)
    heads = data()["heads"]
    assert sorted(head["head"] for head in heads) == [0, 1, 2, 3]
    assert [head["jsd"] for head in heads] == sorted((head["jsd"] for head in heads), reverse=True)
    for head in heads:
        found = head["measures"]["entropy"]
        place = (0, head["head"])
        assert found["a"] == pytest.approx(entropy(one).values[place])
        assert found["b"] == pytest.approx(entropy(other).values[place])
        assert found["change"] == pytest.approx(found["b"] - found["a"])


def test_the_same_record_has_no_changes() -> None:
    records(random_maps(), random_maps())
    found = result(diff(replace(SPEC, threshold=("jsd=0", "top_key=0", "peak=0"))))
    assert found.failure is None
    assert {head["jsd"] for head in data()["heads"]} == {0}
    assert "Nothing changed" in " ".join(note.text for note in report(found).notes)


def test_a_head_beyond_a_threshold_is_flagged() -> None:
    one = random_maps(n_heads=2)
    weights = one.weights.copy()
    weights[0, 1] = np.roll(weights[0, 1], 1, axis=-1)
    records(one, replace(one, weights=weights))
    spec = replace(SPEC, threshold=("jsd=0.01",))
    found = result(diff(spec))
    assert str(found.failure) == "1 of 2 heads changed more than --threshold allows"
    assert [(head["head"], head["beyond"]) for head in data(spec)["heads"]] == [(1, ["jsd"]), (0, [])]
    heads = next(table for table in report(found).tables if table.name == "heads")
    assert [row[-1] for row in heads.rows] == ["jsd", "-"]
    apart = data(spec)["heads"][0]["jsd"]
    assert result(diff(replace(SPEC, threshold=(f"jsd={apart!r}",)))).failure is None  # as far is not further
    assert result(diff(replace(SPEC, threshold=("top_key=0.5",)))).failure is not None


def test_a_threshold_of_a_measure_is_of_its_change_either_way() -> None:
    one, other = random_maps(n_heads=1, sharpness=1.0), random_maps(n_heads=1, sharpness=4.0)
    for pair in ((one, other), (other, one)):
        records(*pair)
        spec = replace(SPEC, threshold=("peak=0.05,jsd=1",))
        (head,) = data(spec)["heads"]
        assert head["beyond"] == ["peak"]
        assert list(head["measures"]) == ["entropy", "peak"]


def test_measures_are_chosen() -> None:
    records(random_maps(), random_maps(seed=1))
    (first, _) = data(replace(SPEC, measure=("gini,peak",)))["heads"]
    assert list(first["measures"]) == ["gini", "peak"]
    assert len(data(replace(SPEC, measure=("all",)))["heads"][0]["measures"]) == sum(
        each.level == "head" and not each.of_some_texts for each in MEASURES
    )
    for measure, said in (("gin", "Did you mean 'gini'"), ("vendi_score", "of all heads together")):
        with pytest.raises(InvalidOption, match=said):
            diff(replace(SPEC, measure=(measure,)))


def test_measures_of_attention_between_texts() -> None:
    records(cross_maps(), cross_maps(seed=1))
    assert "distance" not in data(replace(SPEC, measure=("all",)))["heads"][0]["measures"]
    with pytest.raises(InvalidOption, match="self-attention"):
        diff(replace(SPEC, measure=("distance",)))


def test_the_queries_that_changed_most_are_listed_with_their_keys() -> None:
    records(random_maps(n_heads=1), random_maps(n_heads=1, seed=1))
    table = next(table for table in report(result(diff(replace(SPEC, top_k=2)))).tables if table.name == "queries")
    apart = [float(row[1]) for row in table.rows]
    assert apart == sorted(apart, reverse=True)
    assert len(table.rows) == 10
    assert all(str(row[2]).count(", ") >= 1 for row in table.rows)
    with pytest.raises(InvalidOption, match="--top-k"):
        diff(replace(SPEC, top_k=0))


def test_heads_that_only_one_has_are_told() -> None:
    records(random_maps(n_heads=2), random_maps(n_layers=2, n_heads=3))
    found = result(diff(SPEC))
    assert len(data()["heads"]) == 2
    assert "A has 1 × 2 and B 2 × 3" in " ".join(note.text for note in report(found).notes)


def test_records_of_other_tokens_are_refused() -> None:
    records(random_maps(("a", "film")), random_maps(("a", "movie")))
    with pytest.raises(InvalidRecord, match="token 1 is 'film' in A and 'movie' in B"):
        diff(SPEC)


def test_a_causal_map_against_one_that_is_not_is_told() -> None:
    records(random_maps(), random_maps(causal=True))
    assert "causal" in " ".join(note.text for note in report(result(diff(SPEC))).notes)


@pytest.mark.parametrize(
    ("threshold", "said"),
    [
        ("jsd", "not NAME=N"),
        ("jsd=", "not NAME=N"),
        ("jsd=x", "not NAME=N"),
        ("jsd=-1", "not NAME=N"),
        ("jsd=nan", "not NAME=N"),
        ("jdd=1", "Did you mean 'jsd'"),
        ("jsd=1,jsd=2", "two thresholds"),
        ("", "not NAME=N"),
    ],
)
def test_a_threshold_that_is_none_is_refused(threshold: str, said: str) -> None:
    records(random_maps(), random_maps())
    with pytest.raises(InvalidOption, match=said):
        diff(replace(SPEC, threshold=(threshold,)))


def test_batches_without_numbers_have_no_threshold() -> None:
    with pytest.raises(InvalidOption, match="no threshold of 'entropy' here") as refused:
        diff(replace(manifests((entry(),), (entry(),)), threshold=("entropy=0",)))
    assert refused.value.hint == "There is none."


def test_batches_are_compared_number_by_number() -> None:
    spec = manifests(
        (entry(entropy=[[1.0, 2.0]], peak=[[0.5, 0.5]]),), (entry(entropy=[[1.0, 2.5]], peak=[[0.4, 0.5]]),)
    )
    changes = data(spec)["changes"]
    assert [(each["measure"], each["head"], each["before"], each["after"]) for each in changes] == [
        ("entropy", 0, 1.0, 1.0),
        ("entropy", 1, 2.0, 2.5),
        ("peak", 0, 0.5, 0.4),
        ("peak", 1, 0.5, 0.5),
    ]
    shown = report(result(diff(spec)))
    assert shown.subtitle == "2 of 4 numbers changed"
    assert [(table.name, len(table.rows)) for table in shown.tables] == [("changes-entropy", 1), ("changes-peak", 1)]
    assert [each["measure"] for each in data(replace(spec, measure=("peak",)))["changes"]] == ["peak", "peak"]
    found = result(diff(replace(spec, threshold=("entropy=0.4",))))
    assert str(found.failure) == "1 of 4 numbers changed more than --threshold allows"
    assert result(diff(replace(spec, threshold=("entropy=0.5",)))).failure is None
    assert result(diff(replace(spec, measure=("peak",), threshold=("entropy=0.4",)))).failure is not None


def test_what_only_one_batch_has() -> None:
    one = (entry(entropy=[[1.0]], peak=[[1.0]]), entry("gone", entropy=[[1.0]]))
    other = (entry(entropy=[[1.0, 2.0]], gini=[[1.0]]), entry("new"))
    found = data(manifests(one, other))
    assert found["only_in_a"] == ["a text of first with 1 layer of 1 head", "peak of a text of first", "job gone"]
    assert found["only_in_b"] == ["a text of first with 1 layer of 2 heads", "gini of a text of first", "job new"]
    assert len(found["changes"]) == 1


@pytest.mark.parametrize(
    ("settings", "measure", "where"),
    [
        ({}, "entropy", ["layer 0, head 0", "layer 1, head 0"]),
        ({"layers": {"a text": [1, 3]}, "heads": {"a text": [5]}}, "entropy", ["layer 1, head 5", "layer 3, head 5"]),
        ({"layers": {"a text": [1, 3]}}, "vendi_score", ["layer 1", "layer 3"]),
        ({"layers": {"a text": [4]}}, "entropy", ["layer 4, head 0", "layer 1, head 0"]),  # not ours
    ],
)
def test_in_batches_numbers_are_of_the_models_own_layers(settings: Any, measure: str, where: list[str]) -> None:
    one, other = (entry("first", **{measure: [[number], [number]]}) for number in (1.0, 2.0))
    spec = manifests((one,), (replace(other, **settings),))
    (table,) = report(result(diff(spec))).tables
    assert [row[2] for row in table.rows] == where
    assert data(manifests((replace(one, **settings),), (other,)))["only_in_a"] == []  # what was made before says none


def test_numbers_of_other_layers_are_not_compared_unsaid() -> None:
    layers = ({"a text": [1, 3]}, {"a text": [0, 1]})
    one, other = (replace(entry(entropy=[[1.0], [2.0]]), layers=each) for each in layers)
    found = data(manifests((one,), (other,)))
    assert (found["only_in_a"], found["only_in_b"]) == (
        ["a text of first with layers 1, 3"],
        ["a text of first with layers 0, 1"],
    )


@pytest.mark.parametrize(
    ("command", "settings", "of"),
    [("compare", {"models": ["dot", "multi:2"]}, ["dot", "multi:2"]), ("predict", {}, ["label 0", "label 1"])],
)
def test_in_batches_numbers_of_no_head_are_called_what_they_are_of(command: str, settings: Any, of: list[str]) -> None:
    one, other = (
        replace(entry(entropy=[[number, number]]), command=command, settings=settings) for number in (1.0, 2.0)
    )
    (table,) = report(result(diff(manifests((one,), (other,))))).tables
    assert [row[2] for row in table.rows] == of


def test_in_batches_names_are_those_of_their_numbers() -> None:
    spec = manifests((entry(entropy=[[1.0]]),), (entry(entropy=[[1.0]]),))
    assert "No number changed." in " ".join(note.text for note in report(result(diff(spec))).notes)
    for bad in (replace(spec, threshold=("jsd=1",)), replace(spec, measure=("peak",))):
        with pytest.raises(InvalidOption, match="entropy"):
            diff(bad)


def test_what_is_named_decides_what_is_read() -> None:
    spec = manifests((entry(),), (entry(),))
    assert result(diff(replace(spec, before="a/manifest.json"))).failure is None
    records(random_maps(), random_maps())
    Path("folder").mkdir()
    with pytest.raises(InvalidSource, match=r"holds no manifest\.json, no attention\.safetensors and no survey"):
        diff(replace(SPEC, before="folder"))
    store.save(random_maps(), Path("folder") / store.RECORD)
    assert result(diff(replace(SPEC, before="folder"))).failure is None
    with pytest.raises(InvalidOption, match="not of one kind"):
        diff(replace(SPEC, before="a"))
    with pytest.raises(InvalidRecord, match="cannot read"):
        diff(replace(SPEC, before="missing"))
    with pytest.raises(InvalidConfig, match=r"cannot read missing\.json"):
        diff(DiffSpec(before="missing.json", after="a"))
