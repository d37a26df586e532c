"""What is recorded of 95 architectures of Hugging Face is what they say of themselves under the plain kernel.

Built from their configurations with random weights; nothing is downloaded. Not among them, with transformers 5.23:
those whose smallest configuration is of more than three million parameters (most that read pictures and text), that
need packages beyond it (timm, detectron2), or inputs beyond tokens, pixels and sound (bros, lxmert, udop, timesfm …);
those without attention (mamba, rwkv, fnet, bit …) or that give no weights themselves (big_bird, kimi_linear, lfm3);
those that attend by blocks and windows within a module (longformer, led, longt5, canine, minimax); and two whose own
answer is no attention: squeezebert gives scores before softmax, wavlm's are turned into heads in a wrong order.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch

from attnviz.models.recording.record import record

pytestmark = pytest.mark.filterwarnings("ignore")  # the library warns of its own future

transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'attnviz[hf]'")

ARCHITECTURES = (
    "albert bart beit bert biogpt bitnet bloom camembert clip_text_model clip_vision_model codegen cohere "
    "convbert ctrl deberta-v2 deit diffllama dinov2 distilbert doge electra ernie esm exaone4 falcon_h1 flaubert "
    "fsmt gemma gemma2 gemma3_text glm gpt2 gpt_bigcode gpt_neox gpt_oss gptj granite hubert ibert imagegpt "
    "jetmoe layoutlm lfm2 llama m2m_100 marian mbart megatron-bert mistral mixtral mobilebert modernbert mpnet "
    "mpt mt5 mvp nemotron nystromformer olmo olmo2 olmo_hybrid olmoe openai-gpt opt pegasus persimmon phi phi3 "
    "plbart qwen2 qwen2_moe qwen3 qwen3_moe rembert roberta roformer sapiens2 seed_oss smollm3 solar_open "
    "splinter stablelm starcoder2 switch_transformers t5 tapas umt5 visual_bert vit wav2vec2 whisper xglm xlm "
    "xlm-roberta zaya "
)
SLOW = ("falcon_h1",)
# By size, the settings that have it: each configuration takes those that it knows.
SIZES: dict[Any, str] = {
    0: "pad_token_id",
    1: "num_experts_per_tok n_group topk_group first_k_dense_replace num_hidden_groups "
    "bos_token_id decoder_start_token_id",
    2: "num_hidden_layers num_layers n_layer n_layers encoder_layers decoder_layers num_decoder_layers "
    "num_local_experts num_experts n_routed_experts num_key_value_heads type_vocab_size num_conv_pos_embedding_groups "
    "eos_token_id num_feat_extract_layers",
    3: "num_channels",
    4: "num_attention_heads num_heads n_head n_heads encoder_attention_heads decoder_attention_heads head_dim d_kv "
    "v_head_dim qk_rope_head_dim qk_nope_head_dim rotary_dim "
    "mamba_d_state num_conv_pos_embeddings num_mel_bins patch_size",
    8: "moe_intermediate_size shared_expert_intermediate_size q_lora_rank kv_lora_rank mamba_d_head image_size",
    16: "hidden_size d_model n_embd dim emb_dim embedding_size embed_dim",
    24: "intermediate_size encoder_ffn_dim decoder_ffn_dim d_ff hidden_dim ffn_hidden_size n_inner",
    32: "max_position_embeddings n_positions max_target_positions max_source_positions",
    40: "vocab_size",
    (1, 1): "depths",
    (2, 2): "conv_stride",
    (4, 4): "conv_kernel",
    (16, 16): "hidden_sizes conv_dim",
    1e4: "rope_theta",
    1e-5: "layer_norm_eps",
}
TINY = {name: size for size, names in SIZES.items() for name in names.split()}
OWN = ("encoder_attentions", "decoder_attentions", "cross_attentions", "attentions")


def built(kind: str, kernel: str, **settings: Any) -> Any:
    """A model with the same random weights whatever the kernel, large enough for no row to be nearly uniform."""
    of_kind = transformers.CONFIG_MAPPING[kind]
    known = {*dir(of_kind), *getattr(of_kind, "__dataclass_fields__", ())} - {*of_kind.attribute_map}
    known |= {*inspect.signature(of_kind.__init__).parameters} - {*of_kind.attribute_map}
    config = of_kind(**{name: value for name, value in TINY.items() if name in known} | settings)
    model = transformers.AutoModel.from_config(config, attn_implementation=kernel)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return model.eval()


def inputs(model: Any) -> dict[str, Any]:
    generator, config = torch.Generator().manual_seed(3), model.config
    shapes = {
        "pixel_values": (1, 3, 8, 8),
        "input_values": (1, 120),
        "input_features": (1, getattr(config, "num_mel_bins", 4), 2 * getattr(config, "max_source_positions", 16)),
    }
    main = model.main_input_name
    given = {main: torch.randn(shapes[main], generator=generator)} if main in shapes else {}
    if not given:
        given["input_ids"] = torch.randint(4, 38, (1, 7), generator=generator)
    if "decoder_input_ids" in inspect.signature(model.forward).parameters:
        given["decoder_input_ids"] = torch.randint(4, 38, (1, 5), generator=generator)
    return given | ({"use_cache": False} if hasattr(config, "use_cache") else {})


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind in SLOW)) for kind in ARCHITECTURES.split()]
)
def test_weights_are_the_models_own(kind: str) -> None:
    eager = built(kind, "eager")
    given = inputs(eager)
    try:
        model = built(kind, "sdpa")
    except ValueError:  # which the class does not have
        model = eager
    with torch.no_grad():
        said = eager(**given, output_attentions=True)
        with record() as maps:
            model(**given)
    expected = [torch.cat(each).numpy() for name in OWN if (each := getattr(said, name, None))]
    assert len(maps) == len(expected) > 0
    for weights in expected:
        apart = [np.abs(one.weights - weights).max() for one in maps if one.weights.shape == weights.shape]
        assert min(apart) <= 2e-5
    assert all(one.provenance.facts.guess in ("", maps.not_seen) for one in maps)
