"""The mean over heads on a page: chosen, linked to, and drawn again by the command."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attnviz.report import RenderedFrom
from tests.browser import Open, number_in
from tests.made import random_maps
from tests.views.test_mean import show

pytestmark = pytest.mark.slow
N = 14  # tokens of the made-up film review


def test_a_mean_is_chosen_and_linked_to_as_a_head_is(shown: Open) -> None:
    maps = random_maps(n_layers=2, n_heads=3)
    report = replace(show(maps, head=("0,mean",)), render=RenderedFrom("a.safetensors", "--head 0,mean", ""))
    page = shown(report, "layer=1&head=0&digits=all")
    page.page.get_by_role("combobox", name="Map").select_option("layer 1, mean of 3 heads")
    page.page.wait_for_url("**#view=matrix&layer=1&head=mean&digits=all")
    page.hover(7, 3, N, N)
    mean = maps.weights[1, :, 7, 3].mean(dtype=np.float64)
    assert float(number_in(page.readout)) == pytest.approx(mean, abs=1e-7)
    assert page.page.locator("#command").inner_text() == "attnviz render a.safetensors --pick 1.mean"
    page.go("layer=0&head=mean&digits=all")
    assert page.page.get_by_role("combobox", name="Map").input_value() == "1"
    page.go("view=overview&sort=2")
    names = page.page.locator(".map").all_inner_texts()
    assert sorted(name.partition(":")[0] for name in names) == ["0.0", "0.mean", "1.0", "1.mean"]
