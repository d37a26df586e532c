"""On a server: what a run leaves for who reads it later."""

from dataclasses import dataclass
from typing import Annotated, Literal

from attnviz.options import SERVER, Option

AnnotationKind = Literal["github"]


@dataclass(frozen=True, kw_only=True)
class CIReportOptions:
    """What a run on a server leaves for who reads it later."""

    summary: Annotated[str | None, Option("Add the report as Markdown to this file.", SERVER, "FILE")] = None
    annotations: Annotated[
        AnnotationKind | None, Option("Say what was found as this server's annotations, on stderr.", SERVER)
    ] = None
    junit: Annotated[str | None, Option("Write each job as a test in JUnit XML.", SERVER, "FILE")] = None
