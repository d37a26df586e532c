"""What a page says about itself: how it is read and how exact it is. Knows the codings and no HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attnviz.renderers.page.packing import EXACT, Precision

OF_MAPS = (
    "Each row of a map is a query, and its weights say how much it attends to each key. They sum to 1, unless "
    "something else is said here or some keys are not shown.",
    "Attention weights say where a head looked, not why the model decided what it did: `attnviz attribute --card` "
    "tests what does, and docs/explanations.md has the numbers of the models that come with attnviz.",
)
OF_SCREEN = (
    "Words are coloured by how much of the answer's probability goes when each is left out, or where the model answers "
    "nothing by the attention that they receive. An arc is a head that gives a quarter of its attention or more to a "
    "word. The answer without a head is the model's own when the head gives nothing at any token.",
)
OF_GRAPH = (
    "An arrow leads up from who wrote to who reads, and from who made a head look there to that head. Choose one by "
    "mouse, keyboard or finger: below the words stands how much a head gives each, its row of the map.",
)
OF_CHARTS = ("What has one name looks the same in all charts beside each other. Below each chart stand its numbers.",)
OF_ATLAS = (
    "Each cell or point is a head, and a letter says what it was found to do. The strongest moments are those in which "
    "one key, other than the first token and markers, takes the most attention beyond an equal share, one of a text; "
    "the random ones are the same for all heads, and show what a head does all day.",
    "In a moment, the token that attends stands in a frame, and a token's colour says how many times an equal share it "
    "receives. A name from repeated tokens says what a head can do, not what it does in these texts.",
)
DRAWN = (
    "Colours are drawn in 256 steps. Where several cells share a pixel, their mean is drawn; where colours are no "
    "logarithms, and of differences, the strongest."
)
ATLAS_DIGITS, ATLAS_PLACES = 3, 5  # of each number
ATLAS = (
    f"Numbers of heads are stored with {ATLAS_DIGITS} digits, and with {ATLAS_PLACES} places at most. texts-*.parquet "
    "has all of them, text by text."
)
CHARTS = "Numbers of charts are shown with up to 6 digits; a copy as CSV has each one exactly, as a double."
TABLES = "Numbers of tables are rounded as shown; a copy as CSV has every digit that the page holds, --json has all."


def exactness_of_maps(precision: Precision | None, *, some_exact: bool, block: int) -> Iterator[str]:
    """One sentence or two for each thing that the page does not hold as the report does.

    `some_exact`: of the maps at another precision, some hold differences and are kept exactly.
    """
    if block > 1:
        yield (
            f"The text is too long to be drawn token by token: a cell stands for {block} rows and {block} columns and "
            "is the mean of their values, of differences the largest up or down."
        )
    if precision is EXACT:
        yield "Every value is stored exactly, as float32, and shown with the fewest digits that give it again."
    else:
        fine, floor = (f"1/{4**exponent:,}" for exponent in (precision.fine, precision.floor))
        said = "Smaller ones are stored as ranges between powers of 1/4, down to"
        ranges = f" {said} {floor}; a range is drawn as its middle." if precision.floor > precision.fine else ""
        yield (
            "Means are stored within 0.5 % of what they are."
            if block > 1
            else "So that the page stays small, not every digit is stored. Weights of "
            f"{fine} or more are shown within 0.5 % of what they are.{ranges} Below {floor} nothing more is known."
        )
        if some_exact:
            yield "Differences are stored exactly, as float32."
    yield DRAWN


def exactness_of_factors(without: Sequence[str]) -> Iterator[str]:
    """Of single weights beside pooled cells; `without`: maps that hold none."""
    yield (
        "Weights beside the text are worked out one by one, in double precision, from q, k and log-sum-exp, which are "
        "stored exactly, as float32."
    )
    if without:
        n = len(without)
        yield (
            f"For {'1 more head' if n == 1 else f'{n} more heads'}, from {without[0]} on, there is no room to do so: a "
            "page of fewer heads, with --layer and --head, has single weights of all of them."
        )
