"""Options under "Which text": where texts come from, which of them, and which token of one."""

from __future__ import annotations

from typing import Annotated, Any

from attnviz.cli.options_form import completing, flag, names_of
from attnviz.specs import LabelKind
from attnviz.text import NAMES

TEXT = "Which text"

OPTIONS: dict[str, Any] = {
    "text": Annotated[list[str], flag("--text", panel=TEXT, help="A text; repeat for several.")],
    "text_file": Annotated[
        list[str], flag("--text-file", panel=TEXT, metavar="FILE", help="A file that is one text; - is stdin.")
    ],
    "dataset": Annotated[
        str | None,
        flag(
            "--dataset",
            panel=TEXT,
            metavar="NAME|PATH",
            help=f"{names_of(NAMES)}, a name on the hub, or a local file or folder.",
            autocompletion=completing(NAMES),
        ),
    ],
    "split": Annotated[
        str | None,
        flag("--split", panel=TEXT, help="train, test, train[:1000], train[-5:], train[:10%], train+test."),
    ],
    "index": Annotated[
        list[str], flag("--index", panel=TEXT, metavar="N", help="Which texts of the split: 3, -1, 0-4,7; repeat.")
    ],
    "text_column": Annotated[
        str | None, flag("--text-column", panel=TEXT, help="The column that holds the text, if not found by name.")
    ],
    "pair": Annotated[
        str | None, flag("--pair", panel=TEXT, metavar="TEXT", help="A second text, for models that read two.")
    ],
    "target_text": Annotated[
        str | None,
        flag("--target-text", panel=TEXT, metavar="TEXT", help="What the decoder of an encoder-decoder has written."),
    ],
    "held_out": Annotated[
        str | None,
        flag(
            "--held-out", panel=TEXT, help="Split to measure coverage on; test if there is one, else every tenth text."
        ),
    ],
    "validation": Annotated[
        float, flag("--validation", panel=TEXT, metavar="SHARE", help="Share of the texts to hold out.")
    ],
    "root": Annotated[
        str,
        flag("--root", panel=TEXT, metavar="DIR", help="Where the configs lie, which relative paths start from."),
    ],
    "query": Annotated[
        str | None, flag("--query", panel=TEXT, metavar="WORD|N", help="A word of the text or its position.")
    ],
    "example": Annotated[
        bool, flag("--example", panel=TEXT, help="Instead of a text: three tokens whose numbers fit on paper.")
    ],
    "lang": Annotated[LabelKind | None, flag("--lang", panel=TEXT, help="Labels of the example's tokens.")],
}
