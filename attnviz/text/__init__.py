"""Where texts come from. Knows files and data sets; must not know tokens, models or pictures.

Importing this room imports neither datasets nor pyarrow: each source does so when it is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attnviz.registry import Plugin
from attnviz.text.document import Corpus, Document

if TYPE_CHECKING:
    from attnviz.text.corpus import load_corpus as load_corpus

__all__ = ["ENDINGS", "NAMES", "SOURCES", "Corpus", "Document", "load_corpus"]

# Each opens with (text column or None) and gives a Source.
NAMES: tuple[Plugin, ...] = (
    Plugin("sample", "attnviz.text.sample:open_sample", "sixty short reviews that come with attnviz"),
    Plugin("imdb", "attnviz.text.hub:open_imdb", "the Large Movie Review Dataset, stanfordnlp/imdb on the hub"),
)

# Each reads with (path, text column or None, how many texts are needed or None) and gives Rows.
ENDINGS: tuple[Plugin, ...] = (
    Plugin(".parquet", "attnviz.text.parquet:read_parquet", "a Parquet table"),
    Plugin(".jsonl", "attnviz.text.tables:read_jsonl", "one JSON object a line"),
    Plugin(".ndjson", "attnviz.text.tables:read_jsonl", "one JSON object a line"),
    Plugin(".csv", "attnviz.text.tables:read_csv", "a table with commas, names of columns first"),
    Plugin(".tsv", "attnviz.text.tables:read_tsv", "a table with tabs, names of columns first"),
    Plugin(".txt", "attnviz.text.tables:read_txt", "one text a line"),
)

SOURCES = (*NAMES, *ENDINGS)


def __getattr__(name: str) -> Any:
    if name == "load_corpus":
        from attnviz.text.corpus import load_corpus

        return load_corpus
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
