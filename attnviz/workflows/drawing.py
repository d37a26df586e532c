"""From a report to pictures on disk, and from a record to both: what commands that draw share."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from filecmp import cmp
from functools import partial
from pathlib import Path

from attnviz import store
from attnviz.errors import InvalidOption, InvalidSelection
from attnviz.measures.measured import chosen, measured
from attnviz.measures.rows import MAX_DRAWN, MAX_SIDE
from attnviz.models.sizes import BASE, ONE_TOKEN, check_room
from attnviz.records import AttentionMaps, Measurement
from attnviz.registry import find, load
from attnviz.renderers import RENDERERS, Renderer
from attnviz.renderers.figure.files import annotated, check_look, undrawable
from attnviz.report import FigureStyle, LazyRows, Report
from attnviz.result import Progress, Result
from attnviz.selection import numbers
from attnviz.specs.output import FigureOptions
from attnviz.text.corpus import typed
from attnviz.views.data import chosen_heads
from attnviz.views.heatmap import heatmap_report
from attnviz.views.pooled_maps import walk_for_pictures
from attnviz.views.tables import measures_rows, ordering

MAX_PICTURES = 500  # heads that nobody chose; 24 layers of 16 are 384
UNITS = {"in": 1.0, "mm": 25.4, "cm": 2.54, "pt": 72.0}  # to an inch
LENGTH = re.compile(rf"([0-9]{{1,4}}(?:\.[0-9]{{1,6}})?)\s*({'|'.join(UNITS)})")
MAX_WIDTH = 40  # inches
ONE_DRAWN, ONE_POOLED = 16, 32  # bytes for each cell of a picture, measured from above
COPIES = 3  # of a record of q and k: itself, its file, and what rows are worked out from
LARGE = 5_000_000  # bytes of a file: its size is said before it is written
PAGE = "html"  # the format that --open shows
DIGEST = re.compile("[0-9a-f]{8,64}")
IDENTITY = ("revision", "text sha256", "texts sha256", "status of ")  # facts that say of what a picture is
# What those of a record are called.
PICTURES = ("layer-*-head-*", "overview", "query-*", "rollout", "distance*", "attention")


@dataclass(frozen=True)
class Pictures:
    """How reports become pictures, checked before any work is done. Raises InvalidOption."""

    renderers: tuple[Renderer, ...]
    look: FigureStyle
    names: tuple[str, ...]  # patterns of what ours are called, to tell those of an earlier run
    records: str  # and of the records that they show

    @classmethod
    def of(cls, spec: FigureOptions, names: tuple[str, ...], records: str) -> Pictures:
        """Check how to draw. Raises InvalidOption."""
        if spec.columns is not None and spec.columns < 1:
            raise InvalidOption(f"--columns {spec.columns} is too small", hint="It is at least 1.")
        formats = [name.strip().lower() for item in spec.format for name in item.split(",")]
        if spec.open:
            formats.append(PAGE)
        renderers = tuple(load(find(RENDERERS, name, "format")) for name in dict.fromkeys(formats))
        look = FigureStyle(
            cmap=spec.cmap,
            dpi=spec.dpi,
            annotate=spec.annotate,
            kind=spec.kind,
            theme=spec.theme,
            font_size=spec.font_size,
            width=inches(spec.width),
            header=not spec.no_title and spec.title != "",
            transparent=spec.transparent,
            svg_text=spec.svg_text,
        )
        check_look(look)
        return cls(renderers, look, names, records)

    def write(
        self, report: Report, folder: Path, records: Mapping[str, AttentionMaps | bytes] | None
    ) -> Generator[Progress, None, Result]:
        """Write every picture of a report into `folder`, and the `records` that they show by name: all or none.

        Pictures of ours that show another text or model go, and other records of ours; None: none are written, those
        stay. Raises OutputError when the disk refuses.
        """
        with store.replacing(folder) as new:
            files: list[Path] = []
            total = sum(1 for _ in report.pictures)
            for render in self.renderers:
                for count, (name, data) in enumerate(render(report, self.look), 1):
                    if len(data) > LARGE:
                        size = (
                            f"{folder / name} will take {len(data) / 1e6:.1f} MB; --layer and --head choose fewer heads"
                        )
                        yield Progress(count - 1, total, "pictures", notices=(size,))
                    files.append(new.write(name, data))
                    yield Progress(count, total, "pictures", str(folder / name))
            for name, record in (records or {}).items():
                if isinstance(record, bytes):
                    files.append(new.write(name, record))
                else:
                    files.append(new.make(name, partial(store.write_record, record)))
            old = self._earlier(folder, files)
            others = [] if records is None else [*_other_records(new, self.records)]
            gone = [name for name in old if others or not _shows_the_same((folder / name).read_bytes(), report)]
            new.discard([*gone, *others])
        left = [name for name in old if name not in gone]
        return Result(report, tuple(files), (*_left_out(report, self.look), *_stale(folder, gone, left)))

    def _earlier(self, folder: Path, files: Sequence[Path]) -> list[str]:
        """Pictures of an earlier run: ours by name and by what stands in them."""
        endings = {f".{renderer.name}" for renderer in RENDERERS}
        found = {path for name in self.names for path in folder.glob(f"{name}.*") if path.suffix in endings}
        return sorted(path.name for path in found - set(files) if path.is_file() and _is_ours(path))


@dataclass(frozen=True)
class Drawing:
    """How to draw records, checked before any work is done. Raises InvalidOption."""

    spec: FigureOptions
    pictures: Pictures

    @classmethod
    def of(cls, spec: FigureOptions) -> Drawing:
        """Raises InvalidOption also for a measure or an order that there is not."""
        if spec.top_k < 1:
            raise InvalidOption(f"--top-k {spec.top_k} is too small", hint="It is at least 1.")
        if spec.pick and (spec.layer or spec.head):
            raise InvalidOption("--pick names layers and heads by itself", hint="Leave out --layer and --head.")
        parts = (typed(each) if each is not None else None for each in (spec.tokens, spec.query, spec.key))
        tokens, query, key = parts
        spec = replace(spec, tokens=tokens, query=query, key=key)
        chosen(spec.measure)
        if spec.sort is not None:
            ordering(spec.sort)
        return cls(spec, Pictures.of(spec, PICTURES, store.RECORD))

    def draw(self, maps: AttentionMaps, folder: Path, with_record: bool = True) -> Generator[Progress, None, Result]:
        """Write every picture of one record into `folder`, and the record.

        Raises InvalidSelection for a layer or head that is not there and where all tokens would be hidden,
        InvalidOption for what this record does not have, OutputError when the disk refuses.
        """
        self.check_number(maps.n_layers, maps.n_heads)
        layers = numbers(self.spec.layer, maps.layer_numbers, "layer")
        heads = numbers(self.spec.head, maps.head_numbers, "head")
        records = {store.RECORD: maps} if with_record else None
        if self.spec.weigh == "values":
            from attnviz.measures.weighing import weighed

            maps = weighed(maps)
        if self.spec.merge == "words":
            from attnviz.measures.words import by_words

            maps = by_words(maps)
        walk_for_pictures(maps, layers, heads)
        found = self._measured(maps)
        drawn = yield from self.pictures.write(heatmap_report(maps, found, self.spec, layers, heads), folder, records)
        rows = LazyRows(lambda: measures_rows(maps, found, layers, heads))
        text = maps.provenance.text_name
        return replace(
            drawn,
            is_text=True,
            rows=rows,
            numbers={text: _numbers(found, layers, heads)},
            layers=_unless_in_order(text, [maps.layer_numbers[layer] for layer in layers]),
            heads=_unless_in_order(text, [maps.head_numbers[head] for head in heads]),
        )

    def check_number(self, n_layers: int, n_heads: int) -> None:
        """Raises InvalidSelection for very many pictures that nobody chose."""
        if n_layers * n_heads > MAX_PICTURES and not (self.spec.layer or self.spec.head or self.spec.pick):
            raise InvalidSelection(
                f"{n_layers * n_heads:,} heads are as many pictures, at most {MAX_PICTURES} are drawn unasked",
                hint=f"Choose with --layer or --head; --head 0-{n_heads - 1} draws all.",
            )

    def _measured(self, maps: AttentionMaps) -> tuple[Measurement, ...]:
        """The chosen measures, and the one that heads are sorted by."""
        found = measured(maps, self.spec.measure)
        if self.spec.sort is None:
            return found
        by, _ = ordering(self.spec.sort)
        return found if by.name in [each.name for each in found] else (*found, *measured(maps, [by.name]))


def check_factored_room(sizes: tuple[int, int, int], n_bytes: int, max_memory: float) -> None:
    """Raises TooLarge where a record of q and k, of so many heads, queries and keys, and its pictures have no room."""
    n_heads, n_queries, n_keys = sizes
    cells = n_heads * n_queries * n_keys
    shown = ONE_DRAWN * cells if cells <= MAX_DRAWN else ONE_POOLED * n_heads * MAX_SIDE**2
    needed = BASE + COPIES * n_bytes + ONE_TOKEN * n_queries + shown
    check_room(f"q and k of {n_queries:,} tokens, and pictures of {n_heads} heads,", needed, max_memory)


def inches(length: str | None) -> float | None:
    """A length as people write it. Raises InvalidOption for anything else, and what is no width of a figure."""
    if length is None:
        return None
    match = LENGTH.fullmatch(length.strip())
    found = float(match[1]) / UNITS[match[2]] if match else 0.0
    if not 1 <= found <= MAX_WIDTH:
        raise InvalidOption(
            f"--width {length!r} is no width of a figure", hint=f"Write 3.3in or 84mm; from 1 to {MAX_WIDTH} inches."
        )
    return found


def _unless_in_order(text: str, numbers: Sequence[int]) -> dict[str, list[int]]:
    return {} if list(numbers) == list(range(len(numbers))) else {text: list(numbers)}


def _numbers(found: Sequence[Measurement], layers: Sequence[int], heads: Sequence[int]) -> dict[str, list[list[float]]]:
    """[layer][head] as a manifest has it; a number of all heads of a layer stands alone in its row."""
    return {m.name: chosen_heads(m.values, layers, heads).reshape(len(layers), -1).tolist() for m in found}


def _other_records(new: store.OutputFolder, pattern: str) -> Iterator[str]:
    """Names of the records of an earlier run that are not the new ones."""
    for path in sorted(new.folder.glob(pattern)):
        mine = pattern == store.RECORD or path.name != store.RECORD  # a comparison's are called otherwise
        if mine and path.is_file() and _is_ours(path) and not _same(path, new.path / path.name):
            yield path.name


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and cmp(one, other, shallow=False)


def _is_ours(path: Path) -> bool:
    """Every file of ours says what made it, a comparison's PNG which models it shows."""
    data = path.read_bytes()
    return b"attnviz" in data or b"TXtstatus of " in data


