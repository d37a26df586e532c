"""`attnviz changed`: what tuning did to the heads of a model, held against noise of the same size."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float64

from attnviz import store
from attnviz.commands.changed.report import PICTURES, report_changes
from attnviz.commands.changed.spec import ChangedSpec
from attnviz.inputs import Inputs
from attnviz.measures.divergence import jsd
from attnviz.running import Events, Progress
from attnviz.running.pictures import Pictures
from attnviz.table.intervals import compare_pairs
from attnviz.table.numbers import Numbers

if TYPE_CHECKING:  # torch comes with it
    from attnviz.models.huggingface.tuning import SeenPass, TunedPair, Weights

NULL_TEXTS = 4  # on which noise is tried: most of the time goes there
ROUNDING = 1e-6  # a smaller share of the states is rounding, and a smaller root of a divergence, which is a distance
LEAST = 0.01  # of the change of the answers, for a head to matter
SIDES = ("brings", "lost")
# Of each head: how far its attention moved, and by its own weights (bits); how far what it writes did (of the states).
PerHead = Float64[np.ndarray, "measure head"]


def changed(spec: ChangedSpec, inputs: Inputs) -> Events:
    """Compare two models head by head, and draw it. Raises InvalidModel, InvalidText, TooLarge."""
    from attnviz.models.huggingface.tuning import TunedPair

    pictures, folder = Pictures.from_options(spec.figure, tuple(PICTURES), store.RECORD), Path(spec.tuned)
    yield Progress(0, 1, "passes", notices=inputs.corpus.notices, label="reading the models")
    models: list[Any] = [each.open(()) for each in inputs.models]
    pair = TunedPair(models[0], folder if inputs.files else models[1])
    found, apart = yield from measure_heads(spec, pair, [each.text for each in inputs.documents])
    names = models[0].name, folder.resolve().name if inputs.files else models[1].name
    about = {"base": names[0], "tuned": names[1], "texts": inputs.corpus.name, "n_texts": len(inputs.documents)}
    about |= {"noise": 0 if pair.is_same else spec.noise, "answers_apart": apart, "sha256": inputs.sha256()}
    with store.locked(inputs.out):
        drawn = yield from pictures.write(report_changes(found, about, spec.figure.title), inputs.out, None)
    yield replace(drawn, rows=found.cells())


def measure_heads(
    spec: ChangedSpec, pair: TunedPair, written: Sequence[str]
) -> Generator[Progress, None, tuple[Numbers, float]]:
    """Measure each head: how far it moved, what of that is its own, what noise does to it, and what it matters.

    Beside the heads returns how far the answers of the two models are apart.
    """
    ids = [pair.read(text) for text in written]
    texts = [(each, pair.look(pair.base, each)) for each in ids]
    n_draws = 0 if pair.is_same else spec.noise
    of_texts, exchanged, null = list[PerHead](), list[Float64[np.ndarray, "side place"]](), list[PerHead]()
    for done, text in enumerate(texts):
        yield Progress(done, 2 * len(texts) + n_draws, "passes")
        of_texts.append(_compare(pair, pair.tuned, *text))
    moved, own, changed = np.mean(of_texts, axis=0)
    is_own = (changed > ROUNDING) | (np.sqrt(own) > ROUNDING)
    places = list(np.ndindex(texts[0][1].weights.shape[:2]))
    tested = np.argsort(np.where(is_own, -changed, 0.0), kind="stable")[: min(spec.tested, int(is_own.sum()))].tolist()
    for done, text in enumerate(texts, len(texts)):
        yield Progress(done, 2 * len(texts) + n_draws, "passes")
        exchanged.append(pair.exchange(*text, [places[head] for head in tested]))
    for draw in range(n_draws):
        yield Progress(2 * len(texts) + draw, 2 * len(texts) + n_draws, "passes")
        noisy = pair.draw_noise(spec.model.seed + draw)
        null.append(np.mean([_compare(pair, noisy, *text) for text in texts[:NULL_TEXTS]], axis=0))
    beyond = find_beyond(np.mean(of_texts[:NULL_TEXTS], axis=0), null)
    layers, heads = np.array(places).T
    columns = {"layer": layers, "head": heads, "moved": moved, "own": own, "writes": changed, "tuned": is_own}
    columns |= {"moved_beyond": beyond[0], "own_beyond": is_own & beyond[1:].any(axis=0)}
    columns |= test_effects(np.array(exchanged), tested, len(places))
    return Numbers.from_columns(columns, ("layer", "head")), float(np.mean(exchanged, axis=0)[0, 0])


def _compare(pair: TunedPair, weights: Weights, ids: Any, before: SeenPass) -> PerHead:
    """Compare the base with a model of these weights, on one text."""
    after, own = pair.look(weights, ids), pair.look(weights, ids, before.states)
    known = before.weights.astype(np.float64)
    apart = [jsd(known, each.weights.astype(np.float64)).mean(axis=-1) / log(2) for each in (after, own)]
    return np.stack([*apart, before.compare_writing(own)]).reshape(3, -1)


def find_beyond(measured: PerHead, draws: Sequence[PerHead]) -> Bool[np.ndarray, "measure head"]:
    """Find the heads that tuning changed further than noise changes any of them, beside what is usual for each.

    Heads differ in how easily they move, so each is held against its own mean over the draws. Of many some stand out by
    chance, so the ratio has to exceed that of any head in any draw, held against the mean of the other draws (Westfall
    and Young 1993): by chance some head does in 1 of n + 1 runs of n draws.
    """
    if not draws:
        return np.zeros(measured.shape, dtype=bool)
    null = np.stack(draws)
    usual, others = null.mean(axis=0), (null.sum(axis=0) - null) / (len(null) - 1)
    largest = np.divide(null, others, out=np.zeros_like(null), where=others > 0).max(axis=(0, 2))
    return np.asarray(measured > largest[:, None] * usual)


def test_effects(
    exchanged: Float64[np.ndarray, "text side place"], tested: Sequence[int], n_heads: int
) -> dict[str, np.ndarray]:
    """Return what each tested head brings to the base and takes from the tuned model, as shares of the whole change.

    Corrected for their number (Holm 1979); NaN for heads that were not tested.
    """
    whole = exchanged[..., :1]
    shares = ((whole - exchanged[..., 1:]) / np.maximum(whole.mean(axis=0), 1e-30)).reshape(len(whole), -1)
    values = {str(n): column for n, column in enumerate(shares.T)}
    effects = compare_pairs(values | {"": np.zeros(len(shares))}, [(name, "") for name in values])
    numbers = np.full((len(SIDES), 3, n_heads), np.nan)
    matters = np.zeros(n_heads, dtype=bool)
    for n, effect in enumerate(effects):
        side, place = divmod(n, len(tested))
        numbers[side, :, tested[place]] = effect.value, effect.low, effect.high
        matters[tested[place]] |= effect.is_ahead and effect.value >= LEAST
    names = [f"{side}{end}" for side in SIDES for end in ("", "_low", "_high")]
    return dict(zip(names, numbers.reshape(-1, n_heads), strict=True)) | {"matters": matters}
