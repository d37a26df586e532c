"""What a page says about how exact it is. Knows the codings and no HTML."""

from collections.abc import Iterator

from attnviz.renderers.page.packing import EXACT, Precision
from attnviz.words import Language, phrase


def exactness_of_maps(
    precision: Precision | None, language: Language, *, some_exact: bool, block: int
) -> Iterator[str]:
    """Yield one sentence or two for each thing that the page does not hold as the report does.

    `some_exact`: of the maps at another precision, some hold differences and are kept exactly.
    """
    if block > 1:
        yield phrase("about.pooled", language, block=block)
    if precision is EXACT:
        yield phrase("about.exact", language)
    else:
        fine, floor = (f"1/{4**exponent:,}" for exponent in (precision.fine, precision.floor))
        name = "means" if block > 1 else "ranges" if precision.floor > precision.fine else "fine"
        yield phrase(f"about.{name}", language, fine=fine, floor=floor)
        if some_exact:
            yield phrase("about.differences", language)
    yield phrase("about.drawn", language)
