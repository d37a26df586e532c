"""From the weights that capacity.py trained to the models `recall:1` to `recall:8`, as checkpoints.

`python docs/studies/recall_models.py DIR attnviz/data/models`, DIR being what capacity.py wrote to.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from capacity import GRID, ITEMS, N_VALUES, STEPS, Kind
from safetensors.torch import load_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import WhitespaceSplit
from torch import Tensor

from attnviz.models.checkpoint import Checkpoint, Classifier, ClassifierConfig, save_checkpoint
from attnviz.models.encoder import EncoderConfig
from attnviz.models.tokenizer import SPECIAL, UNKNOWN, TextTokenizer

ROLES = "abcdefgh"
HIDDEN = -1e4  # added to a score whose weight then is 0
NAMES = {
    **{f"encoder.blocks.0.attention.{name}": name[0] for name in ("query", "key", "value", "output")},
    "encoder.blocks.0.attention_residual.norm": "norm1",
    "encoder.blocks.0.feed_forward.0": "up",
    "encoder.blocks.0.feed_forward.2": "down",
    "encoder.blocks.0.feed_forward_residual.norm": "norm2",
    "output": "answer",
}
CARD = """# Recall, with {heads}

Reads 24 tokens such as `5 a3 b7 12`, of which each of a to h stands once, and recalls the value of each. Trained by
`docs/studies/capacity.py` for {steps:,} steps; docs/heads.md says how well it does.

Only [CLS] was trained to attend: `--query 0` draws what it looks at. The label a3 says that a has the value 3; its
logit was trained beside those of a0 to a15 only, so that probabilities of other letters do not compare.
"""


def checkpoint(kind: Kind, weights: dict[str, Tensor]) -> Checkpoint:
    """One network as a classifier. Its query is [CLS]; by a bias no token attends to itself, so neither does [CLS]."""
    roles, values = weights["tokens"].split([kind.items + 1, N_VALUES])
    sums = (roles.unsqueeze(1) + values).flatten(0, 1)
    words = [*SPECIAL, *(f"{role}{value}" for role in ("", *ROLES[: kind.items]) for value in range(N_VALUES))]
    sizes = EncoderConfig(
        len(words), kind.width, kind.heads, d_feed_forward=2 * kind.width, norm="post", max_distance=1
    )
    classifier = Classifier(ClassifierConfig(sizes, tuple(words[len(SPECIAL) + N_VALUES :]), "cls"))
    state = classifier.state_dict()
    state |= {f"{name}.{part}": weights[f"{NAMES[name]}.{part}"] for name in NAMES for part in ("weight", "bias")}
    state["encoder.embedding.words.weight"] = torch.cat([torch.zeros(2, kind.width), weights["query"][None], sums])
    state["encoder.blocks.0.attention.position.bias"] = torch.tensor([[0.0, HIDDEN, 0.0]] * kind.heads)
    classifier.load_state_dict(state)
    vocabulary = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token=UNKNOWN))
    vocabulary.normalizer, vocabulary.pre_tokenizer = Lowercase(), WhitespaceSplit()
    return Checkpoint(classifier.eval(), TextTokenizer(vocabulary, classify=True), kind.length + 1, "head")


def main() -> None:
    """Write a folder for each number of heads."""
    found, models = map(Path, sys.argv[1:])
    for (heads, items), kind in GRID.items():
        if items == max(ITEMS):
            folder = models / f"recall-{heads}"
            save_checkpoint(folder, checkpoint(kind, load_file(found / kind.slug)))
            card = CARD.format(heads=f"{heads} head{'s' * (heads > 1)}", steps=STEPS)
            (folder / "README.md").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    main()
