"""A survey as a folder of Parquet files, and back: what runs go on from, what is merged, and what a person opens.

`texts-*.parquet` has a row per text and a column per number, 2,048 texts a file. `moments.parquet` has a row per
moment, and `attended.parquet` one per word and offset, with sums over all texts. Those sums can be taken in only once,
so their file says of which blocks of texts they are, and is written last: what the others hold of further blocks,
because a run was killed between two files, is left out and measured again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from attnviz import store
from attnviz.bounded import decode_json, is_file, is_folder, list_folder
from attnviz.commands.survey.checks import check_info, check_tables
from attnviz.commands.survey.measure import BLOCK, TEXT_COLUMNS, Measured
from attnviz.commands.survey.moments import COLUMNS as MOMENT_COLUMNS
from attnviz.commands.survey.moments import KEYS as MOMENT_KEYS
from attnviz.commands.survey.moments import keep_moments
from attnviz.commands.survey.survey import (
    OFFSET,
    TOKENS,
    WORD,
    Attended,
    ModelFacts,
    Survey,
    SurveyInfo,
    SurveyMeasure,
    find_difference,
)
from attnviz.commands.survey.words import COUNTS
from attnviz.commands.survey.words import KEYS as WORD_KEYS
from attnviz.errors import InvalidOption, InvalidRecord
from attnviz.numbers.parquet import INTEGER, NUMBER, encode_table, read_table
from attnviz.numbers.table import Numbers, add_up, stack

NAME, MOMENTS, TEXTS = "attended.parquet", "moments.parquet", "texts-*.parquet"
EARLIER = "survey.safetensors"  # what earlier versions wrote, which kept sums and no numbers of texts
SCHEMA = 6
TEXTS_OF_FILE = 2048
HINT = "attnviz survey writes one."


@dataclass(frozen=True, eq=False)
class SurveyFiles:
    """What a folder holds of a survey: of which blocks of texts, and all but their numbers."""

    folder: Path
    info: SurveyInfo
    blocks: frozenset[int]
    attended: Numbers
    moments: Numbers
    texts: Numbers  # without numbers
    facts: ModelFacts | None

    def open(self) -> Survey:
        """Return the survey of these files, whose numbers are read when they are asked for."""
        is_read = self.texts.array(TOKENS) > 0
        return Survey(
            self.info,
            self.texts.take(np.flatnonzero(is_read)),
            tuple(self.texts.array("name")[~is_read].tolist()),
            self._attend(WORD),
            self._attend(OFFSET),
            self.moments,
            self.facts,
            partial(self._read_values, is_read),
        )

    @property
    def n_done(self) -> int:
        """How many texts were read, with tokens or without."""
        return len(self.texts)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files."""
        return (self.folder / NAME, self.folder / MOMENTS, *sorted(self.folder.glob(TEXTS)))

    def add(self, measured: Mapping[int, Measured], facts: ModelFacts | None) -> Self:
        """Write what is known of further blocks beside what is there. Raises OutputError where the disk refuses."""
        found = replace(self, blocks=self.blocks | measured.keys(), facts=facts)
        if measured:
            new = Measured.join([*measured.values()])
            for number, rows in _split_by_file(new.texts).items():
                path = self.folder / TEXTS.replace("*", f"{number:05}")
                old = [keep_blocks(_read_texts(path, self.info), self.blocks)] if is_file(path) else []
                store.write(path, self._encode(stack([*old, rows])))
            found = replace(
                found,
                attended=add_up([self.attended, new.attended]),
                moments=keep_moments([self.moments, new.moments]),
                texts=stack([self.texts, new.texts.choose([*TEXT_COLUMNS])]),
            )
        found.write_sums()
        return found

    def write_sums(self) -> None:
        """Write the moments, and last what says which texts are there."""
        store.write(self.folder / MOMENTS, self._encode(self.moments))
        facts = None if self.facts is None else asdict(self.facts)
        store.write(self.folder / NAME, self._encode(self.attended, blocks=sorted(self.blocks), facts=facts))

    def _encode(self, table: Numbers, **further: object) -> bytes:
        about = {"schema": SCHEMA, "info": asdict(self.info), **further}
        return encode_table(table.table, {"attnviz": json.dumps(about, allow_nan=False)})

    def _attend(self, kind: str) -> Attended:
        found = self.attended.select(kind=kind)
        names, counts = found.array("name"), found.integers(found.values)
        places = np.arange(len(found)) if kind == WORD else np.argsort([int(name) for name in names])
        counts = counts[places].reshape(len(found), 2 + self.info.n_places)
        return Attended(tuple(names[places]), counts[:, 0], counts[:, 1], counts[:, 2:])

    def _read_values(self, is_read: np.ndarray, measure: SurveyMeasure) -> np.ndarray:
        """Read the numbers of one measure, text by text, out of all files."""
        if measure.name == TOKENS:
            return self.texts.array(TOKENS)[is_read, None]
        names = self.info.name_columns(measure)
        return np.asarray(read_texts(self.folder, self.info, self.blocks, names).matrix(names)[is_read])


