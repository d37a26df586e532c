"""`python -m tests.fuzz --examples 10000 [--kinds records configs]`: many tries, and all findings at the end.

Seeded: the same numbers try the same. Each finding is told with the shortest command line that showed it.
"""

from __future__ import annotations

import argparse
import gc
import re
import tempfile
import time
import warnings
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.kinds import KINDS, Arena, Attempt
from tests.fuzz.preparation import prepare


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=10_000, help="of all kinds together")
    parser.add_argument("--kinds", nargs="*", choices=sorted(KINDS), default=list(KINDS), metavar="KIND")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    prepare()
    gc.collect()
    gc.freeze()  # so that forks share it
    found = 0
    with tempfile.TemporaryDirectory(prefix="attnviz-fuzz-") as folder:
        arena = Arena(Path(folder))
        for kind in asked.kinds:
            arena.attempted = 0
            began = time.monotonic()
            findings = tried(arena, KINDS[kind](arena), asked.examples // len(asked.kinds), asked.seed)
            seconds = time.monotonic() - began
            print(f"{kind}: {arena.attempted:,} tries in {seconds:,.0f} s, {len(findings)} findings", flush=True)
            for said, (times, attempt) in findings.items():
                data = f"\n    {attempt.file}: {attempt.data[:3000]!r}" if attempt.file else ""
                print(f"  {times} × {said[:300]}\n    {' '.join(map(repr, attempt.args))[:1500]}{data}", flush=True)
            found += len(findings)
    raise SystemExit(bool(found))


def tried(
    arena: Arena, attempts: st.SearchStrategy[Attempt], n_examples: int, number: int
) -> dict[str, tuple[int, Attempt]]:
    """Each finding, numbers and names left out: how often, and the shortest attempt."""
    findings: dict[str, tuple[int, Attempt]] = {}

    @seed(number)
    @settings(
        max_examples=n_examples,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(attempts)
    def attempt(each: Attempt) -> None:
        for said in arena.broken(each):
            like = re.sub(r"[0-9]+|'[^']*'", "…", said)[:160]
            times, before = findings.get(like, (0, each))
            shorter = min(before, each, key=lambda one: len(one.data) + len(" ".join(one.args)))
            findings[like] = (times + 1, shorter)

    attempt()
    return findings


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        main()
