"""An explanation in sentences. Knows records."""

from __future__ import annotations

from collections.abc import Iterator

from attnviz.display import escape_for_display
from attnviz.records import Tokens
from attnviz.records.attribution import Target
from attnviz.records.explanation import Contribution, Explanation, Look
from attnviz.views.tokens import label_token

MAX_NAME = 24


def quote_word(tokens: Tokens, position: int) -> str:
    """Quote a token, with its position where the text has it more than once: "‘John’ (9)"."""
    label = label_token(tokens, position)
    is_repeated = sum(piece.strip() == tokens.pieces[position].strip() for piece in tokens.pieces) > 1
    return f"‘{label}’ ({position})" if is_repeated else f"‘{label}’"


def quote_answer(name: str) -> str:
    """Quote a token that is an answer; the space that begins a word is left out."""
    return f"‘{escape_for_display(name.removeprefix(' ') or name, MAX_NAME)}’"


def write_share(number: float) -> str:
    """Write a weight in two digits: ".05"."""
    return f"{number:.2f}".replace("0.", ".", 1)


def describe_answer(model: str, found: Explanation) -> str:
    """Say what a model answers, and rather than what."""
    verb = {"token": "goes on with", "masked token": "fills in", "score": "gives"}.get(found.form, "says")
    rival = f" rather than {quote_answer(found.target.against)}" if found.target.against else ""
    return f"{model} {verb} {quote_answer(found.target.name)} ({found.target.value:.2f}){rival}"


def describe_contribution(tokens: Tokens, target: Target, found: Contribution) -> str:
    """Say what a head reads and writes, and what its removal does."""
    answer, rival = quote_answer(target.name), quote_answer(target.against)
    for_or_against = f"for {answer}" if found.written > 0 else f"against {answer}"
    over, number = (f" over {rival}", "difference") if target.against else ("", "logit")
    looks = describe_look(tokens, found.looks[0]).partition(" ")[2]
    return (
        f"{found.head} reads {quote_word(tokens, found.source)} and writes {found.written:+.2f} {for_or_against}{over};"
        f" without the head the {number} changes by {found.removal:+.2f}. It {looks}"
    )


def describe_look(tokens: Tokens, look: Look) -> str:
    """Say why a head looks where it does, and what is left without who is named."""
    query, key = quote_word(tokens, look.query), quote_word(tokens, look.key)
    way = (
        "at itself"
        if look.query == look.key
        else f"{'back' if look.key < look.query else 'ahead'} from {query} to {key}"
    )
    looks = f"{look.head} looks {way}" + (f", at {key}" if look.query == look.key else "")
    weight = write_share(look.weight)
    if not look.shares:
        return f"{looks}: there is nothing else to look at."
    if look.named is None:
        return f"{looks} ({weight}): nobody who wrote there stands out from {_count(look)}."
    writer = look.named.writer
    because = {
        "word": "because of the word itself",
        "mlp": f"because of what {writer} had written there",
        "distance": "because of the distance" + (" between them" if look.query != look.key else ", which is none"),
        "head": f"because {writer} had written {quote_word(tokens, look.source or 0)} there",
    }[writer.kind]
    among = f"; without {_count(look)}: {_write_range(look.random)}" if look.random else ""
    return f"{looks}, {because}: without it {weight} → {write_share(look.weight_without or 0)}{among}."


def describe_steps(tokens: Tokens, looks: tuple[Look, ...]) -> Iterator[str]:
    """Say of each further step what made the writer look where it did."""
    for look in looks[1:]:
        yield f"And {describe_look(tokens, look)}"


def _write_range(weights: tuple[float, ...]) -> str:
    return f"{write_share(min(weights))} to {write_share(max(weights))}"


def _count(look: Look) -> str:
    return f"each of {len(look.random)} other heads, drawn at random" if look.random else "others"
