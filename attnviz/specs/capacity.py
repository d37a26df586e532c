"""What `attnviz capacity` is asked."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import MODEL, TRAINING, Only, Option
from attnviz.specs import FigureOptions, PrintOptions
from attnviz.specs.batch import Workers
from attnviz.specs.cluster import ClusterOptions
from attnviz.specs.compare import Theory


@dataclass(frozen=True, kw_only=True)
class CapacitySpec:
    """Where several heads beat one: how many items one layer of attention keeps apart, by its number of heads.

    Shows what was measured before at once; with --train, measures it anew and says whether it agrees.

    Example: attnviz capacity --out capacity
    """

    heads: Annotated[str, Option("Numbers of heads, at equal parameters.", MODEL, "N,N")] = "1,2,4,8"
    items: Annotated[str, Option("How many items a query has to report.", MODEL, "N,N")] = "1,2,4,8"
    d_model: Annotated[int, Option("Width of the layer, shared by its heads.", MODEL)] = 32
    length: Annotated[int, Option("Tokens of a sequence.", TRAINING)] = 24
    seeds: Annotated[int, Option("Networks of each kind: seeds 0, 1 …", TRAINING)] = 3
    steps: Annotated[int, Option("Steps of training for each item, at least four.", TRAINING)] = 200
    train: Annotated[bool, Option("Train every network here; one that --out holds is not trained again.", TRAINING)] = (
        False
    )
    workers: Workers = None
    cluster: ClusterOptions = ClusterOptions()
    theory: Theory = False
    figure: Annotated[FigureOptions, Only("format", "cmap", "dpi", "out")] = FigureOptions(out="capacity")
    printing: PrintOptions = PrintOptions()
