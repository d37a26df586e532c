"""What is read otherwise than it is written, or not at all, is said."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.errors import InvalidOption, InvalidSource
from attnviz.options import build
from attnviz.specs import TextOptions
from attnviz.text import load_corpus
from tests.events import report, result
from tests.starting import heatmap


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
    (b"PK\x03\x04\0\0a/data.pkl", "holds numbers"),
    (b"\x08\x07\x12\x07pytorch\x1a\xff\0 of ONNX", "is not a text: it holds bytes that no text has"),
    (b"GGUF\3" + bytes(9), "is not a text"),
    (rb"{\rtf1\ansi A film.}", "is a document"),
    ("A film".encode("utf-16-be"), r"?: many of its bytes are NUL.* Try --encoding utf-16-be"),
    (b"%PDF-1.4\n1 0 obj<<", "is a PDF"),
    (b"\x89PNG\r\n\x1a\n", "is a picture"),
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


def test_a_text_that_is_the_name_of_a_file_is_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name was drawn: "a . txt"."""
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("not a good film\n", encoding="utf-8")
    Path("many.csv").write_text("text\na\n", encoding="utf-8")
    found = result(heatmap(build(HeatmapSpec, inline_text="a.txt", out=str(tmp_path / "out"))))
    assert "not a good film" in report(found).title
    assert "4 tokens" in report(found).subtitle
    assert found.notices[0] == "reading the text in the file a.txt; --text a.txt takes its name as words"
    many = result(heatmap(build(HeatmapSpec, inline_text="many.csv", out=str(tmp_path / "many"))))
    assert "“a”" in report(many).title
    assert many.notices[0] == "reading the data set many.csv; --text many.csv takes its name as words"
    with pytest.raises(InvalidOption, match=r"many\.csv and --dataset sample exclude each other"):
        heatmap(build(HeatmapSpec, inline_text="many.csv", dataset="sample"))
    words = result(heatmap(build(HeatmapSpec, text=("a.txt",), out=str(tmp_path / "words"))))
    assert "3 tokens" in report(words).subtitle
