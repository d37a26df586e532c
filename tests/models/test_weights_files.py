"""Files of weights that other programs write: what they mean, and what each wrong one is answered."""

import json
import pickle
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_tensors

import attnviz
from attnviz.errors import InvalidOption, InvalidRecord, InvalidSelection, TooLarge
from tests.made import TRACE, Bomb, random_maps

WORDS = ["the", "cat", "sat", "on", "mat"]
STACK = torch.randn(2, 4, 5, 5, generator=torch.Generator().manual_seed(0)).softmax(-1)
LAYERS = tuple(layer[None] for layer in STACK)  # as `outputs.attentions`
ARRAY = STACK.numpy()
ONE = ARRAY[0, 0]
FRAME = pandas.DataFrame(ONE, index=WORDS, columns=WORDS)
ROUNDED = FRAME.round(2)

Write = Callable[[Path], Any]


def text(content: str, encoding: str = "utf-8") -> Write:
    return lambda path: path.write_text(content, encoding=encoding)


def r_table(path: Path) -> None:
    """As write.table of R: the header is one name shorter than the rows."""
    rows = (f'"{word}" ' + " ".join(map(str, row)) for word, row in zip(WORDS, ONE, strict=True))
    path.write_text("\n".join([" ".join(f'"{word}"' for word in WORDS), *rows]))


# By the name of the file: how it is written, what it holds as [layer, head, query, key], and its tokens.
READ: dict[str, tuple[Write, np.ndarray, list[str] | None]] = {
    "stack.npy": (lambda path: np.save(path, ARRAY), ARRAY, None),
    "half.npy": (lambda path: np.save(path, ARRAY.astype(np.float16)), ARRAY, None),
    "big-endian.npy": (lambda path: np.save(path, ARRAY.astype(">f4")), ARRAY, None),
    "hard.npy": (lambda path: np.save(path, np.eye(5, dtype=bool)), np.eye(5)[None, None], None),
    "one.npz": (lambda path: np.savez_compressed(path, attention=ARRAY), ARRAY, None),
    "named.npz": (lambda path: np.savez(path, attention=ARRAY, tokens=np.array(WORDS)), ARRAY, WORDS),
    "tensor.pt": (lambda path: torch.save(STACK, path), ARRAY, None),
    "outputs.pt": (lambda path: torch.save(LAYERS, path), ARRAY, None),
    "dict.pth": (lambda path: torch.save({"attentions": LAYERS, "tokens": WORDS}, path), ARRAY, WORDS),
    "one.safetensors": (lambda path: save_file({"attention": ARRAY}, path), ARRAY, None),
    "half.safetensors": (lambda path: save_tensors({"attention": STACK.bfloat16()}, path), ARRAY, None),
    "names.csv": (lambda path: FRAME.to_csv(path), ONE[None, None], WORDS),
    "header.csv": (lambda path: FRAME.to_csv(path, index=False), ONE[None, None], WORDS),
    "rows.csv": (lambda path: FRAME.to_csv(path, header=False), ONE[None, None], WORDS),
    "numbered.csv": (lambda path: pandas.DataFrame(ONE).to_csv(path), ONE[None, None], None),
    "commas.csv": (lambda path: FRAME.to_csv(path, sep=";", decimal=","), ONE[None, None], WORDS),
    "rounded.csv": (lambda path: ROUNDED.to_csv(path), ROUNDED.to_numpy()[None, None], WORDS),
    "bare.csv": (lambda path: np.savetxt(path, ONE, delimiter=","), ONE[None, None], None),
    "a.json": (text(json.dumps({"text": " ".join(WORDS), "w": ARRAY.tolist()})), ARRAY, WORDS),
    "r.txt": (r_table, ONE[None, None], WORDS),
    "excel.csv": (text("\ufeff,a,b\r\na,1,0\r\nb,0.25,0.75\r\n"), np.array([[[[1, 0], [0.25, 0.75]]]]), ["a", "b"]),
    "notepad.csv": (lambda path: FRAME.to_csv(path, encoding="utf-16"), ONE[None, None], WORDS),
    "two.csv": (text("0,1\n0.5,0.5\n1,0\n"), np.array([[[[0.5, 0.5], [1, 0]]]]), None),  # pandas without an index
}


