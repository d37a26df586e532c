"""Where a third-party model lies, and whether its files are what they should be. Knows the hub and files.

Nothing is unpickled and nothing that came with a model is run: only JSON, text and safetensors are read or fetched.
Imports neither torch nor transformers, so that a wrong name is answered at once.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from attnviz.bounded import MAX_JSON, MAX_VOCABULARY, check_file_size, check_room, compute_sha256, is_file, read_bytes
from attnviz.errors import InvalidModel, raising
from attnviz.models import MODELS
from attnviz.models.sizes import FLOAT32
from attnviz.models.tokenizer_bounds import check_tokenizer
from attnviz.registry import suggest_name
from attnviz.store.hub import explain_offline
from attnviz.store.tensors import read_header

TOKENIZER = "tokenizer.json"
CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
VOCABULARIES: tuple[str, ...] = ("tokenizer.json", "vocab.json", "vocab.txt")
VOCABULARIES += ("spiece.model", "tokenizer.model", "sentencepiece.bpe.model")
TEMPLATE = "chat_template.jinja"  # or a field of the next
ADDITIONS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", TEMPLATE)
PROCESSORS = ("preprocessor_config.json", "processor_config.json")  # of models that read images, or sounds
FETCHED = (  # never *.bin, *.pt or *.py
    *(CONFIG, "generation_config.json", WEIGHTS, INDEX, "model-*.safetensors"),
    *(*VOCABULARIES, "merges.txt", *ADDITIONS, *PROCESSORS, "video_preprocessor_config.json", "chat_template.json"),
)
PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "*.msgpack")
SAFE = "Save it as safetensors: model.save_pretrained(folder, safe_serialization=True)."
OLDEST = 5  # transformers
INSTALL = "Install it with: pip install 'attnviz[hf]'"
AGAIN = "Copy or fetch the folder again."
REMOVE = "Remove that folder, and install its package again if it is of one."
LAYERS = (
    "num_hidden_layers",
    "encoder_layers",
    "decoder_layers",
    "num_layers",
    "num_decoder_layers",
    "n_layer",
    "n_layers",
)
# By settings: a damaged number must not build names or layers until the memory is full.
MOST = {"num_labels": 100_000, "_num_labels": 100_000, **dict.fromkeys(LAYERS, 1_000)}
ADAPTER = "adapter_config.json"
# Names of settings that choose code: kernels, which the package `kernels` fetches from the hub and runs, modules that
# lie beside a model, patches of the library, and files other than those that were checked.
CHOICES = re.compile(
    r"(^|_)impl(ementation)?(_|$)|kernel|^auto_map$|^fusion_config$|^configuration_files$|^transformers_weights$"
)
FLAGS = ("use_mamba_kernels", "disable_custom_kernels")  # of packages that are installed, never of the hub
WIDENED = ("fp8", "mxfp4")  # numbers of few bits that become float32 by torch alone
REASONS = {  # by the error of the hub's library
    "RepositoryNotFoundError": "there is no such model, or it is private",
    "GatedRepoError": "its owner has to let you in first",
    "RevisionNotFoundError": "it has no such revision",
}
MAX_ADDITIONS = 2**23  # bytes: a token that is added there takes some 80 times its length


@dataclass(frozen=True)
class ModelFiles:
    """A model's folder, found whole: all weights are safetensors of the sizes that they announce."""

    folder: Path
    weights: tuple[Path, ...]
    sha256: str = ""  # that `compute_sha256` must give, where it is known
    origin: str = ""  # what records name in its place: the package that it comes from

    def revision(self) -> str:
        """Return what records say of which weights these are: sha256 of them, or where they come from.

        Raises InvalidModel where the digest is not the one that is known.
        """
        digests = [compute_sha256(file) for file in self.weights]
        found = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
        if self.sha256 and found != self.sha256:
            raise InvalidModel(f"the weights in {self.folder} have another sha256 than they had", hint=REMOVE)
        return self.origin or f"sha256:{found}"


def find_files(local: Path | None, hub: str, max_memory: float) -> ModelFiles:
    """Return the files of a model in a local folder, else of a name on the hub, fetched if they have to be and can be.

    Raises InvalidModel for what is not there or not whole and where `transformers` is missing, TooLarge where the
    weights would take more than `max_memory` GiB as float32; all before anything large is fetched or allocated.
    """
    folder = local if local is not None else _from_hub(hub, max_memory)
    check_installed()
    for file in FETCHED:  # what the library reads by itself; whether it is there, it says
        if file not in (CONFIG, WEIGHTS, INDEX) and is_file(folder / file):
            check_file_size(folder / file, MAX_ADDITIONS if file in ADDITIONS else MAX_VOCABULARY, InvalidModel, AGAIN)
    if is_file(folder / ADAPTER):
        problem = f"{folder} holds an adapter beside a model ({ADAPTER}), which is not read"
        raise InvalidModel(problem, hint="Merge it: model.merge_and_unload().save_pretrained(folder).")
    if is_file(folder / TOKENIZER):
        check_tokenizer(read_bytes(folder / TOKENIZER, MAX_VOCABULARY, InvalidModel, AGAIN), folder / TOKENIZER)
    weights = tuple(_weights(folder))
    n_parameters = sum(read_header(file, InvalidModel, AGAIN).n_numbers for file in weights)
    check_room(f"the weights of {hub or local} as float32", n_parameters * FLOAT32, max_memory)
    return ModelFiles(folder, weights)


