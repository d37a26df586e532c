"""The words of files that hold more than words: web pages, subtitles, notebooks, Markdown. Knows strings only.

What a file is its name says, or how it begins: a text that speaks of tags or times, or quotes some, is a text. Tags,
times, settings and blocks of code are left out, which is said; `--keep-markup` reads a file as it is written.

Tags are found by a pattern that never goes back: Python 3.11's html.parser takes a minute for 60 kB of "<a <a <a", and
fails for "<![<![".
"""

import re
from html import unescape
from pathlib import PurePath
from typing import Any

from markdown_it import MarkdownIt

from attnviz.bounded import Budget, format_bytes, parse_json
from attnviz.display import pluralize
from attnviz.errors import InvalidSource, raising

PAGES, CAPTIONS = (".html", ".htm", ".xhtml"), (".srt", ".vtt")
MARKDOWN = (".md", ".markdown", ".mdown", ".rmd", ".qmd")
WORDY_ENDINGS = (".txt", *PAGES, *CAPTIONS, *MARKDOWN, ".ipynb", ".tex")
BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)  # within the texts of data sets from the web, such as IMDb
HIDDEN = "script|style|template|title|noscript|svg|math|select|textarea|iframe"
OF_PAGES = re.compile(r"(?i)(</?)(title|svg|select|template|textarea)\b")  # which in other XML hold words
IN_LINE = {"a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd"}
IN_LINE |= {"label", "mark", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup"}
IN_LINE |= {"time", "tt", "u", "var", "wbr", "img", "c", "v", "lang"}  # the last three in subtitles
TAG = re.compile(
    rf"(?is)<!--(?:.*?)(?:-->|\Z)|<({HIDDEN})\b[^<>]*+(?<!/)>.*?(?:</\1\s*>|\Z)|<pre\b[^<>]*>\s*<code\b.*?(?:</pre\s*>|\Z)"
    r"""|<[/!?]?(?P<name>[a-z][\w-]*)(?:"[^"]*"|'[^']*'|[^'"<>])*+>"""
)
SPOKEN = re.compile(r"<(?:[cv]\b[^<>]*|[\d:.]+)>")  # in subtitles, who speaks or when a word is spoken
TIMES = r"(?:\d+:)?\d+:\d\d[.,]\d+ *--> *(?:\d+:)?\d+:\d\d[.,]\d+(?: +[A-Za-z]\w*:\S+)*$"
CUE = re.compile(rf"(?:(?:\A|(?<=\n\n)).*\n|^\d+\n)?^{TIMES}\n?", re.MULTILINE)  # with its number or name
SETTINGS = re.compile(r"\A\s*WEBVTT.*(?:\n.+)*|^(?:NOTE|STYLE|REGION)\b.*(?:\n.+)*|\{\\[^}\n]*\}", re.MULTILINE)
FRONT_MATTER = re.compile(r"(?s)\A(---|\+\+\+)[ \t]*\n.*?\n(?:\1|\.\.\.)[ \t]*(?:\n|\Z)")
# How a file begins, whatever it is called.
PAGE = re.compile(r"(?is)\s*(<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*+<(!doctype\s+html|html\b[^<>]*>\s*<(head|body)\b)")
XML = re.compile(r"\s*<\?xml\s[^<>]*\?>\s*<[!A-Za-z]")
NOTEBOOK = re.compile(r'\s*\{\s*"(?:cells|metadata|nbformat|worksheets)":')
SUBTITLES = re.compile(rf"\s*(?:WEBVTT\b.*\n(?:.*\n)*?|\d+\n)?{TIMES}", re.MULTILINE)
LATEX = re.compile(r"(?:\s|%.*\n)*\\(?:documentclass|begin\{document\}|input\{|section\b)")
MAX_MARKDOWN = 2**18  # characters: the library takes their number squared where brackets are never closed


def find_words(text: str, name: str, budget: Budget) -> tuple[str, str]:
    """Return the words of a file and a note of how it was read; of a plain text itself, and no note.

    Raises InvalidSource where it holds none or is damaged, TooLarge.
    """
    ending = PurePath(name).suffix.lower()
    lines = re.sub(r"[ \t]*\r?\n", "\n", text)
    left_out = ""
    if ending == ".tex" or LATEX.match(text):
        raise InvalidSource(f"{name} is LaTeX", hint="Save its words as .txt, or --keep-markup reads it as it is.")
    if ending == ".ipynb" or (NOTEBOOK.match(text) and '"nbformat":' in text):
        words, left_out = _read_notebook(text, name, budget)
    elif ending in MARKDOWN:
        words, left_out = _read_markdown(lines, name), "Markdown: without its signs and blocks of code"
    elif PAGE.match(text) or (ending in PAGES and TAG.search(text)):
        words, left_out = read_page(text), "a web page: without tags and code"
    elif XML.match(text) or (ending in (".xml", ".svg") and TAG.search(text)):
        words, left_out = read_page(OF_PAGES.sub(r"\1x-\2", text)), "XML: without tags"
    elif SUBTITLES.match(lines) or (ending in CAPTIONS and CUE.search(lines)):
        spoken = SETTINGS.sub("", SPOKEN.sub("", CUE.sub("", lines)))
        words, left_out = read_page(spoken.replace("\n", "<br>")), "subtitles: without numbers, times and tags"
    if not left_out or words == lines.strip():
        return text, ""
    if not words:
        raise InvalidSource(f"{name} holds no words, read as {left_out}", hint="--keep-markup reads it as it is.")
    return words, f"{name} is read as {left_out}; --keep-markup reads it as it is written"


def read_page(page: str) -> str:
    """Return the words of a web page, a line for each of its blocks."""
    parts, at, is_plain = list[str](), 0, False
    for tag in TAG.finditer(page + "<br>"):
        between = page[at : tag.start()]
        parts.append(unescape(between) if is_plain else re.sub(r"\s+", " ", unescape(between)))
        at, name = tag.end(), (tag["name"] or "").lower()
        is_plain = not tag[0].startswith("</") if name == "pre" else is_plain
        is_inner = name in IN_LINE or tag[0].startswith(("<!--", "</td", "</th>"))
        parts.append("" if is_inner else " " if name in ("td", "th") else "\n")
    return "\n".join(filter(None, map(str.strip, re.sub(r"[ \t]+", " ", "".join(parts)).split("\n"))))


def _read_markdown(text: str, name: str) -> str:
    if len(text) > MAX_MARKDOWN:
        problem = f"{name} is longer than the {format_bytes(MAX_MARKDOWN)} that are read of Markdown"
        raise InvalidSource(problem, hint="--keep-markup reads it as it is.")
    return read_page(MarkdownIt("commonmark").enable("table").render(FRONT_MATTER.sub("", text)))


def _read_notebook(text: str, name: str, budget: Budget) -> tuple[str, str]:
    """Return the words of the cells that hold text, and what the others are."""
    with raising(InvalidSource, f"{name} is not a whole notebook", "--keep-markup reads it as it is."):
        budget.draw_json(f"the cells of {name}", text)
        found: Any = parse_json(text)
        cells = [cell for sheet in found.get("worksheets") or [found] for cell in sheet["cells"]]
        written = ["".join(cell["source"]) for cell in cells if cell["cell_type"] in ("markdown", "heading")]
    n_others = len(cells) - len(written)
    words = _read_markdown("\n\n".join(written), name)
    return words, f"a notebook: the words of its text, without {n_others} {pluralize(n_others, 'cells')} of code"
