"""Third-party weights, loaded by `transformers`, which is imported when a model is opened. None of their code is run.

Their weights are safetensors, their classes those of the library, and nothing asks on standard input.
"""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from inspect import signature
from typing import Any, Literal, NoReturn
from unittest.mock import patch

import torch

from attnviz.bounded import check_room, is_file
from attnviz.errors import AttnvizError, ExecutionError, InvalidModel
from attnviz.models.huggingface.files import CONFIG, VOCABULARIES, ModelFiles, configuration, drop_choices
from attnviz.models.huggingface.tokens import HuggingFaceTokenizer
from attnviz.models.sizes import FLOAT32
from attnviz.models.tokenizer_bounds import is_panic

UNUSED = ("pooler",)  # what stands behind all attention, so that a model without it attends as it should
HeadKind = Literal["none", "tokens", "masked", "labels", "images"]
HEADS: dict[HeadKind, str] = {  # classes of the library, by what stands upon a body
    "none": "AutoModel",
    "tokens": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "labels": "AutoModelForSequenceClassification",
}
OF_TEXT = ("input_ids", "attention_mask", "position_ids", "token_type_ids")  # inputs that text gives
STDOUT = 1  # as the system counts a process's files
SHIFTED = 1  # places before the first, besides padding, in models that count positions as RoBERTa does
LIKE_ROBERTA: tuple[str, ...] = ("roberta", "xlm-roberta", "camembert", "data2vec-text", "xlm-roberta-xl")
LIKE_ROBERTA += ("roberta-prelayernorm", "xmod")


@dataclass(frozen=True, eq=False)
class LoadedWeights:
    """A third-party model and its tokenizer, ready to run."""

    model: Any  # a PreTrainedModel in evaluation mode, float32
    tokenizer: HuggingFaceTokenizer  # of a model that reads images, the processor that makes them ready
    revision: str
    headed: Any  # the same with the head that chooses tokens or labels; None: it was not asked for
    eager: bool  # whether its attention is written out, because the fused kernel would leave something out

    @property
    def config(self) -> Any:
        """Return the configuration of the part that reads text."""
        return self.model.config.get_text_config()

    @property
    def start_id(self) -> int:
        """Return the id of the token that a decoder reads before it has written anything."""
        return int(self.model.config.decoder_start_token_id or 0)

    @property
    def most_tokens(self) -> int | None:
        """Count the positions that the model knows; None where it says nothing or counts distances only."""
        most = getattr(self.config, "max_position_embeddings", None)
        if not isinstance(most, int) or most < 1:
            return None
        shifted = self.config.model_type in LIKE_ROBERTA
        return most - (self.config.pad_token_id or 0) - SHIFTED if shifted else most


def load_weights(
    files: ModelFiles, name: str, device: torch.device, max_memory: float, head: HeadKind = "none"
) -> LoadedWeights:
    """Load a model. `name` is for messages; `head`: with what chooses tokens or labels.

    Raises InvalidModel naming what is wrong, TooLarge before weights are allocated.
    """
    with quietly(), _without_hub(files):
        import transformers
        from transformers import AutoConfig, AutoImageProcessor, AutoModel, AutoProcessor, AutoTokenizer

        safely: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
        with _told(files):
            config = AutoConfig.from_pretrained(files.folder, **safely)
            config._attn_implementation = config._experts_implementation = "eager"  # in parts of it, too
            with torch.device("meta"):
                body = AutoModel.from_config(config, trust_remote_code=False)
            if head != "images":
                _check_reads_text(name, body)
            check_room(f"the weights of {name} as float32", body.num_parameters() * FLOAT32, max_memory)
        with _told(files, "the tokenizer" if head != "images" else "what reads images"):
            reader = AutoTokenizer if head != "images" else AutoProcessor if is_asked(body) else AutoImageProcessor
            tokenizer = reader.from_pretrained(files.folder, **safely)
        with _told(files):
            wanted = {**safely, "use_safetensors": True, "dtype": torch.float32, "output_loading_info": True}
            kind = "AutoModelForSeq2SeqLM" if head == "tokens" and config.is_encoder_decoder else HEADS.get(head, "")
            if head == "images":
                saved = (config.architectures or [""])[0]
                kind = saved if isinstance(getattr(transformers, saved, None), type) else "AutoModel"
            model, eager, told = _load(files, getattr(transformers, kind), config, wanted)
    unused = {*UNUSED} if head != "labels" else set()
    missing = sorted(name for name in told["missing_keys"] if not unused & set(name.split(".")))
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        problem = f"{files.folder} lacks weights that its {CONFIG} asks for: {missing[0]}{more}"
        raise InvalidModel(problem, hint="They would be random. Copy or fetch the folder again.")
    model = model.eval().to(device)
    body, headed = (model, None) if head in ("none", "images") else (model.base_model, model)
    if head != "images":
        tokenizer = HuggingFaceTokenizer(tokenizer)
    elif hasattr(body, "logit_scale"):  # of a pair of encoders, the one that reads images
        parts = (each for each in body.modules() if each is not body)
        body = next(each for each in parts if getattr(each, "main_input_name", "") == "pixel_values")
    return LoadedWeights(body, tokenizer, files.revision(), headed, eager)


