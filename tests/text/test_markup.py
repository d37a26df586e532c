"""Of files that hold more than words their words are read, which is said; texts that only look like such are texts."""

import json
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from attnviz.document import Chat
from attnviz.errors import InvalidSource, TooLarge
from attnviz.specs import TextOptions
from attnviz.text import Corpus, load_corpus
from attnviz.text.dataset import stream_corpus
from tests.text.corpora import open_made, opened, texts_of, write_csv

PAGE = "<!DOCTYPE html><html><head><title>x</title><style>p{}</style></head><body><p title='a > b'>A <b>fine</b>\n"
PAGE += "film.<br/>R&amp;B, 1 &lt; 2</p><script>if (a</b>) {}</script><pre><code>x = 1</code></pre><!-- no -->"
PAGE += "<td>so</td><td>so</td>"
SRT = "1\r\n00:00:01,000 --> 00:00:03,500\r\nThe <i>film</i> was\r\nnot good,\r\n\r\n"
SRT += "2\r\n00:00:03,600 --> 00:00:06,000\r\n{\\an8}was it?\r\n"
VTT = "WEBVTT - of a film\nKind: captions\n\nNOTE no words\nat all\n\nintro\n00:01.000 --> 00:03.500 align:start\n"
VTT += "<v Ann>So <c.red>dull</c>,\n\n00:03.600 --> 00:06.000\n<00:04.000>so dull. 2 < 3\n"
CELLS = [("markdown", ["# A *fine* film\n", "with [a link](http://x)"]), ("code", "print(1)"), ("raw", "x")]
BOOK = json.dumps({"cells": [{"cell_type": kind, "source": of, "metadata": {}} for kind, of in CELLS], "nbformat": 4})
MARKDOWN = "---\ntitle: x\n---\n# Fine\n\nA **fine** `film`, [seen](http://x) ![twice](y.png).\n\n"
MARKDOWN += "```python\nx = 1\n```\n\n* one\n* two\n"
CODE = '{"cells": [{"cell_type": "code", "source": "x"}], "nbformat": 4}'
TEX = "% a review\n\\documentclass{article}"
FILES = [
    ("a.html", PAGE, "A fine film.\nR&B, 1 < 2\nso so", "a web page"),
    ("a.txt", PAGE, "A fine film.\nR&B, 1 < 2\nso so", "a web page"),
    ("b.htm", "<p>One<p>two <!-- " + "<a " * 9, "One\ntwo", "a web page"),
    ("a.srt", SRT, "The film was\nnot good,\nwas it?", "subtitles"),
    ("a.vtt", VTT, "So dull,\nso dull. 2 < 3", "subtitles"),
    ("a.ipynb", BOOK, "A fine film\nwith a link", "without 2 cells of code"),
    ("a.md", MARKDOWN, "Fine\nA fine film, seen .\none\ntwo", "Markdown"),
    ("a.xml", "<?xml version='1.0'?>\n<reviews><r>A fine film</r></reviews>", "A fine film", "XML"),
    ("signs.txt", "<!-- -->" * 2000 + "no page", None, ""),
    ("plain.html", "I <3 films, 1 < 2", None, ""),
    ("times.srt", "At 00:00:01,000 --> 00:00:03,500 it begins.", None, ""),
    ("book.txt", '{"nbformat" is a word in it', None, ""),
]  # fmt: skip


def read(file: Path, keep_markup: bool = False) -> Corpus:
    return load_corpus(TextOptions(text_file=(str(file),), keep_markup=keep_markup))


@pytest.mark.parametrize(("name", "content", "words", "said"), FILES, ids=[name for name, *_ in FILES])
def test_words_are_read_and_it_is_said(name: str, content: str, words: str | None, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content.encode())
    corpus = read(tmp_path / name)
    assert corpus.texts == (content if words is None else words,)
    assert len(corpus.notices) == bool(said)
    assert said in "".join(corpus.notices)
    kept = read(tmp_path / name, keep_markup=True)
    assert (kept.texts, kept.notices) == ((content,), ())


