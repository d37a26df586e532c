"""A watched run: numbers of each head at each step that was looked at, their files, and what is wrong with them.

Numbers are rows of one table with the keys step, layer and head. A folder holds them in parts, each a Parquet file
named by its first step; the part that is being filled is written again at each look, so that nothing is lost where
training stops. A few looks also keep a small map of each head, a row of cells: the frames of a film.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from jaxtyping import Float

from attnviz import store
from attnviz.errors import InvalidRecord
from attnviz.table.numbers import Numbers
from attnviz.table.parquet import INTEGER, NUMBER, encode_table, read_table

KEYS = ("step", "layer", "head")
MEASURES = ("max_score", "entropy", "first", "previous")  # the largest logit; the others are shares, means over queries
SCORE, ENTROPY = 0, 1  # places among them
PARTS, FILMS = "attention-*.parquet", "film-*.parquet"
MAX_LOOKS = 50  # of a part
SIDE = 16  # of a map of the film
CELLS = tuple(f"cell {row}.{column}" for row in range(SIDE) for column in range(SIDE))
MAX_FRAMES = 64  # of a film, evenly over the run
N_BEFORE, MIN_BEFORE = 20, 3  # looks whose median score a head is held against
LARGE_SCORE, GROWTH = 30.0, 3.0  # e^30 is 10^13: one key gets all
COLLAPSED = 0.03  # entropy, of the most possible

HeadNumbers = Float[np.ndarray, "layer head number"]  # by MEASURES, or by CELLS


class Alarm(NamedTuple):
    """What is wrong with a head, and since which step."""

    step: int
    layer: int
    head: int
    kind: str
    said: str

    def __str__(self) -> str:
        return f"step {self.step}: head {self.layer}.{self.head}: {self.kind} ({self.said})"


class WatchedRun:
    """The looks of a run by their steps, in order. Layers of fewer heads than others are filled up with NaN."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.looks: dict[int, HeadNumbers] = {}
        self.frames: dict[int, HeadNumbers] = {}
        self.alarms: list[Alarm] = []

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read a folder. Raises InvalidRecord for one without looks, and for files that are not as they were."""
        run = cls(folder)
        looks, run.frames = _read_parts(folder, PARTS, MEASURES), _read_parts(folder, FILMS, CELLS)
        if not looks:
            raise InvalidRecord(f"{folder} holds no watched run", hint="attnviz.watch(model, out=FOLDER) writes one.")
        for step, look in looks.items():
            run._judge(step, look)
        return run

    def add(self, step: int, look: HeadNumbers, frame: HeadNumbers) -> list[Alarm]:
        """Keep a look, and return what is newly wrong. Raises OutputError when the disk refuses."""
        place = len(self.looks)
        new = self._judge(step, look)
        steps = list(self.looks)
        part = steps[place - place % MAX_LOOKS :]
        self._write(PARTS, tabulate({step: self.looks[step] for step in part}, MEASURES))
        stride = 2 ** (place // MAX_FRAMES).bit_length()
        if place % stride == 0:
            kept = {step: self.frames[step] for step in steps[:place:stride]}
            self.frames = {**kept, step: frame}
            self._write(FILMS, tabulate(self.frames, CELLS))
        return new

    def _judge(self, step: int, look: HeadNumbers) -> list[Alarm]:
        """Take a look, and return what is wrong with its heads, against the looks before, and was not said yet."""
        before = [each for each in list(self.looks.values())[-N_BEFORE:] if each.shape == look.shape]
        usual = np.median([each[..., SCORE] for each in before], axis=0) if before else np.full(look.shape[:2], np.inf)
        said, first_new = {alarm[1:4] for alarm in self.alarms}, len(self.alarms)
        for layer, head in np.ndindex(*look.shape[:2]):
            score, entropy = look[layer, head, [SCORE, ENTROPY]].tolist()
            normal = usual[layer, head]
            wrong = {}
            if len(before) >= MIN_BEFORE and score > max(LARGE_SCORE, GROWTH * normal):
                wrong["scores explode"] = f"from {normal:.1f} to {score:.0f}"
            if before and score > LARGE_SCORE and entropy < COLLAPSED:
                wrong["entropy collapsed"] = f"{entropy:.3f} of the most possible"
            new = {kind: text for kind, text in wrong.items() if (layer, head, kind) not in said}
            self.alarms += [Alarm(step, layer, head, kind, text) for kind, text in new.items()]
        self.looks[step] = look
        return self.alarms[first_new:]

    def numbers(self) -> Numbers:
        """Return a row for each step, layer and head, with a column for each of MEASURES; null: not finite."""
        return tabulate(self.looks, MEASURES)

    def _write(self, name: str, numbers: Numbers) -> None:
        if self.folder is not None:
            first = numbers.table["step"][0].as_py()
            path = self.folder / name.replace("*", f"{first:09}")
            store.write(path, encode_table(numbers.table, {"attnviz": "watch"}))


def summarize_layers(look: HeadNumbers) -> Float[np.ndarray, "layer measure"]:
    """Return the extreme of the heads of each layer, by MEASURES: the lowest entropy, the largest of all else."""
    extremes: HeadNumbers = np.fmax.reduce(look, axis=1)
    extremes[:, ENTROPY] = np.fmin.reduce(look[..., ENTROPY], axis=1)
    return extremes


def tabulate(looks: Mapping[int, HeadNumbers], names: Sequence[str]) -> Numbers:
    """Put looks under one another as rows by step, layer and head."""
    keys = [(step, layer, head) for step, look in looks.items() for layer, head in np.ndindex(*look.shape[:2])]
    rows = np.concatenate([look.reshape(-1, len(names)) for look in looks.values()])
    rows = np.where(np.isfinite(rows), rows, np.nan)
    columns = [*np.array(keys, dtype=np.int64).T, *rows.T]
    return Numbers.from_columns(dict(zip((*KEYS, *names), columns, strict=True)), KEYS)


def _read_parts(folder: Path, pattern: str, names: Sequence[str]) -> dict[int, HeadNumbers]:
    """Return the looks of all parts; of a step in two of them that of the later. Raises InvalidRecord."""
    found: dict[int, HeadNumbers] = {}
    for path in sorted(folder.glob(pattern)):
        types = dict.fromkeys(KEYS, INTEGER) | dict.fromkeys(names, NUMBER)
        for _, of in Numbers(read_table(path, types, None)[0], KEYS).group("step"):
            steps, layers, heads = of.integers(KEYS).T
            step = int(steps[0])
            shape = int(layers.max()) + 1, int(heads.max()) + 1
            if of.list_keys() != [(step, *place) for place in np.ndindex(*shape)]:
                raise InvalidRecord(f"{path}: step {step} lacks heads")
            found[step] = of.matrix(names).reshape(*shape, -1)
    return dict(sorted(found.items()))
