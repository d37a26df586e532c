"""An example to be done by hand, as a report: the steps, and which of the numbers that circulate follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from attnviz.commands.explain import formulas
from attnviz.commands.explain.formulas import DIGITS, component_rows, formula, signs, vector
from attnviz.commands.explain.picture import draw_steps
from attnviz.commands.explain.report import concatenation
from attnviz.commands.explain.steps import Steps
from attnviz.display import escape_for_display
from attnviz.records.attention_trace import (
    Example,
    Head,
    Matches,
    PublishedValues,
    agrees,
    compute_unscaled_weights,
    matches,
)
from attnviz.report import Block, Column, Note, Report, Row, Section, Table
from attnviz.views.captions import choose_title
from attnviz.views.tokens import name_token

VERDICTS: Mapping[Matches, str] = {"yes": "yes", "without scaling": "only unscaled", "no": "neither way"}


def example_report(parts: Sequence[Example], top_k: int, own_title: str | None = None) -> Report:
    """Show every part step by step, then the numbers that circulate beside those of the formula, all of one text."""
    trace = parts[0].trace
    title = f"Attention by hand: {' '.join(escape_for_display(piece) for piece in trace.tokens.pieces)}"
    blocks: list[Block] = [*_embeddings(parts[0])]
    for place, part in enumerate(parts):
        blocks += _part(part, top_k, explains=place == 0)
    blocks += _summarize_verdicts(parts)
    return Report(
        title=choose_title(own_title, title),
        subtitle=f"attention from token {name_token(trace.tokens, trace.query)}, "
        f"first with {', then with '.join(map(_name_part, parts))}",
        blocks=tuple(blocks),
        facts=(("made by", "attnviz explain --example"),),
        data={
            "title": title,
            "tokens": list(trace.tokens.pieces),
            "query": trace.query,
            "embeddings": trace.states,
            "parts": [_data(part) for part in parts],
        },
    )


def _embeddings(part: Example) -> Iterator[Block]:
    trace = part.trace
    n_tokens, d_model = trace.states.shape
    yield Section("Step 1: the embeddings")
    yield Note(
        f"Each of the {n_tokens} tokens is a vector of d_model = {d_model} numbers. Tokens and components are counted "
        "from 0: k_2 is the key of token 2, k_2[0] its first component. Numbers are exact or rounded to "
        f"{DIGITS} digits after the point, and are never rounded in between."
    )
    tokens = [name_token(trace.tokens, position) for position in range(n_tokens)]
    rows = zip(tokens, component_rows(trace.states), strict=True)
    columns = (Column("token"), *formulas.component_columns("x", d_model))
    yield Table("embeddings", "", "facts", columns, tuple((name, *row) for name, row in rows))


def _part(part: Example, top_k: int, explains: bool) -> Iterator[Block]:
    n_heads = len(part.trace.heads)
    for number, head in enumerate(part.trace.heads):
        called = _name_part(part) + (f": head {number}" if n_heads > 1 else "")
        yield Section(called[0].upper() + called[1:])
        yield from _show_given(part, number, explains)
        steps = Steps(part.trace, head, f"{n_heads}-heads-{number}", top_k, explains)
        yield from steps.show_steps()
        yield draw_steps(steps, f"steps-head-{number}-of-{n_heads}", called, ("q, given", "k, given", "v, given"))
        yield from _compare_published(part, number)
        explains = False
    if n_heads > 1:
        yield from concatenation(part.trace)
        if part.concatenation:
            claim, right = part.claims[0], part.trace.concatenated
            agreed = agrees(part.concatenation, right, claim.decimals)
            verdict = "follows" if agreed else f"does not follow: the formula gives {_round(right, claim)}"
            yield Note(f"The concatenation in circulation, {_round(part.concatenation, claim)}, {verdict}.")
        yield Note("Here the example ends: it has no output projection, so the concatenation is its output.")


def _show_given(part: Example, number: int, explains: bool) -> Iterator[Block]:
    head, given = part.trace.heads[number], part.given_scores[number]
    yield Section("Step 2: query, keys and values", 2)
    said = "they are what step 3 gives" if agrees(given, head.scores, DIGITS) else "step 3 gives others"
    products = f"dot products, {', '.join(f'{score:g}' for score in given)}: {said}."
    if explains:
        query = name_token(part.trace.tokens, part.trace.query)
        yield Note(
            f"The example gives q of token {query} and k and v of every token as they are; the matrices that make them "
            f"of the embeddings are no part of it. It also gives the {products}"
        )
    else:
        yield Note(f"The example gives them, and the {products}")
    yield formula(signs("q = ") + vector(head.query), signs("shape: ", r"\text{shape: }") + formulas.shape(head.d_head))
    columns = (*formulas.component_columns("k", head.d_head), *formulas.component_columns("v", head.d_head))
    rows = zip(component_rows(head.keys), component_rows(head.values), strict=True)
    tokens = part.trace.tokens
    yield Table(
        f"{len(part.trace.heads)}-heads-{number}-given",
        "",
        "facts",
        (Column("token"), *columns),
        tuple((name_token(tokens, place), *key, *value) for place, (key, value) in enumerate(rows)),
    )


def _compare_published(part: Example, number: int) -> Iterator[Block]:
    """Show the numbers in circulation for one head, beside both sets that could be meant."""
    head, claim = part.trace.heads[number], part.claims[number]
    tokens = part.trace.tokens
    yield Section("Check: the numbers in circulation", 2)
    columns = (
        Column("weight of"),
        Column("in circulation", digits=claim.decimals),
        Column("from the formula", digits=DIGITS),
        Column("without / √d_head", digits=DIGITS),
    )
    names = [name_token(tokens, position) for position in range(len(tokens))]
    numbers = zip(names, claim.weights, head.weights.tolist(), compute_unscaled_weights(head).tolist(), strict=True)
    yield Table(f"{len(part.trace.heads)}-heads-{number}-claimed", "", "facts", columns, tuple(numbers))
    yield Note(_describe_verdict(head, claim))
    said = "follows" if _is_output_right(head, claim) else "does not follow"
    circulating = claim.output or claim.compute_output(head)
    source = "The output in circulation" if claim.output else "The output of the weights in circulation"
    right = _round(head.output, claim)
    gives = "" if said == "follows" else f": the formula gives {right}"
    yield Note(f"{source}, {_round(circulating, claim)}, {said}{gives}.")


def _describe_verdict(head: Head, claim: PublishedValues) -> str:
    written = _round(claim.weights, claim)
    match _match_weights(head, claim):
        case "yes":
            products = ", ".join(f"{score:g}" for score in head.scores)
            unscaled = _round(compute_unscaled_weights(head), claim)
            return (
                f"{written} follows from the formula, rounded to {claim.decimals} digits. As softmax({products}), "
                f"the dot products not divided by √d_head, it does not: that is {unscaled}."
            )
        case "without scaling":
            return (
                f"{written} does not follow from the formula. It is what comes out when the division by √d_head "
                "(step 4) is left out."
            )
        case "no":
            return f"{written} does not follow from the formula, and without the division by √d_head neither."


def _summarize_verdicts(parts: Sequence[Example]) -> Iterator[Block]:
    """Show all verdicts together."""
    yield Section("Which numbers in circulation follow")
    columns = ("head", "in circulation", "from the formula", "without / √d_head", "follows?")
    of_outputs = ("head", "output", "of those weights", "from the formula", "follows?")
    rows: list[Row] = []
    outputs: list[Row] = []
    for part in parts:
        for number, (head, claim) in enumerate(zip(part.trace.heads, part.claims, strict=True)):
            name = f"{number} of {len(part.trace.heads)}"
            weights = (_round(of, claim) for of in (claim.weights, head.weights, compute_unscaled_weights(head)))
            rows.append((name, *weights, VERDICTS[_match_weights(head, claim)]))
            led = (_round(of, claim) for of in (claim.compute_output(head), head.output))
            follows_too = "yes" if _is_output_right(head, claim) else "no"
            outputs.append((name, _round(claim.output, claim) or "-", *led, follows_too))
    yield Table("circulating", "", "facts", tuple(map(Column, columns)), tuple(rows))
    yield Table("circulating-outputs", "", "facts", tuple(map(Column, of_outputs)), tuple(outputs))


def _round(numbers: Iterable[float], claim: PublishedValues) -> str:
    return ", ".join(f"{value:.{claim.decimals}f}" for value in numbers)


def _is_output_right(head: Head, claim: PublishedValues) -> bool:
    """Return whether the output in circulation, else that of the weights in circulation, follows from the formula."""
    return agrees(claim.output or claim.compute_output(head).tolist(), head.output, claim.decimals)


def _match_weights(head: Head, claim: PublishedValues) -> Matches:
    return matches(claim.weights, head.weights, compute_unscaled_weights(head), claim.decimals)


def _name_part(part: Example) -> str:
    n_heads, d_head = len(part.trace.heads), part.trace.heads[0].d_head
    return f"{n_heads} head{'s' if n_heads > 1 else ''} of width {d_head}"


def _data(part: Example) -> Mapping[str, object]:
    heads = zip(part.trace.heads, part.claims, part.given_scores, strict=True)
    return {
        "heads": [
            {
                **asdict(head),
                "given_scores": list(scores),
                "unscaled_weights": compute_unscaled_weights(head),
                "circulating": {
                    "weights": list(claim.weights),
                    "output": list(claim.output),
                    "decimals": claim.decimals,
                    "follows": _match_weights(head, claim),
                    "output_of_weights": claim.compute_output(head),
                    "output_follows": _is_output_right(head, claim),
                },
            }
            for head, claim, scores in heads
        ],
        "concatenated": part.trace.concatenated,
        "circulating_concatenation": list(part.concatenation),
    }
