"""What the commands about batches are asked: `batch`, `verify`, `check` and `diff`; and `measures`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from attnviz.options import ARGUMENT, CHECK, OUTPUT, SERVER, TEXT, Option
from attnviz.specs import Measure, Out, PrintOptions, TopK

MaxMemory = Annotated[float, Option("GiB that the process may take for two files.", CHECK)]
Workers = Annotated[int | None, Option("Processes; default: one for each core.", OUTPUT, "N")]
Folder = Annotated[str, Option("What attnviz batch made.", ARGUMENT, "DIR")]
TOLERANCE = Option("By how much a number may differ.", CHECK)  # absolute; weights, too
PIXELS = Option("By how much a picture may differ, of 255.", CHECK, "RMS")  # root mean square, 0 to 255
MAX_DIFFERENCE = 1e-4
AnnotationKind = Literal["github"]


@dataclass(frozen=True, kw_only=True)
class CIReportOptions:
    """What a run on a server leaves for who reads it later."""

    summary: Annotated[str | None, Option("Add the report as Markdown to this file.", SERVER, "FILE")] = None
    annotations: Annotated[
        AnnotationKind | None, Option("Say what was found as this server's annotations, on stderr.", SERVER)
    ] = None
    junit: Annotated[str | None, Option("Write each job as a test in JUnit XML.", SERVER, "FILE")] = None


@dataclass(frozen=True, kw_only=True)
class BatchSpec:
    """Make all that configs ask for, several at a time, and a manifest of it. What did not change is not made again.

    Example: attnviz batch sample_configs/heatmap.yaml --out figures
    """

    server: CIReportOptions = CIReportOptions()
    configs: Annotated[tuple[str, ...], Option("YAML or JSON files; see `attnviz schema`.", ARGUMENT, "CONFIGS")]
    # None: what the configs say, or figures
    out: Annotated[str | None, Option("Folder to write to; default: what configs say, or figures.", OUTPUT, "DIR")] = (
        None
    )
    workers: Workers = None
    force: Annotated[bool, Option("Make everything again, also what did not change.", OUTPUT)] = False
    fail_fast: Annotated[bool, Option("Stop at the first job that fails.", OUTPUT)] = False
    dry_run: Annotated[bool, Option("List what would be made, and make nothing.", OUTPUT)] = False


@dataclass(frozen=True, kw_only=True)
class VerifySpec:
    """Make a batch again elsewhere, from its manifest, and say what comes out differently: exit code 3. Compares every
    byte; with --tolerance or --pixels what files say, as `attnviz check` does.

    Example: attnviz verify figures --root sample_configs
    """

    folder: Folder
    root: Annotated[str, Option("Where the configs lie, which relative paths start from.", TEXT, "DIR")] = "."
    tolerance: Annotated[float | None, TOLERANCE] = None  # where both are None, every byte is compared
    pixels: Annotated[float | None, PIXELS] = None


@dataclass(frozen=True, kw_only=True)
class CheckSpec:
    """Compare what a batch made with a baseline: numbers first, then pictures pixel by pixel. Exit code 3: it differs.

    Example: attnviz check figures --baseline baseline --summary summary.md
    """

    server: CIReportOptions = CIReportOptions()
    folder: Folder
    baseline: Annotated[str, Option("What it made before.", CHECK, "DIR")]
    tolerance: Annotated[float, TOLERANCE] = MAX_DIFFERENCE
    pixels: Annotated[float, PIXELS] = 0.0
    max_memory: MaxMemory = 4.0
    out: Out = "differences"
    printing: PrintOptions = PrintOptions()


@dataclass(frozen=True, kw_only=True)
class DiffSpec:
    """Say what changed from A to B, head by head: two records of one text, two batches, or two surveys.

    Example: attnviz diff before/attention.safetensors after/attention.safetensors --threshold jsd=0.01
    """

    before: Annotated[str, Option("A record, a manifest.json, a survey, or the folder of one.", ARGUMENT, "A")]
    after: Annotated[str, Option("Another of its kind.", ARGUMENT, "B")]
    measure: Measure = ()  # names; empty: entropy of records, every measure of batches, the headline of surveys
    threshold: Annotated[
        tuple[str, ...],
        Option("Fail where a head changed by more: jsd, top_key or a measure{; repeat}.", CHECK, "NAME=N"),
    ] = ()
    top_k: TopK = 3
    max_memory: MaxMemory = 4.0
    printing: PrintOptions = PrintOptions()


@dataclass(frozen=True, kw_only=True)
class MeasuresSpec:
    """List the measures of attention: what each says, its unit and its source.

    Example: attnviz measures --json
    """

    printing: PrintOptions = PrintOptions()


@dataclass(frozen=True, kw_only=True)
class SchemaSpec:
    """Print what a config of `attnviz batch` may say, as a JSON Schema for editors.

    Example: attnviz schema > batch.schema.json
    """
