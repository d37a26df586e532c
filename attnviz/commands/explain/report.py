"""One query's way through a layer of a model as a report: scores, weights and the check. No renderers, no models."""

from collections.abc import Mapping
from dataclasses import asdict

from attnviz.commands.explain.picture import draw_steps
from attnviz.display import escape_for_display
from attnviz.records.attention_trace import VerifiedTrace
from attnviz.records.head_names import write_share
from attnviz.report import Block, Note, Report
from attnviz.specs import FigureOptions
from attnviz.views import captions
from attnviz.views.data import describe_provenance, describe_tokens
from attnviz.views.tokens import name_token


def explain_report(
    found: VerifiedTrace,
    head: int,
    figure: FigureOptions = FigureOptions(),  # noqa: B008 - frozen
) -> Report:
    """Show how a head weighs the keys, a picture of all its steps, and the check of the layer's output."""
    trace = found.trace
    picture, weights = draw_steps(found, head, figure.lang), trace.heads[head].weights
    key = int(weights.argmax())
    most = f"{name_token(trace.tokens, trace.query)} looks most at {name_token(trace.tokens, key)}"
    source = "x and the model's matrices" if found.projects else "x"
    blocks: list[Block] = [
        Note(f"{most}: {write_share(float(weights[key]))}.", leads=True),
        picture.tabulate(),
        picture,
        Note(
            f"All heads and the layer's output were computed again from {source}, more exactly than the model does. "
            f"From its own numbers the output differs by at most {found.error:.2g} ({found.allowed:.2g} is allowed), "
            f"weights by {found.weights_error:.2g}."
        ),
        *captions.describe_misuse(found.provenance, len(trace.tokens)),
        *captions.describe_unknown(trace.tokens, "tokens"),
    ]
    tokens, provenance = trace.tokens, found.provenance
    named = (provenance.model, captions.describe_origin(provenance))
    model, *origin = (escape_for_display(name, captions.MAX_NAME_LENGTH) for name in named)
    extent = captions.describe_extent(provenance, len(tokens) - sum(tokens.special))
    said = [*origin, captions.quote_text(provenance, tokens), extent, f"layer {found.layer} of {found.n_layers}"]
    said += ["causal"] if provenance.facts.causal else []
    title = f"Attention from token {name_token(tokens, trace.query)} in {model}, step by step"
    return Report(
        title=captions.choose_title(figure.title, title),
        subtitle=" · ".join(said),
        blocks=tuple(blocks),
        facts=captions.list_facts(provenance),
        data=_data(title, found),
    )


def _data(title: str, found: VerifiedTrace) -> Mapping[str, object]:
    """Return every number of every head, in float64."""
    return {
        "title": title,
        **describe_provenance(found.provenance),
        "layer": found.layer,
        "normed": found.normed,
        **asdict(found.trace),
        "tokens": describe_tokens(found.trace.tokens),
        "concatenated": found.trace.concatenated,
        "output": found.trace.output,
        "model_output": found.model_output,
        "largest_error": found.error,
        "allowed_error": found.allowed,
        "largest_error_of_weights": found.weights_error,
    }
