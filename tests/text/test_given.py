"""Texts from options, files and standard input arrive as they are."""

import codecs
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread, Timer

import pytest

from attnviz import bounded as inputs
from attnviz.commands.batch.configs import load_all
from attnviz.errors import InvalidConfig, InvalidOption, InvalidSource
from attnviz.specs import TextOptions
from attnviz.text import Corpus, load_corpus, resolve_argument
from tests.events import report, result
from tests.made import HOSTILE
from tests.starting import heatmap
from tests.text.corpora import opened, texts_of

PIECES = [*(piece for piece in HOSTILE if piece != "\ud800"), "<br />", "NUL\x00", "\ufeffx", "\r\n\t"]


def given(*texts: str, files: tuple[Path | str, ...] = ()) -> Corpus:
    return load_corpus(TextOptions(text=texts, text_file=tuple(map(str, files))))


@pytest.fixture
def standard_input(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def holds(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return holds


@pytest.mark.parametrize("text", PIECES)
def test_a_text_stays_as_it_is(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode().removeprefix(b"\xef\xbb\xbf"))
    assert texts_of(given(text)) == [text]
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n")
    assert texts_of(given(files=(tmp_path / "a.txt",))) == [lines]
    assert given(text).notices == ()


def test_names_and_slugs(tmp_path: Path, standard_input: Callable[[bytes], None]) -> None:
    standard_input(b"three\n")
    two = tmp_path / os.fsdecode(b"tw\xf6.txt")
    two.write_text("two")
    corpus = given("one", files=(two, "-"))
    assert [(d.name, d.slug, d.text, d.label) for d in corpus.documents] == [
        ("“one”", "text-0", "one", None),
        ("tw\ufffd.txt", "text-1", "two", None),
        ("standard input", "text-2", "three", None),
    ]
    assert corpus.name == "3 texts"
    with pytest.raises(InvalidOption, match="--text-file - can be given once"):
        given(files=("-", "-"))
    assert resolve_argument(TextOptions(inline_text="-")).text_file == ("-",)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("x" * 40, f"“{'x' * 40}”"),
        ("the film was not good but the acting saved the film", "“the film was not good but the acting…”"),
        (f"{'x' * 30} yyyyyy... z", f"“{'x' * 30} yyyyyy…”"),
        ("猫" * 50, f"“{'猫' * 40}…”"),
    ],
)
def test_a_text_without_a_name_is_called_by_how_it_begins(text: str, name: str) -> None:
    assert given(text).documents[0].name == name


def test_bytes_that_are_not_utf8_are_replaced(tmp_path: Path, standard_input: Callable[[bytes], None]) -> None:
    content = b"\xef\xbb\xbfcaf\xe9 \xff\xfe \xe7\x8c"
    (tmp_path / "a.txt").write_bytes(content)
    standard_input(b"\xff")
    corpus = given("fine", files=(tmp_path / "a.txt", "-"))
    assert texts_of(corpus) == ["fine", content[3:].decode(errors="replace"), "\ufffd"]
    assert corpus.notices == ("a.txt, standard input: invalid Unicode was replaced by \ufffd (U+FFFD)",)


def test_stray_bytes_of_an_argument_are_replaced_with_one_notice() -> None:
    corpus = given(os.fsdecode(b"caf\xe9"), "\ud800", "fine", "\udc80\udc81", "\udfff", "\ud900")
    assert texts_of(corpus) == ["caf\ufffd", "\ufffd", "fine", "\ufffd\ufffd", "\ufffd", "\ufffd"]
    assert corpus.notices[0].startswith("“caf\ufffd”, “\ufffd”, “\ufffd\ufffd”: ")
    assert len(corpus.notices) == 1
    "".join(texts_of(corpus)).encode()


@pytest.mark.parametrize(
    ("name", "problem"), [("missing.txt", "no file"), (".", "is a folder"), ("x" * 300, "no file"), ("a\0b", "no file")]
)
def test_what_is_no_file_is_one_line(name: str, problem: str) -> None:
    with pytest.raises(InvalidSource, match=problem) as error:
        given(files=(name,))
    assert "\n" not in str(error.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "a.txt").chmod(0)
    with pytest.raises(InvalidSource, match="cannot be read: Permission denied"):
        given(files=(tmp_path / "a.txt",))


def test_a_file_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.txt").write_text("x")
    assert texts_of(given(files=("~/a.txt",))) == ["x"]


