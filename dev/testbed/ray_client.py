"""Asks a real Ray for resources, or what its autoscaler sees; started with the Python of Ray.

`ADDRESS request JSON` names a list of resources that the cluster is to have, instead of what was
asked before. `ADDRESS seen` prints the nodes of Ray and what is on its way, as JSON.
"""

import json
import sys
from typing import Any

from ray.autoscaler.v2.sdk import get_cluster_status, request_cluster_resources


def _seen(address: str) -> dict[str, Any]:
    """The pods of nodes that run, and how many workers are on their way: as pods, and as wishes."""
    status = get_cluster_status(address)
    running = (*status.active_nodes, *status.idle_nodes)
    return {
        "running": sorted(each.instance_id for each in running),
        "pending": len(status.pending_nodes),
        "requested": sum(each.count for each in status.pending_launches),
    }


def _main(address: str, command: str, *arguments: str) -> None:
    if command == "request":
        wanted = [{"resources": each} for each in json.loads(arguments[0])]
        request_cluster_resources(address, wanted)
    else:
        sys.stdout.write(json.dumps(_seen(address)))


if __name__ == "__main__":
    _main(*sys.argv[1:])
