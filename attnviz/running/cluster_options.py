"""Who does the work of a survey: processes of this machine or a dask cluster."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.options import CLUSTER, OUTPUT, Limits, Option

MANY: Limits = (("at least", 1), ("at most", 256))
Processes = Annotated[
    int | None, Option("Processes; default: just this one.", OUTPUT, "N", limits=MANY, is_common=True)
]


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """A scheduler that runs already. By default dask authenticates nobody: whoever reaches it runs code there.

    Certificates for TLS are of dask's own configuration.
    """

    scheduler: Annotated[
        str | None,
        Option("A dask scheduler that you trust, such as tls://host:8786; needs attnviz[cluster].", CLUSTER, "ADDRESS"),
    ] = None
    scheduler_file: Annotated[str | None, Option("The file in which it says where it is.", CLUSTER, "FILE")] = None

    @property
    def asked(self) -> bool:
        """Whether a cluster is to do the work."""
        return self.scheduler is not None or self.scheduler_file is not None
