"""`python -m tests.fuzz --examples 10000 [--kinds records configs]`: many tries; a finding is told when it is new.

Seeded: the same numbers try the same.
"""

import argparse
import gc
import re
import shlex
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

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
    n_findings = 0
    with tempfile.TemporaryDirectory(prefix="attnviz-fuzz-") as folder:
        arena = Arena(Path(folder))
        # See there: locks of threads are copied as they are.
        assert threading.active_count() == 1, threading.enumerate()
        for kind in asked.kinds:
            arena.attempted = 0
            began = time.monotonic()
            findings = fuzz(arena, kind, asked)
            n_findings += len(findings)
            seconds = time.monotonic() - began
            print(f"{kind}: {arena.attempted:,} tries in {seconds:,.0f} s, findings: {findings.total()}", flush=True)
    raise SystemExit(bool(n_findings))


def fuzz(arena: Arena, kind: str, asked: argparse.Namespace) -> Counter[str]:
    """How often each finding, numbers and names left out."""
    findings: Counter[str] = Counter()

    @seed(asked.seed)
    @settings(
        max_examples=asked.examples // len(asked.kinds),
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(KINDS[kind](arena))
    def attempt(each: Attempt) -> None:
        for said in arena.broken(each):
            like = re.sub(r"[0-9]+|'[^']*'", "…", said)[:240]
            findings[like] += 1
            if findings[like] == 1:
                command = f"attnviz {shlex.join(each.args)}"[:1500]
                told = f"{kind}, try {arena.attempted}: {said}\n    {each.file} {command}"
                print(told.encode("utf-8", "backslashreplace").decode(), flush=True)

    attempt()
    return findings


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        main()
