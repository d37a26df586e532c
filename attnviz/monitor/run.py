"""A watched run: numbers of each head at each step that was looked at, and their files.

Numbers are rows of one table with the keys step, layer and head. A folder holds a Parquet file for each look, named by
its step and written at once, so that nothing is lost where training stops. Some looks, fewer as the run goes on, also
keep a small map of each head: the frames of a film.
"""

from pathlib import Path
from typing import Self

import numpy as np
from jaxtyping import Float

from attnviz import store
from attnviz.errors import InvalidRecord, raising
from attnviz.monitor.alarms import ENTROPY, Alarm, HeadNumbers, Limits
from attnviz.table.numbers import Numbers, concat
from attnviz.table.parquet import INTEGER, NUMBER, NUMBERS, encode_table, read_table

KEYS = ("step", "layer", "head")
MEASURES = ("max_score", "entropy", "first", "previous")  # the largest logit; the others are shares, means over queries
MAP = "map"  # of some looks: cells row by row, in equal shares
TYPES = dict.fromkeys(KEYS, INTEGER) | dict.fromkeys(MEASURES, NUMBER) | {MAP: NUMBERS}
SIDE = 16  # of a map
FILES = "attention-*.parquet"
OTHERS = f"attnviz.watch(model, out=FOLDER) writes one. A record is FOLDER/{store.RECORD}; attnviz merge draws surveys."
BEYOND_HEALTHY = 2.0  # × the largest score of a healthy run, and so many times below its lowest entropy
MANY = 64  # looks that all keep their maps; of twice as many every second one does, and so on


class WatchedRun:
    """The looks of a run by their steps, in order. Layers of fewer heads than others are filled up with NaN.

    Its heads are held against fixed limits, or those of a run that was `healthy`. Raises InvalidRecord as `load` does.
    """

    def __init__(self, folder: Path | None = None, healthy: Path | None = None) -> None:
        self.looks: dict[int, HeadNumbers] = {}
        self.maps: dict[int, HeadNumbers] = {}  # of a run that was read
        self.alarms: list[Alarm] = []
        self._folder = folder
        self._limits = Limits()
        if healthy is not None:
            scores, entropies, *_ = WatchedRun.load(healthy).numbers().matrix(MEASURES).T
            large, low = float(np.nanmax(scores)) * BEYOND_HEALTHY, float(np.nanmin(entropies)) / BEYOND_HEALTHY
            self._limits = Limits(large, low, f"limit by {healthy}")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read a folder. Raises InvalidRecord for one without looks, and for files that are not as they were."""
        run = cls()
        for path in sorted(folder.glob(FILES)):
            of = Numbers(read_table(path, TYPES, None)[0], KEYS)
            with raising(InvalidRecord, f"{path} is not a look of a watched run:", told=(ValueError,)):
                step, layer, head = of.integers(KEYS).max(axis=0).tolist()
                shape, cells = (layer + 1, head + 1), of.array(MAP).tolist()
                look = of.matrix(MEASURES).reshape(*shape, -1)
                if of.list_keys() != [(step, *place) for place in np.ndindex(shape)]:
                    raise ValueError("heads are missing")
                if cells[0] is not None:
                    run.maps[step] = np.array(cells, dtype=float).reshape(*shape, SIDE**2)
            run.judge(step, look)
        if not run.maps:
            raise InvalidRecord(f"{folder} holds no watched run", hint=OTHERS)
        return run

    def add(self, step: int, look: HeadNumbers, maps: HeadNumbers) -> list[Alarm]:
        """Keep a look, and return what is newly wrong. Raises OutputError when the disk refuses."""
        keeps_maps = len(self.looks) % 2 ** (len(self.looks) // MANY).bit_length() == 0
        if self._folder is not None:
            table = _tabulate(step, look, maps if keeps_maps else None).table
            store.write(self._folder / FILES.replace("*", f"{step:09}"), encode_table(table, {"attnviz": "watch"}))
        return self.judge(step, look)

    def judge(self, step: int, look: HeadNumbers) -> list[Alarm]:
        """Take a look, and return what is newly wrong with its heads."""
        said = {alarm[1:4] for alarm in self.alarms}
        found = [alarm for alarm in self._limits.judge(step, look, self.looks) if alarm[1:4] not in said]
        self.alarms += found
        self.looks[step] = look
        return found

    def numbers(self) -> Numbers:
        """Return a row for each step, layer and head, with a column for each of MEASURES; null: not finite."""
        looks = [_tabulate(step, look) for step, look in self.looks.items()]
        return concat([Numbers.from_rows([], KEYS, TYPES), *looks]).choose((*KEYS, *MEASURES))  # before the first none


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