@contextmanager
def _without_hub(files: ModelFiles) -> Iterator[None]:
    """Fetch nothing and load no kernel of the hub while a model is loaded, whatever its files say.

    Settings that choose code are dropped where the library reads a config. Some kinds of models ask for a kernel by
    themselves, and some configs for another model: the hub is closed to both.
    """
    from huggingface_hub import constants
    from transformers import PreTrainedConfig
    from transformers.integrations import hub_kernels

    read = PreTrainedConfig._dict_from_json_file

    def read_settings(file: Any) -> Any:
        return drop_choices(read(file), files.folder / CONFIG)

    def refuse(name: str, **_: object) -> NoReturn:
        raise FileNotFoundError(f"attnviz loads no kernel of the hub: {name}")

    with ExitStack() as stack:
        stack.enter_context(patch.object(constants, "HF_HUB_OFFLINE", True))
        stack.enter_context(patch.object(PreTrainedConfig, "_dict_from_json_file", read_settings))
        stack.enter_context(patch.object(hub_kernels, "get_kernel_hub", refuse, create=True))
        yield


def _load(files: ModelFiles, auto: Any, config: Any, wanted: dict[str, Any]) -> tuple[Any, bool, dict[str, Any]]:
    """Load with the fused kernel where the model can use it and it leaves nothing out, such as soft-capping."""
    if not getattr(config.get_text_config(), "attn_logit_softcapping", None):
        try:
            model, told = auto.from_pretrained(files.folder, config=config, attn_implementation="sdpa", **wanted)
            return model, False, told
        except ValueError as error:
            if "scaled_dot_product_attention" not in str(error):
                raise
    model, told = auto.from_pretrained(files.folder, config=config, attn_implementation="eager", **wanted)
    return model, True, told


def is_asked(model: Any) -> bool:
    """Return whether a model that reads images reads words beside them in one sequence, and is no pair of encoders."""
    return "input_ids" in signature(model.forward).parameters and not hasattr(model, "logit_scale")


def _check_reads_text(model: str, body: Any) -> None:
    """Raise InvalidModel for models of pictures or sounds, and for pairs of encoders of which one reads text."""
    name, reads = body.main_input_name, ", not text"
    if name == "input_ids" and hasattr(body, "get_text_features") and hasattr(body, "logit_scale"):
        name, reads = next(each for each in signature(body.forward).parameters if each not in OF_TEXT), " beside text"
    if name != "input_ids":
        problem = f"{model} is a {type(body).__name__}, which reads {name}{reads}"
        raise InvalidModel(problem, hint=f"attnviz heatmap FILE reads images; attnviz.record takes {name}= in Python.")


@contextmanager
def others_failure(
    name: str, kind: type[AttnvizError] = ExecutionError, hint: str = "Another text or length may do."
) -> Iterator[None]:
    """Raise what a third-party model fails with while it runs as an error of this kind: the code is not of attnviz."""
    try:
        yield
    except (AttnvizError, MemoryError):
        raise
    except Exception as error:
        if "memory" in str(error):  # which `enough_memory` tells
            raise
        said = " ".join(str(error).split())[:200]
        raise kind(f"{name} fails by itself: {type(error).__name__}: {said.rstrip('.')}", hint=hint) from error


@contextmanager
def _told(files: ModelFiles, what: str = "") -> Iterator[None]:
    """Raise InvalidModel, in one line, for whatever goes wrong within the library."""
    try:
        yield
    except (AttnvizError, MemoryError):
        raise
    except BaseException as error:  # it lets everything through, also what tokenizers and safetensors raise
        if not (isinstance(error, Exception) or is_panic(error)):
            raise
        found = configuration(files.folder)
        reason, kind = " ".join(str(error).split())[:200] or type(error).__name__, found.get("model_type")
        if "ignore_mismatched_sizes" in reason:
            reason = f"its weights have other sizes than {CONFIG} says"
        told = f"{what} of {files.folder}" if what else str(files.folder)
        problem, hint = f"{told} cannot be loaded: {reason}", "Copy or fetch the folder again."
        if "auto_map" in found or "trust_remote_code" in str(error):
            problem = f"{files.folder} needs program code of its own, which is never run"
            hint = "Record it in Python with attnviz.record, where you run it yourself."
        elif not isinstance(kind, str) or "does not recognize this architecture" in reason:
            known = f"transformers {version('transformers')}"
            problem = f"{files.folder / CONFIG} is of a type that {known} does not know: {str(kind)[:60]!r}"
            hint = "A newer one may."
        elif isinstance(error, ImportError):  # such as torchvision, which parts of a model that read videos ask for
            problem = f"{told} cannot be loaded: {reason.partition('. ')[0]}"
            hint = "Install that package, and try again."
        elif what and not any(is_file(files.folder / name) for name in VOCABULARIES):
            problem = f"{files.folder} holds no tokenizer.json, and attnviz reads texts"
            hint = "attnviz.record takes other inputs in Python."
        raise InvalidModel(problem, hint=hint) from error


@contextmanager
def quietly(*, bars: bool = True) -> Iterator[None]:
    """Import the library, if it is not yet, without kernels of the hub, and let it say nothing.

    Its advice is for who calls it in Python, and its bars come even off a terminal.
    """
    os.environ["USE_HUB_KERNELS"] = "0"  # the library reads it once, where it is imported
    with warnings.catch_warnings(action="ignore"):
        from transformers.utils import logging

        logging.set_verbosity_error()
        if not (bars and sys.stderr.isatty()):
            logging.disable_progress_bar()
        with _without_stdout():
            yield


@contextmanager
def _without_stdout() -> Iterator[None]:
    """Let nothing be written past Python: tokenizers prints names that it does not know, whatever they are."""
    try:
        before = os.dup(STDOUT)
    except OSError:  # the caller closed it
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDOUT)
    try:
        yield
    finally:
        os.dup2(before, STDOUT)
        os.close(before)
        os.close(nowhere)
