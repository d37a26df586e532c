"""The report on a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attnviz.display import escape_for_display
from attnviz.report import Column, Note, Report, Table

N_LISTED = 10


@dataclass(frozen=True)
class Coverage:
    """How much of texts that a vocabulary was not made from it knows."""

    where: str
    n_tokens: int
    n_known: int

    @property
    def share(self) -> float:
        """The share of the tokens that the vocabulary holds."""
        return self.n_known / self.n_tokens if self.n_tokens else 0.0


def vocabulary_report(
    *,
    corpus: str,
    n_texts: int,
    entries: Mapping[str, int],
    counts: Mapping[str, int],
    coverage: Coverage | None,
    sha256: str,
) -> Report:
    """Show size, coverage, and the commonest and rarest entries with how often they occur in the corpus."""
    learned = [(entry, count) for entry, count in counts.items() if entry in entries and not _is_special(entry)]
    ordered = sorted(learned, key=lambda pair: (-pair[1], entries[pair[0]]))
    facts: list[tuple[str, str | int | float]] = [
        ("entries", len(entries)),
        ("texts", n_texts),
        ("tokens", sum(counts.values())),
    ]
    if coverage is not None:
        facts += [
            ("coverage (share of tokens known)", coverage.share),
            ("measured on", escape_for_display(coverage.where, 200)),
        ]
    name = escape_for_display(corpus, 200)
    return Report(
        title=f"vocabulary of {name}",
        subtitle=f"sha256 {sha256[:12]}…",
        blocks=(
            Table("facts", "size and coverage", "facts", (Column("what"), Column("value", digits=4)), tuple(facts)),
            _entries_table("commonest", ordered[:N_LISTED]),
            _entries_table("rarest", ordered[-N_LISTED:][::-1]),
            *(() if coverage else (Note("Coverage was not measured: there are fewer than ten texts."),)),
        ),
        data={
            "corpus": corpus,
            "texts": n_texts,
            "entries": len(entries),
            "tokens": sum(counts.values()),
            "coverage": coverage and {"share": coverage.share, "tokens": coverage.n_tokens, "where": coverage.where},
            "commonest": [list(pair) for pair in ordered[:N_LISTED]],
            "rarest": [list(pair) for pair in ordered[-N_LISTED:][::-1]],
            "sha256": sha256,
        },
    )


def _is_special(entry: str) -> bool:
    return entry.startswith("[") and entry.endswith("]") and len(entry) > 2


def _entries_table(name: str, pairs: list[tuple[str, int]]) -> Table:
    rows = tuple((escape_for_display(entry), count) for entry, count in pairs)
    return Table(name, f"{name} entries", "facts", (Column("entry"), Column("count", digits=0)), rows)
