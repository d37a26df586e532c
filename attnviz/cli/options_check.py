"""Options under "What may differ" and "On a server": of what is compared, and of what a server reports."""

from __future__ import annotations

from typing import Annotated, Any

from attnviz.cli.options_form import flag
from attnviz.specs import AnnotationKind

CHECK, SERVER = "What may differ", "On a server"

OPTIONS: dict[str, Any] = {
    "baseline": Annotated[
        str, flag("--baseline", panel=CHECK, metavar="DIR", help="What it made before.", show_default=False)
    ],
    "tolerance": Annotated[float, flag("--tolerance", panel=CHECK, help="By how much a number may differ.")],
    "pixels": Annotated[
        float, flag("--pixels", panel=CHECK, metavar="RMS", help="By how much a picture may differ, of 255.")
    ],
    "threshold": Annotated[
        list[str],
        flag(
            "--threshold",
            panel=CHECK,
            metavar="NAME=N",
            help="Fail where a head changed by more: jsd, top_key or a measure; repeat.",
        ),
    ],
    "summary": Annotated[
        str | None, flag("--summary", panel=SERVER, metavar="FILE", help="Add the report as Markdown to this file.")
    ],
    "annotations": Annotated[
        AnnotationKind | None,
        flag("--annotations", panel=SERVER, help="Say what was found as this server's annotations, on stderr."),
    ],
    "junit": Annotated[
        str | None, flag("--junit", panel=SERVER, metavar="FILE", help="Write each job as a test in JUnit XML.")
    ],
}
