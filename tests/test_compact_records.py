"""Factored records of many tokens hold what comes again once, and are the same when they are read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

import attnviz
from attnviz import store
from attnviz.errors import InvalidRecord
from attnviz.records import Tokens
from attnviz.records.factored import FactoredMaps
from attnviz.store import factored
from tests.made import save_classifier

TEXT = "the acting saved the film , and the film was not good but the acting was . " * 4


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factored, "MIN_COMPACT_TOKENS", 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of models with one layer: a second one has hardly a row that comes again, and then none is held once."""
    found = tmp_path_factory.mktemp("models")
    for n_heads in (1, 8):
        save_classifier(found / str(n_heads), [TEXT], n_heads=n_heads)
    return found


def recorded(model: str | Path, **settings: object) -> FactoredMaps:
    found = attnviz.attention(TEXT, model=str(model), factored=True, **settings)  # type: ignore[arg-type]
    assert isinstance(found, FactoredMaps)
    return found


def parts(data: bytes) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    """Tensors and JSON of a record's file."""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return dict(load(data)), json.loads(header["__metadata__"]["attnviz"])


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize(
    ("model", "settings", "shared"),
    [
        *(("8", {}, True), ("1", {"causal": True}, True)),
        *(("multi", {}, False), ("single", {"causal": True}, False), ("random:4", {"layers": 2}, False)),
    ],
)
def test_read_back_it_is_the_same(
    model: str,
    settings: dict[str, object],
    shared: bool,
    half: bool,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    maps, path = recorded(folder / model if model.isdigit() else model, **settings), tmp_path / "a.safetensors"
    attnviz.save(maps, path, half=half)
    data = path.read_bytes()
    tensors, _ = parts(data)
    assert ("key_rows" in tensors) == ("query_rows" in tensors) == shared
    found = attnviz.load(path)
    monkeypatch.setattr(factored, "MIN_COMPACT_TOKENS", 10**6)
    plain = store.encode_record(maps, half=half)
    assert len(data) < len(plain)
    assert (
        store.encode_record(found, half=half) == plain == store.encode_record(store.read_record(plain, "a"), half=half)
    )
    assert found.queries == maps.queries
    assert found.self_attention
    assert store.read_record_shape(path) == maps.weights.shape
    assert store.is_factored(path)


def test_two_texts_and_tokens_that_overlap_or_stand_nowhere(tmp_path: Path) -> None:
    maps = recorded("multi")
    n_tokens = len(maps.keys)
    offsets = [(0, 0), (0, 9), (3, 7), *((300_000 + 2 * at, 300_001 + 2 * at) for at in range(n_tokens - 4)), (0, 0)]
    pieces = "[CLS]", "\ud83d", "a\n", *(f"p{at % 5}" for at in range(n_tokens - 4)), "[SEP]"
    ends = (True, *(False,) * (n_tokens - 2), True)
    queries = Tokens(pieces, tuple(offsets), ends, tuple(at % 3 == 0 for at in range(n_tokens)))
    attnviz.save(replace(maps, queries=queries), tmp_path / "a.safetensors")
    found = attnviz.load(tmp_path / "a.safetensors")
    assert (found.queries, found.keys) == (queries, maps.keys)
    assert not found.self_attention


def test_of_value_norms_that_differ_where_keys_do_not_none_is_lost(folder: Path, tmp_path: Path) -> None:
    maps = recorded(folder / "8")
    norms = np.random.default_rng(0).random((1, maps.n_heads, len(maps.keys)), dtype=np.float32)
    attnviz.save(replace(maps, value_norms=norms), tmp_path / "a.safetensors")
    found = attnviz.load(tmp_path / "a.safetensors")
    assert found.value_norms is not None
    assert np.array_equal(found.value_norms, norms)


DAMAGE = [  # statements that leave an index, pieces, marks or rows that do not fit
    "tensors['key_rows'][3] = tensors['key'].shape[2]",
    "tensors['key_rows'] = tensors['key_rows'][:-1]",
    "tensors['key_rows'] = tensors['key_rows'].astype(np.int8)",
    "tensors['key_rows'] = tensors['key_rows'][None]",
    "tensors['queries_pieces'][0] = 200",
    "meta['queries'] = {}",
    "meta['queries'] = {'pieces': list(range(100))}",
    "tensors['queries_marks'] = tensors['queries_marks'][:, 1:]",
    "del tensors['queries_marks']",
    "tensors['queries_offsets'] = tensors['queries_offsets'][:1]",
    "tensors['query'] = tensors['query'][0, 0]",
    "tensors['value_norms'] = tensors['value_norms'][:, :, :3]",
]


@pytest.mark.parametrize("change", DAMAGE)
def test_what_no_record_has_is_refused(change: str, folder: Path) -> None:
    tensors, meta = parts(store.encode_record(recorded(folder / "8")))
    exec(change, {"tensors": tensors, "meta": meta, "np": np})
    with pytest.raises(InvalidRecord, match=r"^a\.safetensors"):
        store.read_record(save(tensors, metadata={"attnviz": json.dumps(meta)}), "a.safetensors")


def test_a_small_file_does_not_become_large(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = store.encode_record(recorded(folder / "8"))
    monkeypatch.setattr(factored, "MAX_EXPANDED_BYTES", 10_000)
    with pytest.raises(InvalidRecord, match=r"a record of [\d,]+ bytes is more than 10,000"):
        store.read_record(data, "a.safetensors")


def test_short_pieces_do_not_become_long_texts() -> None:
    """One piece of a megabyte that comes 68 times."""
    tensors, meta = parts(store.encode_record(recorded("multi")))
    meta["queries"] = {"pieces": ["x" * 2**20]}
    tensors["queries_pieces"][:] = 0
    data = save(tensors, metadata={"attnviz": json.dumps(meta)})
    with pytest.raises(InvalidRecord, match="tokens of 71,303,168 characters are more than 67,108,864"):
        store.read_record(data, "a.safetensors")


def test_what_a_record_takes_is_known_before_it_is_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As much as where nothing is gathered, and what says which rows and pieces there are."""
    maps, path = recorded(folder / "8"), tmp_path / "a.safetensors"
    attnviz.save(maps, path)
    tensors, _ = parts(path.read_bytes())
    added = [name for name in tensors if name.startswith("queries_") or name.endswith("_rows")]
    monkeypatch.setattr(factored, "MIN_COMPACT_TOKENS", 10**6)
    plain, _ = parts(store.encode_record(maps))
    assert added
    assert store.count_record_bytes(path) == sum(plain[name].nbytes for name in plain) + sum(
        tensors[n].nbytes for n in added
    )
    assert store.count_record_bytes(path) > sum(tensor.nbytes for tensor in tensors.values())
    assert store.count_record_bytes(path.read_bytes()) == store.count_record_bytes(path)
    with pytest.raises(InvalidRecord, match="not a whole safetensors file"):
        store.count_record_bytes(path.read_bytes()[:-1])


def test_short_records_are_as_any_program_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    tensors, meta = parts(store.encode_record(recorded("multi")))
    assert meta["schema"] == 4
    assert tensors["query"].shape[2] == tensors["key"].shape[2] == len(recorded("multi").keys)
