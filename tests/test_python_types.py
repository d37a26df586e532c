"""What Python alone can hand over: values of other types than are asked for end in one line of attnviz's own.

Types are checked at run time only in tests, so here they are not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attnviz
from attnviz.errors import InvalidRecord
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
