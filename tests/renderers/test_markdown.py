"""Reports as Markdown, read back by a Markdown parser: every text comes back as it was, and nothing is markup."""

import re
import string
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from attnviz.renderers import cell_text
from attnviz.renderers.cell_text import write_out_hidden as seen  # what a reader sees of a text
from attnviz.renderers.documents.markdown import document, inline
from attnviz.report import Chart, Charts, Column, Heatmap, HeatmapGrid, Note, Report, Table
from tests.made import HOSTILE

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

# One text after another, two spaces apart; then those with spaces of their own.
MARKUP = [
    *re.split(
        r"\s{2,}|\n",
        r"""a|b  a\|b  \  a\  \\  \\|  |  ||  `  ``x``  `a|b`  **x**  *  _x_  a_b_c  ~~x~~  <br>  <!--  -->  <span>
        </span>  &amp;  &lt;  &#64;  &  R&D  ![x](y)  [x](y)  [x]  [^1]  [x]: y  1. x  1) x  1.  12.  1.5  1  - x  -
        ---  + x  +++  ===  # x  #  ##ing  > x  ```  ~~~  - [ ] x  : x  https://x.co/a  HTTP://X.CO  //x.co  www.x.co
        WWW.x.co  <https://x.co>  <a@b.co>  a@b.co  @user  @a/b  #1  o/r#12  ##3  :+1:  js:100:14  12:30:45  ::x::
        $x$  $$x$$  \(x\)  \[x\]  $`x`$  👍🏽""",
    ),
    *("    x", "\tx", "x ", "x  ", "<div x", "a  b", "  ", "\xa0", "\u3000x", "a\nb", "a\r\n\r\n# b"),
    *HOSTILE,
]
# What a forge looks for in the text nodes of the finished page.
LATE = re.compile(r"@\w|#\d|:[\w+-]+:|//|www\.|\$.|.\$|\\[(\[]", re.IGNORECASE)

PIECES = (*re.split(" ", "www. http: // 1. 12) a b.co é 猫 &#35; &lt; <b> <!-- ``` ---"), " ", "\n")
TEXTS = st.text(string.punctuation + string.whitespace + "a1") | st.lists(
    st.sampled_from([*PIECES, *string.punctuation]), max_size=8
).map("".join)


def nodes(token: Token) -> list[str]:
    """The text nodes of an inline token, which holds nothing but text and the tags that keep its signs apart."""
    children = token.children or []
    assert {child.type for child in children} <= {"text", "html_inline"}, children
    assert {child.content for child in children if child.type == "html_inline"} <= {"<span>", "</span>"}
    return [child.content for child in children if child.type == "text"]


def read(source: str) -> list[tuple[str, str]]:
    """The document as pairs of an element and its text."""
    pairs = pairwise(PARSER.parse(source))
    return [(outer.tag, "".join(nodes(token))) for outer, token in pairs if token.type == "inline"]


def table(*rows: tuple[str | int | float, ...], columns: Sequence[Column], title: str = "a table") -> Table:
    return Table("facts", title, "facts", tuple(columns), rows)


def about(*blocks: Heatmap | HeatmapGrid | Charts | Table | Note, title: str = "a title", subtitle: str = "") -> Report:
    return Report(title, subtitle, blocks)


def heat(name: str = "layer-0-head-0", title: str = "layer 0, head 0") -> Heatmap:
    return Heatmap(name, title, np.eye(2), np.ones((2, 2), dtype=bool), ("a", "b"), ("a", "b"))


def everywhere(text: str) -> Report:
    """A report with the text in every place that holds one."""
    columns = (Column(text), Column("n", text, 2), Column(""))
    return about(
        table((text, 0.125, "x"), ("", -2, text), columns=columns, title=text),
        Note(text),
        table((text,), columns=[Column("only")]),
        title=text,
        subtitle=text,
    )


# What is shown


def test_common_words_stay_readable() -> None:
    for text in ("the film's plot, thin (yet loved); 9/10", "multi:2", "0.5", "猫坐在", "سلام", "👍🏽", "held-out"):
        assert inline(text) == text
    assert inline("##ing [SEP] a_b") == r"\#\#ing \[SEP\] a\_b"


def test_pictures_are_shown_only_where_asked() -> None:
    panels = HeatmapGrid("overview", "all heads", (heat(),), 1)
    chart = Chart("line", "loss", "epoch", "nats", ("x", "y"), ((0.0, 1.0),))
    curves = Charts("learning", "loss & accuracy", (chart,))
    of = about(heat(), panels, curves, Note("a note", leads=True))
    assert document(of) == "# a title\n\na note\n"
    assert document(of, {"learning": "learning.png", "another": "x.png"}) == (
        "# a title\n\na note\n\n![loss &amp; accuracy](learning.png)\n"
    )


# Where rows lead


