"""The first screen of a text's maps: which heads do what, and who looks at whom. Knows records and `report`.

Heads stand together by what they do, the clearest first. The weight table has a row per token and a column for each
kind of head, in its clearest head: so that a reader sees what a kind of head does to these words, not 16 numbers of
16 heads. There are as many columns as cells that can be read at a glance.
"""

from collections import defaultdict
from collections.abc import Iterator
from math import isnan

import numpy as np

from attnviz.display import escape_for_display, list_first
from attnviz.measures.shown import Findings, RecordPart
from attnviz.records import AttentionMaps
from attnviz.records.head_names import NO_NAME, SINKS, HeadPattern, write_share
from attnviz.records.part import Place
from attnviz.report import Column, Note, Table, TextAnswer
from attnviz.views.head_pictures import is_mean, name_head
from attnviz.views.tokens import label_keys, label_queries

MAX_TOKENS, MAX_COLUMNS, MAX_CELLS = 10, 5, 20  # of the weight table
MAX_KINDS = 6
MAX_HEADS = 8  # named in all: two of a kind, and of the last ones only the clearest where there are many kinds
MAX_LABEL = 12  # graphemes of a token
N_WORDS = 3  # that an answer depends on
BY_CARD = "Heads are named by what they do over many texts; shares are of this one."
BY_TEXT = "Heads are named by this text alone; attnviz survey reads many."
MORE = "All tokens and heads: --table heads, heatmap, top or full."


def describe_names(maps: AttentionMaps, measured: Findings) -> tuple[str, ...]:
    """Say what heads are named by; nothing where none that is shown has a name."""
    named = any(measured.names[layer][head].pattern for layer, head in measured.order)
    return (BY_CARD if maps.heads_alone.known_heads else BY_TEXT,) if named else ()


def describe_answer(maps: AttentionMaps, answer: TextAnswer) -> Note:
    """Say what a model answers to a text, and what without each of the words that this depends on most."""

    def write(value: float) -> str:
        return write_share(value) if answer.is_probability else f"{value:.3g}"

    told = sorted(range(len(answer.words)), key=lambda place: -abs(answer.words[place]))[:N_WORDS]
    names = label_keys(maps)
    without = [(_write_word(names[place]), write(answer.value - answer.words[place])) for place in told]
    words = ", ".join(f"{word} {value}" for word, value in without if value != write(answer.value))
    said = f"{answer.label} without {words}" if words else "no word alone changes it"
    found = "Answer" if answer.is_clear else "No clear answer"
    return Note(f"{found}: {answer.label} {write(answer.value)}; {said}.", leads=True)


def describe_heads(maps: AttentionMaps, measured: Findings) -> Iterator[Note]:
    """Yield what the heads at some places do, by kind, and which pairs of tokens that are no neighbours stand out."""
    kinds, here, said = _group_by_kind(measured), dict[str, tuple[float, Place]](), []
    for layer, head in measured.order:
        if not measured.names[layer][head].pattern:  # of those the clearest head of each pattern in this text
            pattern, share, _ = measured.here[layer][head]
            here[pattern] = max(here.get(pattern, (0.0, (0, 0))), (share, (layer, head)))
    for place, (kind, named) in enumerate([*kinds.items()][:MAX_KINDS]):
        n_named = 2 if place < MAX_HEADS - min(len(kinds), MAX_KINDS) else 1
        heads = [f"{name_head(maps, head)} {write_share(name.share)}".rstrip() for name, head in named]
        none = " (none in this text)" if isnan(named[0][0].share) else ""
        also = f", here also {name_head(maps, here[kind][1])} {write_share(here[kind][0])}" if kind in here else ""
        said.append(f"{kind} {list_first(heads, n_named)}{none}{also}")
    if len(kinds) > MAX_KINDS:
        said.append(f"{len(kinds) - MAX_KINDS} more kinds")
    n_nameless = sum(not is_mean(maps, place) for place in measured.order) - sum(map(len, kinds.values()))
    if kinds:
        nameless = [f"{NO_NAME} in {n_nameless}"] if n_nameless else []
        yield Note(f"{' · '.join([*said, *nameless])}.", leads=True)
    queries, keys = label_queries(maps), label_keys(maps)
    pairs = [
        f"{_write_word(queries[pair.query])} → {_write_word(keys[pair.key])} "
        f"{write_share(pair.weight)} ({name_head(maps, pair.place)})"
        for pair in measured.pairs
    ]
    if pairs:
        yield Note(f"Strongest between words apart: {', '.join(pairs)}.", leads=True)
    yield from (Note(names, leads=True) for names in describe_names(maps, measured))


def tabulate_answer(part: RecordPart, measured: Findings) -> Table:
    """Make the weight table: a row per token, a column per kind of head, in each cell the key it looks at most.

    Where no head has a name, the columns are the first heads.
    """
    maps, tokens = part.maps, part.tokens.asking
    queries = [query for query in tokens.queries if maps.real_queries[query]][:MAX_TOKENS]
    groups = _group_by_kind(measured)
    shown = [(kind, named[0][1]) for kind, named in groups.items() if not isnan(named[0][0].share)]
    telling = [each for each in shown if each[0] not in SINKS]
    chosen = telling or shown or [("head", place) for place in measured.order]
    chosen = chosen[: min(MAX_COLUMNS, max(1, MAX_CELLS // max(1, len(queries))))]
    keys, names = label_keys(maps), label_queries(maps)
    rows = [[escape_for_display(names[query], MAX_LABEL)] for query in queries]
    for _, (layer, head) in chosen:
        weights = maps.rows(layer, head, np.array(queries))[:, tokens.keys]
        for row, of_query in zip(rows, weights, strict=True):
            best = int(of_query.argmax())
            key = escape_for_display(keys[tokens.keys[best]], MAX_LABEL)
            weight = f"{of_query[best]:.2f}".removeprefix("0")
            row.append(f"{key} {weight}" if of_query[best] > 0 else "")
    columns = (Column("token"), *(Column(kind, name_head(maps, place)) for kind, place in chosen))
    return Table("answer", "", "answer", columns, tuple(map(tuple, rows)), more=MORE)


def _write_word(label: str) -> str:
    """Write a token into a sentence, in which a mark would be taken for one of the sentence."""
    word = escape_for_display(label, MAX_LABEL)
    return word if any(map(str.isalnum, word)) else f"“{word}”"


def _group_by_kind(measured: Findings) -> dict[str, list[tuple[HeadPattern, Place]]]:
    """Group the heads that have a name by what it is: first what this text shows most, sinks last."""
    found = defaultdict(list)
    for layer, head in measured.order:
        if (name := measured.names[layer][head]).pattern:
            found[name.pattern].append((name, (layer, head)))

    def order(each: tuple[HeadPattern, Place]) -> tuple[bool, bool, float]:
        return each[0].pattern in SINKS, isnan(each[0].share), -each[0].share

    several = {kind: sorted(of_kind, key=order) for kind, of_kind in found.items()}
    return dict(sorted(several.items(), key=lambda item: order(item[1][0])))
