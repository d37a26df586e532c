"""A path is a path, a name is a name, and a folder is what lies in it."""

from pathlib import Path

import pytest

from attnviz.errors import InvalidSource
from tests.text.corpora import opened, rows, texts_of, write_csv, write_folder, write_jsonl, write_parquet, write_txt


def test_a_file_that_exists_is_never_a_name_on_the_hub(here: Path) -> None:
    (here / "d").mkdir()
    write_csv(here / "d" / "a.csv", [("mine", 0)])
    assert texts_of(opened("d/a.csv")) == ["mine"]
    (here / "d" / "set").mkdir()
    write_csv(here / "d" / "set" / "train.csv", [("folder", 0)])
    assert texts_of(opened("d/set")) == ["folder"]


@pytest.mark.parametrize(
    "name", ["d/a.csv", "a.parquet", "./a", "../a/b", "/a/b", "~/a", "a/", "x.json", "a" * 300 + ".csv"]
)
def test_what_looks_like_a_path_and_is_not_there(name: str, here: Path) -> None:
    with pytest.raises(InvalidSource, match="no file or folder"):
        opened(name)


@pytest.mark.parametrize("name", ["", "imbd", "a/b/c", "a b", "a\0b", "-", "https://x/y"])
def test_a_name_that_nobody_knows(name: str, here: Path) -> None:
    with pytest.raises(InvalidSource, match=r"no data set .*(Did you mean|There are).* org/name"):
        opened(name)


@pytest.mark.parametrize(("file", "split"), [("TEST.CSV", "test"), ("dev.csv", "dev"), ("x.csv", "train")])
def test_one_file_is_one_split(file: str, split: str, tmp_path: Path) -> None:
    write_csv(tmp_path / file, [("a", 0)])
    assert opened(tmp_path / file).name == f"{file} {split}"


def test_a_folder_with_a_file_for_each_split(tmp_path: Path) -> None:
    write_parquet(tmp_path / "train.parquet", [("a", 0)])
    write_jsonl(tmp_path / "test.jsonl", [("b", 1)])
    write_txt(tmp_path / "dev.txt", [("c", 0)])
    write_txt(tmp_path / "README.txt", [("not a split", 0)])
    (tmp_path / "train.md").write_text("not a data set")
    assert texts_of(opened(tmp_path, "train+test+dev")) == ["a", "b", "c"]
    write_jsonl(tmp_path / "train.jsonl", [("b", 0)])
    with pytest.raises(InvalidSource, match=r"holds 2 files for the split 'train'.*train\.jsonl, train\.parquet"):
        opened(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidSource, match="no data set in the folder"):
        opened(tmp_path / "empty")


def test_the_folder_that_is_here_has_its_own_name(here: Path) -> None:
    write_csv(here / "train.csv", [("a", 0)])
    assert opened(".").name == f"{here.name} train"
    assert opened("./").name == f"{here.name} train"


def test_a_copy_of_a_repository_on_the_hub(tmp_path: Path) -> None:
    folder = tmp_path / "copy" / "plain_text"
    folder.mkdir(parents=True)
    (tmp_path / "copy" / ".cache").mkdir()
    for part in range(3):
        write_parquet(folder / f"train-0000{part}-of-00003.parquet", [(f"a{part}", 0), (f"b{part}", 1)])
    write_parquet(folder / "extra_split-00000-of-00001.parquet", [("e", 0)])
    assert texts_of(opened(tmp_path / "copy")) == ["a0", "b0", "a1", "b1", "a2", "b2"]
    assert texts_of(opened(tmp_path / "copy", "train[:3]")) == ["a0", "b0", "a1"]
    assert texts_of(opened(tmp_path / "copy", "extra_split")) == ["e"]
    (folder / "train-00001-of-00003.parquet").unlink()
    with pytest.raises(InvalidSource, match="holds 2 files for the split 'train', not 3"):
        opened(tmp_path / "copy")
    (folder / "train-00002-of-00003.parquet").unlink()
    with pytest.raises(InvalidSource, match="holds 1 file for the split 'train', not 3"):
        opened(tmp_path / "copy")


@pytest.mark.parametrize("name", ["a.xml", "a.md", "a", "train", "a.xls"])
def test_an_ending_that_nobody_reads(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(InvalidSource, match=r"its ending does not say.*\.parquet, \.jsonl.* One text is --text-file"):
        opened(tmp_path / name)


def test_acl_imdb_is_ordered_by_label_then_number(tmp_path: Path) -> None:
    files = {"train/pos/2_9.txt": "c", "train/pos/10_7.txt": "d", "train/neg/0_3.txt": "a", "train/neg/12_1.txt": "b"}
    others = {"test/neg/0_2.txt": "e", "test/pos/0_10.txt": "f\n\ng", "train/unsup/0_0.txt": "no label", "README": ""}
    unused = {"train/neg/.DS_Store": "", "train/urls_neg.txt": "http"}
    write_folder(tmp_path, {name: text.encode() for name, text in (files | others | unused).items()})
    assert rows(opened(tmp_path, "train+test")) == [
        ("a", 0), ("b", 0), ("c", 1), ("d", 1), ("e", 0), ("f\n\ng", 1),
    ]  # fmt: skip
    with pytest.raises(InvalidSource, match="has no split 'unsup'"):
        opened(tmp_path, "unsup")


def test_files_of_labels_are_told_from_numbered_ones_and_what_is_left_is_said(tmp_path: Path) -> None:
    write_folder(tmp_path, {f"numbered/review_{number}.txt": b"a" for number in range(3)})
    with pytest.raises(InvalidSource, match="numbered holds 3 files, none of them called train or test"):
        opened(tmp_path / "numbered")
    write_folder(tmp_path, {f"three/{name}.txt": b"a" for name in ("neg", "neutral", "pos")})
    assert opened(tmp_path / "three").notices[0].endswith("(neg.txt 0, pos.txt 1); not used: neutral.txt")


def test_a_review_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    write_folder(tmp_path, {"train/neg/0_1.txt": b"fine", "train/pos/7_9.txt": b"caf\xe9"})
    assert texts_of(opened(tmp_path, "train[:1]")) == ["fine"]
    with pytest.raises(InvalidSource, match=r"7_9\.txt: bytes are not UTF-8"):
        opened(tmp_path)
