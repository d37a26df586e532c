"""A made-up atlas of six heads that tests share."""

from __future__ import annotations

from math import nan

from attnviz.report import Atlas, AtlasHead, AtlasMeasure, AtlasText, AttentionMoment, Column, Report, Table

WORDS = (" the", " film", " was", " long", ",", " the", " film", " was", " <b>good</b>", ".")
REACH = 3
TEXT = AtlasText("sample train[7]", "--dataset sample --index 7", (*range(4), *range(10, 16)), WORDS)
INDUCTION, PREVIOUS = "induction on repeated tokens", "previous token"
NAMES: dict[int, tuple[tuple[str, str], ...]] = {
    1: ((PREVIOUS, "0.93"),),
    4: (("first token", "0.61"), (INDUCTION, "0.88")),
}


def moment(title: str, query: int = 14, weights: tuple[float, ...] = (0.02, 0.9, 0.01, 0.0)) -> AttentionMoment:
    return AttentionMoment(title, 0, query, (1, 2, 13, 14), weights, 15, 0.07, 1.4)


def head(place: int) -> AtlasHead:
    curve = [0.05] * (2 * REACH + 1)
    curve[REACH - 1] = 0.1 * (place + 1)
    words = (("film", 3.0, 40), ("good", 2.0, 25)) if place == 2 else ()
    moments = (*(moment("strongest") for _ in range(6)), *(moment("random", 11) for _ in range(6)))
    facts = (("worth, replaced by zero", "+0.0210 of the right answer"),) if place == 1 else ()
    return AtlasHead(place // 3, place % 3, NAMES.get(place, ()), tuple(curve), words, moments, facts)


def atlas() -> Atlas:
    to_previous = (0.1, 0.9, 0.2, 0.3, 0.05, 0.2)
    measures = (
        AtlasMeasure("entropy", "nats", "how widely", (1.0, 2.0, 1.5, 0.5, 0.2, 1.1), (0.1,) * 6),
        AtlasMeasure("to previous", "share", "the position before", to_previous, (0.01,) * 6, 0.1, 0.15),
        AtlasMeasure(INDUCTION, "share", "on random tokens", (0.0, 0.1, nan, 0.2, 0.88, 0.0), (), nan, 0.04),
    )
    commands = (
        ("Draw this", "attnviz heatmap {options} --model m --pick {head} --query {query}"),
        ("What each head is worth", "attnviz survey --dataset sample --model m --ablate zero"),
    )
    return Atlas(
        measures=measures,
        axes=(1, 2),
        heads=tuple(map(head, range(6))),
        letters=((PREVIOUS, "P"), ("first token", "F"), (INDUCTION, "I")),
        texts=(TEXT,),
        equal_by_offset=(0.1,) * (2 * REACH + 1),
        words=(("was", 60, ((5, 4.0), (0, 2.0))),),
        commands=commands,
    )


def atlas_report() -> Report:
    """The atlas beside a table of its own, and one that the atlas shows."""
    columns = (Column("layer"), Column("head"), Column("entropy"))
    rows = tuple((place // 3, place % 3, 0.5 * place) for place in range(6))
    own = Table("heads", "Each head", "heads", columns, rows)
    tables = (own, Table("words", "Words", "facts", columns, rows, in_atlas=True))
    return Report("m over sample", "six heads", tables, atlas=atlas())
