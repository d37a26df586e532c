"""Where attention goes: how far, and shares of it on one place, on some tokens, on a learned sink, on tokens that come
twice. Knows records only.
"""

import numpy as np
from jaxtyping import Bool, Float64, Int

from attnviz.errors import InvalidOption, NotMeasurable
from attnviz.measures.patterns import find_own_brackets, is_punctuation, number_words, strip_pieces
from attnviz.measures.rows import MAX_OFFSET, compute_statistics, split_real_queries, sum_by_distance
from attnviz.records import TINY, AttentionMaps, Measurement
from attnviz.shapes import PerHead

SCORES = ("induction", "duplicate token", "previous token")
N_FARTHER = 5  # lags beyond that of a token's first occurrence which scores are held against
# What has an order that everybody knows, and a model may: which word comes next.
LISTS = tuple(
    tuple(words.split())
    for words in (
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "January February March April May June July August September October November December",
        "one two three four five six seven eight nine ten eleven twelve",
        "1 2 3 4 5 6 7 8 9",
        "A B C D E F G H I J K L",
    )
)
MAX_STEP = 6  # by how much one word of a list comes after another, either way: of the shortest list
STEPS = tuple(step for step in range(-MAX_STEP, MAX_STEP + 1) if step)


def to_self(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the weight on the query's own position (the diagonal of Kovaleva et al. 2019).

    A share, from 0 to 1 (arXiv:1908.08593). Equal words elsewhere in the text do not count: `to_same_word` has them.
    Self-attention only.
    """
    return Measurement("to_self", "share", measure_share_at(maps, 0), (0.0, 1.0))


def to_previous(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the weight on the position before (Clark et al. 2019, arXiv:1906.04341).

    A share, from 0 to (n - 1)/n, n the tokens: the first has none before it and counts as 0. Self-attention only.
    """
    return Measurement("to_previous", "share", measure_share_at(maps, -1), (0.0, 1.0))


def to_next(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the weight on the position after (Clark et al. 2019, arXiv:1906.04341).

    A share, from 0 to (n - 1)/n, n the tokens: the last has none after it and counts as 0. In a causal map it is 0.
    Self-attention only.
    """
    return Measurement("to_next", "share", measure_share_at(maps, 1), (0.0, 1.0))


def to_first(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the weight on the first token, where it is an attention sink (Xiao et al. 2023).

    A share, from 0 to 1 (arXiv:2309.17453). The first token is that of the sequence, also where it is a marker such
    as [CLS]; padding is none. In a causal map the first query has no other key, and early ones few. Self-attention
    only.
    """
    first = np.arange(len(maps.keys)) == int(maps.real_queries.argmax())
    return Measurement("to_first", "share", measure_share_on(maps, first), (0.0, 1.0))


def to_sink(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the share that goes to no token, but to a sink that the model has learned.

    A share, from 0 to 1; 0 where the model has no such place. It is what OpenAI's gpt-oss adds to the denominator of
    each softmax (arXiv:2508.10925, section 2); the first token as a sink is `to_first`.
    """
    if maps.sink is None:
        values = np.zeros((maps.n_layers, maps.n_heads))
    else:
        values = maps.sink[:, :, maps.real_queries].mean(axis=-1, dtype=np.float64)
    return Measurement("to_sink", "share", values, (0.0, 1.0))


def to_special(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the weight on markers that the model added, such as [CLS] (Clark et al. 2019).

    A share, from 0 to 1; 0 where the model adds none (arXiv:1906.04341, who read much of it as attending to nothing).
    A marker that somebody wrote into the text does not count.
    """
    return Measurement("to_special", "share", measure_share_on(maps, maps.keys.markers), (0.0, 1.0))


def to_punctuation(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the weight on punctuation and symbols, such as full stops (Clark et al. 2019).

    A share, from 0 to 1 (arXiv:1906.04341). A key counts when all characters of its piece, white space around it
    aside, are of the Unicode categories P or S, so `…`, `$` and `。` do, `don't` and markers do not.
    """
    keys = maps.keys
    there = np.array([is_punctuation(piece) for piece in keys.distinct_pieces])[keys.places] & ~keys.markers
    return Measurement("to_punctuation", "share", measure_share_on(maps, there), (0.0, 1.0))


def to_same_word(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the weight on other positions with the same piece (duplicate token heads).

    A share, from 0 (also where no piece occurs twice) to 1 (Wang et al. 2022, arXiv:2211.00593). Pieces are the same
    whatever their case and the white space around them; markers are no words. Self-attention only.
    """
    words = number_words(maps.queries)  # -1 for markers
    places, totals = np.arange(len(words)), np.zeros((maps.n_layers, maps.n_heads))
    for block in split_real_queries(maps):
        queries = places[block.queries, None]
        rows, keys = np.nonzero((words[queries] == words) & (words >= 0) & (places != queries))
        totals += sum_cells(maps, queries[rows, 0], keys)
    return Measurement("to_same_word", "share", totals / int(maps.real_queries.sum()), (0.0, 1.0))


def to_own_bracket(maps: AttentionMaps) -> Measurement:
    """Return the mean weight that closing brackets give the opening one that is theirs (Clark et al. 2019, section 4).

    A share, from 0 to 1 (arXiv:1906.04341). Brackets pair as they nest; what is left over has no partner.
    Self-attention only. Raises NotMeasurable for a text without a pair.
    """
    real = maps.real_queries
    pairs = [(query, key) for query, key in find_own_brackets(strip_pieces(maps.queries)) if real[query]]
    if not pairs:
        raise NotMeasurable("to_own_bracket: no bracket of this text is closed", hint="Choose other measures.")
    queries, keys = np.array(pairs).T
    return Measurement("to_own_bracket", "share", sum_cells(maps, queries, keys) / len(pairs), (0.0, 1.0))


def measure_share_on(maps: AttentionMaps, keys: Bool[np.ndarray, " key"]) -> PerHead:
    """Return the share of attention that goes to some keys: the mean over queries of each row's sum there."""
    return np.array(
        [compute_statistics(maps, layer).received @ keys.astype(np.float64) for layer in range(maps.n_layers)]
    )


def sum_cells(maps: AttentionMaps, queries: Int[np.ndarray, " cell"], keys: Int[np.ndarray, " cell"]) -> PerHead:
    """Sum the weights of some real queries on one key each."""
    place = np.cumsum(maps.real_queries) - 1  # among the real queries
    totals = np.zeros((maps.n_layers, maps.n_heads))
    for layer in range(maps.n_layers if len(queries) else 0):
        sums = compute_statistics(maps, layer).sums[:, place[queries]]
        totals[layer] = (maps.read_cells_of_heads(layer, queries, keys) / sums).sum(axis=-1)
    return totals


def measure_share_at(maps: AttentionMaps, offset: int) -> PerHead:
    """Return the share that goes to the key `offset` after each query, before it where negative; 0 if there is none."""
    return np.asarray(sum_by_distance(maps)[..., MAX_OFFSET + offset] / int(maps.real_queries.sum()))


def distance(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of Σ w |query position - key position| (Vig and Belinkov 2019, arXiv:1906.04284).

    Tokens, from 0 (each token attends to itself) to that of the first token from the last. Self-attention only:
    positions in two texts have no distance. Patches of an image lie in rows and columns: there it is how far from a
    patch what it gives to patches goes, in patches (Dosovitskiy et al. 2021, arXiv:2010.11929, figure 7).
    """
    if maps.grid is None:
        values = np.array([compute_statistics(maps, layer).distances.mean(axis=-1) for layer in range(maps.n_layers)])
        return Measurement("distance", "tokens", values, (0.0, float(np.ptp(np.flatnonzero(maps.real_queries)))))
    at = np.array(maps.grid.find_places(len(maps.keys)))
    sides = np.divmod(np.arange(len(at), dtype=np.float32), maps.grid.n_columns)
    apart = np.hypot(*(side[:, None] - side for side in sides))
    patches = (maps.weights[layer][:, at[:, None], at] for layer in range(maps.n_layers))
    found = [(each * apart).sum(axis=(1, 2)) / np.maximum(each.sum(axis=(1, 2)), TINY) for each in patches]
    return Measurement("distance", "patches", np.array(found, dtype=np.float64), (0.0, float(apart[0, -1])))


def score_repeats(maps: AttentionMaps) -> tuple[dict[str, PerHead], Float64[np.ndarray, "lag layer head"]]:
    """Return mean attention along three diagonals of a text that says the same n tokens twice (Olsson et al. 2022).

    Shares, from 0 to 1 (arXiv:2209.11895), as TransformerLens works them out: induction is the key n - 1 before the
    query, behind the token's first occurrence; duplicate that occurrence itself, n before; previous the key before.
    Then what they are held against: the same along all other diagonals from 2 to n + 5 before the query. No head is
    known to look there, so what the best of them receives, a kind has to exceed to be more than a place like any other.
    Markers are left out. Raises InvalidOption where the second half does not say what the first does.
    """
    tokens = maps.queries
    places = np.flatnonzero(~np.array(tokens.special))
    pieces = [tokens.pieces[place].strip() for place in places]
    n = len(pieces) // 2
    if not n or pieces[:n] != pieces[n:]:
        problem = "the second half of the tokens does not repeat the first"
        raise InvalidOption(problem, hint="The model's tokenizer cuts the halves differently.")
    weights = maps.weights[:, :, places[0] : places[-1] + 1, places[0] : places[-1] + 1]
    lags = range(min(n + N_FARTHER + 1, 2 * n))
    means = [np.diagonal(weights, -lag, axis1=2, axis2=3).mean(axis=-1, dtype=np.float64) for lag in lags]
    of_kinds = dict(zip(SCORES, (n - 1, n, 1), strict=True))
    return {name: means[lag] for name, lag in of_kinds.items()}, np.delete(means, [0, *of_kinds.values()], axis=0)


def sum_by_step(maps: AttentionMaps) -> tuple[Float64[np.ndarray, "step layer head"], Int[np.ndarray, " step"]]:
    """Sum what words of `LISTS` give to words of their list that stand before them, and count these pairs.

    By how many places of the list the query comes after the key, as in `STEPS`. A head that knows what comes next gives
    most at 1, from "Tuesday" to "Monday" (successor heads are those of Gould et al. 2023, arXiv:2312.09230, who find
    them by what they write). Words that the model reads in several pieces do not count.
    """
    apart = 2 * MAX_STEP + max(map(len, LISTS))  # so that no word comes a step after one of another list
    ranks = {word.lower(): apart * row + rank for row, words in enumerate(LISTS) for rank, word in enumerate(words)}
    places = np.array([ranks.get(piece.strip().lower(), np.nan) for piece in maps.queries.pieces])
    after = np.tril(places[:, None] - places)  # 0 for keys behind the query
    pairs = [np.nonzero(after == step) for step in STEPS]
    sums = [maps.weights[:, :, queries, keys].sum(axis=-1, dtype=np.float64) for queries, keys in pairs]
    return np.array(sums), np.array([len(queries) for queries, _ in pairs])
