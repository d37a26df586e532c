"""The options of `attnviz train`, `attnviz predict` and `attnviz vocab`."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import FROM_0, FROM_1, FROM_2, MODEL, OUTPUT, TEXT, TRAINING, Limits, Only, Option
from attnviz.running.cluster_options import Processes
from attnviz.specs import (
    HEADS,
    KEEP,
    LAYERS,
    MAX_TOKENS,
    OF_DATA_SETS,
    WIDTH,
    WITHOUT,
    AnswerOrAll,
    Device,
    FigureOptions,
    Keep,
    KeepKind,
    MaxTokens,
    ModelOptions,
    NormKind,
    Out,
    PoolKind,
    PrintOptions,
    Seed,
    StorageKind,
    TextOptions,
    VocabularyOptions,
)

MOST_LAYERS = 1_000  # that a checkpoint may have, known here without torch
MOST_TOKENS = 1_000_000  # far beyond any text; neighbours still have positions of their own in float32
DISTANCE: Limits = (("at least", 0), ("at most", MOST_TOKENS))
HALF: Limits = (("at least", 0), ("below", 0.5))
SHARE: Limits = (("at least", 0), ("below", 1))
RATE: Limits = (("above", 0), ("at most", 1))


@dataclass(frozen=True, kw_only=True)
class VocabSpec:
    """Build a vocabulary from texts and save it as a tokenizer.json that other tools load.

    Example: attnviz vocab --dataset sample --size 2000 --min-frequency 2 --out vocabulary
    """

    text: Annotated[TextOptions, Only("text", "text_file", *OF_DATA_SETS)] = TextOptions()
    vocabulary: VocabularyOptions = VocabularyOptions()
    out: Out = "vocabulary"
    printing: PrintOptions = PrintOptions()


@dataclass(frozen=True, kw_only=True)
class TrainSpec:
    """Train a transformer encoder to classify texts, and save it as a folder that --model takes.

    Example: attnviz train --dataset imdb --heads 8 --out model
    """

    text: Annotated[TextOptions, Only(*OF_DATA_SETS)] = TextOptions()
    vocabulary: VocabularyOptions = VocabularyOptions(size=8_000)
    heads: Annotated[int, HEADS] = 8
    d_model: Annotated[int, WIDTH] = 128
    layers: Annotated[int, LAYERS._replace(limits=(("at least", 1), ("at most", MOST_LAYERS)))] = 1
    norm: Annotated[NormKind, Option("Layer norm before or after each sublayer.", MODEL)] = "pre"
    pool: Annotated[PoolKind, Option("How the text's states become one vector.", MODEL)] = "mean"
    max_distance: Annotated[
        int, Option("Tokens that a position bias per head tells apart; 0: sinusoids.", MODEL, limits=DISTANCE)
    ] = 48
    validation: Annotated[
        float, Option("Share of the texts to hold out.", TEXT, "SHARE", limits=HALF, is_common=True)
    ] = 0.1
    max_tokens: Annotated[int, MAX_TOKENS._replace(limits=(("at least", 2), ("at most", MOST_TOKENS)))] = 512
    keep: Keep = "head-tail"
    crop: Annotated[
        int, Option("Tokens of a text in one step: fewer make training faster.", TRAINING, limits=FROM_2)
    ] = 160
    pretrain: Annotated[
        int, Option("Passes over the texts without labels, before.", TRAINING, "EPOCHS", limits=FROM_0, is_common=True)
    ] = 1
    # None: 3e-3, and 1.2e-3 of one head, whose full width collapses onto few keys from about 4e-3 on
    pretrain_rate: Annotated[
        float | None, Option("Largest rate of Adam in these passes.", TRAINING, "RATE", limits=RATE)
    ] = None
    epochs: Annotated[int, Option("Passes over the texts.", TRAINING, limits=FROM_1, is_common=True)] = 2
    batch_size: Annotated[int, Option("Texts in one step.", TRAINING, limits=FROM_1)] = 32
    learning_rate: Annotated[
        float, Option("Largest rate of Adam; it rises, then falls.", TRAINING, "RATE", limits=RATE)
    ] = 1.5e-3
    dropout: Annotated[float, Option("Of the pooled encoding.", TRAINING, "SHARE", limits=SHARE)] = 0.3
    word_dropout: Annotated[float, Option("Words hidden in a step.", TRAINING, "SHARE", limits=SHARE)] = 0.2
    label_smoothing: Annotated[float, Option("Taken from the right label.", TRAINING, "SHARE", limits=SHARE)] = 0.05
    patience: Annotated[int, Option("Stop after so many epochs without a better one.", TRAINING, limits=FROM_1)] = 2
    seed: Seed = 0
    device: Device = "auto"
    storage: Annotated[StorageKind, Option("How the embeddings are stored; all else is float32.", OUTPUT)] = "int8"
    out: Out = "model"
    resume: Annotated[bool, Option("Go on with the run that stopped in --out.", OUTPUT, is_common=True)] = False
    printing: PrintOptions = PrintOptions()


PAGE = Option("html: also write all answers as a page.", OUTPUT, "NAME", is_common=True)


@dataclass(frozen=True, kw_only=True)
class PredictSpec:
    """Classify each text, with a probability that built-in models calibrate; given labels, say how often that is right.

    Example: attnviz predict --text "not a good film, but the acting saves it"
    """

    text: TextOptions = TextOptions()
    model: Annotated[ModelOptions, Only("model", "heads", "device", "max_memory", *WITHOUT)] = ModelOptions()
    max_tokens: MaxTokens = None  # None: as many as the model was made for
    keep: Annotated[KeepKind | None, KEEP] = None  # likewise
    figure: Annotated[FigureOptions, Only("format", "out", "open", format=PAGE)] = FigureOptions(format=())
    workers: Processes = None
    table: AnswerOrAll = "answer"
    printing: PrintOptions = PrintOptions()
