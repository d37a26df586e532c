"""A made-up atlas of six heads that tests share."""

from math import nan
from typing import Any

from attnviz.report import Atlas, Column, Report, Table

WORDS = (" the", " film", " was", " long", ",", " the", " film", " was", " <b>good</b>", ".")
REACH = 3
TEXT = {
    "title": "sample train[7]",
    "options": "--dataset sample --index 7",
    "positions": (*range(4), *range(10, 16)),
    "tokens": WORDS,
}
INDUCTION, PREVIOUS = "induction on repeated tokens", "previous token"
NAMES: dict[int, tuple[tuple[str, str], ...]] = {
    1: ((PREVIOUS, "93 %"),),
    4: (("first token", "61 %"), (INDUCTION, "88 %")),
}


def moment(title: str, query: int = 14, weights: tuple[float, ...] = (0.02, 0.9, 0.01, 0.0)) -> dict[str, Any]:
    where = {"kind": title, "text": 0, "query": query, "keys": (1, 2, 13, 14), "weights": weights}
    return where | {"n_keys": 15, "to_first": 0.07, "effective_keys": 1.4}


def head(place: int) -> dict[str, Any]:
    curve = [0.05] * (2 * REACH + 1)
    curve[REACH - 1] = 0.1 * (place + 1)
    words = {0: (("was", 2.0, 60),), 2: (("film", 3.0, 40), ("good", 2.0, 25)), 5: (("was", 4.0, 60),)}.get(place, ())
    moments = (*(moment("strongest") for _ in range(6)), *(moment("random", 11) for _ in range(6)))
    facts = (("worth, replaced by zero", "+0.0210 of the right answer"),) if place == 1 else ()
    found = {"layer": place // 3, "head": place % 3, "names": NAMES.get(place, ()), "curve": curve}
    return found | {"words": words, "facts": facts, "moments": moments}


def atlas() -> Atlas:
    to_previous = (0.1, 0.9, 0.2, 0.3, 0.05, 0.2)
    names = ("title", "unit", "about", "values", "halves", "equal", "chance")
    measures = (
        ("entropy", "nats", "how widely", (1.0, 2.0, 1.5, 0.5, 0.2, 1.1), (0.1,) * 6, nan, nan),
        ("to previous", "share", "the position before", to_previous, (0.01,) * 6, 0.1, 0.15),
        (INDUCTION, "share", "on random tokens", (0.0, 0.1, nan, 0.2, 0.88, 0.0), (), nan, 0.04),
    )
    commands = (
        ("Draw this", "attnviz heatmap {options} --model m --pick {head} --query {query}"),
        ("What each head is worth", "attnviz survey --dataset sample --model m --ablate zero"),
    )
    return {
        "measures": [dict(zip(names, measure, strict=True)) for measure in measures],
        "axes": (1, 2),
        "letters": {PREVIOUS: "P", "first token": "F", INDUCTION: "I"},
        "heads": [*map(head, range(6))],
        "texts": [TEXT],
        "equal": (0.1,) * (2 * REACH + 1),
        "commands": commands,
        "first": "1.1",
    }


def atlas_report(**changed: Any) -> Report:
    """The atlas, some of whose parts are changed, beside a table."""
    columns = (Column("layer"), Column("head"), Column("entropy"))
    rows = tuple((place // 3, place % 3, 0.5 * place) for place in range(6))
    tables = (Table("heads", "Each head", "heads", columns, rows),)
    return Report("m over sample", "six heads", tables, atlas=atlas() | changed)
