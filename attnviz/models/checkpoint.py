"""A classifier, and how it lies in a folder.

From an encoded text to a label it takes pooling and one linear layer. The folder holds model.safetensors,
tokenizer.json and config.json, never pickle: embeddings in fewer bits, all else in float32.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from math import inf
from pathlib import Path

import safetensors.torch
import torch
from jaxtyping import Bool, Float, Int
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn import functional

from attnviz import store
from attnviz.bounded import MAX_JSON, check_room, decode_versioned, read_bytes
from attnviz.errors import InvalidModel, raising, summarize
from attnviz.models import tokenizer
from attnviz.models.encoder import Encoder, EncoderConfig
from attnviz.models.sizes import MAX_D_MODEL, MAX_LAYERS
from attnviz.models.tokenizer import TextTokenizer
from attnviz.specs import KeepKind, PoolKind, StorageKind
from attnviz.store.tensors import read_header

STEPS = 100  # of the search for a temperature, which ends far earlier


@dataclass(frozen=True)
class ClassifierConfig:
    """An encoder, how its states become one vector, and the names of the labels."""

    encoder: EncoderConfig
    labels: tuple[str, ...] = ("negative", "positive")
    pool: PoolKind = "mean"


class Classifier(nn.Module):
    """Encoder, pooling, dropout, linear layer.

    `temperature` divides the logits so that probabilities are calibrated. `dropout` (of the pooled encoding) and
    `reach` (see `TextEmbedding`) are at work in training only.
    """

    temperature: Tensor

    def __init__(self, config: ClassifierConfig, dropout: float = 0.0, reach: int = 0) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config.encoder, reach)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(config.encoder.d_model, len(config.labels))
        self.register_buffer("temperature", torch.ones(()))

    def forward(self, ids: Int[Tensor, "text token"], real: Bool[Tensor, "text token"]) -> Float[Tensor, "text label"]:
        """Return logits, not yet divided by the temperature. `real` is False for padding."""
        return self.classify(self.states(ids, real), real)

    def states(
        self, ids: Int[Tensor, "text token"], real: Bool[Tensor, "text token"], *, need_weights: bool = False
    ) -> Float[Tensor, "text token d"]:
        """Return what the encoder makes of each token."""
        attendable = real.unsqueeze(-2)  # no query attends to padding
        return torch.as_tensor(self.encoder(ids, attendable, need_weights=need_weights))

    def classify(
        self, states: Float[Tensor, "text token d"], real: Bool[Tensor, "text token"]
    ) -> Float[Tensor, "text label"]:
        """Return logits of each text from the states of its tokens, `real` but for padding.

        Pooled are the states of the first token, a [CLS] (Devlin et al. 2019, arXiv:1810.04805), or the mean over all.
        """
        counted = real.unsqueeze(-1)
        pooled = states[:, 0] if self.config.pool == "cls" else (states * counted).sum(dim=1) / counted.sum(dim=1)
        return torch.as_tensor(self.output(self.dropout(pooled)))


def fit_temperature(logits: Float[Tensor, "text label"], labels: Int[Tensor, " text"]) -> float:
    """Fit the temperature of the least cross-entropy (Guo et al. 2017, arXiv:1706.04599). Fit it on texts held out.

    It changes no label, as it divides all logits alike.
    """
    logits = logits.detach().cpu().double()
    log_temperature = torch.zeros((), dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([log_temperature], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> float:
        search.zero_grad()
        value = functional.cross_entropy(logits / log_temperature.exp(), labels)
        value.backward()  # type: ignore[no-untyped-call]
        return value.item()

    search.step(loss)  # type: ignore[no-untyped-call]
    # Logits that are never wrong want an infinite one: no further than to a tenth or tenfold.
    return float(log_temperature.detach().exp().clamp(0.1, 10.0))


SCHEMA = 3
MAX_SIZE = 2**31 - 1  # of any size in a configuration
WHILE_READ = 6  # the file, its tensors, and these as float32, each at most four times as large
# A damaged number must not build layers until the memory is full.
LARGEST = {"n_layers": MAX_LAYERS, "d_model": MAX_D_MODEL}
WEIGHTS, VOCABULARY, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
HOLDS = f"A checkpoint holds {WEIGHTS}, {VOCABULARY}, {CONFIG}."
MAX_INT8 = 127  # of int8, symmetric around 0
SCALE = ".scale"  # beside a matrix of int8: what a one stands for in each of its rows


@dataclass(frozen=True, kw_only=True)
class Config(ClassifierConfig):
    """What config.json says beside its schema."""

    trained: bool
    max_tokens: int
    keep: KeepKind


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A classifier, its vocabulary and how much of a text it reads. `revision` is the sha256 of the weights' file."""

    classifier: Classifier
    tokenizer: TextTokenizer
    max_tokens: int
    keep: KeepKind
    trained: bool = True
    revision: str = ""


