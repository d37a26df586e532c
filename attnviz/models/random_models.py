"""Models with random weights: the same for the same seed and vocabulary on every device."""

from collections.abc import Iterable
from dataclasses import asdict

from attnviz.bounded import expand_path
from attnviz.errors import InvalidModel
from attnviz.models import tokenizer
from attnviz.models.device import enough_memory, pick, seeded
from attnviz.models.encoder import DotEncoder, Encoder, EncoderConfig
from attnviz.models.encoder_model import EncoderModel
from attnviz.specs import ModelOptions, VocabularyOptions


def random_model(
    name: str, spec: ModelOptions, sizes: tuple[int, int, int], texts: Iterable[str], *, projected: bool
) -> EncoderModel:
    """Make a model of so many layers, heads and numbers, its vocabulary of `texts` or of the file that `spec` names.

    Without being `projected` its q, k and v are the embeddings themselves.
    """
    (n_layers, n_heads, d_model), device = sizes, pick(spec.device)
    with enough_memory():
        if spec.vocab is None:
            vocabulary = tokenizer.train(texts, VocabularyOptions(tokenizer=spec.tokenizer, min_frequency=1))
        else:
            vocabulary = tokenizer.load(expand_path(spec.vocab, InvalidModel))
        with seeded(spec.seed):
            config = EncoderConfig(len(vocabulary), d_model, n_heads, n_layers, 4 * d_model)
            encoder = Encoder(config) if projected else DotEncoder(len(vocabulary), d_model)
    settings = asdict(config) if projected else {"n_words": len(vocabulary), "d_model": d_model}
    return EncoderModel(
        name=name,
        revision=f"random, seed {spec.seed}",
        trained=False,
        tokenizer=vocabulary,
        spec=spec,
        settings=(*settings.items(), ("seed", spec.seed)),
        encoder=encoder.eval().to(device),
        device=device,
    )
