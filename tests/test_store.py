"""Files whole or not at all; records out and in unchanged; anything else refused by name."""

import json
import math
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

import attnviz
from attnviz import store
from attnviz.errors import InvalidOption, InvalidRecord, OutputError
from attnviz.records import AttentionMaps, Facts
from attnviz.store import records
from tests.made import content, cross_maps, provenance, random_maps, record, sink_maps, tokens, windowed_maps
from tests.process import leave_part

RECORD = record(
    random_maps("abcd", n_layers=2, n_heads=3).weights,
    tokens("the", "\ud800", "[/]", "猫", unknown=("\ud800",)),
    made_by=provenance(settings=(("seed", 0),), trained=None),  # type: ignore[arg-type]  # nobody knows
)


@pytest.mark.parametrize("maps", [RECORD, cross_maps(3, 7), windowed_maps(), sink_maps()])
def test_saved_then_loaded_is_the_same(tmp_path: Path, maps: AttentionMaps) -> None:
    store.save(maps, tmp_path / "a.safetensors")
    again = attnviz.load(tmp_path / "a.safetensors")
    assert again.weights.tobytes() == maps.weights.tobytes()
    assert np.array_equal(again.attendable, maps.attendable)
    assert np.array_equal(again.sink, maps.sink)  # type: ignore[arg-type]  # None is None
    assert (load_tensors(store.encode_record(maps))["attendable"].ndim == 2) == maps.layers_alike
    assert (again.queries, again.keys, again.provenance) == (maps.queries, maps.keys, maps.provenance)
    assert (again.keys is again.queries) == maps.self_attention
    assert store.encode_record(again) == (tmp_path / "a.safetensors").read_bytes()


def test_a_record_is_plain_safetensors_for_everyone_else(tmp_path: Path) -> None:
    store.save(RECORD, tmp_path / "a.safetensors")
    with safe_open(tmp_path / "a.safetensors", framework="pt") as file:
        assert set(file.keys()) == {"weights", "attendable"}
        assert tuple(file.get_tensor("weights").shape) == (2, 3, 4, 4)
        meta = json.loads(file.metadata()["attnviz"])
    assert meta["schema"] == 2
    assert meta["queries"]["pieces"] == ["the", "\ud800", "[/]", "猫"]
    assert meta["provenance"]["settings"] == {"seed": 0}


def test_facts_and_layer_numbers_are_kept(tmp_path: Path) -> None:
    facts = Facts(causal=True, keep="head-tail", tokens_in_text=9, group="h.*", n_layers_in_model=4, guess="a guess")
    facts = replace(facts, known_heads=("next token 0.60", ""), n_heads_in_model=8)
    maps = replace(RECORD, layer_numbers=(1, 3), provenance=replace(RECORD.provenance, facts=facts))
    store.save(replace(maps, head_numbers=(0, 2, 5)), tmp_path / "a.safetensors")
    again = store.load(tmp_path / "a.safetensors")
    assert (again.provenance.facts, again.layer_numbers, again.head_numbers) == (facts, (1, 3), (0, 2, 5))
    assert b"n_heads_in_model" not in (whole := store.encode_record(RECORD))  # as before there were such
    assert b"head_numbers" not in whole


def rewritten(change: Callable[[dict[str, Any]], object]) -> bytes:
    """A record whose metadata was changed."""
    meta = json.loads(json.dumps(records.encode_metadata(RECORD)))
    change(meta)
    return bytes(
        save_tensors(
            {"weights": np.array(RECORD.weights), "attendable": np.array(RECORD.attendable)},
            metadata={"attnviz": json.dumps(meta)},
        )
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        store.encode_record(RECORD)[:-1],
        bytes(save_tensors({"weights": np.zeros((1, 1, 1, 1), np.float32)})),
        bytes(save_tensors({"weights": np.zeros((1, 1, 1, 1), np.float32)}, metadata={"attnviz": "[" * 100_000})),
        rewritten(lambda meta: meta.update(schema=4)),
        rewritten(lambda meta: meta["queries"]["offsets"][0].__setitem__(0, math.inf)),
        rewritten(lambda meta: meta["provenance"]["settings"].update(x=[])),
        rewritten(lambda meta: meta.update(layer_numbers=[0, 10**30])),
        rewritten(lambda meta: meta.update(head_numbers=[0, 0, 1])),
        rewritten(lambda meta: meta["provenance"]["facts"].update(n_layers_in_model=10**9)),
        rewritten(lambda meta: meta.pop("provenance")),
        store.encode_record(RECORD)[:-20] + np.float32("nan").tobytes() + store.encode_record(RECORD)[-16:],
        rewritten(lambda meta: meta.update(keys={"pieces": [], "offsets": [], "special": [], "unknown": []})),
        rewritten(lambda meta: meta.update(queries={"pieces": [1], "offsets": [], "special": [], "unknown": []})),
    ],
)
def test_what_is_not_a_record_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.safetensors").write_bytes(data)
    with pytest.raises(InvalidRecord, match=r"a\.safetensors") as caught:
        store.load(tmp_path / "a.safetensors")
    assert "\n" not in str(caught.value)


def test_weights_of_other_programs_are_no_record(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.eye(2))
    with pytest.raises(InvalidRecord, match=r"a\.npy is not a record of attnviz\. attnviz\.from_attentions"):
        attnviz.load(tmp_path / "a.npy")


@pytest.mark.parametrize("path", ["missing.safetensors", ".", "x" * 300, "a\0b"])
def test_an_unreadable_record_is_one_line(tmp_path: Path, path: str) -> None:
    with pytest.raises(InvalidRecord, match="cannot read"):
        store.load(tmp_path / path)


def full(_: int) -> None:
    raise OSError(28, "No space left on device")


