"""The options of `attnviz train`, `attnviz predict` and `attnviz vocab`."""

from dataclasses import dataclass

from attnviz import specs
from attnviz.models.sizes import MAX_LAYERS
from attnviz.options import FROM_0, FROM_1, FROM_2, MODEL, OUTPUT, TEXT, TRAINING, Limits, common, group, option

MAX_LENGTH = 1_000_000  # far beyond any text; neighbours still have positions of their own in float32
DISTANCE: Limits = (("at least", 0), ("at most", MAX_LENGTH))
HALF: Limits = (("above", 0), ("below", 0.5))
SHARE: Limits = (("at least", 0), ("below", 1))
RATE: Limits = (("above", 0), ("at most", 1))


@dataclass(frozen=True, kw_only=True)
class VocabSpec:
    """Build a vocabulary from texts and save it as a tokenizer.json that other tools load.

    Example: attnviz vocab --dataset sample --size 2000 --min-frequency 2 --out vocabulary
    """

    text: specs.TextOptions = group(specs.TextOptions(), "text", "text_file", *specs.OF_DATA_SETS)
    vocabulary: specs.VocabularyOptions = specs.VocabularyOptions()
    out: str = specs.OUT.field("vocabulary")
    printing: specs.PrintOptions = specs.PrintOptions()


@dataclass(frozen=True, kw_only=True)
class TrainSpec:
    """Train a transformer encoder to classify texts, and save it as a folder that --model takes.

    Example: attnviz train --dataset imdb --heads 8 --out model
    """

    text: specs.TextOptions = group(specs.TextOptions(), *specs.OF_DATA_SETS)
    vocabulary: specs.VocabularyOptions = specs.VocabularyOptions(size=8_000)
    heads: int = specs.HEADS.field(8)
    d_model: int = specs.WIDTH.field(128)
    layers: int = specs.LAYERS._replace(limits=(("at least", 1), ("at most", MAX_LAYERS))).field(1)
    norm: specs.NormKind = option("pre", "Layer norm before or after each sublayer.", MODEL)
    pool: specs.PoolKind = option("mean", "How the text's states become one vector.", MODEL)
    max_distance: int = option(
        48, "Tokens that a position bias per head tells apart; 0: sinusoids.", MODEL, limits=DISTANCE
    )
    validation: float = common(0.1, "Share of the texts to hold out.", TEXT, "SHARE", limits=HALF)
    max_tokens: int = specs.MAX_TOKENS._replace(limits=(("at least", 2), ("at most", MAX_LENGTH))).field(512)
    keep: specs.KeepKind = specs.KEEP.field("head-tail")
    crop: int = option(160, "Tokens of a text in one step: fewer make training faster.", TRAINING, limits=FROM_2)
    pretrain: int = common(1, "Passes over the texts without labels, before.", TRAINING, "EPOCHS", limits=FROM_0)
    # None: 3e-3, and 1.2e-3 of one head, whose full width collapses onto few keys from about 4e-3 on
    pretrain_rate: float | None = option(None, "Largest rate of Adam in these passes.", TRAINING, "RATE", limits=RATE)
    epochs: int = common(2, "Passes over the texts.", TRAINING, limits=FROM_1)
    batch_size: int = option(32, "Texts in one step.", TRAINING, limits=FROM_1)
    learning_rate: float = option(1.5e-3, "Largest rate of Adam; it rises, then falls.", TRAINING, "RATE", limits=RATE)
    dropout: float = option(0.3, "Of the pooled encoding.", TRAINING, "SHARE", limits=SHARE)
    word_dropout: float = option(0.2, "Words hidden in a step.", TRAINING, "SHARE", limits=SHARE)
    label_smoothing: float = option(0.05, "Taken from the right label.", TRAINING, "SHARE", limits=SHARE)
    patience: int = option(2, "Stop after so many epochs without a better one.", TRAINING, limits=FROM_1)
    seed: int = specs.SEED.field(0)
    device: str = specs.DEVICE.field("auto")
    storage: specs.StorageKind = option("int8", "How the embeddings are stored; all else is float32.", OUTPUT)
    out: str = specs.OUT.field("model")
    resume: bool = common(False, "Go on with the run that stopped in --out.", OUTPUT)
    printing: specs.PrintOptions = specs.PrintOptions()


@dataclass(frozen=True, kw_only=True)
class PredictSpec:
    """Classify each text, with a probability that built-in models calibrate; given labels, say how often that is right.

    Example: attnviz predict --text "not a good film, but the acting saves it"
    """

    text: specs.TextOptions = specs.TextOptions()
    model: specs.ModelOptions = group(specs.ModelOptions(), "model", "heads", "device", "max_memory", "without")
    max_tokens: int | None = specs.MAX_TOKENS_FROM_2.field(None)  # None: as many as the model was made for
    keep: specs.KeepKind | None = specs.KEEP.field(None)  # likewise
    table: specs.AnswerKind = specs.TABLE.field("answer")
    printing: specs.PrintOptions = specs.PrintOptions()
