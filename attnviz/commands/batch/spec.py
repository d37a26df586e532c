"""What `batch`, `diff` and `measures` are asked."""

from dataclasses import MISSING, dataclass

from attnviz.options import ARGUMENT, CHECK, OUTPUT, Option, group, option
from attnviz.running.cluster_options import MANY
from attnviz.specs import MEASURE, OUT, TABLE, AnswerKind, FigureOptions, PrintOptions

SIDE_BY_SIDE = Option("html: also show pictures before, after and where they differ.", OUTPUT, "NAME")
PAGES = "differences"  # the folder of a page


@dataclass(frozen=True, kw_only=True)
class BatchSpec:
    """Make all that configs ask for, several at a time, and a manifest of it. What did not change is not made again.

    Example: attnviz batch sample_configs/heatmap.yaml --out figures
    """

    configs: tuple[str, ...] = option((), "YAML or JSON files; --schema: of what.", ARGUMENT, "CONFIGS")
    # None: what the configs say, or figures
    out: str | None = OUT._replace(help="Folder to write to; default: what configs say, or figures.").field(None)
    workers: int | None = option(None, "Processes; default: one for each core.", OUTPUT, "N", limits=MANY)
    force: bool = option(False, "Make everything again, also what did not change.", OUTPUT)
    fail_fast: bool = option(False, "Stop at the first job that fails.", OUTPUT)
    dry_run: bool = option(False, "List what would be made, and make nothing.", OUTPUT)
    schema: bool = option(False, "Print what a config may say, as a JSON Schema for editors.", OUTPUT)
    printing: PrintOptions = PrintOptions()


@dataclass(frozen=True, kw_only=True)
class DiffSpec:
    """Say what differs between two batches, two records of one text, two surveys, two pictures or two files of weights.
    Exit code 3 where anything does or stands on one side only, 0 where nothing does.

    Example: attnviz diff baseline figures --tolerance 1e-4
    """

    before: str = option(
        MISSING, "A record, manifest.json or survey, or its folder; a .png, .npy ….", ARGUMENT, "BEFORE"
    )
    after: str | None = option(None, "Another of its kind; none with --again.", ARGUMENT, "AFTER")
    tolerance: tuple[str, ...] = option(
        (), "By how much numbers and weights may differ; NAME=N: a measure, weight, jsd, top_key.", CHECK, "N"
    )
    # root mean square over channels
    pixels: float | None = option(None, "By how much the pixels of a PNG may differ, of 255; default 0.", CHECK, "RMS")
    exact: bool = option(False, "Compare every byte; else what files say.", CHECK)
    again: bool = option(
        False, "Make the batch again elsewhere, and compare: every byte, unless a tolerance is given.", CHECK
    )
    root: str = option(".", "Of --again: where relative paths in the configs start from.", CHECK, "DIR")
    measure: tuple[str, ...] = MEASURE.field(())  # whose numbers are listed; empty: none
    figure: FigureOptions = group(FigureOptions(format=(), out=PAGES), "format", "out", "open", format=SIDE_BY_SIDE)
    max_memory: float = option(4.0, "GiB that the process may take for two files.", CHECK)
    table: AnswerKind = TABLE.field("answer")
    printing: PrintOptions = PrintOptions()
