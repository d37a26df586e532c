"""What is read of files of every kind, exactly as it was written, and what is said of a wrong line."""

import os
from pathlib import Path

import datasets
import pyarrow
import pytest
from pyarrow import parquet

from attnviz.errors import AttnvizError, InvalidSource
from tests.text.corpora import REVIEWS, SEVERAL_LINES, WRITERS, open_made, opened, rows, texts_of, write_saved

WRONG = [
    ("a.csv", b"", ":1: the file is empty"),
    ("a.csv", b"text,label\nfine,1\na,b,c\n", ":3: 3 fields where the header has 2"),
    ("a.csv", b'text,label\n"two\nlines",1\nalone\n', ":4: 1 field where"),
    ("a.csv", b'text,label\n"open,1\nmore,0\n', ":2: a quote that opens in this row is never closed"),
    ("a.csv", b'text,label\n"a\n"b,1\n', r":3: text follows .* \(the row begins in line 2\)"),
    ("a.csv", b"text,label\na\rb,1\n", ":2: a carriage return outside quotes"),
    ("a.csv", "text,label\nok,1\ncafé,0\n".encode("latin-1"), ":3: byte 0xe9 is not UTF-8"),
    ("a.csv", b"title,stars\na,5\n", ":1 has no column called text, review, sentence or content"),
    ("a.jsonl", b'{"text": "a"}\n{"text": "b"\n', ":2: not JSON: Expecting ',' delimiter at column 13$"),
    ("a.jsonl", b'{"text": "a"}\n["b"]\n', ":2: not a JSON object"),
    ("a.jsonl", b'{"text": "a"}\n\n{"txt": "b"}\n', ":3: there is no field 'text'"),
    ("a.jsonl", b'{"text": "a"}\n{"text": 5}\n', ":2: 'text' holds int 5, not text"),
    ("a.jsonl", b'{"text": ' + b"[" * 100_000 + b"\n", ":1: JSON that is nested too deeply"),
    ("a.jsonl", b'{"text": ' + b"9" * 5_000 + b"}\n", ":1: JSON that is nested too deeply"),
    ("a.json", b" \n\n", ":3: not JSON: Expecting value"),
    ("a.txt", b"fine\nna\xefve\n", ":2: byte 0xef is not UTF-8"),
    ("a.parquet", b"PAR1 not really PAR1", " is not a readable Parquet file: "),
    # What fits two readings, or none.
    ("a.csv", b"text,review\na,b\n", "the texts may be in 'text', 'review'. Choose one with --text-column"),
    ("a.csv", b"text,label,sentiment\na,1,0\n", "may be in 'label', 'sentiment'. Choose one with --label-column"),
    ("a.csv", b"text,label\na,-1\nb,0\nc,1\n", "-1, 0 and 1: negative, neutral and positive, or none, negative"),
    ("a.csv", b"A fine film today,A dull film again\nmore of the same,less of the same\n", "texts may be in '0', '1'"),
    ("a.csv", b"text;x|label\nfine;1|0\ndull;0|1\n", r"separated by semicolons \(2 columns\), bars \(2 columns\)"),
    ("a.json", b'{"a": [{"text": "x"}], "b": [{"text": "y"}]}', "the rows may be in 'a', 'b'"),
    ("a.csv.gz", b"no", "cannot be read: Not a gzipped file|cannot be unpacked"),
    ("a.zip", b"no", "is not a readable archive"),
    ("a.csv", b"text,stars\nfine,2\ndull,1\n", "no rating above 2: few stars, or negative and positive"),
    ("a.jsonl", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is a pointer of Git LFS, not the file"),
    ("a.csv", "text,label\nfine,1\n".encode("utf-16-le"), "bytes are NUL, as in UTF-16. Try --encoding utf-16-le"),
]


@pytest.mark.parametrize(("name", "content", "problem"), WRONG)
def test_a_wrong_line_is_named(name: str, content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with pytest.raises(InvalidSource, match=problem) as error:
        open_made(path, content)
    assert not problem.startswith((":", " ")) or str(error.value).startswith(f"{path}{problem[:2]}")
    assert "\n" not in str(error.value)
    still_open = {os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()}
    assert str(path) not in still_open  # also while the error, and with it every frame, is held


# By what they are called: what stands in files, and the texts that they hold.
PLAIN: list[tuple[str, bytes, list[str]]] = [
    ("a.csv", b"text\nNA\n5\n5.0\nnull\nTrue\n", ["NA", "5", "5.0", "null", "True"]),
    ("a.csv", b'text\n""\n\n" "\n', ["", " "]),
    ("a.csv", b"text,n\n,1\n", [""]),
    ("a.csv", b"\xef\xbb\xbftext\r\na\r\nb\r\n", ["a", "b"]),
    ("a.csv", b"text,n\ra,1\rb,2\r", ["a", "b"]),
    ("a.csv", b"id,Review,text_length\n1,good,4\n", ["good"]),
    ("a.csv", b"sep=;\r\ntext;label\r\na, b;1\r\n", ["a, b"]),
    ("a.csv", b'"sep=,"\ntext,label\nsep=;,1\n', ["sep=;"]),
    ("a.csv", b"text\nno newline at the end", ["no newline at the end"]),
    ("a.csv", b'text,label\n" ""Dull,"" he said",0\n fine,1\n', [' "Dull," he said', " fine"]),
    ("a.txt", b"\xef\xbb\xbfone\r\n\ntwo \xc2\x85 and\x0cmore\n", ["one", "", "two \x85 and\x0cmore"]),
    ("a.txt", b"one\rtwo\r", ["one", "two"]),
]


@pytest.mark.parametrize(("name", "content", "texts"), PLAIN)
def test_text_stays_text(name: str, content: bytes, texts: list[str], tmp_path: Path) -> None:
    assert texts_of(open_made(tmp_path / name, content)) == texts


LABELS: list[tuple[dict[str, int | None], str]] = [
    ({"0": 0, "1": 1, "4": 4, " 2 ": 2, "3.0": 3, "": None}, "(classes 0, 1, 2, 3, 4)"),
    ({"neg": 0, "POS": 1, " positive": 1, "Negative": 0, "unsup": None, "neutral": None, "": None}, "(nothing none, "),
    ({"1": 0, "2": 1, "": None}, "(nothing none, 1 0, 2 1)"),
    ({"0": None, "World": None, "1": None}, "holds '0', 'World', '1', which are not labels of one kind"),
    ({"-1": None, "": None}, ""),
]
JSON_LABELS = {"1": 1, "1.0": 1, "true": 1, "null": None, "0": 0}


@pytest.mark.parametrize(("labels", "said"), LABELS)
def test_labels(labels: dict[str, int | None], said: str, tmp_path: Path) -> None:
    corpus = open_made(tmp_path / "a.csv", "Label,text\n" + "".join(f"{label},a\n" for label in labels))
    assert [each.label for each in corpus.documents] == [*labels.values()]
    assert said in "".join(corpus.notices)
    assert bool(said) == bool(corpus.notices)


def test_labels_of_json(tmp_path: Path) -> None:
    """Also where only later rows have one."""
    lines = ['{"text": "a"}', *(f'{{"text": "a", "label": {label}}}' for label in JSON_LABELS)]
    corpus = open_made(tmp_path / "a.jsonl", "\n".join(lines))
    assert [each.label for each in corpus.documents] == [None, *JSON_LABELS.values()]


def test_a_file_without_a_header_is_not_recited(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(",".join(["x" * 100] * 400) + "\n")
    for column in (None, "y"):
        with pytest.raises(InvalidSource, match=r"380 more|13 more") as error:
            opened(tmp_path / "a.csv", text_column=column)
        assert len(str(error.value)) < 1200


@pytest.mark.parametrize("kind", ["a.txt", "aclImdb"])
def test_what_has_no_columns_takes_no_column(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    for label in ("neg", "pos"):
        (tmp_path / "aclImdb" / "train" / label).mkdir(parents=True)
    with pytest.raises(InvalidSource, match=r"has no column 'words'\. .* --text-column N counts from 0"):
        opened(tmp_path / kind, text_column="words")


def test_a_parquet_column_has_to_hold_text(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"text": [1, 2], "words": pyarrow.array(["a", None]).dictionary_encode()}), path)
    with pytest.raises(InvalidSource, match=r"a\.parquet: row 0: 'text' holds int 1, not text"):
        opened(path)
    with pytest.raises(InvalidSource, match=r"a\.parquet: row 1: 'words' holds null, not text\. Leave the row out"):
        opened(path, text_column="words")
    assert texts_of(opened(path, "train[:1]", "words")) == ["a"]


def test_a_parquet_column_of_lists_is_no_label_and_is_not_unpacked(tmp_path: Path) -> None:
    """A list of a million equal numbers takes a few hundred bytes of a file."""
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"text": ["a"], "label": [[1] * 1_000_000], "one": [{"label": 1}]}), path)
    corpus = opened(path)
    assert corpus.documents[0].label is None
    assert "'label' holds list<element: int64>, which is not a label" in corpus.notices[0]
    with pytest.raises(InvalidSource, match="'one' holds struct<label: int64>, which is not a label"):
        opened(path, label_column="one")


