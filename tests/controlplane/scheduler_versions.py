"""Says what differs between the versions of kube-scheduler that the tests run on."""

from __future__ import annotations

from testbed.cluster import Cluster


def notes_gated_pods(cluster: Cluster) -> bool:
    """Tell whether kube-scheduler notes the nomination of a gated pod when it first sees it.

    Before 1.37 it did so for pods alone that it could try, and for others with their next change.
    """
    return int(cluster.options.kubernetes.split(".")[1]) >= 37