def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain").write_bytes(b"")
    for part in (b"old", b"new"):
        store.write(tmp_path / "a", part)
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode  # the rights that others have
    with (tmp_path / "a").open("rb") as reading:  # whoever has it open sees no half of another
        store.write(tmp_path / "a", b"newest")
        assert reading.read() == b"new"
    store.write(Path(os.devnull), b"x" * 10_000)
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    monkeypatch.setattr(os, "fsync", full)
    for name in ("a", "new"):
        with pytest.raises(OutputError, match="No space left on device"):
            store.write(tmp_path / name, b"more")
    assert content(tmp_path) == {"plain": b"", "a": b"newest"}


@pytest.mark.parametrize("path", [".", "x" * 300, "full"])
def test_what_cannot_be_written_to_is_one_short_line(path: str, tmp_path: Path) -> None:
    if path == "full":
        if not Path("/dev/full").exists():
            pytest.skip("no /dev/full on this system")
        (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(OutputError, match="cannot write") as caught:
        store.write(tmp_path / path, b"x" * 10_000)
    assert len(str(caught.value)) < 250
    assert "No space left" in str(caught.value) or path != "full"
    assert [each.name for each in tmp_path.iterdir()] == ["full"] * (path == "full")


def test_a_folder_where_a_file_stands_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"kept")
    for path in (tmp_path / "file", tmp_path / "file" / "below", Path(os.devnull)):
        with pytest.raises(InvalidOption, match="is not a folder"):
            store.check_output_folder(str(path))
        with pytest.raises(InvalidOption, match="is not a folder"):
            store.make_folder(path)
    assert (tmp_path / "file").read_bytes() == b"kept"


def test_checking_a_folder_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.check_output_folder(f"{tmp_path}/new/folder")
    store.check_output_folder(f"{tmp_path}/{'x' * 300}")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store.check_output_folder("~/figs") == tmp_path / "figs"
    assert store.check_output_folder("~nouser/figs") == Path("~nouser/figs")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_one_run_s_and_afterwards_as_if_nothing_had_been(tmp_path: Path) -> None:
    """The lock of a process that was killed is none, whatever file it left."""
    with store.locked(tmp_path / "new/out"):
        with pytest.raises(InvalidOption, match=r"another run of attnviz is writing to .*out\. Wait for it, or"):
            store.locked(tmp_path / "new/out").__enter__()
        (tmp_path / "new/out/a").write_bytes(b"")
    assert sorted(path.name for path in (tmp_path / "new/out").iterdir()) == ["a"]
    (tmp_path / "new/out/.attnviz.lock").write_bytes(b"")
    with store.locked(tmp_path / "new/out"):
        store.remove(tmp_path / "new/out/a")
    with store.locked(tmp_path / "unused/folder"):
        pass
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["new", "out"]


def put(folder: Path, files: dict[str, bytes], old: tuple[str, ...]) -> None:
    with store.replacing(folder) as new:
        for name, data in files.items():
            (new.path / name).parent.mkdir(exist_ok=True)
            new.write(name, data)
        new.discard(old)


def test_a_set_is_replaced_as_a_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {"a": b"1", "sub/b": b"1", "other/c": b"1", "mine": b"1"}
    put(tmp_path, before, ())
    writes: list[int] = []

    def full_at_the_second(_: int) -> None:
        writes.append(1)
        if len(writes) > 1:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full_at_the_second)
        with pytest.raises(OutputError) as caught:
            put(tmp_path, {"a": b"2", "sub/d": b"2"}, ("a", "sub/b", "other/c"))
    assert str(caught.value) == f"cannot write {tmp_path}/sub/d: No space left on device"
    assert content(tmp_path) == before
    (tmp_path / "sub/d").mkdir()
    for folder in (Path(), Path("/"), tmp_path):
        with pytest.raises(OutputError, match="Is a directory"):
            store.write(folder, b"")
    with pytest.raises(OutputError, match="sub/d: Is a directory"):
        put(tmp_path, {"a": b"2", "sub/d": b"2"}, ("a", "sub/b", "other/c"))
    assert content(tmp_path) == before
    (tmp_path / "sub/d").rmdir()
    put(tmp_path, {"a": b"2", "sub/d": b"2"}, ("a", "sub/b", "other/c"))
    assert content(tmp_path) == {"a": b"2", "sub/d": b"2", "mine": b"1"}
    assert not (tmp_path / "other").exists()


def test_a_set_follows_no_link_neither_to_write_nor_to_remove(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/a").write_bytes(b"theirs")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/job").symlink_to("../theirs")
    with pytest.raises(InvalidOption, match="out/job is a symbolic link, which is not followed"):
        put(tmp_path / "out", {"job/a": b"ours"}, ())
    put(tmp_path / "out", {}, ("job/a",))
    assert content(tmp_path / "theirs") == {"a": b"theirs"}


def test_a_pipe_that_nobody_reads_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match=r"cannot write .*pipe: nobody reads this pipe"):
        store.write(tmp_path / "pipe", b"x")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    store.write(tmp_path / "pipe", b"read")
    assert os.read(reader, 9) == b"read"
    os.close(reader)


def test_what_killed_writers_left_is_swept_and_what_others_write_is_not(tmp_path: Path) -> None:
    kept = [tmp_path / ".thesis.99999.part", tmp_path / "a.png"]
    for path in kept:
        path.write_bytes(b"")
    with store.replacing(tmp_path) as living:
        leave_part(tmp_path)
        store.write(tmp_path / "b.png", b"")
        assert {*tmp_path.iterdir()} == {*kept, tmp_path / "b.png", living.path.parent}
    leave_part(tmp_path)
    with store.locked(tmp_path):  # such as what its own workers leave
        pass
    assert {*tmp_path.iterdir()} == {*kept, tmp_path / "b.png"}
