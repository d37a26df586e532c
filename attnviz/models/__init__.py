"""Who attends: from a text to AttentionMaps. The only room that knows torch; it knows no pictures and no commands."""

from attnviz.registry import Plugin

# Each takes (ModelOptions, PretrainedOptions) and gives a ModelReference, or None for a name that is not of its kind.
BUILT_IN = (
    Plugin("single", "attnviz.models.built_in:single", "a trained transformer encoder with one head of full width"),
    Plugin("multi", "attnviz.models.built_in:multi", "the same with 8 heads; multi:2 and multi:4 are trained too"),
    Plugin("single-zh", "attnviz.models.built_in:one_size", "one head that has learned from Chinese reviews"),
    Plugin("multi-zh", "attnviz.models.built_in:one_size", "the same with 8 heads"),
    Plugin("random", "attnviz.models.built_in:random", "an encoder with random weights; random:N has N heads"),
    Plugin("dot", "attnviz.models.built_in:dot", "no projections: query = key = value = word embedding"),
    Plugin("recall", "attnviz.models.built_in:one_size", "recalls 8 values; recall:1, :2, :4, :8 by heads"),
)

PACKAGED_BY = "attnviz.models.huggingface.packaged:find_packaged"
# Of packages that `pip` installs.
PACKAGED = (
    Plugin("minilm", PACKAGED_BY, "all-MiniLM-L6-v2, an encoder of 6 × 12 heads"),
    Plugin("smollm2", PACKAGED_BY, "SmolLM2-135M-Instruct, a decoder, 30 × 9 heads"),
    Plugin("dinov2", PACKAGED_BY, "a ViT of DINOv2's form, for images, 12 × 6 heads"),
)

MODELS = (*BUILT_IN, *PACKAGED)

# Likewise, of names that are none of these, in this order.
FORMATS = (
    Plugin("huggingface", "attnviz.models.huggingface.reference:find_folder", "a folder of a third-party model"),
    Plugin("checkpoint", "attnviz.models.built_in:find_folder", "a folder that `attnviz train` wrote"),
    Plugin("hub", "attnviz.models.huggingface.reference:find_on_hub", "a name on the hub"),
)
