"""Where a model runs, in words."""

from __future__ import annotations

import pytest
import torch

from attnviz.models.device import available, describe_device


@pytest.mark.parametrize(("n_threads", "words"), [(1, "cpu, 1 thread"), (3, "cpu, 3 threads")])
def test_the_number_of_threads_is_said(n_threads: int, words: str) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        assert describe_device(torch.device("cpu")) == words
    finally:
        torch.set_num_threads(before)


def test_other_accelerators_are_those_that_torch_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("xpu"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    assert [name for name in available() if name.startswith("xpu")] == ["xpu:0", "xpu:1"]
