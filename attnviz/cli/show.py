"""What the terminal sees: results on standard output, everything else on standard error."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.display import escape_for_display

if TYPE_CHECKING:
    from rich.progress import Progress

    from attnviz.renderers.terminal import Screen
    from attnviz.report import Report
    from attnviz.specs.explain import ExplainSpec
    from attnviz.specs.figure import FigureOptions, TableKind
    from attnviz.specs.train import VocabSpec
    from attnviz.workflows.drawing import Drawn
    from attnviz.workflows.explain import Explained
    from attnviz.workflows.vocab import Built

WIDTH_OFF_TERMINAL = 80
USUAL = gc.get_threshold()
MAX_LINE_LENGTH = 500  # of an error or a note: a path or a token in it may be of any length


def prepare_streams() -> None:
    """A character that the terminal's encoding lacks is written as an escape instead of ending the program.

    A stream that the caller closed, as in `attnviz … >&-`, leads nowhere.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        else:
            with suppress(AttributeError, ValueError):
                stream.reconfigure(errors="backslashreplace")


def flush_stderr() -> None:
    """What is still to be said is said or, where nobody reads, dropped: else Python ends with a code of its own."""
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def abandon_stdout() -> None:
    """Standard output has failed: send what is still buffered nowhere, so that the exit does not fail once more."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def line(text: str) -> None:
    """One line of results."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """One line on standard error that is no error."""
    _tell(f"note: {text}")


def error(text: str) -> None:
    """One line on standard error that says what went wrong."""
    _tell(f"error: {text}")


def _tell(text: str) -> None:
    """One line on standard error, with nothing in it that a terminal would obey."""
    with suppress(OSError, ValueError):
        sys.stderr.write(escape_for_display(text, MAX_LINE_LENGTH) + "\n")
        sys.stderr.flush()


def screen() -> Screen:
    """The terminal as it is; a pipe or file counts as 80 columns, and without FORCE_COLOR has no colour."""
    from attnviz.renderers.terminal import Screen

    terminal = sys.stdout.isatty()
    wanted = bool(os.environ.get("FORCE_COLOR")) or (terminal and os.environ.get("TERM") != "dumb")
    colour = wanted and "NO_COLOR" not in os.environ
    width = shutil.get_terminal_size((WIDTH_OFF_TERMINAL, 24)).columns if terminal else _columns()
    true_colour = os.environ.get("COLORTERM") in ("truecolor", "24bit")
    return Screen(width, colour, sys.stdout.encoding or "utf-8", true_colour)


def _columns() -> int:
    written = os.environ.get("COLUMNS", "")
    return int(written) if written.isdecimal() and int(written) > 0 else WIDTH_OFF_TERMINAL


def pause_gc() -> None:
    """Look through everything for garbage not before all is imported.

    Nothing that is imported is garbage, and there is so much of it that looking took a tenth of the time of a picture.
    """
    gc.set_threshold(*USUAL[:2], 60)  # torch and matplotlib come to 40 looks through what is younger, by default to 4


def resume_gc() -> None:
    """All is imported: from now on look as ever, but not through that. To be called wherever work goes on and on.

    This is not left to `gc.callbacks`: Ctrl-C that comes while torch is imported would end the callback and no more.
    """
    if gc.get_threshold() != USUAL:
        gc.freeze()
        gc.set_threshold(*USUAL)


def drawn(results: Iterable[Drawn], spec: FigureOptions) -> None:
    """Show each result as it comes; with `--json` all of them as one document at the end."""
    reports = []
    pages: list[Path] = []
    for result in results:
        resume_gc()
        for notice in result.notices:
            note(notice)
        if spec.json:
            reports.append(result.report)
        elif spec.table != "none" and not spec.quiet:
            _on_screen(result.report, spec.table)
        note(f"wrote {listed(result.files)}")
        pages += [file for file in result.files if file.suffix == ".html"]
    if spec.open:
        _open(pages[0])
    if spec.json:
        from attnviz.renderers.json import chunks

        _as_json(chunks(reports))  # only now: a text that fails must not leave half a document behind


def _open(page: Path) -> None:
    """In the browser that this machine prefers, if it has one."""
    import webbrowser

    try:
        opened = webbrowser.open(page.resolve().as_uri())
    except webbrowser.Error:
        opened = False
    if not opened:
        note(f"no browser could be opened; the page is {page}")


def built(result: Built, spec: VocabSpec) -> None:
    """Show a vocabulary."""
    for notice in result.notices:
        note(notice)
    report(result.report, spec.json)
    note(f"wrote {result.file}")


def explained(result: Explained, spec: ExplainSpec) -> None:
    """Show a walk-through, in the writing that was asked for."""
    for notice in result.notices:
        note(notice)
    if spec.markdown:
        from attnviz.renderers import markdown

        sys.stdout.write(markdown.document(result.report))
    elif spec.latex:
        from attnviz.renderers import latex

        sys.stdout.write(latex.document(result.report))
    else:
        report(result.report, spec.json)


def report(shown: Report, json: bool) -> None:
    """One report, as tables or as JSON."""
    if json:
        from attnviz.renderers.json import alone

        _as_json(alone(shown))
    else:
        _on_screen(shown, "top")


def _on_screen(report: Report, table: TableKind) -> None:
    from attnviz.renderers.terminal import lines

    sys.stdout.writelines(lines(report, table, screen()))
    sys.stdout.flush()


def _as_json(document: Iterable[bytes]) -> None:
    for chunk in document:
        sys.stdout.write(chunk.decode("ascii"))


def transient_bar(what: str) -> Progress:
    """A bar on standard error that goes away at the end, without a task yet."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on standard error that goes away at the end; what it gives moves it on by one."""
    with transient_bar(what) as shown:
        task = shown.add_task(what, total=total)
        yield lambda: shown.advance(task)


def listed(files: Sequence[Path]) -> str:
    """`a/b.png` alone; `8 files to a/ (b.png … z.png)` for more."""
    if len(files) == 1:
        return str(files[0])
    return f"{len(files)} files to {files[0].parent}/ ({files[0].name} … {files[-1].name})"
