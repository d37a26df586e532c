"""A command run from its spec: the workflow's events shown as they come, its results printed as asked."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.cli import show
from attnviz.cli.process import collect_interrupts, resume_gc
from attnviz.commands import start_command
from attnviz.running import Progress
from attnviz.specs import FigureOptions
from attnviz.words import say

if TYPE_CHECKING:
    from attnviz.running import Command, Events, Result
    from attnviz.specs import TableKind
    from attnviz.words import Language


def run_command(command: Command, spec: Any) -> None:
    """Run the command's workflow. Raises what it raises, and the failure of its result when all is shown."""
    kind, figure = spec.printing.kind, getattr(spec, "figure", FigureOptions())
    asked = getattr(spec, "table", None)  # of all that is no map
    results = []
    for result in _follow_events(start_command(command, spec), kind == "table", figure.lang):
        table = asked or (figure.table if result.is_text else "top")
        _show(result, table if kind == "table" else "none", figure.lang)
        # A report may hold large maps: where it is not needed any more it goes.
        shown = replace(result, report=result.document or result.report)
        results.append(replace(result, report=None, rows=()) if kind in ("table", "none") else shown)
    if kind not in ("table", "none"):
        from attnviz.cli.printing import write_documents  # numpy comes with it

        sys.stdout.writelines(write_documents(results, kind, full=figure.table == "full"))
    if figure.open:
        pages = (file for result in results for file in result.files if file.suffix == ".html")
        # Of several texts the index, which lies above them. A part of a survey has none.
        page = min(pages, key=lambda file: len(file.parts), default=None)
        if page is None:
            show.note("no page was written that --open could show", figure.lang)
        elif not _open(page):
            show.note(f"no browser could be opened; the page is {page}", figure.lang)
    if failure := next((result.failure for result in results if result.failure), None):
        raise failure


def _follow_events(events: Events, show_lines: bool, language: Language) -> Iterator[Result]:
    """Yield the results, and show on standard error how far work is.

    Where leaving between two steps keeps what was done, the first Ctrl-C waits for the end of the step at work.
    """
    view, asked = show.create_progress_view(), None
    with ExitStack() as stack:
        stack.callback(view.close)
        for event in events:
            resume_gc()
            if isinstance(event, Progress):
                view.show(event if show_lines else replace(event, line=""))
                for notice in (*event.notices, *event.log):
                    view.note(f"note: {say(notice, language)}")
                if event.error:
                    view.note(f"error: {event.error}")
                if event.if_left and asked is None:
                    asked = stack.enter_context(collect_interrupts())
                if asked:
                    assert isinstance(events, Generator)
                    events.close()
                    view.close()
                    for line in event.if_left:
                        show.note(line, language)
                    raise KeyboardInterrupt
            else:
                view.close()
                yield event


def _show(result: Result, table: TableKind, language: Language) -> None:
    for notice in result.notices:
        show.note(notice, language)
    if result.report is not None and table != "none":
        from attnviz.renderers.terminal.show import lines  # numpy and rich come with it
        from attnviz.views.translate import translate

        sys.stdout.writelines(lines(translate(result.report, language), table, show.detect_screen(language)))
    for line in result.lines:
        show.line(line)
    sys.stdout.flush()
    if len(result.files) == 1:
        show.note(f"wrote {result.files[0]}", language)
    elif first := next(iter(result.files), None):
        listed = f"{first.name} … {result.files[-1].name}"
        show.note(f"wrote {len(result.files)} files to {first.parent}/ ({listed})", language)
    for line in result.closing:
        show.note(line, language)


def _open(page: Path) -> bool:
    import webbrowser  # takes as long as a help

    with suppress(webbrowser.Error):
        return webbrowser.open(page.resolve().as_uri())
    return False
