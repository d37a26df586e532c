"""With how many threads the program computes, and that the number of cores is no matter."""

from __future__ import annotations

from tests.attacks.endings import worked
from tests.process import RunCli

ASKED = ("heatmap", "--text", "the film 猫 😀 שלום", "--heads", "2", "--dpi", "40", "--json")


def test_one_thread_unless_told_otherwise(run_cli: RunCli) -> None:
    """Of this text two threads give other last bits."""
    by_itself, one, two = (worked(run_cli(*ASKED, env={"OMP_NUM_THREADS": n})).out for n in (None, "1", "2"))
    assert by_itself == one
    assert by_itself != two