def _shows_the_same(data: bytes, report: Report) -> bool:
    """Whether a picture says the same sha256 of texts and weights as the report does: every file says what it shows."""
    digests = DIGEST.findall(" ".join(value for name, value in report.facts if name.startswith(IDENTITY)))
    encodings = ("ascii", "utf-16-be")  # PDF has the second where a text has other letters than ours
    return all(any(digest.encode(each) in data for each in encodings) for digest in digests)


def _stale(folder: Path, gone: Sequence[str], left: Sequence[str]) -> Iterator[str]:
    """Pictures of an earlier run are not to be mistaken for new ones."""
    for old in filter(None, (gone, left)):
        pictures = "1 picture" if len(old) == 1 else f"{len(old)} pictures"
        of = f"{pictures} of an earlier run, such as {old[0]}"
        yield f"removed {of}: it showed another text or model" if old is gone else f"{folder} also holds {of}"


def _left_out(report: Report, look: FigureStyle) -> list[str]:
    """What the pictures could not show."""
    notices = []
    missing = undrawable(report)
    if missing:
        shown = ", ".join(f"U+{ord(character):04X}" for character in missing[:5])
        more = ", …" if len(missing) > 5 else ""
        if len(missing) == 1:
            notices.append(f"1 character has no glyph in our fonts and is drawn as a box ({shown})")
        else:
            notices.append(
                f"{len(missing)} characters have no glyph in our fonts and are drawn as boxes ({shown}{more})"
            )
    if look.annotate and not all(annotated(picture, look) for picture in report.pictures):
        notices.append("some maps have too many cells for --annotate; their digits are left out")
    return notices
