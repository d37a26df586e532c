"""A batch in words for those who read of it on a server."""

from __future__ import annotations

from attnviz.commands.batch.run import batch_report
from attnviz.report import Note
from attnviz.store.manifest import Entry, File, Manifest

MADE = Entry("a", "heatmap", {}, "f", {}, (), ("1 character has no glyph",), (File("a/x.png", "00", 7),))
FAILED = Entry("b", "heatmap", {}, "", {}, (), (), (), error="no tokens\x1b[31m in text 0")
BOTH = Manifest({"figures.yaml": "00"}, {}, (MADE, FAILED))


def test_how_each_job_ended_and_why() -> None:
    report = batch_report(BOTH, {"a": "made", "b": "failed"}, "figures")
    assert report.title == "2 jobs, 1 failed"
    (table,) = report.tables
    assert table.rows == (
        ("a", "heatmap", "made", 1, ""),
        ("b", "heatmap", "failed", 0, "no tokens\\x1b[31m in text 0"),
    )
    assert [block.text for block in report.blocks if isinstance(block, Note)] == ["a: 1 character has no glyph"]
    assert batch_report(Manifest({}, {}, (MADE,)), {"a": "unchanged"}, "out").title == "1 job, all done"
