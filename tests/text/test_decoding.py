"""No feature of `datasets` decodes what a data set holds: only text, numbers and flags are read."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow
import pytest
from datasets.features.features import _FEATURE_TYPES

from attnviz.errors import InvalidSource
from attnviz.text.hub import as_source
from attnviz.text.source import Wanted
from tests.text.corpora import opened, rows, texts_of

POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n"
PLAIN = ("Value", "ClassLabel")
ARGUMENTS: dict[str, dict[str, Any]] = {
    **{f"Array{n}D": {"shape": (1,) * n, "dtype": "int8"} for n in (2, 3, 4, 5)},
    "Translation": {"languages": ["en", "zh"]},
    "TranslationVariableLanguages": {"languages": ["en", "zh"]},
    "List": {"feature": datasets.Value("string")},
    "LargeList": {"feature": datasets.Value("string")},
}


def holding(name: str, column: str) -> datasets.Dataset:
    """Three rows of a text and a label, one of these columns of a feature."""
    feature = _FEATURE_TYPES[name](**ARGUMENTS.get(name, {}))
    kind = datasets.Features({column: feature}).arrow_schema.field(column).type
    has_bytes = pyarrow.types.is_struct(kind) and kind.get_field_index("bytes") >= 0
    value = {"bytes": POSTSCRIPT, "path": None} if has_bytes else None
    storage = getattr(kind, "storage_type", kind)
    special = pyarrow.array([value] * 3, storage)
    if storage is not kind:
        special = pyarrow.ExtensionArray.from_storage(kind, special)
    columns = {"text": pyarrow.array(["a", "b", "c"]), "label": pyarrow.array([0, 1, 1])} | {column: special}
    plain = {"text": datasets.Value("string"), "label": datasets.Value("int64")}
    info = datasets.DatasetInfo(features=datasets.Features(plain | {column: feature}))
    return datasets.Dataset(pyarrow.table(columns), info=info)


@pytest.fixture(autouse=True)
def ghostscript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pillow finds a Ghostscript, which must not be run."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "gs"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    yield
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize("name", sorted({*_FEATURE_TYPES} - {*PLAIN}))
def test_a_column_of_another_type_is_not_read(name: str, tmp_path: Path) -> None:
    """As texts it is refused; as labels it is none."""
    with pytest.raises(InvalidSource, match=f"train: row 0: 'text' holds {name}, not text"):
        list(as_source(holding(name, "text"), Wanted(), "made").rows("train"))
    source = as_source(holding(name, "label"), Wanted(), "made")
    assert list(source.rows("train")) == [("a", None), ("b", None), ("c", None)]
    assert source.notices == (f"made: texts from 'text', no labels: 'label' holds {name}, which is not a label: "
                              "these are 0, 1, 2 …, neg, pos and such",)  # fmt: skip


@pytest.mark.parametrize("column", ["text", "label"])
@pytest.mark.parametrize("kind", ["saved", "train.parquet"])
def test_a_picture_starts_no_program(kind: str, column: str, tmp_path: Path) -> None:
    made = holding("Image", column)
    (made.save_to_disk if kind == "saved" else made.to_parquet)(tmp_path / kind)
    if column == "label":
        assert texts_of(opened(tmp_path / kind)) == ["a", "b", "c"]
    else:
        with pytest.raises(InvalidSource, match=r"'text' holds .*, not text"):
            opened(tmp_path / kind)


def test_a_program_of_a_format_is_not_started(tmp_path: Path) -> None:
    """The format that a folder says its rows have, such as tensors or arrays, is not theirs here."""
    made = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [0, 1]}).with_format("numpy", columns=["label"])
    made.save_to_disk(tmp_path / "saved")
    assert texts_of(opened(tmp_path / "saved")) == ["a", "b"]


@pytest.mark.parametrize(
    "kind", ["string", "large_string", "int8", "int64", "uint16", "float32", "bool"],
)  # fmt: skip
def test_plain_types_are_read(kind: str, tmp_path: Path) -> None:
    texts = datasets.Value(kind if "string" in kind else "string")
    labels = datasets.Value(kind)
    features = datasets.Features({"text": texts, "label": labels})
    values = ["0", "1"] if "string" in kind else [0, 1]
    datasets.Dataset.from_dict({"text": ["a", "b"], "label": values}, features=features).save_to_disk(
        tmp_path / "saved"
    )
    assert rows(opened(tmp_path / "saved")) == [("a", 0), ("b", 1)]


def test_a_folder_without_splits_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "dataset_dict.json").write_text('{"splits": []}')
    with pytest.raises(InvalidSource, match="saved holds no splits"):
        opened(tmp_path / "saved")