def empty_files(folder: Path, info: SurveyInfo) -> SurveyFiles:
    """Return the survey of no text, which every survey begins with; what an earlier one left in the folder goes.

    Raises InvalidOption where files of these names are not of a survey.
    """
    for path in sorted({*folder.glob(TEXTS), *(folder / name for name in (MOMENTS, NAME) if is_file(folder / name))}):
        if b"attnviz" not in path.read_bytes():
            raise InvalidOption(f"{path} is not of a survey, and would be replaced", hint="Give another --out.")
        store.remove(path)
    attended, moments = (
        Numbers.from_rows([], [*WORD_KEYS], WORD_KEYS | COUNTS),
        Numbers.from_rows([], [*MOMENT_KEYS], MOMENT_COLUMNS),
    )
    return SurveyFiles(
        folder, info, frozenset(), attended, moments, Numbers.from_rows([], ["text"], TEXT_COLUMNS), None
    )


def find_known(folder: Path, info: SurveyInfo, is_fresh: bool) -> SurveyFiles:
    """Return what is known of a survey already, nothing if it is to begin anew.

    Raises InvalidOption where the folder holds another survey, which would be lost.
    """
    if not any(is_file(folder / name) for name in (NAME, EARLIER)):
        return empty_files(folder, info)
    found = load_files(folder)
    if found.info != info:
        said = f"{folder} is of another survey: {found.info.model} over {found.info.corpus}"
        hint = "Give another --out, or remove the folder."
        raise InvalidOption(f"{said}, {find_difference(found.info, info)}", hint=hint)
    return empty_files(folder, info) if is_fresh else found


def check_parts(parts: Sequence[SurveyFiles]) -> None:
    """Raise InvalidOption where parts overlap, are not of one survey, or lack texts or what is measured once."""
    first = parts[0].info
    for part in parts[1:]:
        if part.info != first:
            said = f"parts of different surveys: {find_difference(first, part.info)}"
            raise InvalidOption(said, hint="Merge those of one command.")
    if len({block for part in parts for block in part.blocks}) < sum(len(part.blocks) for part in parts):
        raise InvalidOption("two parts hold the same texts", hint="Name each part once.")
    if n_missing := first.n_texts - sum(part.n_done for part in parts):
        said = f"{n_missing:,} of {first.n_texts:,} texts are missing"
        raise InvalidOption(said, hint="Survey the missing parts, and name all of them.")
    if all(part.facts is None for part in parts):
        raise InvalidOption("part 1, which knows what chance gives, is missing", hint="Name all parts.")


