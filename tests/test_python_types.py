"""What Python alone can hand over: values of other types than are asked for end in one line of attnviz's own.

Types are checked at run time only in tests, so here they are not.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

import attnviz
from attnviz.errors import AttnvizError, InvalidOption, InvalidRecord, InvalidSelection
from attnviz.models.recording.record import Recording
from tests.made import random_maps

pytestmark = pytest.mark.usefixtures("without_shape_checks")
THIRDS = np.full((2, 3, 3), 1 / 3)
NO_TEXTS = [("model", 5), ("model", torch.nn.Linear(2, 2)), ("text_name", None), ("trained", "yes")]


@pytest.mark.parametrize(("name", "value"), [*NO_TEXTS, ("revision", None), ("revision", 3)])
def test_what_a_file_could_not_hold_is_refused_before_the_model_runs(name: str, value: Any) -> None:
    wrong: dict[str, Any] = {name: value}
    with pytest.raises(InvalidRecord, match=rf"{name} of a record is of type \w+\. It is"), attnviz.record(**wrong):
        pytest.fail("the block ran")


@pytest.mark.parametrize(("name", "value"), NO_TEXTS)
def test_nor_is_it_taken_with_weights(name: str, value: Any) -> None:
    wrong: dict[str, Any] = {name: value}
    with pytest.raises(InvalidRecord, match=f"{name} of a record is of type"):
        attnviz.from_attentions(THIRDS, **wrong)


def test_a_recording_of_one_is_saved(tmp_path: Path) -> None:
    maps, path = random_maps(), tmp_path / "a.safetensors"
    attnviz.save(Recording([maps]), path)
    before = path.read_bytes()
    attnviz.save(maps, path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(("several", "said"), [(2, "these are 2 records. Choose one"), (0, "a list is no record")])
def test_what_is_not_one_record_replaces_no_file(several: int, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"mine")
    with pytest.raises(InvalidRecord, match=said):
        attnviz.save([random_maps()] * several, path)
    with pytest.raises(InvalidRecord, match="a NoneType is no record"):
        attnviz.save(None, path)  # type: ignore[arg-type]
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize("path", [5, None, b"a.safetensors"])
def test_what_is_no_path_is_refused(path: Any) -> None:
    for use in (lambda: attnviz.load(path), lambda: attnviz.save(random_maps(), path)):
        with pytest.raises(InvalidOption, match=rf"path is of type {type(path).__name__}\. It is a text"):
            use()


FIGURE: list[tuple[dict[str, Any], str]] = [
    ({"width": 3}, r"width=3 is of type int, not str \| None\. Lay figures out for this width"),
    ({"columns": "2"}, r"columns='2' is of type str, not int \| None\. How many heads side by side"),
    ({"columns": True}, "columns=True is of type bool, not int"),
    ({"font_size": "x"}, "font_size='x' is of type str, not float"),
    ({"title": 5}, "title=5 is of type int, not str"),
    ({"cmap": None}, "cmap=None is of type NoneType, not str"),
    ({"annotate": "yes"}, "annotate='yes' is of type str, not bool"),
    ({"scale": 5}, "scale=5 is of type int, not Literal"),
    ({"scale": np.zeros((2, 2))}, "scale=array.* is of type ndarray, not Literal"),
    ({"ax": Figure().subplots(1, 2), "head": 0, "layer": 0}, r"a ndarray is no axes of matplotlib.*ax=axes\[0\]"),
]
MODEL: list[tuple[Any, dict[str, Any], str]] = [
    (5, {}, "text=5 is of type int, not str"),
    (["a b"], {}, r"text=\['a b'\] is of type list, not str"),
    ("x", {"model": None}, "model=None is of type NoneType, not str. single, multi"),
    ("x", {"layers": 2.0}, "layers=2.0 is of type float, not int"),
    ("x", {"seed": 1.5}, "seed=1.5 is of type float, not int"),
    ("x", {"max_memory": "1"}, "max_memory='1' is of type str, not float"),
]
WEIGHTS: list[tuple[Any, dict[str, Any], type[AttnvizError], str]] = [
    (THIRDS, {"row": "0"}, InvalidSelection, "no row '0' in a batch of 1"),
    (torch.full((1, 2, 3, 3), 1 / 3, device="meta"), {}, InvalidRecord, "no arrays of one shape of numbers"),
    (THIRDS.astype(complex), {}, InvalidRecord, "complex numbers are no attentions"),
    ([torch.full((1, 2, 3, 3), 1 / 3, dtype=torch.complex64)], {}, InvalidRecord, "complex numbers are no attentions"),
]


def refused(call: Callable[[], object], said: str, kind: type[AttnvizError] = InvalidOption) -> None:
    with pytest.raises(kind, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("settings", "said"), FIGURE, ids=str)
def test_a_figures_setting_of_another_type(settings: dict[str, Any], said: str) -> None:
    refused(lambda: attnviz.heatmap(random_maps(), **settings), said)
    if "ax" not in settings:
        refused(lambda: attnviz.show(random_maps(), **settings), said)


@pytest.mark.parametrize(("text", "settings", "said"), MODEL, ids=str)
def test_a_text_or_a_models_setting_of_another_type(text: Any, settings: dict[str, Any], said: str) -> None:
    refused(lambda: attnviz.attention(text, **settings), said)


@pytest.mark.parametrize(("weights", "options", "kind", "said"), WEIGHTS, ids=range(len(WEIGHTS)))
def test_weights_that_are_none(weights: Any, options: dict[str, Any], kind: type[AttnvizError], said: str) -> None:
    refused(lambda: attnviz.from_attentions(weights, **options), said, kind)


@pytest.mark.parametrize("name", [None, ["entropy"]])
def test_a_measure_that_is_no_name(name: Any) -> None:
    refused(lambda: attnviz.measure(random_maps(), name), "name=.* not str. `attnviz measures` lists them")


def test_comparing_takes_the_scales_that_figures_take() -> None:
    wrong: Any = "x"
    refused(lambda: attnviz.compare(random_maps(), random_maps(), scale=wrong), "scale='x' is no choice")


def test_numbers_may_be_numpys_and_none_is_no_setting() -> None:
    numbers: dict[str, Any] = {"columns": np.int64(2), "font_size": np.float32(8), "annotate": np.bool_(True)}
    absent: dict[str, Any] = dict.fromkeys(("pick", "layer", "head", "query", "merge", "title", "width"))
    assert attnviz.heatmap(random_maps(), **numbers, **absent).axes
    row: Any = np.int64(0)
    assert attnviz.from_attentions([THIRDS], row=row).n_heads == 2
