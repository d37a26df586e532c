"""A survey as a folder of Parquet files, and back: what runs go on from, what is merged, and what a person opens.

`texts-*.parquet` has a row per text and a column per number, 2,048 texts a file. `moments.parquet` has a row per
moment, and `attended.parquet` one per word and offset, with sums over all texts. Those sums can be taken in only once,
so their file says of which blocks of texts they are, and is written last: what the others hold of further blocks,
because a run was killed between two files, is left out and measured again.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from attnviz import store
from attnviz.bounded import decode_json, is_file, is_folder, list_folder
from attnviz.commands.survey.checks import check_info, check_tables
from attnviz.commands.survey.measure import BLOCK, COUNTS, NOTHING, TEXT_COLUMNS, TEXTS_OF_FILE, WORD_KEYS, Measured
from attnviz.commands.survey.moments import MOMENT_COLUMNS, MOMENT_KEYS, keep_moments
from attnviz.commands.survey.survey import TOKENS, ModelFacts, SurveyInfo, SurveyMeasure, find_difference
from attnviz.commands.survey.tables import Tables, tabulate
from attnviz.errors import MALFORMED, InvalidOption, InvalidRecord, raising, summarize
from attnviz.table.numbers import Numbers, add_up, stack
from attnviz.table.parquet import INTEGER, NUMBER, encode_table, read_table

NAME, MOMENTS, TEXTS = "attended.parquet", "moments.parquet", "texts-{}.parquet"
SCHEMA = 9
HINT = "attnviz survey writes one."
NO_TEXTS = Numbers.from_rows([], ["text"], TEXT_COLUMNS)


@dataclass(frozen=True, eq=False)
class Survey:
    """What a folder holds of a survey: of which blocks of texts, and all but their numbers, which are read when asked
    for.
    """

    folder: Path
    info: SurveyInfo
    blocks: frozenset[int]
    attended: Numbers
    moments: Numbers
    read: Numbers  # the texts that were read, with tokens or without
    facts: ModelFacts | None  # None: of another part

    @cached_property
    def texts(self) -> Numbers:
        """Select the texts with tokens, in order."""
        return self.read.take(np.flatnonzero(self.read.array(TOKENS) > 0))

    @property
    def n_queries(self) -> int:
        """Count the tokens of all texts."""
        return int(self.texts.array(TOKENS).sum())

    @property
    def skipped(self) -> list[str]:
        """List the names of the texts without tokens."""
        return [row["name"] for row in self.read.rows() if row[TOKENS] is None]

    @property
    def is_whole(self) -> bool:
        """Tell whether no text is missing."""
        return self.facts is not None and self.info.n_texts == len(self.read)

    @property
    def paths(self) -> tuple[Path, ...]:
        """List the survey's files."""
        return (self.folder / NAME, self.folder / MOMENTS, *sorted(self.folder.glob(TEXTS.format("*"))))

    @cached_property
    def tables(self) -> Tables:
        """Tabulate what the survey says."""
        return tabulate(self.info, self.texts, self.attended, self.facts or ModelFacts(), self.read_values)

    def read_values(self, measure: SurveyMeasure) -> Float64[np.ndarray, "text place"]:
        """Read the numbers of one measure, text by text, out of all files."""
        if measure.name == TOKENS:
            return self.texts.array(TOKENS)[:, None]
        names = self.info.name_columns(measure)
        found = read_texts(self.folder, self.info, self.blocks, names)
        return np.asarray(found.matrix(names)[self.read.array(TOKENS) > 0])

    def read_file(self, number: int) -> Numbers:
        """Read the texts of one file with their numbers; none where it is not there."""
        path = self.folder / TEXTS.format(f"{number:05}")
        return keep_blocks(_read_texts(path, self.info), self.blocks) if is_file(path) else NO_TEXTS

    def add(self, parts: "Sequence[Measured | Survey]", facts: ModelFacts | None) -> "Survey":
        """Write what is known of the texts of further parts, whatever their order, beside what is there.

        Raises OutputError where the disk refuses.
        """
        for number in sorted({int(text) // TEXTS_OF_FILE for part in parts for text in part.read.array("text")}):
            rows = stack([part.read_file(number) for part in (self, *parts)])
            store.write(self.folder / TEXTS.format(f"{number:05}"), self._encode(rows))
        every = (self, *parts)
        found = replace(
            self,
            blocks=frozenset().union(*(part.blocks for part in every)),
            attended=add_up([part.attended for part in every]),
            moments=keep_moments([part.moments for part in every]),
            read=stack([part.read.choose([*TEXT_COLUMNS]) for part in every]),
            facts=facts,
        )
        said = None if facts is None else asdict(facts)
        store.write(self.folder / MOMENTS, self._encode(found.moments))
        store.write(self.folder / NAME, self._encode(found.attended, blocks=sorted(found.blocks), facts=said))
        return found

    def _encode(self, table: Numbers, **further: object) -> bytes:
        about = {"schema": SCHEMA, "info": asdict(self.info), **further}
        return encode_table(table.table, {"attnviz": json.dumps(about, allow_nan=False)})


def begin_survey(folder: Path, info: SurveyInfo) -> Survey:
    """Return the survey of no text, which every survey begins with; what an earlier one left in the folder goes.

    Raises InvalidOption where files of these names are not of a survey.
    """
    for path in sorted({*folder.glob(TEXTS.format("*")), *filter(is_file, (folder / MOMENTS, folder / NAME))}):
        if b"attnviz" not in path.read_bytes():
            raise InvalidOption(f"{path} is not of a survey, and would be replaced", hint="Give another --out.")
        store.remove(path)
    moments = Numbers.from_rows([], [*MOMENT_KEYS], MOMENT_COLUMNS)
    return Survey(folder, info, frozenset(), NOTHING, moments, NO_TEXTS, None)


def find_known(folder: Path, info: SurveyInfo, is_fresh: bool) -> Survey:
    """Return what is known of a survey already, nothing if it is to begin anew.

    Raises InvalidOption where the folder holds another survey, which would be lost.
    """
    if not is_file(folder / NAME):
        return begin_survey(folder, info)
    found = load_files(folder)
    if found.info != info:
        said = f"{folder} is of another survey: {found.info.model} over {found.info.corpus}"
        hint = "Give another --out, or remove the folder."
        raise InvalidOption(f"{said}, {find_difference(found.info, info)}", hint=hint)
    return begin_survey(folder, info) if is_fresh else found


def check_parts(parts: Sequence[Survey]) -> None:
    """Raise InvalidOption where parts overlap, are not of one survey, or lack texts or what is measured once."""
    first = parts[0].info
    for part in parts[1:]:
        if part.info != first:
            said = f"parts of different surveys: {find_difference(first, part.info)}"
            raise InvalidOption(said, hint="Merge those of one command.")
    if len({block for part in parts for block in part.blocks}) < sum(len(part.blocks) for part in parts):
        raise InvalidOption("two parts hold the same texts", hint="Name each part once.")
    if n_missing := first.n_texts - sum(len(part.read) for part in parts):
        said = f"{n_missing:,} of {first.n_texts:,} texts are missing"
        raise InvalidOption(said, hint="Survey the missing parts, and name all of them.")
    if all(part.facts is None for part in parts):
        raise InvalidOption("part 1, which knows what chance gives, is missing", hint="Name all parts.")


def load_files(folder: Path) -> Survey:
    """Read what a folder holds of a survey. Raises InvalidRecord where that is none, or not of this version."""
    path = folder / NAME
    if not is_file(path):
        if is_folder(folder):
            list_folder(folder, InvalidRecord)  # refused where it may not be read
        raise InvalidRecord(f"{folder} holds no {NAME}", hint=HINT)
    told = (*MALFORMED, OverflowError)
    with raising(InvalidRecord, f"{path} is not a survey of attnviz:", HINT, told, partial(summarize, most=200)):
        attended, about = _read(path, WORD_KEYS | COUNTS, INTEGER)
        info: SurveyInfo = decode_json(SurveyInfo, about["info"], "info")
        blocks = frozenset(decode_json(tuple[int, ...], about["blocks"], "blocks"))
        facts = decode_json(ModelFacts | None, about["facts"], "facts")
        check_info(info, facts)
        moments = keep_blocks(_read(folder / MOMENTS, MOMENT_COLUMNS, None)[0], blocks)
        texts = read_texts(folder, info, blocks, [*TEXT_COLUMNS])
        check_tables(info, texts, attended, moments)
    return Survey(folder, info, blocks, attended, moments, texts, facts)


def read_texts(folder: Path, info: SurveyInfo, blocks: Collection[int], names: list[str]) -> Numbers:
    """Read these columns of the texts of some blocks. Raises InvalidRecord for files that are not of this survey."""
    only = list(dict.fromkeys(["text", *names]))
    parts = [keep_blocks(_read_texts(path, info, only), blocks) for path in sorted(folder.glob(TEXTS.format("*")))]
    return stack(parts) if parts else NO_TEXTS


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
    table, meta = read_table(path, columns, others, only)
    about = json.loads(meta.get("attnviz", "{}"))
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        raise InvalidRecord(f"{path} is not of a survey of this version", hint=HINT)
    keys = [*WORD_KEYS] if path.name == NAME else [*MOMENT_KEYS] if path.name == MOMENTS else ["text"]
    return Numbers(table, tuple(keys)), about
