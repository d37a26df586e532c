"""From a record to a report and its pictures: what commands that draw records share."""

import shlex
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from attnviz import store
from attnviz.bounded import check_room, is_file
from attnviz.errors import InvalidOption, InvalidSelection
from attnviz.measures import choose_measures, parse_sort
from attnviz.measures.rows import MAX_DRAWN_WEIGHTS, MAX_SIDE
from attnviz.measures.shown import choose_from_record
from attnviz.measures.words import check_segmenter
from attnviz.models.sizes import BASE, ONE_TOKEN
from attnviz.options import find_changed
from attnviz.records import AttentionMaps
from attnviz.records.attribution import CoverTest
from attnviz.report import LazyRows, Note, RenderedFrom, Row, TextAnswer
from attnviz.running import Progress, Result
from attnviz.running.pictures import Pictures
from attnviz.specs import FigureOptions, PrintOptions
from attnviz.store.manifest import TextNumbers
from attnviz.views.answer import describe_answer
from attnviz.views.data import choose_heads
from attnviz.views.heatmap import heatmap_report
from attnviz.views.patches import add_cover_test, find_look
from attnviz.views.tables import measures_rows, weights_rows

MAX_PICTURES = 500  # of heads that nobody chose; 24 layers of 16 are 384
DRAWN_CELL_BYTES, POOLED_CELL_BYTES = 16, 32  # bytes for each cell of a picture, measured from above
COPIES = 3  # of a record of q and k: itself, its file, and what rows are worked out from
HEAD_OPTIONS = ("layer", "head", "pick")  # options that choose them
# Of the options of a picture those that a page lets its reader choose, those that change no picture or add others.
OPTIONS_NOT_REPLAYED = {*HEAD_OPTIONS, "scale", "kind", "format", "out", "open", "table", "top_k", "measure", "sort"}
OPTIONS_NOT_REPLAYED |= {"rollout", "all_heads"}
# What those of a record are called.
PICTURES = ("layer-*", "overview", "worth-a-look", "query-*", "rollout", "attention")


