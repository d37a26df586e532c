"""Numbers by distance are those of the matrix that is never made."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from attnviz.records.walk import ByDistance

ENDS: dict[
    tuple[int, ...], tuple[int, int]
] = {  # of a line: up to where it is as at its beginning, and from where as at its end
    (0, 0, 0, 1, 2, 3, 3, 3): (3, 5),
    (0, 0, 0, 0, 9, 9, 9, 9): (4, 4),
    (5,) * 8: (8, 0),
    (1, 2, 3, 4, 5, 6, 7, 8): (1, 7),
}


@pytest.mark.parametrize("line", ENDS)
@pytest.mark.parametrize("n_queries", [1, 3, 8])
def test_stretches_that_are_alike_are_found_and_no_others(line: tuple[int, ...], n_queries: int) -> None:
    found = ByDistance(np.array(line), n_queries)
    n_keys = len(line) - n_queries + 1
    distances = np.subtract.outer(-np.arange(n_queries), -np.arange(n_keys))
    assert found.matrix.tolist() == np.array(line)[distances + n_queries - 1].tolist()
    nearest, farthest = (edge - n_queries + 1 for edge in ENDS[line])
    for first, last in np.ndindex(n_queries, n_queries):
        queries = np.arange(min(first, last), max(first, last) + 1)
        for start, stop in combinations(range(n_keys + 1), 2):
            there = found.matrix[queries, start:stop]
            alike = found.alike(queries, slice(start, stop))
            apart = start - queries.max() >= farthest or stop - 1 - queries.min() < nearest
            assert alike == (there.flat[0] if apart else None)
            assert alike is None or (there == alike).all()
            assert found.of(queries[:, None], np.arange(start, stop)).tolist() == there.tolist()
            unlike = found.around(queries, slice(start, stop))
            assert (there[:, : unlike.start] == line[0]).all()
            assert (there[:, unlike.stop :] == line[-1]).all()
            if not apart:  # and no more than one key on either side for each query beyond the first
                wide = farthest - nearest + int(queries[-1] - queries[0])
                assert 0 <= unlike.start <= unlike.stop <= stop - start
                assert unlike.stop - unlike.start <= max(wide, 0)
