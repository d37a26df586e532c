"""From labelled texts and a spec to a training run: vocabulary, examples, a model with its first weights."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from attnviz.commands.train.spec import TrainSpec
from attnviz.commands.train.training import Examples, Training
from attnviz.errors import InvalidSource, InvalidText
from attnviz.models.checkpoint import Classifier, ClassifierConfig
from attnviz.models.device import enough_memory, pick, seeded
from attnviz.models.encoder import EncoderConfig
from attnviz.models.tokenizer import TextTokenizer, train

FEED_FORWARD = 2  # × d_model
N_DESCRIBED = 200  # texts held out that say what the heads look at
SENTIMENT = ("negative", "positive")  # what 0 and 1 mean in every source


@dataclass(frozen=True, eq=False)
class Run:
    """Everything that training needs, before its first step."""

    tokenizer: TextTokenizer
    training: Training
    described: Sequence[str]  # texts held out by which its heads are measured


def begin(texts: Sequence[str], labels: Sequence[int], spec: TrainSpec, names: Sequence[str] = ()) -> Run:
    """Prepare a run. The same texts, labels and spec make the same; errors call a text by its name, if there are names.

    Raises InvalidSource where labels cannot be told apart or held out, InvalidText where a text has no tokens.
    """
    kinds = _name_labels(labels)
    vocabulary = train(texts, spec.vocabulary, classify=spec.pool == "cls")
    found = np.asarray(labels, dtype=np.int64)
    held = choose_held_out(found, spec.validation)
    kept = np.setdiff1d(np.arange(len(found)), held)
    examples = Examples(list(vocabulary.ids(texts)), found)
    for place, ids in enumerate(examples.texts):
        if len(ids) == vocabulary.classify:
            name = names[place] if names else f"text {place}"
            raise InvalidText(f"{name} has no tokens", hint="Leave it out of the data.")
    described = [texts[place] for place in held]
    if len(described) > N_DESCRIBED:  # from either end, since the labels come one after the other
        described = described[: N_DESCRIBED // 2] + described[-N_DESCRIBED // 2 :]
    device = pick(spec.device)
    with enough_memory(), seeded(spec.seed):
        encoder = EncoderConfig(
            n_words=len(vocabulary),
            d_model=spec.d_model,
            n_heads=spec.heads,
            n_layers=spec.layers,
            d_feed_forward=FEED_FORWARD * spec.d_model,
            norm=spec.norm,
            max_distance=spec.max_distance,
        )
        config = ClassifierConfig(encoder, kinds, spec.pool)
        classifier = Classifier(config, spec.dropout, reach=spec.max_tokens or 0).to(device)
        training = Training(classifier, examples.select(kept), examples.select(held), spec)
    return Run(vocabulary, training, described)


def choose_held_out(labels: Int[np.ndarray, " text"], share: float) -> Int[np.ndarray, " held"]:
    """Choose the texts to keep from training: of each label the last ones, at least one of them and never all.

    Neighbours stay together, because reviews of one film stand next to each other in IMDb: drawn at random, a held-out
    text would have siblings in training, and accuracy on it would read several points too high.
    """
    chosen = []
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        n_held = min(max(1, round(share * len(own))), len(own) - 1)
        chosen.append(own[len(own) - n_held :])
    return np.concatenate(chosen)


def _name_labels(labels: Sequence[int]) -> tuple[str, ...]:
    """Name the labels. Raises InvalidSource unless they are 0 to n - 1 with two texts each."""
    kinds = sorted(set(labels))
    if len(kinds) < 2:
        found = f"every text has the label {kinds[0]}" if kinds else "there are none"
        problem = f"a classifier needs texts of at least two labels, and {found}"
        raise InvalidSource(problem, hint="Choose another --split.")
    if kinds != list(range(len(kinds))):
        listed = ", ".join(map(str, kinds[:8]))
        raise InvalidSource(f"the labels are {listed}", hint="They have to be 0, 1, 2 and so on.")
    if few := [label for label in kinds if sum(other == label for other in labels) < 2]:
        hint = "Each label needs two texts: one is held out."
        raise InvalidSource(f"only one text has the label {few[0]}", hint=hint)
    return SENTIMENT if len(kinds) == 2 else tuple(map(str, kinds))
