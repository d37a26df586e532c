"""From a report to pictures on disk: what commands that draw share. Knows no records but to write them."""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from filecmp import cmp
from functools import partial
from pathlib import Path

from attnviz import store
from attnviz.display import format_count, list_first
from attnviz.errors import InvalidOption
from attnviz.records import AttentionMaps
from attnviz.registry import load
from attnviz.renderers import RENDERERS, Renderer, choose_renderers
from attnviz.renderers.figure.files import check_look, is_annotated, undrawable
from attnviz.report import FigureStyle, Report
from attnviz.running import Progress, Result
from attnviz.specs import FigureOptions
from attnviz.views.translate import translate

UNITS = {"in": 1.0, "": 1.0, "mm": 25.4, "cm": 2.54, "pt": 72.0}  # to an inch
LENGTH = re.compile(rf"([0-9]{{1,4}}(?:\.[0-9]{{1,6}})?)\s*({'|'.join(UNITS)}|)")
MAX_WIDTH = 40  # inches
DIGEST = re.compile("[0-9a-f]{8,64}")
IDENTITY = ("revision", "text sha256", "texts sha256", "status of ")  # facts that say of what a picture is


@dataclass(frozen=True)
class Pictures:
    """How reports become pictures, checked before any work is done. Raises InvalidOption."""

    renderers: tuple[Renderer, ...]
    look: FigureStyle
    names: tuple[str, ...]  # patterns of what ours are called, to tell those of an earlier run
    records: str  # and of the records that they show

    @classmethod
    def from_options(cls, spec: FigureOptions, names: tuple[str, ...], records: str) -> "Pictures":
        """Check how to draw. Raises InvalidOption."""
        renderers = tuple(load(plugin) for plugin in choose_renderers(spec.format, spec.open))
        chosen = {name: value for name, value in vars(spec).items() if name in vars(FigureStyle())}
        look = FigureStyle(**chosen | {"width": parse_inches(spec.width), "header": spec.title != ""})
        check_look(look)
        return cls(renderers, look, names, records)

    def write(
        self, report: Report, folder: Path, records: Mapping[str, AttentionMaps | bytes] | None
    ) -> Generator[Progress, None, Result]:
        """Write every picture of a report into `folder`, and the `records` that they show by name: all or none.

        Pictures of ours that show another text or model go, and other records of ours; None: none are written, those
        stay. Raises OutputError when the disk refuses.
        """
        report = translate(report, self.look.lang)
        with store.replacing(folder) as new:
            files: list[Path] = []
            total = sum(1 for _ in report.pictures)
            for render in self.renderers:
                for count, (name, data) in enumerate(render(report, self.look), 1):
                    files.append(new.write(name, data))
                    yield Progress(count, total, "pictures", str(folder / name))
            for name, record in (records or {}).items():
                if isinstance(record, bytes):
                    files.append(new.write(name, record))
                else:
                    files.append(new.make(name, partial(store.write_record, record)))
            endings = {f".{renderer.name}" for renderer in RENDERERS}
            mine = {path for name in self.names for path in folder.glob(f"{name}.*") if path.suffix in endings}
            # Of an earlier run: ours by name and by what stands in them.
            old = sorted(path.name for path in mine - {*files} if path.is_file() and store.is_from_attnviz(path))
            others = [] if records is None else [*_list_other_records(new, self.records)]
            # Every file says what it shows by the sha256 of texts and weights.
            digests = DIGEST.findall(" ".join(value for name, value in report.facts if name.startswith(IDENTITY)))
            gone = [name for name in old if others or not _holds((folder / name).read_bytes(), digests)]
            new.discard([*gone, *others])
        notices = _describe_omissions(report, self.look)
        if not files:
            notices.append("nothing was written: of a table only --format html makes a file")
        left = [name for name in old if name not in gone]
        for names in filter(None, (gone, left)):  # pictures of an earlier run are not to be mistaken for new ones
            pictures = f"{format_count(len(names), 'pictures')} of an earlier run, such as {names[0]}"
            removed = f"removed {pictures}: it showed another text or model"
            notices.append(removed if names is gone else f"{folder} also holds {pictures}")
        return Result(report, tuple(files), tuple(notices))


def parse_inches(length: str | None) -> float | None:
    """Read a length as people write it, a bare number in inches. Raises InvalidOption where it is no width."""
    if length is None:
        return None
    match = LENGTH.fullmatch(length.strip())
    if match is None:
        raise InvalidOption(f"--width {length!r} is not a length", hint="Write 3.3in or 84mm.")
    found = float(match[1]) / UNITS[match[2]]
    if not 1 <= found <= MAX_WIDTH:
        in_mm = f" Did you mean {match[1]}mm?" if not match[2] and 25.4 <= found <= 25.4 * MAX_WIDTH else ""
        raise InvalidOption(
            f"--width {length!r} is {found:.4g} inches, out of range", hint=f"It is 1 to {MAX_WIDTH} inches.{in_mm}"
        )
    return found


def _list_other_records(new: store.OutputFolder, pattern: str) -> Iterator[str]:
    """Yield names of the records of an earlier run that are not the new ones."""
    for path in sorted(new.folder.glob(pattern)):
        mine = pattern == store.RECORD or path.name != store.RECORD  # a comparison's are called otherwise
        other = new.path / path.name
        is_ours = mine and path.is_file() and store.is_from_attnviz(path)
        if is_ours and not (other.is_file() and cmp(path, other, shallow=False)):
            yield path.name


def _holds(data: bytes, digests: Sequence[str]) -> bool:
    encodings = ("ascii", "utf-16-be")  # PDF has the second where a text has other letters than ours
    return all(any(digest.encode(each) in data for each in encodings) for digest in digests)


def _describe_omissions(report: Report, look: FigureStyle) -> list[str]:
    """Describe what the pictures could not show."""
    notices = []
    if missing := undrawable(report):
        shown = list_first(missing, 5, lambda character: f"U+{ord(character):04X}")
        notices.append(f"boxes stand for {format_count(len(missing), 'characters')} that no font of ours has: {shown}")
    if look.annotate and not all(is_annotated(picture, look) for picture in report.pictures):
        notices.append("some maps have too many cells for --annotate; their digits are left out")
    return notices
