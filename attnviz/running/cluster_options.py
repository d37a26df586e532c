"""Who does the work of a survey: processes of this machine or a dask cluster."""

from dataclasses import dataclass

from attnviz.options import CLUSTER, OUTPUT, Limits, Option, option

MANY: Limits = (("at least", 1), ("at most", 256))
PROCESSES = Option("Processes; default: just this one.", OUTPUT, "N", limits=MANY, is_common=True)


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """A scheduler that runs already. By default dask authenticates nobody: whoever reaches it runs code there.

    Certificates for TLS are of dask's own configuration.
    """

    scheduler: str | None = option(
        None, "A dask scheduler that you trust, such as tls://host:8786; needs attnviz[cluster].", CLUSTER, "ADDRESS"
    )
    scheduler_file: str | None = option(None, "The file in which it says where it is.", CLUSTER, "FILE")

    @property
    def asked(self) -> bool:
        """Check whether a cluster is to do the work."""
        return self.scheduler is not None or self.scheduler_file is not None
