"""What each token did for an answer: methods by name, and models seen from inside while they answer. Knows torch."""

from __future__ import annotations

from attnviz.registry import Plugin

# Each takes a Subject and gives a MethodScores.
METHODS = (
    Plugin("relevance", "attnviz.models.attribution.relevance:relevance", "gradient × input, norms and weights held"),
    Plugin("gradient", "attnviz.models.attribution.gradient:gradient", "gradient × input, nothing held"),
    Plugin("attention-gradient", "attnviz.models.attribution.attention_gradient:attention_gradient", "Chefer et al."),
    Plugin("value-norm", "attnviz.models.attribution.value_norm:value_norm", "weight × length of what it moves"),
    Plugin("attention", "attnviz.models.attribution.attention:attention", "attention received"),
    Plugin("leave-one-out", "attnviz.models.attribution.leave_one_out:leave_one_out", "a pass without each token"),
    Plugin(
        "integrated-gradients",
        "attnviz.models.attribution.integrated_gradients:integrated_gradients",
        "from no words to these, by captum",
    ),
    Plugin("random", "attnviz.models.attribution.chance:chance", "chance: what every method has to beat"),
)
