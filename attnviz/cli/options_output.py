"""Options under "What comes out": where to, in which form, which numbers, and how much work is done for it."""

from __future__ import annotations

from typing import Annotated, Any

from attnviz.cli.options_form import completing, flag
from attnviz.measures import MEASURES
from attnviz.specs import StorageKind, TableKind

OUTPUT = "What comes out"

OPTIONS: dict[str, Any] = {
    "storage": Annotated[
        StorageKind, flag("--storage", panel=OUTPUT, help="How the embeddings are stored; all else is float32.")
    ],
    "resume": Annotated[bool, flag("--resume", panel=OUTPUT, help="Go on with the run that stopped in --out.")],
    "out": Annotated[str, flag("--out", panel=OUTPUT, metavar="DIR", help="Folder to write to.")],
    "sort": Annotated[
        str | None,
        flag(
            "--sort",
            panel=OUTPUT,
            metavar="MEASURE",
            help="List heads by this measure, the largest first; -MEASURE: the smallest.",
            autocompletion=completing(MEASURES),
        ),
    ],
    "table": Annotated[
        TableKind,
        flag("--table", panel=OUTPUT, help="In the terminal: shaded maps, top keys, all weights, or nothing."),
    ],
    "measure": Annotated[
        list[str],
        flag(
            "--measure",
            panel=OUTPUT,
            metavar="NAME",
            help="Which measures, or all, several with commas; `attnviz measures` lists them.",
            autocompletion=completing(MEASURES),
        ),
    ],
    "top_k": Annotated[int, flag("--top-k", panel=OUTPUT, help="Keys listed for each query.")],
    "theory": Annotated[
        bool, flag("--theory", panel=OUTPUT, help="Also compare with recurrent and convolutional layers.")
    ],
    "kernel": Annotated[
        int, flag("--kernel", panel=OUTPUT, metavar="K", help="Width of the convolutions in --theory.")
    ],
    "time": Annotated[
        bool, flag("--time/--no-time", panel=OUTPUT, help="Measure time, the one number that differs each time.")
    ],
    "csv": Annotated[bool, flag("--csv", panel=OUTPUT, help="The rows as CSV on stdout, and nothing else.")],
    "workers": Annotated[
        int | None, flag("--workers", panel=OUTPUT, metavar="N", help="Processes; default: one for each core.")
    ],
    "force": Annotated[bool, flag("--force", panel=OUTPUT, help="Make everything again, also what did not change.")],
    "fail_fast": Annotated[bool, flag("--fail-fast", panel=OUTPUT, help="Stop at the first job that fails.")],
    "dry_run": Annotated[bool, flag("--dry-run", panel=OUTPUT, help="List what would be made, and make nothing.")],
    "open": Annotated[
        bool, flag("--open", panel=OUTPUT, help="Also write the page to explore (--format html), and open it.")
    ],
    "json": Annotated[bool, flag("--json", panel=OUTPUT, help="All numbers as JSON on stdout, and nothing else.")],
    "markdown": Annotated[
        bool, flag("--markdown", panel=OUTPUT, help="The report as Markdown on stdout, and nothing else.")
    ],
    "latex": Annotated[
        bool, flag("--latex", panel=OUTPUT, help="The report as a LaTeX document on stdout, and nothing else.")
    ],
}
