"""What each token did for an answer: methods by name, and models seen from inside while they answer. Knows torch."""

from __future__ import annotations

from attnviz.registry import Plugin

# Each takes a Subject and gives a MethodScores.
METHODS = (
    Plugin("relevance", "attnviz.models.attribution.gradients:relevance", "gradient × input, norms and weights held"),
    Plugin("gradient", "attnviz.models.attribution.gradients:gradient", "gradient × input, nothing held"),
    Plugin("attention-gradient", "attnviz.models.attribution.gradients:attention_gradient", "Chefer et al."),
    Plugin("value-norm", "attnviz.models.attribution.gradients:value_norm", "weight × length of what it moves"),
    Plugin("attention", "attnviz.models.attribution.gradients:attention", "attention received"),
    Plugin("leave-one-out", "attnviz.models.attribution.deletion:leave_one_out", "a pass without each token"),
    Plugin(
        "integrated-gradients",
        "attnviz.models.attribution.gradients:integrated_gradients",
        "from no words to these, by captum",
    ),
    Plugin("random", "attnviz.models.attribution.deletion:chance", "chance: what every method has to beat"),
)
