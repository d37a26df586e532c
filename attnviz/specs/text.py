"""Which text: options of every command that reads texts."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import TEXT, Option

Query = Annotated[str | None, Option("A word of the text or its position.", TEXT, "WORD|N")]


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """Which texts. Without a text, a file or a data set it is the packaged sample."""

    text: Annotated[tuple[str, ...], Option("A text{; repeat for several}.", TEXT, short="-t")] = ()
    text_file: Annotated[tuple[str, ...], Option("A file that is one text{; - is stdin}.", TEXT, "FILE")] = ()
    dataset: Annotated[
        str | None,
        Option("{names}, a name on the hub, or a local file or folder.", TEXT, "NAME|PATH", table="attnviz.text:NAMES"),
    ] = None
    # None: `train` where there is one, else the only split
    split: Annotated[str | None, Option("train, test, train[:1000], train[-5:], train[:10%], train+test.", TEXT)] = None
    text_column: Annotated[str | None, Option("The column that holds the text, if not found by name.", TEXT)] = None
    # empty: every text given as such, the first of a data set
    index: Annotated[tuple[str, ...], Option("Which texts of the split: 3, -1, 0-4,7{; repeat}.", TEXT, "N")] = ()

    @property
    def inline(self) -> bool:
        """Whether texts are given one by one."""
        return bool(self.text or self.text_file)

    @property
    def chosen(self) -> bool:
        """Whether anything says which texts."""
        return bool(self.index or self.inline or self.dataset or self.split)
