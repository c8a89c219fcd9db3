"""Records the pods of a real KubeRay. This writes `samples/pods-kuberay-*` anew.

`python -m tests.kube.record 1.5.1` has the operator of that version make the pods of
`samples/raycluster.json`, Muster's own webhook gate them, and the API server store them.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import click

from kube.objects import names
from testbed.cluster import Cluster
from testbed.muster import start_muster, with_muster
from testbed.options import Options
from testbed.recipes import KUBERAY
from testbed.waiting import wait_until

Json = dict[str, Any]

SAMPLES = Path(__file__).parent / "samples"
RUN = {"command", "args", "env", "envFrom", "lifecycle", "livenessProbe", "readinessProbe"}
PODS = 3
"""The head, and one replica of two hosts."""


def record(cluster: Cluster) -> list[Json]:
    """Return the pods of the sample, the head first."""
    wanted = json.loads((SAMPLES / "raycluster.json").read_bytes())
    namespace = wanted["metadata"]["namespace"]
    cluster.create_namespace(namespace)
    cluster.api.create(f"/apis/{names.RAY_API_VERSION}/namespaces/{namespace}/rayclusters", wanted)

    def there() -> list[Json]:
        found: list[Json] = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
        return found if len(found) == PODS else []

    pods = wait_until(there, f"the {PODS} pods of the RayCluster")
    return sorted(map(_kept, pods), key=_place)


def _kept(pod: Json) -> Json:
    """Leave out field owners, and what the containers run."""
    del pod["metadata"]["managedFields"]
    for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])):
        for key in container.keys() & RUN:
            del container[key]
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def _place(pod: Json) -> tuple[bool, str]:
    metadata = pod["metadata"]
    return metadata["labels"][names.RAY_NODE_TYPE] != "head", metadata["name"]


@click.command()
@click.argument("version", type=click.Choice(list(KUBERAY)))
def main(version: str) -> None:
    """Write the pods of one version."""
    options = with_muster(Options(kuberay_version=version, kwok=False, scheduler=False))
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster.start(Path(folder) / "root", options) as cluster,
    ):
        start_muster(cluster)
        pods = record(cluster)
    text = json.dumps(pods, indent=1)
    (SAMPLES / f"pods-kuberay-{version}.json").write_text(f"{text}\n")


if __name__ == "__main__":
    main()
