"""What records do in a notebook: they show themselves and become tables. Knows by name only whose code that is."""

from typing import TYPE_CHECKING, cast

from attnviz.registry import load

if TYPE_CHECKING:
    from pandas import DataFrame

DISPLAY = "attnviz.python.notebook:display"


class Displayable:
    """Shown as a page at the end of a cell, and as a picture where a notebook shows no pages."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return page and picture of one drawing, which Jupyter asks for before it asks for either."""
        return cast("dict[str, str]", load(DISPLAY)(self)._repr_mimebundle_())

    def _repr_html_(self) -> str:
        return cast(str, load(DISPLAY)(self)._repr_html_())


class Tabular(Displayable):
    """Attention maps, which other libraries can have as tables, too."""

    def to_pandas(self) -> "DataFrame":
        """Return a table with a row for each weight that may be above 0.

        The columns are `layer` (the model's number), `head`, `query` and `key` (positions), `query_token`, `key_token`
        (as labels call them) and `weight` (0 to 1). A weight takes about 26 bytes.

        Example:
            >>> import attnviz
            >>> frame = attnviz.from_attentions([[[[0.25, 0.75], [1.0, 0.0]]]], ["the", "cat"]).to_pandas()
            >>> frame[frame.weight > 0.5][["query_token", "key_token", "weight"]].values.tolist()
            [['the', 'cat', 0.75], ['cat', 'the', 1.0]]
        """
        return cast("DataFrame", load("attnviz.views.data:to_pandas")(self))
