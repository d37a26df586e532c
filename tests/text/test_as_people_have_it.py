"""Files as people have them: the texts and labels that they mean, and one note of how they were read."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from attnviz.errors import InvalidOption, InvalidSource
from attnviz.specs import TextOptions
from attnviz.text import load_corpus
from tests.text.corpora import open_made, opened, rows, write_folder

GOOD, BAD = "A fine film, moving too.", 'Dull; he said "no" twice.'
QUOTED, DOUBLED = f'"{GOOD}"', '"Dull; he said ""no"" twice."'  # the same between quotes
FINE, DULL = (GOOD, 1), (BAD, 0)
TWO = [FINE, DULL]
RECORDS = [{"text": text, "label": label} for text, label in TWO]

FILES: list[tuple[str, str, str]] = [
    (
        "IMDB Dataset.csv",
        f"\ufeffreview,sentiment\r\n{QUOTED},positive\r\n{DOUBLED},negative\r\n",
        "texts from 'review', labels from 'sentiment' (negative 0, positive 1)",
    ),
    (
        "labeledTrainData.tsv",
        f'id\tsentiment\treview\n"1_8"\t1\t{QUOTED}\n"2_1"\t0\t"Dull; he said \\"no\\" twice."\n',
        "read as: quotes behind backslashes; texts from 'review', labels from 'sentiment'; not used: 'id'",
    ),
    ("plain.tsv", f"{GOOD}\t1\n{BAD}\t0\n", "read as: no header; texts from column 0, labels from column 1"),
    ("quotes.tsv", f'text\tlabel\n{GOOD}\t1\n{BAD}\t0\n"Fine," they said.\t1\n', "read as: no quoting"),
    (
        "polarity.csv",
        f'"2","Great",{QUOTED}\n"1","No",{DOUBLED}\n',
        "read as: no header; texts from column 2, labels from column 0 (1 0, 2 1); not used: column 1",
    ),
    (
        "pandas.csv",
        f",rating,Review Text\n0,9.0,{QUOTED}\n1,2.0,{DOUBLED}\n",
        "labels from 'rating' (ratings up to 10, of which up to 4 is negative 0, from 7 positive 1, others none)",
    ),
    ("utf16.csv", f"text,label\n{QUOTED},1\n{DOUBLED},0\n", "read as: UTF-16"),
    ("imdb_labelled.txt", f"{GOOD}  \t1\n{BAD}\t0\n", "a text, a tab and a label"),
    ("smile.txt", f"pos\t{GOOD}\nneg\t{BAD}\n", "a label, a tab and a text a line"),
    (
        "train.ft.txt",
        f"__label__2 {GOOD}\n__label__1 {BAD}\n",
        "as fastText has them; texts from 'text', labels from 'label' (1 0, 2 1)",
    ),
    ("array.json", json.dumps(RECORDS), "read as: an array"),
    ("data.json", json.dumps({"version": 1, "data": RECORDS}), "read as: the array 'data'"),
    ("columns.json", json.dumps({"text": {"0": GOOD, "1": BAD}, "label": {"0": 1, "1": 0}}), "read as: columns"),
    (
        "Movies_and_TV_5.json",
        f'{{"reviewText": {QUOTED}, "overall": 5.0, "helpful": [0, 1]}}\n'
        '{"reviewText": "Dull; he said \\"no\\" twice.", "overall": 1.0, "helpful": [1, 1]}\n',
        "(ratings up to 5, of which up to 2 is negative 0, from 4 positive 1, others none); not used: 'helpful'",
    ),
    ("signs.csv", f"text,polarity\n{QUOTED},1\n{DOUBLED},-1\n", "(-1 0, 1 1)"),
    (
        "table.txt",
        f"review;sentiment\n{GOOD};pos\n{DOUBLED};neg\n",
        "read as: a table with semicolons; texts from 'review', labels from 'sentiment' (neg 0, pos 1)",
    ),
    ("neutral.csv", f"text,sentiment\n{QUOTED},pos\n{DOUBLED},neg\nSo so.,neu\n", "(neg 0, neu none, pos 1)"),
    ("booleans.jsonl", f'{{"text": {QUOTED}, "target": true}}\n', "labels from 'target'"),
]

OF_PEOPLE = {name: content.encode("utf-16" if name == "utf16.csv" else "utf-8") for name, content, _ in FILES}


@pytest.mark.parametrize(("name", "note"), [(name, note) for name, _, note in FILES], ids=OF_PEOPLE)
def test_a_file_gives_the_texts_and_labels_that_it_means(name: str, note: str, tmp_path: Path) -> None:
    corpus = open_made(tmp_path / name, OF_PEOPLE[name])
    assert [(text.rstrip(), label) for text, label in rows(corpus)][:2] == TWO[: len(corpus.documents)]
    (said,) = corpus.notices
    assert said.startswith(f"{name}: ")
    assert note in said


CSV = f"text,label\n{QUOTED},1\n{DOUBLED},0\n".encode()
ACL = {
    "aclImdb/train/pos/0_9.txt": GOOD.encode(),
    "aclImdb/train/neg/0_3.txt": BAD.encode(),
    "aclImdb/train/neg/._0_3.txt": b"\0\5\26\7",
    "aclImdb/train/unsup/0_0.txt": b"Nobody rated it.",
    "aclImdb/README": b"",
}
CORNELL = {"rt/rt-polarity.neg": BAD.encode() + b"\n", "rt/rt-polarity.pos": GOOD.encode() + b"\n"}
CLASSES = {"positive/a.txt": GOOD.encode(), "negative/b.txt": BAD.encode()}


def write_gz(path: Path, files: dict[str, bytes]) -> None:
    (content,) = files.values()
    path.write_bytes(gzip.compress(content))


def write_zip(path: Path | io.BytesIO, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr("__MACOSX/._train.csv", b"\0\5\26\7")


def write_tar(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


PACKED: list[tuple[str, Callable[[Path, dict[str, bytes]], None], dict[str, bytes]]] = [
    ("reviews.csv.gz", write_gz, {"reviews.csv": CSV}),
    ("archive.zip", write_zip, {"IMDB Dataset.csv": CSV}),
    ("splits.zip", write_zip, {"in/train.csv": CSV, "in/test.csv": CSV}),
    ("folders.zip", write_zip, ACL),
    ("aclImdb_v1.tar.gz", write_tar, ACL),
    ("rt-polaritydata.tar.gz", write_tar, CORNELL),
    ("above", write_folder, ACL),
    ("rt", write_folder, CORNELL),
    ("classes", write_folder, CLASSES),
    ("kaggle", write_folder, {"IMDB Dataset.csv": CSV}),
]


@pytest.mark.parametrize(("name", "write", "files"), PACKED, ids=[name for name, *_ in PACKED])
def test_archives_and_folders_are_read_as_they_come(
    name: str, write: Callable[[Path, dict[str, bytes]], None], files: dict[str, bytes], tmp_path: Path
) -> None:
    write(tmp_path / name, files)
    before = sorted(tmp_path.rglob("*"))
    assert sorted(rows(opened(tmp_path / name))) == sorted(TWO)
    assert sorted(tmp_path.rglob("*")) == before


def test_files_of_classes_that_are_no_texts_are_said(tmp_path: Path) -> None:
    write_folder(tmp_path, {**ACL, "aclImdb/train/pos/1_9.html": b"<p>fine</p>"})
    corpus = opened(tmp_path / "aclImdb" / "train")
    assert rows(corpus) == [DULL, FINE]
    assert corpus.notices[0].endswith("not used: unsup, pos/1_9.html")


def test_one_of_two_files_of_classes_brings_the_other(tmp_path: Path) -> None:
    write_folder(tmp_path, CORNELL)
    corpus = opened(tmp_path / "rt" / "rt-polarity.pos")
    assert rows(corpus) == [DULL, FINE]
    assert "rt-polarity.neg 0, rt-polarity.pos 1" in corpus.notices[0]


def test_a_file_of_several_in_an_archive_is_named_behind_it(tmp_path: Path) -> None:
    write_zip(tmp_path / "a.zip", {"in/one.csv": CSV, "in/two.csv": b"text\nother\n"})
    with pytest.raises(InvalidSource, match=r"holds 2 files, none of them .*a\.zip/in/one\.csv, .*a\.zip/in/two\.csv"):
        opened(tmp_path / "a.zip")
    assert rows(opened(tmp_path / "a.zip" / "in" / "two.csv")) == [("other", None)]
    assert rows(opened(tmp_path / "a.zip" / "in" / "one.csv")) == TWO
    with pytest.raises(InvalidSource, match=r"a\.zip holds no in/three\.csv"):
        opened(tmp_path / "a.zip" / "in" / "three.csv")


def test_an_archive_is_not_unpacked_beyond_bounds(tmp_path: Path) -> None:
    bomb = b"text\n" + b"a" * 20_000_000
    write_gz(tmp_path / "a.csv.gz", {"a.csv": bomb})
    write_zip(tmp_path / "a.zip", {"a.csv": bomb})
    for name in ("a.csv.gz", "a.zip"):
        with pytest.raises(InvalidSource, match=r":2 is longer than the 16 MiB of one text"):
            opened(tmp_path / name)


def header(name: str, size: int, kind: bytes) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_what_an_archive_says_of_its_files_is_bounded(kind: bytes, tmp_path: Path) -> None:
    said = header("x", 2**21, kind) + b"a" * 2**21
    write_gz(tmp_path / "a.tar.gz", {"a.tar": said + header("train.csv", 0, tarfile.REGTYPE) + bytes(1024)})
    with pytest.raises(InvalidSource, match="what it says of its files is too long"):
        opened(tmp_path / "a.tar.gz")


def test_folders_in_an_archive_are_bounded(tmp_path: Path) -> None:
    write_zip(tmp_path / "a.zip", {"a/" * 65 + "train.csv": CSV})
    write_tar(tmp_path / "a.tar.gz", {"a" * 5000 + "/train.csv": CSV})
    for name in ("a.zip", "a.tar.gz"):
        with pytest.raises(InvalidSource, match=r"holds a file in (65|1) folders, with a path of [0-9,]+ characters"):
            opened(tmp_path / name)


def test_a_row_is_as_long_as_a_text_may_be(tmp_path: Path) -> None:
    fields = ('"' + "a" * 2**20 + '\n"',) * 17
    write_gz(tmp_path / "a.csv.gz", {"a.csv": ("text,label\n" + ",".join(fields) + "\n").encode()})
    with pytest.raises(InvalidSource, match=r"a\.csv\.gz:2 is longer than the 16 MiB of one text"):
        opened(tmp_path / "a.csv.gz")
    with pytest.raises(InvalidSource, match="has more columns than the 4,096 that are read"):
        open_made(tmp_path / "b.csv", "text" + "," * 5000 + "\n")


def test_columns_are_chosen_by_name_or_number(tmp_path: Path) -> None:
    assert rows(open_made(tmp_path / "a.csv", "text,label,stars,note\na,1,5,b\nc,0,1,d\n")) == [("a", 1), ("c", 0)]
    assert rows(opened(tmp_path / "a.csv", text_column="3", label_column="stars")) == [("b", 1), ("d", 0)]
    assert rows(opened(tmp_path / "a.csv", label_column="none")) == [("a", None), ("c", None)]
    with pytest.raises(InvalidSource, match=r"no column 'label2'\. Did you mean 'label'"):
        opened(tmp_path / "a.csv", label_column="label2")
    with pytest.raises(InvalidSource, match="'note' holds 'b', 'd', which are not labels of one kind"):
        opened(tmp_path / "a.csv", label_column="note")
    with pytest.raises(InvalidSource, match="has 2 columns called 'text'"):
        open_made(tmp_path / "twice.csv", "text,text,label\na,b,1\n", text_column="1")
    with pytest.raises(InvalidOption, match="--label-column is for data sets"):
        load_corpus(TextOptions(text=("a",), label_column="label"))


def test_a_file_that_is_sorted_by_label_is_read_as_a_whole(tmp_path: Path) -> None:
    """Of 4 after a thousand times 0, no window of rows says that it means positive."""
    corpus = open_made(tmp_path / "a.csv", "text,label\n" + "a,0\n" * 2000 + "b,4\n" * 2000)
    assert {label for _, label in rows(corpus)} == {0, 1}


def test_the_scale_of_ratings_is_that_of_the_whole_file(tmp_path: Path) -> None:
    """Sorted by rating as IMDb is, where 4 of 10 is negative and 4 of 5 is not."""
    of_ten = open_made(tmp_path / "a.csv", "text,rating\n" + "a,1\nb,4\n" * 600 + "c,7\nd,10\n" * 600)
    assert set(rows(of_ten)) == {("a", 0), ("b", 0), ("c", 1), ("d", 1)}
    of_five = open_made(tmp_path / "b.csv", "text,stars\n" + "a,1\n" * 1100 + "b,2\nc,3\nd,5\n")
    assert rows(of_five)[-4:] == [("a", 0), ("b", 0), ("c", None), ("d", 1)]


def test_numbers_from_0_to_1_are_no_stars(tmp_path: Path) -> None:
    corpus = open_made(tmp_path / "a.csv", "text,score\na,0.95\nb,0.2\n")
    assert rows(corpus) == [("a", None), ("b", None)]
    assert "'score' holds '0.95', '0.2', which are not labels of one kind" in corpus.notices[0]


def test_of_many_rows_with_one_label_so_many_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small .gz holds endless rows, and no second label among them."""
    monkeypatch.setattr("attnviz.text.source.MAX_ROWS", 1500)
    write_gz(tmp_path / "a.csv.gz", {"a.csv": b"text,label\n" + b"a,1\n" * 1500 + b"b,sideways\n"})
    assert opened(tmp_path / "a.csv.gz", split="train[:1]").documents[0].label == 1


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_compressed_files_are_read_wherever_they_lie(
    ending: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    write_folder(folder, {f"train.csv{ending}": pack(CSV), f"test.csv{ending}": pack(b"text\nother\n")})
    write_zip(tmp_path / "a.zip", {f"a.csv{ending}": pack(CSV)})
    assert rows(opened(folder / f"train.csv{ending}")) == rows(opened(tmp_path / "a.zip")) == TWO
    assert rows(opened(folder)) == TWO
    assert rows(opened(folder, split="test")) == [("other", None)]
    with pytest.raises(InvalidSource, match=rf"a\.csv is compressed\. Let its name end in {ending}"):
        open_made(tmp_path / "a.csv", pack(CSV), encoding="latin-1")
    with pytest.raises(InvalidSource, match="cannot be unpacked: Compressed file ended"):
        open_made(tmp_path / f"b.csv{ending}", pack(CSV)[:-9])


def test_folders_of_more_classes_than_two_are_not_negative_and_positive(tmp_path: Path) -> None:
    write_folder(tmp_path, {f"{stars}/a.txt": b"a" for stars in range(5)})
    with pytest.raises(InvalidSource, match="no data set in the folder"):
        opened(tmp_path)


def test_a_label_that_comes_late_and_is_unknown_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidSource, match=r"a\.csv:1202: 'label' holds 'sideways', which is not a label"):
        open_made(tmp_path / "a.csv", "text,label\n" + "a,neg\nb,pos\n" * 600 + "c,sideways\n")
    assert opened(tmp_path / "a.csv", label_column="none").documents[-1].text == "c"


def test_another_encoding_is_named_by_an_option(tmp_path: Path) -> None:
    with pytest.raises(InvalidSource, match=r"a\.csv:2: byte 0xe9 .* --encoding latin-1"):
        open_made(tmp_path / "a.csv", "text,label\ncafé,1\n".encode("latin-1"))
    assert rows(opened(tmp_path / "a.csv", encoding="latin-1")) == [("café", 1)]
    (tmp_path / "a.txt").write_bytes("café".encode("latin-1"))
    assert load_corpus(TextOptions(text_file=(str(tmp_path / "a.txt"),), encoding="latin-1")).texts == ("café",)
    with pytest.raises(InvalidOption, match="--encoding 'latin-l' is not known"):
        opened(tmp_path / "a.csv", encoding="latin-l")
    for encoding, found in {"ASCII": "a.csv:2: byte 0xe9 is", "UTF-16": "a.csv: from line 1 on bytes are"}.items():
        with pytest.raises(InvalidSource, match=f"{found} not {encoding}"):
            opened(tmp_path / "a.csv", encoding=encoding)