def merge_files(parts: Sequence[SurveyFiles], folder: Path) -> SurveyFiles:
    """Put the texts of all parts into one folder, whatever their order: see `check_parts` and `find_known`."""
    found = replace(
        find_known(folder, parts[0].info, is_fresh=True),
        blocks=frozenset(block for part in parts for block in part.blocks),
        attended=add_up([part.attended for part in parts]),
        moments=keep_moments([part.moments for part in parts]),
        texts=stack([part.texts for part in parts]),
        facts=next((part.facts for part in parts if part.facts is not None), None),
    )
    for name in sorted({path.name for part in parts for path in part.folder.glob(TEXTS)}):
        there = [part for part in parts if is_file(part.folder / name)]
        tables = [keep_blocks(_read_texts(part.folder / name, part.info), part.blocks) for part in there]
        store.write(folder / name, found._encode(stack(tables)))
    found.write_sums()
    return found


def load_files(folder: Path) -> SurveyFiles:
    """Read what a folder holds of a survey. Raises InvalidRecord where that is none, or not of this version."""
    path = folder / NAME
    if not is_file(path):
        if is_folder(folder):
            list_folder(folder, InvalidRecord)  # refused where it may not be read
        earlier = is_file(folder / EARLIER)
        said = f"{folder / EARLIER} is of an earlier version, which kept no numbers of texts"
        raise InvalidRecord(said if earlier else f"{folder} holds no {NAME}", hint="Survey again." if earlier else HINT)
    try:
        attended, about = _read(path, WORD_KEYS | COUNTS, INTEGER)
        info: SurveyInfo = decode_json(SurveyInfo, about["info"], "info")
        blocks = frozenset(decode_json(tuple[int, ...], about["blocks"], "blocks"))
        facts = decode_json(ModelFacts | None, about["facts"], "facts")
        check_info(info, facts)
        moments = keep_blocks(_read(folder / MOMENTS, MOMENT_COLUMNS, None)[0], blocks)
        texts = read_texts(folder, info, blocks, [*TEXT_COLUMNS])
        found = SurveyFiles(folder, info, blocks, attended, moments, texts, facts)
        check_tables(found.info, texts, attended, moments)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = " ".join(f"{error}".split())[:200]
        raise InvalidRecord(f"{path} is not a survey of attnviz: {reason}", hint=HINT) from error
    return found


def read_texts(folder: Path, info: SurveyInfo, blocks: Collection[int], names: list[str]) -> Numbers:
    """Read these columns of the texts of some blocks. Raises InvalidRecord for files that are not of this survey."""
    only = list(dict.fromkeys(["text", *names]))
    parts = [keep_blocks(_read_texts(path, info, only), blocks) for path in sorted(folder.glob(TEXTS))]
    return stack(parts) if parts else Numbers.from_rows([], ["text"], TEXT_COLUMNS)


def keep_blocks(found: Numbers, blocks: Collection[int]) -> Numbers:
    """Return the rows of texts of these blocks."""
    return found.take(np.flatnonzero(np.isin(found.array("text") // BLOCK, [*blocks])))


def _read_texts(path: Path, info: SurveyInfo, only: list[str] | None = None) -> Numbers:
    found, about = _read(path, dict.fromkeys(info.list_columns(), NUMBER) | TEXT_COLUMNS, None, only)
    if decode_json(SurveyInfo, about["info"], "info") != info:
        raise InvalidRecord(f"{path} is of another survey than {NAME}", hint="Take it away, or survey again.")
    return found


def _read(
    path: Path, columns: Mapping[str, Any], others: Any, only: list[str] | None = None
) -> tuple[Numbers, dict[str, Any]]:
    """Read one of the files and what it says of itself. Raises InvalidRecord for what is not of a survey."""
    table, meta = read_table(path, columns, others, InvalidRecord, only=only)
    about = json.loads(meta.get("attnviz", "{}"))
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        raise InvalidRecord(f"{path} is not of a survey of this version", hint=HINT)
    keys = [*WORD_KEYS] if path.name == NAME else [*MOMENT_KEYS] if path.name == MOMENTS else ["text"]
    return Numbers(table, tuple(keys)), about


def _split_by_file(texts: Numbers) -> dict[int, Numbers]:
    numbers = texts.array("text") // TEXTS_OF_FILE
    return {int(number): texts.take(np.flatnonzero(numbers == number)) for number in np.unique(numbers)}
