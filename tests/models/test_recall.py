"""The models that recall: checkpoints of the ordinary kind, trained by docs/studies/capacity.py."""

from __future__ import annotations

import pytest
import torch

from attnviz.models.built_in import RECALL
from attnviz.models.protocols import Classifies
from tests.pretrained import opened

TEXT = "5 a3 b7 12 c0 d15 h1 9 e4 g2 f11 8"


@pytest.mark.parametrize("heads", RECALL)
def test_the_query_attends_to_items_and_never_to_itself(heads: str) -> None:
    model = opened(f"recall:{heads}", Classifies)
    maps = model.attention(TEXT)
    assert (maps.n_heads, maps.keys.pieces) == (int(heads), ("[CLS]", *TEXT.split()))
    query = maps.weights[0, :, 0]
    assert (query[:, 0] == 0.0).all()
    assert query[:, [piece[0].isalpha() for piece in maps.keys.pieces]].sum() > 0.95 * int(heads)


def test_eight_heads_recall_every_value() -> None:
    model = opened("recall", Classifies)
    ids, real = torch.tensor([model.encode(TEXT).ids]), torch.ones(1, 13, dtype=torch.bool)
    with torch.inference_mode():
        logits = model.saved.classifier(ids, real)
    best = logits.view(8, 16).argmax(dim=-1).tolist()
    assert {f"{role}{value}" for role, value in zip("abcdefgh", best, strict=True)} < set(TEXT.split())
