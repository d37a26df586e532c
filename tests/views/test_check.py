"""A check in words, for people and for servers."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from attnviz.differences import BatchDiff, Difference, Kind
from attnviz.renderers import json as as_json
from attnviz.renderers.terminal import HIDDEN
from attnviz.report import Report
from attnviz.specs.batch import CheckSpec
from attnviz.views.check import KINDS, MAX_JOBS, check_cases, check_report, describe
from tests.made import HOSTILE

SAME = BatchDiff(("a", "b"), (), n_numbers=16, n_files=8)
SPEC = CheckSpec(folder="figures", baseline="baseline")
NUMBER = Difference("number", "a", "", "a text", "entropy", 0, 1, 1.25, 1.5)


def words(report: Report) -> str:
    return " ".join(note.text for note in report.notes)


def test_where_nothing_differs_it_says_how_much_was_compared() -> None:
    report = check_report(SAME, SPEC)
    assert report.title == "2 jobs, none differs from the baseline"
    assert list(report.tables) == []
    assert words(report) == "Compared: 16 numbers (may differ by 0.0001) and 8 files (pictures by 0 of 255)."
    assert report.data["same"] is True
    assert [case.findings for case in check_cases(SAME)] == [(), ()]


def test_jobs_that_differ_are_listed_with_the_largest_difference() -> None:
    found = (
        NUMBER,
        replace(NUMBER, head=0, actual=0.25),
        Difference("picture", "a", "a/x.png", expected=0.0, actual=3.0),
    )
    report = check_report(replace(SAME, differences=(*found, Difference("missing job", "b"))), SPEC)
    assert report.title == "2 of 2 jobs differ from the baseline"
    (table,) = report.tables
    assert table.rows == (("a", "differs", 2, 1.0, 1, 0), ("b", "missing", 0, "", 0, 0))
    assert "2 numbers differ, such as in a, entropy of layer 0, head 0 in a text: 1.250000 became 0.250000." in words(
        report
    )
    assert "1 job is missing: b." in words(report)


def test_more_jobs_than_a_screen_holds_are_counted() -> None:
    jobs = tuple(f"job-{n}" for n in range(MAX_JOBS + 3))
    differences = tuple(replace(NUMBER, job=job) for job in jobs)
    report = check_report(replace(SAME, jobs=jobs, differences=differences), SPEC)
    (table,) = report.tables
    assert len(table.rows) == MAX_JOBS
    assert "3 more jobs differ and are not listed." in words(report)
    assert len(check_cases(replace(SAME, jobs=jobs, differences=differences))) == MAX_JOBS + 3


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (NUMBER, "entropy of layer 0, head 1 in a text: 1.250000 became 1.500000"),
        (
            Difference("heads", "a", "", "t", "peak", expected="1 layer of 2 heads", actual="1 layer of 4 heads"),
            "peak in t: 1 layer of 2 heads became 1 layer of 4 heads",
        ),
        (Difference("missing numbers", "a", "", "t", "peak"), "peak in t is in the baseline only"),
        (Difference("new numbers", "a", "", "t"), "t is not in the baseline"),
        (
            Difference("picture", "a", "a/x.png", expected=0.0, actual=3.25, said="1,234 pixels"),
            "x.png: 1,234 pixels differ, by 3.25 of 255 (root mean square)",
        ),
        (
            Difference("picture", "a", "a/x.png", expected="3 × 4 pixels", actual="3 × 5 pixels", said="another size"),
            "x.png: another size, 3 × 4 pixels became 3 × 5 pixels",
        ),
        (
            Difference("record", "a", "a/r", "", "weight", 0, 1, 0.25, 0.5, "query 2, key 3"),
            "r: weights differ, most at layer 0, head 1, query 2, key 3: 0.250000 became 0.500000",
        ),
        (Difference("record", "a", "a/r", said="token 0 is 'x' in A"), "r: token 0 is 'x' in A"),
        (Difference("file", "a", "a/x.pdf", expected="00", actual="11"), "x.pdf has other bytes"),
        (Difference("missing file", "a", "a/x.pdf"), "x.pdf is in the baseline only"),
        (Difference("new file", "a", "elsewhere/x.pdf"), "elsewhere/x.pdf is not in the baseline"),
        (Difference("changed file", "a", "a/x.pdf", said="in the baseline is gone"), "x.pdf in the baseline is gone"),
        (Difference("missing job", "a"), "it is in the baseline only"),
        (Difference("new job", "a"), "it is not in the baseline"),
        (Difference("failed job", "a", expected="", actual="no text"), "it failed: no text"),
        (Difference("failed job", "a", expected="no text", actual=""), "in the baseline it failed: no text"),
    ],
)
def test_each_kind_in_words(difference: Difference, said: str) -> None:
    assert describe(difference) == said


def test_every_kind_has_words() -> None:
    assert set(KINDS) == set(get_args(Kind))


def test_why_it_may_be_is_told_of_jobs_that_differ() -> None:
    causes = {"a": ("other settings (seed)", "other texts"), "b": ("other texts",)}
    report = check_report(
        replace(SAME, differences=(NUMBER,), causes=causes, versions=(("torch", "2.12", "2.13"),)), SPEC
    )
    assert "a was made otherwise: other settings (seed), other texts." in words(report)
    assert "b was made" not in words(report)
    assert "Made by other versions: torch 2.12 → 2.13." in words(report)


def test_cases_have_a_finding_for_each_kind_and_the_config_as_their_file() -> None:
    found = (NUMBER, replace(NUMBER, head=0), Difference("new file", "a", "a/x"))
    first, second = check_cases(replace(SAME, differences=found, failed_alike=("b",), config="figures.yaml"))
    assert [(each.title, each.level, each.file) for each in first.findings] == [
        ("a: 2 numbers differ", "error", "figures.yaml"),
        ("a: 1 file is new", "error", "figures.yaml"),
    ]
    assert first.findings[0].message.endswith("became 1.500000 (and 1 more)")
    assert (second.failed, second.findings[0].level) == (False, "warning")


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_is_anything_but_a_name(text: str) -> None:
    kinds = [Difference(kind, text, text, text, text, 0, 0, text, text, text) for kind in get_args(Kind)]
    diff = replace(
        SAME,
        jobs=(text,),
        differences=tuple(kinds),
        causes={text: (text,)},
        versions=((text, text, text),),
        config=text,
        failed_alike=(text,),
    )
    report = check_report(diff, replace(SPEC, folder=text))
    cells = [str(cell) for table in report.tables for row in table.rows for cell in row]
    told = [report.title, report.subtitle, *cells, *(note.text for note in report.notes)]
    assert b"".join(as_json.alone(report)).isascii()
    findings = [finding for case in check_cases(diff) for finding in case.findings]
    for said in (*told, *(text for each in findings for text in (each.title, each.message, each.file))):
        assert not HIDDEN.search(said)
        assert len(said) < 1500