def linked(*rows: tuple[str, str], title: str = "jobs") -> Report:
    links = tuple(link for _, link in rows)
    cells = tuple((name, number) for number, (name, _) in enumerate(rows))
    return about(Table("jobs", title, "facts", (Column("job"), Column("files", digits=0)), cells, links))


def test_the_first_cell_of_a_row_leads_where_its_link_says() -> None:
    source = document(linked(("a|b", "a b/é (1).html"), ("c", ""), ("d", "javascript:alert(1)"), ("", "e.html")))
    assert source.splitlines()[6:] == [
        "| [a&#124;b](a%20b/%C3%A9%20%281%29.html) | 0 |",
        "| c | 1 |",
        "| d | 2 |",
        "|  | 3 |",
    ]


def check_link(text: str) -> None:
    """A link says its cell and nothing else."""
    cells = [token for token in PARSER.parse(document(linked((text, "a/b.html")))) if token.type == "inline"]
    children = cells[-2].children or []
    links = [(child.type, child.attrs.get("href")) for child in children if child.type.startswith("link")]
    assert links == ([("link_open", "a/b.html"), ("link_close", None)] if seen(text) else [])
    assert "".join(child.content for child in children if child.type == "text") == seen(text)


# Text is data


def test_hostile_text_comes_back_wherever_it_stands() -> None:
    for text in MARKUP:
        check(text)
        check_link(text)
        check_picture(text)
        check_late(text)


@example("a\\")
@example("\\|")
@example("1.")
@given(TEXTS)
def test_any_text_comes_back(text: str) -> None:
    check(text)
    check_late(text)


def check(text: str) -> None:
    """In a title, a heading, a paragraph, a header, a cell, alone or with others: always the text and only the text."""
    shown = seen(text)
    document(everywhere(text)).encode("utf-8")  # no surrogate is left that a file could not hold
    header = f"n ({shown})" if text and text not in "n" else "n"
    prose = [("p", shown)] if text else []
    assert read(document(everywhere(text))) == [
        *([("h1", shown)] if text else []),
        *prose,
        *([("h2", shown)] if text else []),
        *(("th", cell) for cell in (shown, header, "")),
        *(("td", cell) for cell in (shown, "0.12", "x", "", "-2", shown)),
        *prose,
        ("h2", "a table"),
        ("th", "only"),
        ("td", shown),
    ]


@example("!", "!")
@example("=", "")
@given(TEXTS, TEXTS)
def test_text_stays_between_its_neighbours(first: str, second: str) -> None:
    """As a caller writes it: with marks of its own around it, before a link, and as a line below another."""
    source = f"* **a{inline(first)}a** — {inline(second)}[a](b)\n\na\n{inline(first)}\n"
    parsed = PARSER.parse(source)
    assert [token.tag for token in parsed] == ["ul", "li", "p", "", "p", "li", "ul", "p", "", "p"]
    upper, lower = (token.children or [] for token in parsed if token.type == "inline")
    assert "".join(child.content for child in upper if child.type == "text") == f"a{seen(first)}a — {seen(second)}a"
    assert "".join(child.content for child in lower if child.type == "text") == f"a{seen(first)}"
    assert [child.tag for child in upper if child.type not in {"text", "html_inline"}] == ["strong", "strong", "a", "a"]


def check_late(text: str) -> None:
    """Nothing is left for who reads the finished page."""
    for token in PARSER.parse(inline(text)):
        assert not any(LATE.search(node) for node in nodes(token))


def check_picture(text: str) -> None:
    """A picture says its title, or its name where it has none, and nothing else."""
    of = about(heat(title=text))
    _, _, _, _, token, _ = PARSER.parse(document(of, {"layer-0-head-0": "a_b/猫 (1).png"}))
    (image,) = token.children or []
    assert (image.type, image.attrs["src"]) == ("image", "a_b/%E7%8C%AB%20%281%29.png")
    assert "".join(nodes(image)) == seen(text or "layer-0-head-0")
    assert "html_inline" not in {child.type for child in image.children or []}


def test_a_picture_is_a_file_and_never_an_address() -> None:
    (_, _, line) = document(about(heat()), {"layer-0-head-0": "javascript:x"}).splitlines()
    assert line.endswith("(javascript%3Ax)")


# --- Cells of a table as text: which columns are of numbers, and how numbers are written that are none ---


def test_numbers_that_are_left_out_leave_a_column_of_numbers() -> None:
    for cells in ((1, 2.5), (1, "…"), ("", 2.5), ()):
        assert cell_text.numeric(Table("t", "", "facts", (Column("n"),), tuple((cell,) for cell in cells))) == [True]
    for texts in ((1, "a"), ("…", ""), ("a", "b")):
        assert cell_text.numeric(Table("t", "", "facts", (Column("n"),), tuple((cell,) for cell in texts))) == [False]


def test_infinity_is_a_sign() -> None:
    column = Column("s", digits=4)
    written = [cell_text.write_cell(value, column) for value in (float("inf"), float("-inf"), 0.5, 7)]
    assert written == ["∞", "-∞", "0.5000", "7"]
