"""Every number of a lesson, from the models: what attention works with, layer by layer, and answers without heads.

With them: the example of three tokens to be done by hand, with its published numbers; and what was measured of when
several heads help.
"""

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, cast

import numpy as np

from attnviz.display import escape_for_display
from attnviz.errors import InvalidText, TooLarge
from attnviz.inputs import Inputs
from attnviz.models.protocols import Ablatable, Traceable
from attnviz.records import Tokens
from attnviz.records.answers import name_heads
from attnviz.records.attention_trace import VerifiedTrace
from attnviz.running.metrics import load_model_metrics
from attnviz.text import Document
from attnviz.views import captions
from attnviz.words import Language, phrase, say

EXAMPLE = files("attnviz").joinpath("data/worked-example.toml")
MAX_TOKENS = 24  # of a sentence: with more, a table of every number is not read any more
MAX_NUMBERS = 72_000  # of all models together: 340 kB of a page that may have 500
MAX_HEADS = 8  # of which every choice is turned off
MAX_LABELS = 3
MAX_LENGTH = 500  # characters of the sentence, as it stands above the page
MAX_LETTERS = 24  # of a token


def describe_sentence(inputs: Inputs, language: Language) -> tuple[dict[str, Any], list[str]]:
    """Return what a page holds of one sentence in the models, and what is to be said about it.

    Raises TooLarge for more numbers than a page has room for.
    """
    (document,) = inputs.documents
    models = [cast(Traceable, reference.open(inputs.corpus.texts)) for reference in inputs.models]
    tokens = read_tokens(models[0], document)
    notices = [*inputs.corpus.notices, *(note.text for note in captions.describe_unknown(tokens, "tokens"))]
    if len(models) > 1 and read_tokens(models[1], document).pieces != tokens.pieces:
        notices.append(f"{models[1].name} cuts the text into other tokens, and is left out")
        del models[1:]
    n = len(tokens)
    # q, k and v of each token, and a position bias for each two of them
    n_numbers = sum(each.n_layers * (3 * n * each.d_model + each.n_heads * n**2) for each in models)
    if n_numbers > MAX_NUMBERS:
        raise TooLarge(
            f"{n} tokens are {n_numbers:,} numbers in all layers, and a page has room for {MAX_NUMBERS:,}",
            hint="Give a shorter sentence, or --max-tokens.",
        )
    n_tokens = len(tokens) - sum(tokens.special)
    content = {
        "text": escape_for_display(document.text, MAX_LENGTH),
        "tokens": [
            {"piece": escape_for_display(piece, MAX_LETTERS), "special": special}
            for piece, special in zip(tokens.pieces, tokens.special, strict=True)
        ],
        "nUnknown": sum(tokens.unknown),
        "nTokens": n_tokens,
        "mostlyUnknown": tokens.mostly_unknown,
        "cut": models[0].encode(document.text).n_tokens - n_tokens,
        "models": [describe_model(model, document, language) for model in models],
    }
    return content, notices


def read_tokens(model: Traceable, document: Document) -> Tokens:
    """Return the tokens of a sentence. Raises InvalidText for more than a lesson shows."""
    tokens = model.encode(document.text).tokens
    if len(tokens) > MAX_TOKENS:
        raise InvalidText(
            f"{document.name} has {len(tokens)} tokens, and a lesson shows every number of at most {MAX_TOKENS}",
            hint=f"Shorten it, or let the model read its first ones only: --max-tokens {MAX_TOKENS}.",
        )
    return tokens


def describe_model(model: Traceable, document: Document, language: Language = "en") -> dict[str, Any]:
    """Return what a page needs of a model. Raises ExecutionError where arithmetic and model do not agree."""
    metrics, text = load_model_metrics(model), model.encode(document.text)
    heads = None if metrics is None or text.tokens.mostly_unknown else metrics.heads
    named = [] if heads is None else name_heads(heads)
    known = [
        [(each.pattern, each.share, say(each.pattern, language)) if each.pattern else None for each in of_layer]
        for of_layer in named
    ]
    described = []
    for layer in range(model.n_layers):
        traces = [model.trace(document.text, document.name, layer, query) for query in range(len(text.ids))]
        described.append({"number": layer, **_describe_layer(traces), "known": known[layer] if known else None})
    return {
        "name": model.name,
        "trained": model.trained,
        "nParameters": model.n_parameters,
        "nLayers": model.n_layers,
        "nHeads": len(traces[0].trace.heads),
        "dModel": model.d_model,
        "projects": traces[0].projects,
        "layers": described,
        "answers": _describe_answers(model, document, language),
    }


def _describe_layer(traces: Sequence[VerifiedTrace]) -> dict[str, Any]:
    """Return of each head q, k, v [token, component] and the position bias [query, key], of all queries."""
    described = []
    for head, first in enumerate(traces[0].trace.heads):
        of_queries = [each.trace.heads[head] for each in traces]
        described.append(
            {
                "size": first.d_head,
                "queries": write_numbers([each.query for each in of_queries]),
                "keys": write_numbers(first.keys),
                "values": write_numbers(first.values),
                "bias": None if first.position is None else write_numbers([each.position for each in of_queries]),
            }
        )
    return {"heads": described, "weightsError": max(each.weights_error for each in traces)}


def _describe_answers(model: Traceable, document: Document, language: Language) -> dict[str, Any] | None:
    """Return the answer of a classifier, and by layer [choice, label] with some of its heads turned off.

    Bit h of a choice says that head h is off. None of a model that answers nothing, or has very many heads.
    """
    if not isinstance(model, Ablatable) or model.n_heads > MAX_HEADS:
        return None
    kept = np.arange(2**model.n_heads)[:, np.newaxis] >> np.arange(model.n_heads) & 1 == 0
    by_layer = [model.answer_with_heads(document.text, layer, kept) for layer in range(model.n_layers)]
    shown = np.argsort(-by_layer[0][0], kind="stable")[:MAX_LABELS]
    labels, of_none = model.answers.labels, [answers[-1] for answers in by_layer]  # the last choice: all are off
    return {
        "labels": [say(labels[label], language) for label in shown],
        "nLabels": len(labels),
        "layers": [write_numbers(answers[:, shown]) for answers in by_layer],
        "nothing": [(say(labels[int(each.argmax())], language), float(each.max())) for each in of_none],
    }


def write_numbers(numbers: Any) -> Any:
    """Write numbers in about as many digits as a float32 has."""
    return np.round(np.asarray(numbers, dtype=np.float64), 6).tolist()


def describe_example(language: Language) -> dict[str, Any]:
    """Return what a page needs of the one head of width 4, then of the two of width 2.

    The page works out what the formula gives, and judges the published numbers by it.
    """
    found = tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))
    pieces = found["tokens"][language]
    return {
        "text": " ".join(pieces),
        "tokens": [{"piece": piece, "special": False} for piece in pieces],
        "nQueries": 1,  # that of the first token is given, and no other
        "decimals": found["decimals"],
        "models": [_describe_heads(phrase(f"judge.{part}", language), found[part]) for part in ("single", "multi")],
    }


def _describe_heads(name: str, heads: Sequence[dict[str, Any]]) -> dict[str, Any]:
    described = [{**head, "queries": [head["query"]], "size": len(head["query"]), "bias": None} for head in heads]
    sizes = {"nLayers": 1, "nHeads": len(heads), "dModel": sum(head["size"] for head in described)}
    layers = [{"number": 0, "heads": described}]
    return {"name": name, "trained": True, "projects": True, **sizes, "layers": layers}