@pytest.mark.parametrize("name", READ)
def test_what_people_keep_is_read(name: str, tmp_path: Path) -> None:
    write, expected, names = READ[name]
    write(tmp_path / name)
    maps = attnviz.from_attentions(tmp_path / name)
    if name == "rounded.csv":
        expected = expected / expected.sum(-1, keepdims=True)
    np.testing.assert_allclose(maps.weights, expected, atol=4e-3 if "half" in name else 1e-6)
    assert maps.self_attention
    assert maps.queries.pieces == tuple(names or map(str, range(expected.shape[-1])))
    assert ("no names were given" in maps.provenance.facts.guess) == (names is None)
    assert (maps.provenance.model, maps.provenance.revision[:7]) == (name, "sha256:")


def test_names_of_two_texts_come_with_the_file(tmp_path: Path) -> None:
    cross, keys = torch.full((3, 7), 1 / 7).numpy(), list("tuvwxyz")
    np.savez(tmp_path / "cross.npz", weights=cross, tokens=np.array(WORDS[:3]), keys=np.array(keys))
    pandas.DataFrame(cross, index=WORDS[:3], columns=keys).to_csv(tmp_path / "cross.csv")
    marked = [f"{word} *" + " ".join(["0.142857"] * 7) for word in WORDS[:3]]  # as OpenNMT marks the largest
    (tmp_path / "cross.txt").write_text("\n".join(["  t u v w x y z", *marked]))
    for name in ("cross.npz", "cross.csv", "cross.txt"):
        maps = attnviz.from_attentions(str(tmp_path / name))
        assert (maps.queries.pieces, maps.keys.pieces) == (tuple(WORDS[:3]), tuple(keys))
    own = attnviz.from_attentions(tmp_path / "cross.npz", ["a", "b", "c"])
    assert (own.queries.pieces, own.keys.pieces[0]) == (("a", "b", "c"), "0")


