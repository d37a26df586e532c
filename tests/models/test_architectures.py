"""What is recorded of 95 architectures of Hugging Face is what they say of themselves under the plain kernel.

Built from their configurations with random weights; nothing is downloaded. Not among them, with transformers 5.23:
those whose smallest configuration is of more than three million parameters (most that read pictures and text), that
need packages beyond it (timm, detectron2), or inputs beyond tokens, pixels and sound (bros, lxmert, udop, timesfm …);
those without attention (mamba, rwkv, fnet, bit …) or that give no weights themselves (big_bird, kimi_linear, lfm3);
those that attend by blocks and windows within a module (longformer, led, longt5, canine, minimax); and two whose own
answer is no attention: squeezebert gives scores before softmax, wavlm's are turned into heads in a wrong order.
"""

import inspect
from typing import Any

import numpy as np
import pytest
import torch

from attnviz.models.recording.record import record
from tests.pretrained import built

pytestmark = pytest.mark.filterwarnings("ignore")  # the library warns of its own future


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
OWN = ("encoder_attentions", "decoder_attentions", "cross_attentions", "attentions")


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
        given["input_ids"] = torch.randint(4, 30, (1, 7), generator=generator)
    if "decoder_input_ids" in inspect.signature(model.forward).parameters:
        given["decoder_input_ids"] = torch.randint(4, 30, (1, 5), generator=generator)
    return given | ({"use_cache": False} if hasattr(config, "use_cache") else {})


@pytest.mark.parametrize("kind", ARCHITECTURES.split())
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