@pytest.mark.parametrize("content", ["{", CODE, "[1]", TEX])
def test_a_notebook_without_words_and_latex_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(content)
    with pytest.raises(InvalidSource, match=r"(is not a whole notebook|holds no words|is LaTeX).*--keep-markup"):
        read(tmp_path / "a.ipynb")


def test_breaks_in_data_sets_are_breaks_of_lines(tmp_path: Path) -> None:
    file = str(write_csv(tmp_path / "a.csv", [("so", 1), ("so<br /><BR>dull", 0)]))
    corpus, stream = opened(file), stream_corpus(TextOptions(dataset=file))
    assert texts_of(corpus) == [each.text for each in stream.documents()] == ["so", "so\n\ndull"]
    assert "<br /> is read as a line break" in corpus.notices[0]
    assert stream.notices == [*corpus.notices]
    assert texts_of(load_corpus(TextOptions(dataset=file, keep_markup=True)))[1] == "so<br /><BR>dull"


ASKED = {"role": "user", "content": "Good?"}
ANSWERED = {"role": "assistant", "content": [{"type": "text", "text": "Very"}, {"type": "text", "text": " good."}]}
SHARED = [{"from": "human", "value": "Good?"}, {"from": "gpt", "value": "Very good."}]  # as ShareGPT has it
CHATS = {
    "a.json": json.dumps([ASKED, ANSWERED]),
    "b.json": json.dumps({"messages": [ASKED, ANSWERED], "source": "x"}),
    "c.json": json.dumps([{"messages": [ASKED, ANSWERED], "id": 1}], indent=1),
    "d.jsonl": json.dumps({"id": 1, "messages": [ASKED, ANSWERED]}) + "\n",
    "e.jsonl": f"{json.dumps(ASKED)}\n{json.dumps(ANSWERED)}\n",
    "b.sharegpt.json": json.dumps({"conversations": SHARED}),
    "d.sharegpt.jsonl": json.dumps({"id": "x", "conversations": SHARED}) + "\n",
    "f.jsonl": json.dumps([ASKED, ANSWERED]) + "\n",
}


@pytest.mark.parametrize("name", CHATS)
def test_messages_are_one_text(name: str, tmp_path: Path) -> None:
    (document,) = open_made(tmp_path / name, CHATS[name]).documents
    assert isinstance(document.text, Chat)
    assert document.text.messages == [ASKED, {"role": "assistant", "content": "Very good."}]
    if name < "c":
        assert isinstance(read(tmp_path / name).texts[0], Chat)
        assert not isinstance(read(tmp_path / name, keep_markup=True).texts[0], Chat)


def test_messages_of_more_than_words_are_refused(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": [{"image": "x"}]}]
    with pytest.raises(InvalidSource, match="the messages hold more than words, such as pictures"):
        open_made(tmp_path / "a.json", json.dumps({"messages": messages}))


def test_messages_of_a_table_of_arrow_are_one_text(tmp_path: Path) -> None:
    table = pyarrow.table({"id": [1, 2], "messages": [[ASKED], [ASKED, ASKED]]})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert texts_of(opened(tmp_path / "a.parquet")) == [json.dumps([ASKED]), json.dumps([ASKED, ASKED])]
    parquet.write_table(pyarrow.table({"id": [1], "conversations": [SHARED[:1]]}), tmp_path / "b.parquet")
    assert texts_of(opened(tmp_path / "b.parquet")) == [json.dumps([ASKED])]


def test_what_json_becomes_is_counted_before_it_is_parsed(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[" + "{}," * 2**20 + '{"text": "a"}]')
    with pytest.raises(TooLarge, match=r"the objects in .*a\.json need .*, allowed are 0\.1"):
        load_corpus(TextOptions(dataset=str(tmp_path / "a.json")), 0.1)
