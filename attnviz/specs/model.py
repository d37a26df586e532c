"""Which model, and what a vocabulary of one holds: options of every command that has one."""

from dataclasses import dataclass
from typing import Annotated, Literal

from attnviz.options import MODEL, TEXT, Option

TokenizerKind = Literal["word", "bpe"]
KeepKind = Literal["head", "head-tail"]
NormKind = Literal["pre", "post"]
PoolKind = Literal["mean", "cls", "attention"]
StorageKind = Literal["float32", "float16", "int8"]
AttentionKind = Literal["self", "encoder", "decoder", "cross"]

MODELS = "attnviz.models:MODELS"
MAX_MEMORY = Option("GiB that the process may take for one text.", MODEL)
BUILT_IN = Option(
    "{names}, multi:N, random:N, or a checkpoint folder.", MODEL, table=MODELS, short="-m"
)  # none from the hub

# Options that several specs have, with defaults or types of their own.
Heads = Annotated[int | None, Option("Heads: N for multi:N, 1 for single.", MODEL)]
Width = Annotated[int | None, Option("Width of the model, shared by its heads.", MODEL)]
Layers = Annotated[int | None, Option("Layers of the model.", MODEL)]
Seed = Annotated[int, Option("Seed of what is random.", MODEL)]
Device = Annotated[str, Option("auto, cpu, cuda, cuda:N or mps.", MODEL)]
Tokenizer = Annotated[TokenizerKind | None, Option("Kind of vocabulary to make.", MODEL)]
MaxTokens = Annotated[int | None, Option("At most N tokens of a text; --keep says which.", MODEL)]
KEEP = Option("The first N tokens, or N/2 of the beginning and of the end.", MODEL)
Keep = Annotated[KeepKind, KEEP]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model, how it is made and what it reads."""

    model: Annotated[
        str, Option("{names}, multi:N, random:N, a folder, or a name on the hub.", MODEL, table=MODELS, short="-m")
    ] = "multi"
    heads: Heads = None  # short for multi:N
    d_model: Width = None  # None: the shipped model's, or 64 where none is shipped
    layers: Layers = None  # likewise, or 1
    causal: Annotated[bool, Option("Attend only to earlier tokens and to itself.", MODEL)] = False
    seed: Seed = 0
    device: Device = "auto"
    # None: the model's own, or made from the texts at hand
    vocab: Annotated[
        str | None,
        Option(
            "A tokenizer.json or its folder. Without it, the vocabulary is made from the texts of the split.",
            MODEL,
            "PATH",
        ),
    ] = None
    tokenizer: Tokenizer = None  # likewise, or word
    max_tokens: MaxTokens = None
    keep: Keep = "head"
    max_memory: Annotated[float, MAX_MEMORY] = 4.0
    show_padding: Annotated[bool, Option("Pad shorter texts to --max-tokens and show the padding.", MODEL)] = False


@dataclass(frozen=True, kw_only=True)
class VocabularyOptions:
    """What a vocabulary holds."""

    tokenizer: Tokenizer = "word"
    size: Annotated[int, Option("Entries of the vocabulary, special tokens included.", MODEL)] = 20_000
    min_frequency: Annotated[int, Option("Rarer words do not enter the vocabulary.", MODEL)] = 2


@dataclass(frozen=True, kw_only=True)
class PretrainedOptions:
    """What only some third-party models have."""

    # None: self; of an encoder-decoder cross with a target text, else encoder
    attention: Annotated[
        AttentionKind | None, Option("Of an encoder-decoder: encoder, decoder or cross.", MODEL, "KIND")
    ] = None
    pair: Annotated[str | None, Option("A second text, for models that read two.", TEXT, "TEXT")] = None
    target_text: Annotated[str | None, Option("What the decoder of an encoder-decoder has written.", TEXT, "TEXT")] = (
        None
    )
    generate: Annotated[
        int | None,
        Option(
            "Let the model write at most N tokens and draw them, too; rows are named by what they chose.", TEXT, "N"
        ),
    ] = None
    # None: always the most probable token
    temperature: Annotated[
        float | None, Option("Of --generate: draw tokens at random, by --seed; 1 as the model has them.", TEXT, "T")
    ] = None
