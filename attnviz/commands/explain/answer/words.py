"""An explanation in sentences. Knows records."""

from collections.abc import Iterator
from math import nan

import numpy as np

from attnviz.records import Tokens
from attnviz.records.attribution import Look, Looks, Target
from attnviz.views.answers import quote_answer
from attnviz.views.tokens import label_token

CONTROLS = {  # what nine tenths of writers of a kind are held against
    "word": "with other words there",
    "place": "from other places",
    "mlp": "without other MLPs",
    "head": "without other heads",
}


def quote_word(tokens: Tokens, position: int) -> str:
    """Quote a token, with its position where the text has it more than once: "‘John’ (9)"."""
    label = label_token(tokens, position)
    is_repeated = sum(piece.strip() == tokens.pieces[position].strip() for piece in tokens.pieces) > 1
    return f"‘{label}’ ({position})" if is_repeated else f"‘{label}’"


def write_weight(number: float) -> str:
    """Write a weight in two digits: ".05"."""
    return f"{number:.2f}".replace("0.", ".", 1)


def describe_contribution(tokens: Tokens, target: Target, look: Look) -> str:
    """Say what a head reads and writes, and what its removal does."""
    answer, rival = quote_answer(target.name), quote_answer(target.against)
    for_or_against = f"for {answer}" if look["written"] > 0 else f"against {answer}"
    over, number = (f" over {rival}", "difference") if target.against else ("", "logit")
    own = f" ({look['own']:+.2f} in its own logit)" if target.against else ""
    looks = describe_look(tokens, look).partition(" ")[2]
    return (
        f"{look['head']} reads {quote_word(tokens, look['key'])} and writes {look['written']:+.2f} {for_or_against}"
        f"{over}{own}; without the head the {number} changes by {look['removal']:+.2f}. It {looks}"
    )


def describe_look(tokens: Tokens, look: Look) -> str:
    """Say why a head looks where it does, and what is left without who is named."""
    query, key = quote_word(tokens, look["query"]), quote_word(tokens, look["key"])
    way = f"{'back' if look['key'] < look['query'] else 'ahead'} from {query} to {key}"
    looks = f"{look['head']} looks {f'at itself, at {key}' if look['query'] == look['key'] else way}"
    weight, without = write_weight(look["weight"]), write_weight(look["weight_without"] or 0)
    if not look["writers"]:
        return f"{looks}: there is nothing else to look at."
    if not look["n_writers"]:
        why = "nobody has written before layer 0" if look["layer"] == 0 else "it stands out no more than by chance"
        return f"{looks} ({weight}): no reason, {why}."
    low, high = (write_weight(limit) for limit in np.quantile(look["controls"] or (nan,), (0.1, 0.9)))
    controls = f", {CONTROLS[look['kind']]} {low} to {high}" * bool(look["controls"])
    held = f"without that {weight} → {without}{controls}"
    if look["named"] is None:
        return f"{looks}, of many hands: {look['writers'][0]} raises it most, and {held}."
    because = {
        "word": "because of the word itself",
        "mlp": f"because of what {look['named']} had written there",
        "place": "because of its place",
        "head": f"because {look['named']} had written {quote_word(tokens, look['source'] or 0)} there",
    }[look["kind"]]
    return f"{looks}, {because}: {held}; writers that pass this test: {look['n_passing']} of {look['n_writers']}."


def name_reason(look: Look) -> str:
    """Name who made a head look where it does, in few words."""
    return f"because of {look['named']}" if look["named"] else "many hands" if look["n_writers"] else "no reason"


def describe_steps(tokens: Tokens, looks: Looks) -> Iterator[str]:
    """Yield for each further step what made the writer look where it did."""
    for look in looks[1:]:
        yield f"And {describe_look(tokens, look)}"