@pytest.mark.parametrize("name", ["vector.npy", "vector.csv", "vector.txt", "array"])
def test_a_vector_with_its_words_is_one_query(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "vector.npy":
        np.save(path, ONE[0])
    elif name == "vector.csv":
        pandas.Series(ONE[0], index=WORDS).to_csv(path)
    elif name == "vector.txt":
        np.savetxt(path, ONE[0])
    maps = attnviz.from_attentions(ONE[0] if name == "array" else path, None if name == "vector.csv" else WORDS)
    np.testing.assert_allclose(maps.weights, ONE[:1][None, None], rtol=1e-6)
    assert (maps.queries.pieces, maps.keys.pieces) == (("⟨query⟩",), tuple(WORDS))
    assert "names are those of the keys" in maps.provenance.facts.guess


def test_names_say_what_axes_are_and_what_is_left_is_said(tmp_path: Path) -> None:
    np.save(tmp_path / "stack.npy", ARRAY)
    np.save(tmp_path / "heads.npy", ARRAY[0])
    guesses = {
        row: attnviz.from_attentions(tmp_path / "stack.npy", WORDS, row=row).provenance.facts.guess for row in (None, 1)
    }
    taken = "Its axes are taken for {} (2), heads (4), queries (5), keys (5); axes would say otherwise."
    assert guesses == {None: taken.format("layers"), 1: taken.format("texts")}
    chosen = attnviz.from_attentions(tmp_path / "stack.npy", WORDS, row=1)
    np.testing.assert_array_equal(chosen.weights, ARRAY[1:])
    assert "taken for heads (4)" in attnviz.from_attentions(tmp_path / "heads.npy").provenance.facts.guess
    wide = attnviz.from_attentions(np.full((2, 3), 1 / 3), ["a", "b", "c"])
    assert (wide.queries.pieces, wide.keys.pieces) == (("0", "1"), ("a", "b", "c"))


def test_one_of_several_arrays_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "several.npz"
    np.savez(path, one=ARRAY[0], other=ARRAY[1])
    said = r'holds 2 arrays: one \[4, 5, 5\], other \[4, 5, 5\]. Choose one, as by array="one"'
    with pytest.raises(InvalidRecord, match=said):
        attnviz.from_attentions(path)
    np.testing.assert_array_equal(attnviz.from_attentions(path, array="other").weights, ARRAY[1:])
    assert dict(attnviz.from_attentions(path, array="other").provenance.settings)["array"] == "other"
    with pytest.raises(InvalidOption, match=r"has no array arr_2. There is one"):
        attnviz.from_attentions(path, array="arr_2")
    with pytest.raises(InvalidOption, match="There is one without a name"):
        attnviz.from_attentions(ONE, array="arr_0")


def changed(change: Callable[[np.ndarray], Any]) -> Write:
    return lambda path: np.save(path, change(ONE.copy()))


def assigned(place: Any, value: float) -> Write:
    def change(array: np.ndarray) -> np.ndarray:
        array[place] = value
        return array

    return changed(change)


def cut(write: Write) -> Write:
    def written(path: Path) -> None:
        write(path)
        path.write_bytes(path.read_bytes()[:-10])

    return written


WRONG: dict[str, tuple[Write, str]] = {
    "scores.npy": (changed(np.log1p), "turns dropout off; scores need a softmax"),
    "percent.npy": (changed(lambda array: 100 * array), "sum to 100, not 1. They look like percent"),
    "logs.npy": (changed(np.log), "like log probabilities: take exp"),
    "turned.npy": (changed(np.transpose), "Columns sum to 1, so the axes look transposed"),
    "added.npy": (lambda path: np.save(path, ARRAY.sum(1)), "All rows sum to about 4"),
    "cut-off.npy": (changed(lambda array: array[:, :3]), "sum to less than 1: were keys cut off"),
    "rounded.npy": (changed(lambda array: array.round(1)), "look rounded to 1 decimal"),
    "mask.npy": (changed(lambda array: array > 0), "all 0 or 1, like a mask"),
    "no-weight.npy": (assigned(2, 0), "query 2 sum to 0, not 1. Some queries have no weight"),
    "nan.npy": (assigned(1, np.nan), "query 1 hold NaN. Softmax gives it where"),
    "beyond-float32.npy": (changed(lambda array: array.astype(np.float64) * 1e300), "sum to inf, not 1"),
    "empty.npy": (lambda path: np.save(path, np.empty((0, 3))), r"shape \(0, 3\) is empty"),
    "batch.npy": (lambda path: np.save(path, [ARRAY] * 3), 'may be layer, text, .* or text, layer, .* axes="layer,'),
    "complex.npy": (changed(lambda array: array + 1j), "holds complex numbers"),
    "objects.npy": (changed(lambda array: array.astype(object)), "only a pickle can hold"),
    "texts.npy": (lambda path: np.save(path, np.array(WORDS)), "holds texts, which are not weights"),
    "pickle.npy": (lambda path: path.write_bytes(pickle.dumps(ONE)), "a pickle, which can run code"),
    "module.pt": (lambda path: torch.save(torch.nn.Linear(2, 2), path), "a pickle, which is never read"),
    "sparse.pt": (lambda path: torch.save(STACK.to_sparse(), path), "holds sparse"),
    "texts.pt": (lambda path: torch.save([LAYERS, LAYERS], path), "a batch of 2 texts. Choose one with row=0 to row=1"),
    "state.pt": (lambda path: torch.save({"a": STACK, "b": STACK}, path), "holds 2 arrays: a"),
    "cut.npy": (cut(changed(np.asarray)), "is damaged: it ends before its 25 numbers do"),
    "cut.npz": (cut(lambda path: np.savez(path, ONE)), "is damaged"),
    "cut.pt": (cut(lambda path: torch.save(STACK, path)), "is damaged"),
    "other.h5": (lambda path: path.write_bytes(b"\x89HDF\r\n"), "neither a record nor a file of weights"),
    "empty.csv": (text(""), "empty.csv is empty"),
    "words.csv": (text("the cat\nsat on\n"), "words.csv:2: 'sat on' is not a number"),
    "several.txt": (text("# a\n1 0\n0 1\n# b\n0 1\n1 0\n"), "several.txt: a comment parts rows"),
    "ragged.csv": (text("0.5,0.5\n1,0\n1\n"), "ragged.csv:3: 1 columns, where line 2 has 2"),
    "long.csv": (text("0.5," * 2**20 + "0.5\n"), "a line is longer than 4,194,304 bytes"),
    "edges.csv": (text("source,target,weight\nm,n,.25\nn,n,.75\n"), "has a row for each weight or edge"),
    "reviews.csv": (text("text,label\nso very dull a film,1\nfine,0\n"), "holds texts, not weights. attnviz predict"),
    "labels.csv": (text("text,label\n好看,1\n不好,0\n"), "has the columns 'text' and 'label'. attnviz predict"),
    "nematus.txt": (text("0 ||| a b ||| -1 ||| c d ||| 2 2\n1 0\n"), "holds alignments of sentences"),
    "latin.csv": (text("é,b\n1,0\n", "latin-1"), "is damaged: 'utf-8' codec"),
    "record.safetensors": (lambda path: attnviz.save(random_maps(), path), "attnviz.load reads records"),
    "a cat": (lambda _: None, "there is no file .*a cat. attnviz.attention"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_none_is_said_in_one_line(name: str, tmp_path: Path) -> None:
    write, said = WRONG[name]
    write(tmp_path / name)
    with pytest.raises(InvalidSelection if name == "texts.pt" else InvalidRecord, match=said) as caught:
        attnviz.from_attentions(tmp_path / name)
    assert "\n" not in str(caught.value)


def zeros_packed(path: Path, start: bytes, n_bytes: int) -> None:
    """A member that takes a thousand times what the file does."""
    packed = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with packed as archive, archive.open("weights.npy", "w", force_zip64=True) as file:
        file.write(start)
        for _ in range(n_bytes // 2**20):
            file.write(bytes(2**20))


def test_what_is_too_large_is_refused_by_its_header(tmp_path: Path) -> None:
    """A file that is mostly holes, a tensor of one number that stands for many, a packed header without end."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (12, 12, 8192, 8192)}\n"
    with (tmp_path / "large.npy").open("wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        file.truncate(2**37)
    torch.save(torch.ones(1, 1).expand(200_000, 200_000), tmp_path / "spread.pt")
    zeros_packed(tmp_path / "header.npz", b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**28), 2**28)
    said = {"large.npy": TooLarge, "spread.pt": TooLarge, "header.npz": InvalidRecord}
    tracemalloc.start()
    try:
        for name, kind in said.items():
            with pytest.raises(kind):
                attnviz.from_attentions(tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()


def test_a_list_of_members_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "many.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(90):
            archive.writestr(f"{number:0>60000}.npy", b"")
    with pytest.raises(InvalidRecord, match="what it says of its files is too long"):
        attnviz.from_attentions(path)


def test_no_code_in_a_file_is_run(tmp_path: Path) -> None:
    bomb = Bomb(tmp_path / TRACE)
    torch.save({"attention": bomb}, tmp_path / "trap.pt")
    np.save(tmp_path / "trap.npy", np.array([bomb], dtype=object))
    np.savez(tmp_path / "trap.npz", weights=ONE, trap=np.array([bomb], dtype=object))
    for name in ("trap.pt", "trap.npy"):
        with pytest.raises(InvalidRecord, match="pickle"):
            attnviz.from_attentions(tmp_path / name)
    assert attnviz.from_attentions(tmp_path / "trap.npz").n_heads == 1
    assert not (tmp_path / TRACE).exists()
