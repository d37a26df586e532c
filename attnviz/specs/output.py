"""What comes out: options that several specs have, with defaults of their own."""

from typing import Annotated

from attnviz.options import OUTPUT, Option

Out = Annotated[str, Option("Folder to write to.", OUTPUT, "DIR", short="-o")]
Measure = Annotated[
    tuple[str, ...],
    Option(
        "Which measures, or all, several with commas; `attnviz measures` lists them.",
        OUTPUT,
        "NAME",
        table="attnviz.measures:MEASURES",
    ),
]
TopK = Annotated[int, Option("Keys listed for each query.", OUTPUT)]
Json = Annotated[bool, Option("All numbers as JSON on stdout, and nothing else.", OUTPUT)]
Csv = Annotated[bool, Option("The rows as CSV on stdout, and nothing else.", OUTPUT)]
Markdown = Annotated[bool, Option("The report as Markdown on stdout, and nothing else.", OUTPUT)]
Latex = Annotated[bool, Option("The report as a LaTeX document on stdout, and nothing else.", OUTPUT)]
