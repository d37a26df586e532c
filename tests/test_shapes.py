"""That `make shapes` notices an array of another shape."""

import pytest
import torch
from jaxtyping import TypeCheckError

from attnviz.models.attention import attention_weights


@pytest.mark.skipif(not hasattr(attention_weights, "__wrapped__"), reason="shapes are checked by `make shapes`")
def test_an_array_without_an_axis_is_refused() -> None:
    q = k = torch.zeros(1, 2, 3, 4)
    assert attention_weights(q, k).shape == (1, 2, 3, 3)
    with pytest.raises(TypeCheckError, match="k"):
        attention_weights(q, k[0])
