"""Where a model runs, in words."""

from __future__ import annotations

import pytest
import torch

from attnviz.models.device import available


def test_other_accelerators_are_those_that_torch_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("xpu"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    assert [name for name in available() if name.startswith("xpu")] == ["xpu:0", "xpu:1"]
