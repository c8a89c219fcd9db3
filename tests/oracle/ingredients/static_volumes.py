"""Claims that are to be bound to free volumes: disks of single nodes, or volumes that some share.

Whoever comes first takes the smallest that suits. Of volumes that are all reached from the same
nodes the order of binding decides which one a claim has, and never how many are left of each size.
Of others it may: where that matters the core is known to say that it cannot tell.
"""

from collections.abc import Sequence

from tests.oracle.draw import Draw
from tests.oracle.ingredient import Ingredient, Reach
from tests.oracle.ingredients.volumes import mount
from tests.oracle.model import Json, Scene, name_of

_CLASS = "by-hand"
_MODES = ("ReadWriteOnce", "ReadOnlyMany")


class StaticVolumes(Ingredient):
    """A pod goes where each of its claims finds a free volume, or has one already."""

    name = "static volumes"
    reach = Reach.ROOM
    share = 0.35

    def add_to_nodes(self, draw: Draw, nodes: Sequence[Json]) -> None:
        draw.objects.append(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": f"{draw.slot}-{_CLASS}"},
                "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": "WaitForFirstConsumer",
            }
        )
        hosts = sorted(map(name_of, nodes))
        if draw.happens(0.5):
            for host in hosts:
                for _ in range(draw.random.choice((0, 1, 2, 3))):
                    _add_volume(draw, [host])
            return
        some = draw.random.sample(hosts, draw.random.randint(min(2, len(hosts)), len(hosts)))
        for _ in range(draw.random.randint(1, 4)):
            _add_volume(draw, sorted(some) if draw.happens(0.7) else [])

    def add_to_member(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        """Have all pods of a set mount one claim."""
        if draw.happens(0.35):
            mount(pod, _add_claim(draw, pod, draw.random.randint(1, 3)))

    def add_to_gang(self, draw: Draw, pods: Sequence[Json]) -> None:
        """Give the pods of a set claims of their own."""
        sets = sorted({pod["metadata"]["labels"]["set"] for pod in pods})
        for name in (each for each in sets if draw.happens(0.3)):
            sizes = [draw.random.randint(1, 3) for _ in range(draw.random.choice((1, 1, 2)))]
            for pod in (pod for pod in pods if pod["metadata"]["labels"]["set"] == name):
                for size in sizes:
                    mount(pod, _add_claim(draw, pod, size))

    def refuses(self, pod: Json, node: Json, scene: Scene) -> bool:
        free = {name_of(each): each["spec"] for each in scene.objects if _is_free(each)}
        taken: dict[str, Json] = {}
        for other, where in scene.bound:
            _take(other, where, free, taken, scene)
        return not _take(pod, node, free, taken, scene)


def _add_volume(draw: Draw, hosts: list[str]) -> None:
    here = {"key": draw.host, "operator": "In", "values": hosts}
    required = {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
    spec: Json = {
        "accessModes": list(_MODES) if draw.happens(0.85) else [_MODES[1]],
        "capacity": {"storage": f"{draw.random.randint(1, 3)}Gi"},
        "storageClassName": f"{draw.slot}-{_CLASS}",
        "hostPath": {"path": "/data"},
        "persistentVolumeReclaimPolicy": "Retain",
        **({"nodeAffinity": {"required": required}} if hosts else {}),
        **draw.maybe(0.1, lambda: {"volumeMode": "Block"}, {}),
    }
    labels = draw.maybe(0.3, lambda: {"disk": "ssd"}, {})
    metadata = {"name": f"{draw.slot}-h{len(draw.objects)}", "labels": labels}
    draw.objects.append(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}
    )


def _add_claim(draw: Draw, pod: Json, size: int) -> str:
    name = f"{draw.slot}-w{len(draw.objects)}"
    selector = {"selector": {"matchLabels": {"disk": "ssd"}}}
    draw.objects.append(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": pod["metadata"]["namespace"]},
            "spec": {
                "accessModes": [_MODES[0]],
                "resources": {"requests": {"storage": f"{size}Gi"}},
                "storageClassName": f"{draw.slot}-{_CLASS}",
                **draw.maybe(0.1, lambda: selector, {}),
            },
        }
    )
    return name


def _is_free(found: Json) -> bool:
    if found["kind"] != "PersistentVolume" or "claimRef" in found["spec"]:
        return False
    return bool(found["spec"]["storageClassName"].endswith(_CLASS))


def _take(
    pod: Json, node: Json, free: dict[str, Json], taken: dict[str, Json], scene: Scene
) -> bool:
    """Take the smallest free volume for each claim of the pod, the smallest claim first."""
    for name, claim in sorted(_claims(pod, scene), key=lambda each: _size(each[1]["resources"])):
        if name in taken:
            if not _is_reached(taken[name], node):
                return False
            continue
        found = [each for each, spec in free.items() if _suits(each, spec, claim, node, scene)]
        if not found:
            return False
        least = min(found, key=lambda each: _volume_size(free[each]))
        taken[name] = free.pop(least)
    return True


def _claims(pod: Json, scene: Scene) -> list[tuple[str, Json]]:
    volumes = pod["spec"].get("volumes", [])
    mounted = {
        each["persistentVolumeClaim"]["claimName"]
        for each in volumes
        if "persistentVolumeClaim" in each
    }
    return [
        (name_of(each), each["spec"])
        for each in scene.objects
        if each["kind"] == "PersistentVolumeClaim"
        and each["spec"]["storageClassName"].endswith(_CLASS)
        and name_of(each) in mounted
        and each["metadata"]["namespace"] == pod["metadata"]["namespace"]
    ]


def _suits(name: str, volume: Json, claim: Json, node: Json, scene: Scene) -> bool:
    wanted = claim.get("selector", {}).get("matchLabels", {})
    labels = next(each["metadata"].get("labels", {}) for each in scene.objects
                  if each["kind"] == "PersistentVolume" and name_of(each) == name)  # fmt: skip
    return (
        volume["storageClassName"] == claim["storageClassName"]
        and _volume_size(volume) >= _size(claim["resources"])
        and {*claim["accessModes"]} <= {*volume["accessModes"]}
        and volume.get("volumeMode", "Filesystem") == claim.get("volumeMode", "Filesystem")
        and wanted.items() <= labels.items()
        and _is_reached(volume, node)
    )


def _is_reached(volume: Json, node: Json) -> bool:
    if "nodeAffinity" not in volume:
        return True
    [term] = volume["nodeAffinity"]["required"]["nodeSelectorTerms"]
    [here] = term["matchExpressions"]
    return node["metadata"]["labels"].get(here["key"]) in here["values"]


def _volume_size(volume: Json) -> int:
    return int(volume["capacity"]["storage"].removesuffix("Gi"))


def _size(resources: Json) -> int:
    return int(resources["requests"]["storage"].removesuffix("Gi"))
