"""How do Muster's own programs come up on a testbed cluster?

This is the one place that knows. It needs nothing but the cluster: `cluster.kubeconfig` and
`cluster.user_kubeconfig("muster")` to connect, `cluster.ports.allocate()` for a free port,
`cluster.directory` for files, `cluster.spawn(name, argv, env)` to start a program with a log file.
"""

from __future__ import annotations

from testbed.cluster import Cluster
from testbed.errors import TestbedError


def start_muster(cluster: Cluster, *, coordinators: int = 1) -> None:
    """Apply Muster's manifests and start its programs from this checkout, until all are ready."""
    raise TestbedError(
        f"Muster's programs cannot be started yet (asked for {coordinators} coordinators on "
        f"{cluster.server}): testbed/muster.py does not know how"
    )