def test_a_named_pipe_is_waited_for_but_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo.csv")
    writer = Thread(target=(tmp_path / "fifo.csv").write_text, args=("late",))
    Timer(0.1, writer.start).start()
    assert texts_of(given(files=(tmp_path / "fifo.csv",))) == ["late"]
    monkeypatch.setattr(inputs, "MAX_WAIT", 0.05)
    problem = "fifo.csv:? cannot be read: nobody writes to this pipe"
    with pytest.raises(InvalidSource, match=problem):
        given(files=(tmp_path / "fifo.csv",))
    with pytest.raises(InvalidSource, match=problem):
        opened(tmp_path / "fifo.csv")
    with pytest.raises(InvalidConfig, match=problem):
        load_all([tmp_path / "fifo.csv"])


# --- What is read otherwise than it is written, or not at all, is said ---


@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
def test_utf_16_is_read_by_its_mark(mark: bytes, tmp_path: Path) -> None:
    file = tmp_path / "u.txt"
    encoding = "utf-16-le" if mark == codecs.BOM_UTF16_LE else "utf-16-be"
    file.write_bytes(mark + "a good film, né".encode(encoding))
    corpus = load_corpus(TextOptions(text_file=(str(file),)))
    assert corpus.texts == ("a good film, né",)
    assert corpus.notices == ("u.txt was read as UTF-16, as its byte order mark says",)
    file.write_bytes("a good film".encode(encoding))
    with pytest.raises(InvalidSource, match="many of its bytes are NUL"):
        load_corpus(TextOptions(text_file=(str(file), "-x")))


BINARY = [
    (b"\x93NUMPY\x01\0v\0{'descr'", "holds numbers, not a text. attnviz render"),
    (b"PK\x03\x04\0\0[Content_Types].xml", "is a document of an office program. Save a table as CSV"),
    (b"PK\x03\x04\0\0weights.npy", "holds numbers"),
    (b"PK\x03\x04\0\0a.csv", "is compressed"),
    (b"\x08\x07\x12\x07pytorch\x1a\xff\0 of ONNX", "is not a text: it holds bytes that no text has"),
    (rb"{\rtf1\ansi A film.}", "is a document"),
    ("A film".encode("utf-16-be"), r"?: many of its bytes are NUL.* Try --encoding utf-16-be"),
    (b"%PDF-1.4\n1 0 obj<<", "is a PDF"),
    (b"(lp0\nVA film\n.", "is a pickle"),
    (b"a.txt" + b"a/" * 126 + b"ustar", "is an archive. Let its name end in .tar"),
    (b"\x89PNG\r\n\x1a\n", "is a picture"),
    (b"\0\0\0$ftypheic\0\0\0\0", "is a picture"),
]


@pytest.mark.parametrize(("content", "said"), BINARY)
def test_what_is_no_text_is_told_by_what_it_begins_with(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    for spec in (TextOptions(text_file=(str(tmp_path / "a.txt"),)), TextOptions(dataset=str(tmp_path / "a.txt"))):
        with pytest.raises(InvalidSource, match=rf"a\.txt {said}"):
            load_corpus(spec)


@pytest.mark.parametrize(
    "text", ["PK\x03\x04 begins a zip", "BZh is a sign", "%PDF-1.4 objects", "GIF89a, café", "PAR1"]
)
def test_a_text_that_looks_like_a_binary_is_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert load_corpus(TextOptions(dataset=str(tmp_path / "a.txt"))).texts == (text,)
    assert load_corpus(TextOptions(text_file=(str(tmp_path / "a.txt"),))).texts == (text,)


@pytest.mark.usefixtures("undrawn")
def test_a_text_that_is_the_name_of_a_file_is_the_file(here: Path) -> None:
    """Its name was drawn: "a . txt"."""
    Path("a.txt").write_text("not a good film\n", encoding="utf-8")
    Path("many.csv").write_text("text\na\n", encoding="utf-8")
    found = result(heatmap(inline_text="a.txt", out=str(here / "out")))
    assert "not a good film" in report(found).title
    assert "4 tokens" in report(found).subtitle
    assert found.notices[0] == "reading the text in the file a.txt; --text a.txt takes its name as words"
    many = result(heatmap(inline_text="many.csv", out=str(here / "many")))
    assert "“a”" in report(many).title
    assert many.notices[0] == "reading the data set many.csv; --text many.csv takes its name as words"
    with pytest.raises(InvalidOption, match=r"many\.csv and --dataset sample exclude each other"):
        heatmap(inline_text="many.csv", dataset="sample")
    words = result(heatmap(text=("a.txt",), out=str(here / "words")))
    assert "3 tokens" in report(words).subtitle


@pytest.mark.parametrize(("index", "n_read"), [("0-2", 3), ("4,1", 5), ("-1", 40), ("0--1", 40), ("first", 40)])
def test_no_more_texts_are_read_than_are_chosen(index: str, n_read: int) -> None:
    """All of them where it counts from the end; what is no choice is told by whoever chooses."""
    assert len(load_corpus(TextOptions(dataset="sample", index=(index,)), only_index=True).documents) == n_read
