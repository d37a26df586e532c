"""What `batch`, `diff` and `measures` are asked."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import ARGUMENT, CHECK, OUTPUT, Only, Option
from attnviz.running.cluster_options import MANY
from attnviz.specs import AnswerOrAll, FigureOptions, Measure, PrintOptions

SIDE_BY_SIDE = Option("html: also show pictures before, after and where they differ.", OUTPUT, "NAME")
Workers = Annotated[int | None, Option("Processes; default: one for each core.", OUTPUT, "N", limits=MANY)]


@dataclass(frozen=True, kw_only=True)
class BatchSpec:
    """Make all that configs ask for, several at a time, and a manifest of it. What did not change is not made again.

    Example: attnviz batch sample_configs/heatmap.yaml --out figures
    """

    configs: Annotated[tuple[str, ...], Option("YAML or JSON files; --schema: of what.", ARGUMENT, "CONFIGS")] = ()
    # None: what the configs say, or figures
    out: Annotated[str | None, Option("Folder to write to; default: what configs say, or figures.", OUTPUT, "DIR")] = (
        None
    )
    workers: Workers = None
    force: Annotated[bool, Option("Make everything again, also what did not change.", OUTPUT)] = False
    fail_fast: Annotated[bool, Option("Stop at the first job that fails.", OUTPUT)] = False
    dry_run: Annotated[bool, Option("List what would be made, and make nothing.", OUTPUT)] = False
    schema: Annotated[bool, Option("Print what a config may say, as a JSON Schema for editors.", OUTPUT)] = False
    printing: PrintOptions = PrintOptions()


@dataclass(frozen=True, kw_only=True)
class DiffSpec:
    """Say what differs between two batches, two records of one text, two surveys, two pictures or two files of weights.
    Exit code 3 where anything does or stands on one side only, 0 where nothing does.

    Example: attnviz diff baseline figures --tolerance 1e-4
    """

    before: Annotated[
        str, Option("A record, manifest.json or survey, or its folder; a .png, .npy ….", ARGUMENT, "BEFORE")
    ]
    after: Annotated[str | None, Option("Another of its kind; none with --again.", ARGUMENT, "AFTER")] = None
    tolerance: Annotated[
        tuple[str, ...],
        Option("By how much numbers and weights may differ; NAME=N: a measure, weight, jsd, top_key.", CHECK, "N"),
    ] = ()
    pixels: Annotated[
        float | None, Option("By how much the pixels of a PNG may differ, of 255; default 0.", CHECK, "RMS")
    ] = None  # root mean square over channels
    exact: Annotated[bool, Option("Compare every byte; else what files say.", CHECK)] = False
    again: Annotated[
        bool, Option("Make the batch again elsewhere, and compare: every byte, unless a tolerance is given.", CHECK)
    ] = False
    root: Annotated[str, Option("Of --again: where relative paths in the configs start from.", CHECK, "DIR")] = "."
    measure: Measure = ()  # whose numbers are listed; empty: none
    figure: Annotated[FigureOptions, Only("format", "out", "open", format=SIDE_BY_SIDE)] = FigureOptions(
        format=(), out="differences"
    )
    max_memory: Annotated[float, Option("GiB that the process may take for two files.", CHECK)] = 4.0
    table: AnswerOrAll = "answer"
    printing: PrintOptions = PrintOptions()
