"""Options under "Which model" and "How to train": what attends, what it reads, and how it comes to be."""

from __future__ import annotations

from typing import Annotated, Any

from attnviz.cli.options_form import completing, flag, names_of
from attnviz.models import MODELS
from attnviz.specs import AttentionKind, KeepKind, NormKind, PoolKind, TokenizerKind

MODEL, TRAINING = "Which model", "How to train"

OPTIONS: dict[str, Any] = {
    "model": Annotated[
        str,
        flag(
            "--model",
            panel=MODEL,
            help=f"{names_of(MODELS)}, multi:N, random:N, a folder, or a name on the hub.",
            autocompletion=completing(MODELS),
        ),
    ],
    "heads": Annotated[int | None, flag("--heads", panel=MODEL, help="Heads: N for multi:N, 1 for single.")],
    "d_model": Annotated[int | None, flag("--d-model", panel=MODEL, help="Width of the model, shared by its heads.")],
    "layers": Annotated[int | None, flag("--layers", panel=MODEL, help="Layers of the model.")],
    "norm": Annotated[NormKind, flag("--norm", panel=MODEL, help="Layer norm before or after each sublayer.")],
    "pool": Annotated[PoolKind, flag("--pool", panel=MODEL, help="How the text's states become one vector.")],
    "bigrams": Annotated[
        int, flag("--bigrams", panel=MODEL, help="Pairs of words that get a vector of their own; 0 for none.")
    ],
    "causal": Annotated[bool, flag("--causal", panel=MODEL, help="Attend only to earlier tokens and to itself.")],
    "seed": Annotated[int, flag("--seed", panel=MODEL, help="Seed of what is random.")],
    "device": Annotated[str, flag("--device", panel=MODEL, help="auto, cpu, cuda, cuda:N or mps.")],
    "vocab": Annotated[
        str | None,
        flag(
            "--vocab",
            panel=MODEL,
            metavar="PATH",
            help="A tokenizer.json or its folder. Without it, the vocabulary is made from the texts of the split.",
        ),
    ],
    "tokenizer": Annotated[TokenizerKind | None, flag("--tokenizer", panel=MODEL, help="Kind of vocabulary to make.")],
    "max_tokens": Annotated[
        int | None, flag("--max-tokens", panel=MODEL, help="At most N tokens of a text; --keep says which.")
    ],
    "keep": Annotated[
        KeepKind | None,
        flag("--keep", panel=MODEL, help="The first N tokens, or N/2 of the beginning and of the end."),
    ],
    "show_padding": Annotated[
        bool, flag("--show-padding", panel=MODEL, help="Pad shorter texts to --max-tokens and show the padding.")
    ],
    "attention": Annotated[
        AttentionKind | None,
        flag("--attention", panel=MODEL, metavar="KIND", help="Of an encoder-decoder: encoder, decoder or cross."),
    ],
    "max_memory": Annotated[
        float, flag("--max-memory", panel=MODEL, help="GiB that the attention of one text may take.")
    ],
    "size": Annotated[int, flag("--size", panel=MODEL, help="Entries of the vocabulary, special tokens included.")],
    "min_frequency": Annotated[
        int, flag("--min-frequency", panel=MODEL, help="Rarer words do not enter the vocabulary.")
    ],
    "crop": Annotated[
        int, flag("--crop", panel=TRAINING, help="Tokens of a text in one step: fewer make training faster.")
    ],
    "epochs": Annotated[int, flag("--epochs", panel=TRAINING, help="Passes over the texts.")],
    "batch_size": Annotated[int, flag("--batch-size", panel=TRAINING, help="Texts in one step.")],
    "learning_rate": Annotated[
        float, flag("--learning-rate", panel=TRAINING, help="Largest rate of Adam; it rises, then falls.")
    ],
    "dropout": Annotated[
        float, flag("--dropout", panel=TRAINING, metavar="SHARE", help="Of embeddings and pooled encoding.")
    ],
    "word_dropout": Annotated[
        float, flag("--word-dropout", panel=TRAINING, metavar="SHARE", help="Words and pairs left out in a step.")
    ],
    "label_smoothing": Annotated[
        float, flag("--label-smoothing", panel=TRAINING, metavar="SHARE", help="Taken from the right label.")
    ],
    "patience": Annotated[
        int, flag("--patience", panel=TRAINING, help="Stop after so many epochs without a better one.")
    ],
}
