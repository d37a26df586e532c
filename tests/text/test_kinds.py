"""Every kind of data set gives the same texts, exactly as they were written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.text.corpora import REVIEWS, SEVERAL_LINES, WRITERS, opened, rows, texts_of, write_saved

KINDS = sorted(WRITERS)
WITH_LABELS = sorted(set(WRITERS) - {"train.txt"})


SLICES = {"": slice(None), "[:4]": slice(4), "[2:7]": slice(2, 7), "[-3:]": slice(-3, None), "[:50%]": slice(6)}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_reviews_are_the_same_texts_whole_and_in_slices(kind: str, tmp_path: Path) -> None:
    path = WRITERS[kind](tmp_path / kind, REVIEWS)
    for written, part in SLICES.items():
        corpus = opened(path, f"train{written}")
        assert texts_of(corpus) == [text for text, _ in REVIEWS][part]
        assert corpus.notices == ()


@pytest.mark.parametrize("kind", WITH_LABELS)
def test_labels_and_newlines_survive(kind: str, tmp_path: Path) -> None:
    assert rows(opened(WRITERS[kind](tmp_path / kind, SEVERAL_LINES))) == SEVERAL_LINES


@pytest.mark.parametrize("kind", ["train.csv", "train.jsonl", "train.parquet", "train.txt"])
def test_a_file_without_texts_selects_none(kind: str, tmp_path: Path) -> None:
    path = WRITERS[kind](tmp_path / kind, [])
    with pytest.raises(Exception, match=r"selects no texts|the file is empty"):
        opened(path)


def test_a_saved_data_set_with_splits(tmp_path: Path) -> None:
    import datasets

    one = datasets.load_from_disk(str(write_saved(tmp_path / "one", REVIEWS)))
    datasets.DatasetDict({"train": one, "test": one.select(range(2))}).save_to_disk(tmp_path / "both")
    assert texts_of(opened(tmp_path / "both", "test")) == ["NA", "5"]
    assert opened(tmp_path / "both", "test+train[:1]").name == "both test+train[:1]"


@pytest.mark.parametrize(
    ("names", "labels"), [(["pos", "neg"], [1, 0]), (["neg", "pos"], [0, 1]), (["a", "b"], [0, 1])]
)
@pytest.mark.parametrize("kind", ["saved", "a.parquet"])
def test_the_names_of_classes_say_which_is_positive(
    kind: str, names: list[str], labels: list[int], tmp_path: Path
) -> None:
    import datasets

    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=names)})
    made = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [0, 1]}, features=features)
    (made.save_to_disk if kind == "saved" else made.to_parquet)(tmp_path / kind)
    assert [document.label for document in opened(tmp_path / kind).documents] == labels


def test_a_damaged_saved_data_set_is_one_line(tmp_path: Path) -> None:
    path = write_saved(tmp_path / "saved", REVIEWS)
    next(path.glob("*.arrow")).write_bytes(b"not arrow")
    with pytest.raises(Exception, match="is not a data set that can be read") as error:
        opened(path)
    assert "\n" not in str(error.value)