@dataclass(frozen=True)
class Drawing:
    """How to draw records, checked before any work is done. Raises InvalidOption."""

    spec: FigureOptions
    pictures: Pictures
    lists_weights: bool = False  # as rows of the result, in place of measures
    # From a record, layers and heads to the answer to its text.
    ask: Callable[[AttentionMaps, Sequence[tuple[int, int]]], TextAnswer | None] | None = None
    known_heads: str = ""  # see `ModelReference`
    # From what is looked at in an image, and the queries that do, to what is lost without.
    cover: Callable[[np.ndarray, Sequence[int]], CoverTest | None] | None = None

    @classmethod
    def from_options(cls, spec: FigureOptions, printing: PrintOptions = PrintOptions()) -> "Drawing":  # noqa: B008 - frozen
        """Build a drawing from options. Raises InvalidOption also for a measure or an order that does not exist."""
        if spec.pick and (spec.layer or spec.head):
            raise InvalidOption("--pick names layers and heads by itself", hint="Leave out --layer and --head.")
        if spec.merge == "phrases":
            check_segmenter()
        choose_measures(spec.measure)
        if spec.sort is not None:
            parse_sort(spec.sort)
        lists_weights = printing.kind == "csv" and spec.table == "full"
        return cls(spec, Pictures.from_options(spec, PICTURES, store.RECORD), lists_weights)

    def draw(self, maps: AttentionMaps, folder: Path, with_record: bool = True) -> Generator[Progress, None, Result]:
        """Write every picture of one record into `folder`, and the record.

        Raises InvalidSelection for a layer or head that is not there and where all tokens would be hidden,
        InvalidOption for what this record does not have, TooLarge for more rows of weights than a spreadsheet has,
        OutputError when the disk refuses.
        """
        self.check_number(maps.n_layers, maps.n_heads)
        records = {store.RECORD: maps} if with_record else None
        part = choose_from_record(maps, self.spec)
        for done, layer in enumerate(part.walk()):
            label = f"weights of layer {part.maps.layer_numbers[layer]}"
            yield Progress(done, len(part.layers), "layers", label=label)
        measured = part.measure(self.spec)
        maps, layers, heads, found = part.maps, part.layers, part.heads, measured.numbers
        rows: Iterable[Row] = LazyRows(lambda: measures_rows(maps, found, part.places))
        if self.lists_weights:
            rows = weights_rows(part)
        report = heatmap_report(part, measured, self.spec)
        if with_record or is_file(folder / store.RECORD):
            report = replace(report, render=self._describe_command())
        if self.known_heads:
            report = replace(
                report,
                hint=(*report.hint, self.known_heads),
                blocks=(Note(self.known_heads, leads=True), *report.blocks),
            )
        if self.ask is not None and report.screen:
            yield Progress(0, 1, "answers", label="the answer without each word, and without each head")
            answer = self.ask(maps, report.screen)
            first = [describe_answer(maps, answer)] if answer else []
            report = replace(report, answer=answer, blocks=(*first, *report.blocks))
        if self.cover is not None and maps.grid is not None:
            yield Progress(0, 1, "answers", label="the answer with parts of the image covered")
            test = self.cover(*find_look(part))
            report = report if test is None else add_cover_test(report, test, maps, part.places)
        drawn = yield from self.pictures.write(report, folder, records)
        names: dict[str, list[int | str | None]] = {"head": [maps.head_names[head] for head in heads], "layer": [None]}
        numbers = []
        for level, of in names.items():
            values = {m.name: choose_heads(m.values, layers, heads).ravel().tolist() for m in found if m.level == level}
            of_layers = [maps.layer_numbers[layer] for layer in layers for _ in of]
            numbers += [TextNumbers(maps.provenance.text_name, values, of_layers, of * len(layers))] if values else []
        return replace(drawn, is_text=True, rows=rows, numbers=tuple(numbers))

    def _describe_command(self) -> RenderedFrom | None:
        """Return the command that draws the same from the record beside it; None if a part was chosen already."""
        if self.spec.query or self.spec.key:
            return None
        values = find_changed(self.spec)
        heads = " ".join(_write_flag(name, each) for name in HEAD_OPTIONS for each in values.get(name, ()))
        others = {name: value for name, value in values.items() if name not in OPTIONS_NOT_REPLAYED}
        return RenderedFrom(store.RECORD, heads, " ".join(_write_flag(name, value) for name, value in others.items()))

    def check_number(self, n_layers: int, n_heads: int) -> None:
        """Check the number of pictures. Raises InvalidSelection for very many that nobody chose."""
        chosen = self.spec.layer or self.spec.head or self.spec.pick
        if n_layers * n_heads > MAX_PICTURES and self.spec.all_heads and not chosen:
            raise InvalidSelection(
                f"--all-heads would draw {n_layers * n_heads:,} pictures, at most {MAX_PICTURES} are drawn at once",
                hint=f"Choose with --layer or --head; --head 0-{n_heads - 1} draws all.",
            )


def _write_flag(name: str, value: object) -> str:
    flag = f"--{name.replace('_', '-')}"
    return flag if value is True else f"{flag} {shlex.quote(str(value))}"


def check_factored_room(sizes: tuple[int, int, int], n_bytes: int, max_memory: float) -> None:
    """Check that a record of q and k, of so many heads, queries and keys, and its pictures fit. Raises TooLarge."""
    n_heads, n_queries, n_keys = sizes
    cells = n_heads * n_queries * n_keys
    shown = DRAWN_CELL_BYTES * cells
    if cells > MAX_DRAWN_WEIGHTS:
        shown = POOLED_CELL_BYTES * min(n_heads * MAX_SIDE**2, MAX_DRAWN_WEIGHTS)
    needed = BASE + COPIES * n_bytes + ONE_TOKEN * n_queries + shown
    check_room(f"q and k of {n_queries:,} tokens, and pictures of {n_heads} heads,", needed, max_memory)
