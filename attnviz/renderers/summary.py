"""A report as Markdown that has to fit: GitHub refuses a step's summary over 1 MiB as a whole. Knows `report` only."""

from __future__ import annotations

from dataclasses import replace

from attnviz.renderers.markdown import document
from attnviz.report import Note, Report

LIMIT = 1024 * 1024  # bytes of one step's summary
SENTENCE = "{} of {} {} left out here: a summary holds at most 1 MiB."


def summary(report: Report, held: int = 0, limit: int = LIMIT) -> str:
    """As many whole blocks as fit beside the `held` bytes that are there already, and how many were left out.

    "" where not even that fits. What is held ends where the new heading begins, whatever it is.
    """
    begins = "\n\n" if held else ""
    head = begins + document(replace(report, blocks=()))
    parts = ["\n" + document(Report("", "", (block,))) for block in report.blocks]
    room = limit - held - _size(head)
    if sum(map(_size, parts)) <= room:
        return head + "".join(parts) if room >= 0 else ""
    last = _left_out(len(parts), len(parts))
    room -= _size(last)
    if room < 0:
        return ""
    kept = []
    for part in parts:  # a part that is too large does not keep the next one out
        if _size(part) <= room:
            kept.append(part)
            room -= _size(part)
    return head + "".join(kept) + _left_out(len(parts) - len(kept), len(parts))


def _left_out(count: int, of: int) -> str:
    parts = f"{'part' if of == 1 else 'parts'} {'is' if count == 1 else 'are'}"
    return "\n" + document(Report("", "", (Note(SENTENCE.format(count, of, parts)),)))


def _size(text: str) -> int:
    return len(text.encode())
