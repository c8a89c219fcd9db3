"""Claims that wait for volumes made by hand: disks of single nodes, or volumes that some share.

Whoever comes first takes the smallest that suits. Of volumes that are all reached from the same
nodes the order of binding decides which one a claim has, and never how many are left of each size.
"""

from collections.abc import Sequence
from typing import Any

from tests.oracle.draw import Draw
from tests.oracle.ingredient import Ingredient, Reach
from tests.oracle.model import Json, Scene, name_of

_CLASS = "by-hand"
_MODES = ("ReadWriteOnce", "ReadOnlyMany")


class Static(Ingredient):
    """A pod goes where there is a free volume for each of its claims."""

    name = "volumes by hand"
    reach = Reach.ROOM
    share = 0.35

    def add_to_nodes(self, draw: Draw, nodes: Sequence[Json]) -> None:
        draw.objects.append(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": _class(draw.slot)},
                "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": "WaitForFirstConsumer",
            }
        )
        if draw.happens(0.75):
            for node in nodes:
                for _ in range(draw.random.choice((0, 1, 2, 3))):
                    _add_volume(draw, [name_of(node)])
        else:
            some = draw.random.sample(nodes, draw.random.randint(min(2, len(nodes)), len(nodes)))
            for _ in range(draw.random.randint(1, 4)):
                _add_volume(draw, sorted(map(name_of, some)))

    def add_to_gang(self, draw: Draw, pods: Sequence[Json]) -> None:
        sets = sorted({pod["metadata"]["labels"]["set"] for pod in pods})
        for name in (each for each in sets if draw.happens(0.6)):
            sizes = [draw.random.randint(1, 3) for _ in range(draw.random.choice((1, 1, 2)))]
            for pod in (pod for pod in pods if pod["metadata"]["labels"]["set"] == name):
                for size in sizes:
                    _mount(draw, pod, size)

    def refuses(self, pod: Json, node: Json, scene: Scene) -> bool:
        free = [each for each in scene.objects if _is_free(each)]
        for other, where in scene.bound:
            _take(other, where, free, scene)
        return not _take(pod, node, free, scene)


def _class(slot: str) -> str:
    return f"{slot}-{_CLASS}"


def _add_volume(draw: Draw, hosts: list[str]) -> None:
    name = f"{draw.slot}-h{len(draw.objects)}"
    here = {"key": draw.host, "operator": "In", "values": hosts}
    spec: Json = {
        "accessModes": list(_MODES) if draw.happens(0.85) else [_MODES[1]],
        "capacity": {"storage": f"{draw.random.randint(1, 3)}Gi"},
        "storageClassName": _class(draw.slot),
        "hostPath": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        "persistentVolumeReclaimPolicy": "Retain",
        **draw.maybe(0.1, lambda: {"volumeMode": "Block"}, {}),
    }
    metadata = {"name": name}
    draw.objects.append(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}
    )


def _mount(draw: Draw, pod: Json, size: int) -> None:
    name = f"{draw.slot}-w{len(draw.objects)}"
    draw.objects.append(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": pod["metadata"]["namespace"]},
            "spec": {
                "accessModes": [_MODES[0]],
                "resources": {"requests": {"storage": f"{size}Gi"}},
                "storageClassName": _class(draw.slot),
            },
        }
    )
    volumes = pod["spec"].setdefault("volumes", [])
    source = {"claimName": name}
    volumes.append({"name": f"v{len(volumes)}", "persistentVolumeClaim": source})


def _is_free(found: Json) -> bool:
    return found["kind"] == "PersistentVolume" and "claimRef" not in found["spec"]


def _take(pod: Json, node: Json, free: list[Json], scene: Scene) -> bool:
    """Take the smallest free volume for each claim of the pod, the smallest claim first."""
    for claim in sorted(_claims(pod, scene), key=lambda each: _size(each["resources"]["requests"])):
        found = [each for each in free if _suits(each["spec"], claim, node)]
        if not found:
            return False
        free.remove(min(found, key=lambda each: _size(each["spec"]["capacity"])))
    return True


def _claims(pod: Json, scene: Scene) -> list[Any]:
    mounted = {
        each["persistentVolumeClaim"]["claimName"]
        for each in pod["spec"].get("volumes", [])
        if "persistentVolumeClaim" in each
    }
    return [
        each["spec"]
        for each in scene.objects
        if each["kind"] == "PersistentVolumeClaim"
        and each["spec"]["storageClassName"].endswith(_CLASS)
        and (each["metadata"]["name"] in mounted)
        and each["metadata"]["namespace"] == pod["metadata"]["namespace"]
    ]


def _suits(volume: Json, claim: Json, node: Json) -> bool:
    [term] = volume["nodeAffinity"]["required"]["nodeSelectorTerms"]
    [here] = term["matchExpressions"]
    return (
        volume["storageClassName"] == claim["storageClassName"]
        and _size(volume["capacity"]) >= _size(claim["resources"]["requests"])
        and {*claim["accessModes"]} <= {*volume["accessModes"]}
        and volume.get("volumeMode", "Filesystem") == claim.get("volumeMode", "Filesystem")
        and node["metadata"]["labels"].get(here["key"]) in here["values"]
    )


def _size(amounts: Json) -> int:
    return int(amounts["storage"].removesuffix("Gi"))
