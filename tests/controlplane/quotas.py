"""Adds ResourceQuotas to a plot."""

from __future__ import annotations

import json

from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, on_nodes


def add_quota(plot: Plot, name: str, hard: Json, **spec: object) -> None:
    """Add a quota, and wait until it is in force."""
    amounts = {key: str(value) for key, value in hard.items()}
    made = {"metadata": {"name": name}, "spec": {"hard": amounts, **spec}}
    plot.create({"kind": "ResourceQuota", **made})
    plot.wait(
        lambda: plot.get("ResourceQuota", name).get("status", {}).get("used"),
        "the quota to be in force",
    )


def add_defaults(plot: Plot) -> None:
    """Add a LimitRange, by which each container may use one CPU unless it says more."""
    defaults = {"default": {"cpu": "1", "memory": "1Gi"}, "type": "Container"}
    plot.create(
        {"kind": "LimitRange", "metadata": {"name": "range"}, "spec": {"limits": [defaults]}}
    )


def add_quota_of_defaults(plot: Plot, name: str, pods: int) -> None:
    """Add a quota for so many pods that counts what a LimitRange gives them.

    The webhook does not foresee that, so that a gang gets a part of its pods.
    """
    add_defaults(plot)
    add_quota(plot, name, {"limits.cpu": pods})


def would_be_held(plot: Plot, manifest: Json) -> bool:
    """Say whether a RayCluster would be suspended if it were created now."""
    body = json.dumps(on_nodes(manifest, plot.selector)).encode()
    with plot.cluster.api.session() as session:
        made = session.call("POST", f"{plot.path('RayCluster')}?dryRun=All", body)
    return bool(made["spec"].get("suspend"))
