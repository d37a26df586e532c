"""Where a model runs, in words."""

from __future__ import annotations

import pytest
import torch

from attnviz.models.device import describe_device


@pytest.mark.parametrize(("n_threads", "words"), [(1, "cpu, 1 thread"), (3, "cpu, 3 threads")])
def test_the_number_of_threads_is_said(n_threads: int, words: str) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        assert describe_device(torch.device("cpu")) == words
    finally:
        torch.set_num_threads(before)
