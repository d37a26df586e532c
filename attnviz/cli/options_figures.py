"""Options under "Which figures": what is drawn, what is left out of it, and how it looks."""

from __future__ import annotations

from typing import Annotated, Any

from attnviz.cli.options_form import flag, names_of
from attnviz.renderers import RENDERERS
from attnviz.specs import MergeKind, ScaleKind

FIGURE = "Which figures"

OPTIONS: dict[str, Any] = {
    "layer": Annotated[
        list[str], flag("--layer", panel=FIGURE, metavar="N", help="Which layers: 0, 0-3,7; repeat. Default: all.")
    ],
    "head": Annotated[
        list[str], flag("--head", panel=FIGURE, metavar="N", help="Which heads: 0, 0-3,7; repeat. Default: all.")
    ],
    "format": Annotated[
        list[str],
        flag("--format", panel=FIGURE, metavar="NAME", help=f"{names_of(RENDERERS)}; several with commas."),
    ],
    "cmap": Annotated[str, flag("--cmap", panel=FIGURE, help="A colour map of matplotlib or seaborn.")],
    "dpi": Annotated[int, flag("--dpi", panel=FIGURE, help="Pixels per inch.")],
    "scale": Annotated[
        ScaleKind,
        flag(
            "--scale",
            panel=FIGURE,
            help="fixed: 0 to 1; shared: 0 to the largest; log: for small weights; auto: shared or log.",
        ),
    ],
    "annotate": Annotated[bool, flag("--annotate", panel=FIGURE, help="Write the weights into the cells.")],
    "title": Annotated[str | None, flag("--title", panel=FIGURE, help="Title of the figures.")],
    "merge": Annotated[
        MergeKind | None,
        flag(
            "--merge",
            panel=FIGURE,
            help="words: the pieces of a word become one token (sum over keys, mean over queries).",
        ),
    ],
    "hide_special": Annotated[
        bool, flag("--hide-special", panel=FIGURE, help="Leave out markers such as [CLS]; says what share that was.")
    ],
    "drop_first": Annotated[
        bool, flag("--drop-first", panel=FIGURE, help="Leave out the first token; says what share that was.")
    ],
    "rollout": Annotated[
        bool, flag("--rollout", panel=FIGURE, help="Also draw attention through all layers (attention rollout).")
    ],
    "heatmap": Annotated[bool, flag("--heatmap", panel=FIGURE, help="Also draw what each text's tokens attended to.")],
}