def save_checkpoint(folder: Path, saved: Checkpoint, storage: StorageKind = "float32") -> None:
    """Write the three files, the weights last: until then an older checkpoint of the same shape stays whole."""
    config = {
        "schema": SCHEMA,
        "trained": saved.trained,
        "max_tokens": saved.max_tokens,
        "keep": saved.keep,
        **asdict(saved.classifier.config),
    }
    store.make_folder(folder)
    store.write(folder / VOCABULARY, saved.tokenizer.to_json().encode())
    store.write(folder / CONFIG, (json.dumps(config, indent=2) + "\n").encode())
    modules = saved.classifier.named_modules()
    embeddings = frozenset(f"{name}.weight" for name, module in modules if isinstance(module, nn.Embedding))
    packed = pack_weights(saved.classifier.state_dict(), embeddings, storage)
    store.write(folder / WEIGHTS, bytes(safetensors.torch.save(packed)))


def load_checkpoint(folder: Path, max_memory: float = 4.0) -> Checkpoint:
    """Load what `save_checkpoint` wrote.

    Raises InvalidModel naming the file that is missing, damaged or does not fit, TooLarge before weights that take more
    than `max_memory` GiB while they are read.
    """
    config = _read_config(folder / CONFIG)
    n_bytes = read_header(folder / WEIGHTS, InvalidModel, HOLDS).n_bytes
    check_room(f"the weights of {folder}", WHILE_READ * n_bytes, max_memory)
    data = read_bytes(folder / WEIGHTS, inf, InvalidModel, HOLDS)
    vocabulary = tokenizer.load(folder / VOCABULARY, classify=config.pool == "cls")
    if len(vocabulary) > config.encoder.n_words:
        raise InvalidModel(
            f"{folder / VOCABULARY} has {len(vocabulary)} entries, {folder / CONFIG} says {config.encoder.n_words}",
            hint="The files are of two checkpoints.",
        )
    told = (SafetensorError, RuntimeError, KeyError, TypeError, ValueError)
    say = partial(summarize, most=None)
    with raising(InvalidModel, f"{folder / WEIGHTS} does not fit {CONFIG}:", "Copy the folder again.", told, say):
        with torch.device("meta"):  # sizes only: what the file holds is checked before memory is taken
            classifier = Classifier(ClassifierConfig(config.encoder, config.labels, config.pool))
        classifier.load_state_dict(unpack_weights(safetensors.torch.load(data)), strict=True, assign=True)
    if not all(bool(tensor.isfinite().all()) for tensor in classifier.state_dict().values()):
        raise InvalidModel(f"{folder / WEIGHTS} holds numbers that are not finite", hint="Copy the folder again.")
    if not (temperature := float(classifier.temperature)) > 0:
        problem = f"temperature {temperature:g} in {folder / WEIGHTS} must be greater than 0: logits are divided by it"
        raise InvalidModel(problem, hint="Copy the folder again.")
    revision = hashlib.sha256(data).hexdigest()
    return Checkpoint(classifier.eval(), vocabulary, config.max_tokens, config.keep, config.trained, revision)


def _read_config(file: Path) -> Config:
    with raising(InvalidModel, f"{file} is not an attnviz configuration:", "Copy the folder again."):
        data = read_bytes(file, MAX_JSON, InvalidModel, HOLDS)
        config: Config = decode_versioned(Config, data, SCHEMA, "")
        if len(set(config.labels)) < max(2, len(config.labels)):
            raise ValueError("labels are two names or more, no two of them alike")
        for name, number in {**vars(config.encoder), "max_tokens": config.max_tokens}.items():
            least, most = int(name != "max_distance"), LARGEST.get(name, MAX_SIZE)
            if name != "norm" and not least <= number <= most:
                raise ValueError(f"{name} is {least} to {most:,}")
    return config


def pack_weights(weights: Mapping[str, Tensor], embeddings: frozenset[str], storage: StorageKind) -> dict[str, Tensor]:
    """Pack the weights named in `embeddings` as `storage`; int8 is 127 steps on either side of 0, a scale per row."""
    found: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        tensor = tensor.detach().cpu().contiguous()
        if name not in embeddings or storage == "float32":
            found[name] = tensor
        elif storage == "float16":
            found[name] = tensor.half()
        else:
            largest = tensor.abs().amax(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
            scale = (largest / MAX_INT8).bfloat16()  # of float32's range, in half the bytes
            found[name] = (tensor / scale.float()).round().clamp(-MAX_INT8, MAX_INT8).to(torch.int8)
            found[name + SCALE] = scale
    return found


def unpack_weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Unpack what `pack_weights` packed, but for rounding. Raises KeyError for int8 without a scale."""
    found = {name: tensor for name, tensor in tensors.items() if not name.endswith(SCALE)}
    for name, tensor in found.items():
        if tensor.dtype == torch.int8:
            found[name] = tensor.float() * tensors[name + SCALE].float()
        elif tensor.is_floating_point():
            found[name] = tensor.float()
    return found