def check_installed() -> None:
    """Raise InvalidModel where `transformers` is missing or too old. Does not import it."""
    with raising(InvalidModel, "third-party models need the package transformers", INSTALL, (PackageNotFoundError,)):
        found = version("transformers")
    if int(found.partition(".")[0]) < OLDEST:
        raise InvalidModel(f"transformers {found} is too old, {OLDEST}.0 is the oldest", hint=INSTALL)


def configuration(folder: Path) -> dict[str, Any]:
    """Return the config.json of a folder. Raises InvalidModel for what is no JSON object."""
    with raising(InvalidModel, f"{folder / CONFIG} is not JSON", AGAIN):
        read = json.loads(read_bytes(folder / CONFIG, MAX_JSON, InvalidModel, AGAIN))
    if not isinstance(read, dict):
        raise InvalidModel(f"{folder / CONFIG} holds no settings", hint=AGAIN)
    return read


def drop_choices(settings: Any, where: Path) -> Any:
    """Return the settings of a config.json without those that choose code, in parts of a model too.

    A size stays, whatever its name. Raises InvalidModel for weights that only kernels could read, and for more labels
    or layers than a model has, each of which would be built.
    """
    if isinstance(settings, list):
        return [drop_choices(each, where) for each in settings]
    if not isinstance(settings, dict):
        return settings
    for name in MOST.keys() & settings.keys():
        if isinstance(settings[name], int | float) and settings[name] > MOST[name]:
            problem = f"{where} says {settings[name]:,.0f} {name.rpartition('_')[2]}"
            raise InvalidModel(problem, hint=f"At most {MOST[name]:,} are read.")
    chooses = {name for name in settings if name not in FLAGS and CHOICES.search(name)}
    kept = {name: value for name, value in settings.items() if _is_size(value) or name not in chooses}
    if quantized := kept.pop("quantization_config", None):
        method = quantized.get("quant_method") if isinstance(quantized, dict) else None
        if method not in WIDENED:
            hint = "Save it with whole weights: model.dequantize(), then model.save_pretrained(folder)."
            raise InvalidModel(f"{where} says that its weights are quantized ({str(method)[:40]})", hint=hint)
        kept["quantization_config"] = quantized | {"dequantize": True}
    return {name: drop_choices(value, where) for name, value in kept.items()}


def _is_size(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_size, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def knows_chats(folder: Path) -> bool:
    """Return whether a model's folder holds a template that messages are written by."""
    settings = folder / ADDITIONS[0]
    written = read_bytes(settings, MAX_ADDITIONS, InvalidModel) if is_file(settings) else b""
    return is_file(folder / TEMPLATE) or b'"chat_template"' in written


def _from_hub(written: str, max_memory: float) -> Path:
    """Return the folder of a snapshot in the cache; online, of one that is fetched."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    repository, _, revision = written.partition("@")
    offline = explain_offline("TRANSFORMERS_OFFLINE")
    wanted: dict[str, Any] = {"repo_id": repository, "revision": revision or None, "allow_patterns": list(FETCHED)}
    try:
        if offline:
            return Path(snapshot_download(**wanted, local_files_only=True))
        about = HfApi().model_info(repository, revision=revision or None, files_metadata=True, timeout=20)
        stored = sum(each.size or 0 for each in about.siblings or () if each.rfilename.endswith(".safetensors"))
        check_room(f"the weights of {written}", stored, max_memory)
        return Path(snapshot_download(**wanted))
    except LocalEntryNotFoundError as error:
        raise InvalidModel(
            f"no model or folder {written!r} here, none in the cache of the hub, and {offline or 'the hub has none'}",
            hint=f"Give the folder of a model, or a name: {', '.join(model.name for model in MODELS)}.",
        ) from error
    except (HfHubHTTPError, OSError, ValueError) as error:
        hint = "Check the name, log in with `hf auth login` if it is gated, or give a folder."
        if "/" not in repository:
            hint = suggest_name(repository, [model.name for model in MODELS])
        said = [REASONS.get(type(error).__name__), *str(error).strip().splitlines()[:1], type(error).__name__]
        reason = next(filter(None, said))  # without the advice and addresses of the hub's library
        raise InvalidModel(f"{written!r} cannot be had from the hub: {reason}", hint=hint) from error


def _weights(folder: Path) -> Iterator[Path]:
    """Yield the safetensors of a folder, those of an index in the order of their names."""
    if is_file(folder / WEIGHTS):
        yield folder / WEIGHTS
        return
    if not is_file(folder / INDEX):
        pickled = sorted(file.name for pattern in PICKLED for file in folder.glob(pattern))
        if pickled:
            problem = f"{folder} has its weights only in {pickled[0]}, a form that can run code when it is read"
            raise InvalidModel(problem, hint=SAFE)
        raise InvalidModel(f"{folder} holds no {WEIGHTS}", hint=AGAIN)
    with raising(InvalidModel, f"{folder / INDEX} is not an index of safetensors", AGAIN):
        names = set(json.loads(read_bytes(folder / INDEX, MAX_JSON, InvalidModel, AGAIN))["weight_map"].values())
        plain = all(
            isinstance(name, str) and Path(name).name == name and name.endswith(".safetensors") for name in names
        )
    if not plain or not names:
        raise InvalidModel(f"{folder / INDEX} names files that are not safetensors of this folder", hint=AGAIN)
    for name in sorted(names):
        if not is_file(folder / name):
            raise InvalidModel(f"{folder} lacks {name}, which {INDEX} names", hint=AGAIN)
        yield folder / name
