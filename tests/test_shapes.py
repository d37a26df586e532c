"""That tests notice an array of another shape, and spend nothing on calls without one."""

import pytest
import torch
from jaxtyping import TypeCheckError

from attnviz.models.attention import attention_weights
from attnviz.records import AttentionMaps, Tokens
from attnviz.views.tokens import label_token


@pytest.mark.parametrize("checked", [AttentionMaps.__init__, AttentionMaps.rows, attention_weights])
def test_what_takes_or_gives_arrays_is_checked(checked: object) -> None:
    assert hasattr(checked, "__wrapped__")


@pytest.mark.parametrize("other", [Tokens.__init__, Tokens.__len__, label_token])
def test_nothing_else_is(other: object) -> None:
    assert not hasattr(other, "__wrapped__")


def test_an_array_without_an_axis_is_refused() -> None:
    q = k = torch.zeros(1, 2, 3, 4)
    assert attention_weights(q, k).shape == (1, 2, 3, 3)
    with pytest.raises(TypeCheckError, match="k"):
        attention_weights(q, k[0])
