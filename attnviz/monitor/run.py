"""A watched run: numbers of each head at each step that was looked at, their files, and what is wrong with them.

Numbers are rows of one table with the keys step, layer and head. A folder holds them in parts, each a Parquet file
named by its first step; the part that is being filled is written again at each look, so that nothing is lost where
training stops. Some looks, fewer as the run goes on, also keep a small map of each head: the frames of a film.
"""

from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from jaxtyping import Float

from attnviz import store
from attnviz.errors import InvalidRecord
from attnviz.table.numbers import Numbers, concat
from attnviz.table.parquet import INTEGER, NUMBER, NUMBERS, encode_table, read_table

KEYS = ("step", "layer", "head")
MEASURES = ("max_score", "entropy", "first", "previous")  # the largest logit; the others are shares, means over queries
SCORE, ENTROPY = 0, 1  # places among them
MAP = "map"  # of some looks: cells row by row, in equal shares
TYPES = dict.fromkeys(KEYS, INTEGER) | dict.fromkeys(MEASURES, NUMBER) | {MAP: NUMBERS}
SIDE = 16  # of a map
PARTS, MAX_LOOKS = "attention-*.parquet", 50  # of a part
MANY = 64  # looks that all keep their maps; of twice as many every second one does, and so on
N_BEFORE, MIN_BEFORE = 20, 3  # looks whose median score a head is held against
LARGE_SCORE, GROWTH = 30.0, 3.0  # e^30 is 10^13: one key gets all
COLLAPSED = 0.03  # entropy, of the most possible

HeadNumbers = Float[np.ndarray, "layer head number"]  # by MEASURES, or the cells of maps


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
        self.looks: dict[int, HeadNumbers] = {}
        self.maps: dict[int, HeadNumbers] = {}  # of a run that was read
        self.alarms: list[Alarm] = []
        self._folder = folder
        self._part: list[Numbers] = []  # the looks that are written into the same file

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read a folder. Raises InvalidRecord for one without looks, and for files that are not as they were."""
        run = cls()
        for path in sorted(folder.glob(PARTS)):
            for _, of in Numbers(read_table(path, TYPES, None)[0], KEYS).group("step"):
                steps, layers, heads = of.integers(KEYS).T
                step, shape = int(steps[0]), (int(layers.max()) + 1, int(heads.max()) + 1)
                sizes = {0 if cells is None else len(cells) for cells in of.array(MAP)}
                if of.list_keys() != [(step, *place) for place in np.ndindex(*shape)] or sizes not in ({0}, {SIDE**2}):
                    raise InvalidRecord(f"{path}: step {step} lacks heads, or cells of their maps")
                run.judge(step, of.matrix(MEASURES).reshape(*shape, -1))
                if sizes != {0}:
                    run.maps[step] = np.array(of.array(MAP).tolist(), dtype=float).reshape(*shape, -1)
        if not run.maps:
            raise InvalidRecord(f"{folder} holds no watched run", hint="attnviz.watch(model, out=FOLDER) writes one.")
        return run

    def add(self, step: int, look: HeadNumbers, maps: HeadNumbers) -> list[Alarm]:
        """Keep a look, and return what is newly wrong. Raises OutputError when the disk refuses."""
        keeps_maps = len(self.looks) % 2 ** (len(self.looks) // MANY).bit_length() == 0
        kept = self._part if len(self._part) < MAX_LOOKS else []
        self._part = [*kept, _tabulate(step, look, maps if keeps_maps else None)]
        if self._folder is not None:
            numbers = concat(self._part)
            name = PARTS.replace("*", f"{numbers.table['step'][0].as_py():09}")
            store.write(self._folder / name, encode_table(numbers.table, {"attnviz": "watch"}))
        return self.judge(step, look)

    def judge(self, step: int, look: HeadNumbers) -> list[Alarm]:
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
        return concat([_tabulate(step, look) for step, look in self.looks.items()]).choose((*KEYS, *MEASURES))


def summarize_layers(look: HeadNumbers) -> Float[np.ndarray, "layer measure"]:
    """Return the extreme of the heads of each layer, by MEASURES: the lowest entropy, the largest of all else."""
    extremes: HeadNumbers = np.fmax.reduce(look, axis=1)
    extremes[:, ENTROPY] = np.fmin.reduce(look[..., ENTROPY], axis=1)
    return extremes


def _tabulate(step: int, look: HeadNumbers, maps: HeadNumbers | None = None) -> Numbers:
    layers, heads = np.array(list(np.ndindex(*look.shape[:2]))).T
    rows = np.where(np.isfinite(look), look, np.nan).reshape(-1, len(MEASURES))
    columns = {"step": step, "layer": layers, "head": heads} | dict(zip(MEASURES, rows.T, strict=True))
    return Numbers.from_columns(columns | {MAP: None if maps is None else [*maps.reshape(len(rows), -1)]}, KEYS, TYPES)