def test_only_what_is_needed_is_read(tmp_path: Path) -> None:
    """A wrong line far below does not stop the first texts, and a slice from the end has to meet it."""
    lines = '{"text": "a"}\n{"text": "b"}\nwrong\n'
    assert texts_of(open_made(tmp_path / "a.jsonl", lines, split="train[:1]+train[1:2]")) == ["a", "b"]
    with pytest.raises(AttnvizError, match=":3: not JSON"):
        opened(tmp_path / "a.jsonl", "train[-1:]")


def test_half_an_emoji_in_json_is_replaced_with_one_notice(tmp_path: Path) -> None:
    lines = '{"text": "x\\ud800y"}\n{"text": "\\ud83d\\ude00"}\n{"text": "\\udc00"}\n'
    corpus = open_made(tmp_path / "a.jsonl", lines)
    assert texts_of(corpus) == ["x\ufffdy", "😀", "\ufffd"]
    assert len(corpus.notices) == 1
    assert corpus.notices[0].startswith("a.jsonl train[0], a.jsonl train[2]: ")


# --- Every kind of data set gives the same texts, exactly as they were written ---


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


def test_a_saved_data_set_with_splits(tmp_path: Path) -> None:
    one = datasets.load_from_disk(str(write_saved(tmp_path / "one", REVIEWS)))
    datasets.DatasetDict({"train": one, "test": one.select(range(2))}).save_to_disk(tmp_path / "both")
    assert texts_of(opened(tmp_path / "both", "test")) == ["NA", "5"]
    assert opened(tmp_path / "both", "test+train[:1]").name == "both test+train[:1]"


@pytest.mark.parametrize(
    ("names", "labels"), [(["pos", "neg"], [1, 0]), (["neg", "pos"], [0, 1]), (["a", "b"], [0, 1])]
)
@pytest.mark.parametrize("kind", ["saved", "a.parquet"])
def test_names_of_classes_say_which_is_positive(kind: str, names: list[str], labels: list[int], tmp_path: Path) -> None:
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
