"""Volumes: claims that are bound, claims that wait for their first pod, and how many disks fit.

Claims that several pods mount are of a driver without limits: where a disk is shared, the core is
known to count it too often. Its volumes are reached from anywhere, or from one of two places.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from tests.oracle.draw import Draw
from tests.oracle.ingredient import Ingredient, Reach
from tests.oracle.model import Json, Scene, name_of

ZONE = "topology.kubernetes.io/zone"
_ZONE_BEFORE = "failure-domain.beta.kubernetes.io/zone"
_REGION = "topology.kubernetes.io/region"
_REGION_BEFORE = "failure-domain.beta.kubernetes.io/region"
_NEW = {_ZONE_BEFORE: ZONE, _REGION_BEFORE: _REGION, ZONE: ZONE, _REGION: _REGION}


class Volumes(Ingredient):
    """A pod goes where its volumes are or can be made, and where there is a place for its disks."""

    name = "volumes"
    reach = Reach.ROOM
    share = 0.5

    def add_to_nodes(self, draw: Draw, nodes: Sequence[Json]) -> None:
        keys = [_place(draw.slot)] if draw.happens(0.5) else []
        for node in nodes:
            node["metadata"]["labels"][_place(draw.slot)] = draw.random.choice("xy")
            key = draw.random.choice((ZONE, ZONE, ZONE, _ZONE_BEFORE, "none"))
            node["metadata"]["labels"][key] = draw.random.choice("xy")
            draw.objects.append(_csi_node(draw, name_of(node), keys))
        draw.objects.extend(_classes(draw))

    def add_to_resident(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.5) and "nodeName" in pod["spec"]:
            kinds = {"bound": 0.6, "alone": 0.4}
            shared = draw.happens(0.5)
            mount(pod, _claim(draw, nodes, pod["metadata"]["namespace"], kinds, shared=shared))

    def add_to_member(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        """Have all pods of a set mount one claim; its driver limits nothing."""
        if draw.happens(0.35):
            kinds = {"bound": 0.45, "alone": 0.15, "waiting": 0.35, "missing": 0.05}
            mount(pod, _claim(draw, nodes, pod["metadata"]["namespace"], kinds, shared=True))
        elif draw.happens(0.2):
            same = [each for each in draw.objects if _may_share(each, pod)]
            if same:
                mount(pod, draw.random.choice(same)["spec"]["claimRef"]["name"])

    def add_to_gang(self, draw: Draw, pods: Sequence[Json]) -> None:
        """Give pods claims of their own."""
        kinds = {"bound": 0.5, "waiting": 0.35, "alone": 0.05, "now": 0.05, "missing": 0.05}
        sets = {pod["metadata"]["labels"]["set"] for pod in pods}
        for name in sorted(sets):
            if not draw.happens(0.35):
                continue
            for pod in (pod for pod in pods if pod["metadata"]["labels"]["set"] == name):
                nodes = [{"metadata": {"name": draw.node_names + "0"}}]
                mount(pod, _claim(draw, nodes, pod["metadata"]["namespace"], kinds))

    def refuses(self, pod: Json, node: Json, scene: Scene) -> bool:
        return any(_refusals(pod, node, scene))


# ---- drawing


def _csi_node(draw: Draw, node: str, keys: list[str]) -> Json:
    drivers: list[Json] = [{"name": _shared_driver(draw), "nodeID": node, "topologyKeys": keys}]
    if draw.happens(0.6):
        drivers.append({"name": _driver(draw), "nodeID": node})
        if draw.happens(0.7):
            drivers[1]["allocatable"] = {"count": draw.random.randint(1, 3)}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node},
        "spec": {"drivers": drivers},
    }


def _driver(draw: Draw) -> str:
    return f"{draw.slot}.csi.example"


def _shared_driver(draw: Draw) -> str:
    return f"{draw.slot}.shared.example"


def _place(slot: str) -> str:
    """Return the label by which the driver of shared volumes tells where they are."""
    return f"{slot}/place"


def _classes(draw: Draw) -> Iterator[Json]:
    topologies = [
        {"matchLabelExpressions": [{"key": ZONE, "values": values}]} for values in (["x"], ["y"])
    ]
    allowed = draw.random.choice(([], topologies[:1], topologies[1:], topologies))
    waiting = "WaitForFirstConsumer"
    for name, mode in (("waiting", waiting), ("sharing", waiting), ("now", "Immediate")):
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": f"{draw.slot}-{name}"},
            "provisioner": _shared_driver(draw) if name == "sharing" else _driver(draw),
            "volumeBindingMode": mode,
            **({"allowedTopologies": allowed} if allowed and name == "waiting" else {}),
        }


def _claim(
    draw: Draw, nodes: Sequence[Json], namespace: str, kinds: dict[str, float], shared: bool = False
) -> str:
    """Make a claim of one of the kinds, drawn by weight, and return its name."""
    kind = draw.random.choices(list(kinds), list(kinds.values()))[0]
    name = f"{draw.slot}-c{len(draw.objects)}"
    if kind == "missing":
        return f"{name}-missing"
    spec: Json = {
        "accessModes": ["ReadWriteOncePod" if kind == "alone" else "ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": f"{draw.slot}-now",
    }
    if kind == "waiting":
        spec["storageClassName"] = f"{draw.slot}-{'sharing' if shared else 'waiting'}"
    metadata: Json = {"name": name, "namespace": namespace}
    if kind in ("bound", "alone"):
        spec["volumeName"] = name
        draw.objects.append(_volume(draw, nodes, spec, namespace, name, shared))
    made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    draw.objects.append(made)
    return name


def _volume(
    draw: Draw, nodes: Sequence[Json], claim: Json, namespace: str, name: str, shared: bool
) -> Json:
    labels = draw.maybe(0.35, lambda: _zone_labels(draw), {})
    driver = _shared_driver(draw) if shared else _driver(draw)
    metadata: Json = {"name": name, "labels": labels}
    spec: Json = {
        "accessModes": claim["accessModes"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": claim["storageClassName"],
        "claimRef": {"namespace": namespace, "name": name},
        "csi": {"driver": driver, "volumeHandle": f"disk-{name}"},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    if draw.happens(0.5):
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": _terms(draw, nodes)}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def _may_share(volume: Json, pod: Json) -> bool:
    """Say whether the volume of a claim of some pod may be mounted by this one too."""
    if volume["kind"] != "PersistentVolume" or "claimRef" not in volume["spec"]:
        return False
    spec = volume["spec"]
    near = spec["claimRef"]["namespace"] == pod["metadata"]["namespace"]
    return near and (
        ".shared." in spec["csi"]["driver"] or "ReadWriteOncePod" in spec["accessModes"]
    )


def _zone_labels(draw: Draw) -> Json:
    key = draw.random.choice((ZONE, ZONE, _ZONE_BEFORE, _REGION))
    return {key: draw.random.choice(("x", "y", "x__y"))}


def _terms(draw: Draw, nodes: Sequence[Json]) -> list[Json]:
    host = name_of(draw.random.choice(nodes))
    choices = (
        {"key": ZONE, "operator": "In", "values": [draw.random.choice("xy")]},
        {"key": ZONE, "operator": "NotIn", "values": ["x"]},
        {"key": draw.host, "operator": "In", "values": [host]},
        {"key": ZONE, "operator": "Exists"},
    )
    drawn = draw.random.sample(choices, draw.random.choice((1, 1, 2)))
    return [{"matchExpressions": [each]} for each in drawn]


def mount(pod: Json, claim: str) -> None:
    """Give a pod a volume by a claim."""
    volumes = pod["spec"].setdefault("volumes", [])
    source = {"claimName": claim}
    volumes.append({"name": f"v{len(volumes)}", "persistentVolumeClaim": source})


# ---- judging


def _refusals(pod: Json, node: Json, scene: Scene) -> Iterator[bool]:
    """Ask the plugins about each claim, then about the disks."""
    namespace = pod["metadata"]["namespace"]
    for name in _claims_of(pod):
        yield not _is_static(namespace, name, scene) and _claim_refuses(
            namespace, name, node, scene
        )
    yield _is_full(pod, node, scene)


def _claims_of(pod: Json) -> list[str]:
    volumes = pod["spec"].get("volumes", [])
    return [
        each["persistentVolumeClaim"]["claimName"]
        for each in volumes
        if "persistentVolumeClaim" in each
    ]


def _is_static(namespace: str, name: str, scene: Scene) -> bool:
    """Say whether a claim is of a class without provisioner, which `static_volumes` judges."""
    claim = _find(scene, "PersistentVolumeClaim", name, namespace)
    of_class = claim and _find(scene, "StorageClass", claim["spec"]["storageClassName"])
    return bool(of_class) and of_class["provisioner"] == "kubernetes.io/no-provisioner"


def _find(scene: Scene, kind: str, name: str, namespace: str | None = None) -> Any:
    for each in scene.objects:
        meta = each["metadata"]
        if each["kind"] == kind and (meta["name"], meta.get("namespace")) == (name, namespace):
            return each
    return None


def _claim_refuses(namespace: str, name: str, node: Json, scene: Scene) -> bool:
    claim = _find(scene, "PersistentVolumeClaim", name, namespace)
    if claim is None:
        return True
    users = [
        where
        for pod, where in scene.bound
        if pod["metadata"]["namespace"] == namespace and name in _claims_of(pod)
    ]
    if "ReadWriteOncePod" in claim["spec"]["accessModes"] and users:
        return True
    if claim["spec"].get("volumeName"):
        volume = _find(scene, "PersistentVolume", claim["spec"]["volumeName"])
        return volume is None or not _reaches(volume, node)
    found = _find(scene, "StorageClass", claim["spec"]["storageClassName"])
    if found["volumeBindingMode"] != "WaitForFirstConsumer":
        return True
    if users:  # it was made for the first of them
        return any(
            users[0]["metadata"]["labels"][key] != node["metadata"]["labels"][key]
            for key in _keys(found["provisioner"], users[0], scene)
        )
    allowed = found.get("allowedTopologies")
    labels = node["metadata"]["labels"]
    return bool(allowed) and not any(
        all(labels.get(e["key"]) in e["values"] for e in term["matchLabelExpressions"])
        for term in allowed
    )


def _keys(driver: str, node: Json, scene: Scene) -> list[str]:
    """Return the labels of a node by which a driver tells where its volumes are."""
    csi_node = _find(scene, "CSINode", name_of(node))
    drivers = csi_node["spec"]["drivers"] if csi_node else []
    return next((each.get("topologyKeys") or [] for each in drivers if each["name"] == driver), [])


def _reaches(volume: Json, node: Json) -> bool:
    labels = node["metadata"]["labels"]
    required = volume["spec"].get("nodeAffinity", {}).get("required")
    if required is not None and not any(
        all(_matches(each, labels) for each in term["matchExpressions"])
        for term in required["nodeSelectorTerms"]
    ):
        return False
    if not any(key in labels for key in _NEW):
        return True
    return all(
        labels.get(key, labels.get(new)) in volume["metadata"]["labels"][key].split("__")
        for key, new in _NEW.items()
        if key in volume["metadata"].get("labels", {})
    )


def _matches(expression: Json, labels: Json) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in expression["values"]
        case "NotIn":
            return value not in expression["values"]
        case _:
            return value is not None


def _is_full(pod: Json, node: Json, scene: Scene) -> bool:
    csi_node = _find(scene, "CSINode", name_of(node))
    drivers = csi_node["spec"]["drivers"] if csi_node else []
    there = {disk for other in scene.on(node) for disk in _disks(other, scene)}
    new = _disks(pod, scene) - there
    for driver in (each for each in drivers if "count" in each.get("allocatable", {})):
        more = sum(name == driver["name"] for name, _ in new)
        have = sum(name == driver["name"] for name, _ in there)
        if more and have + more > driver["allocatable"]["count"]:
            return True
    return False


def _disks(pod: Json, scene: Scene) -> set[tuple[str, str]]:
    namespace = pod["metadata"]["namespace"]
    found = set()
    for name in _claims_of(pod):
        claim = _find(scene, "PersistentVolumeClaim", name, namespace)
        if claim is None:
            continue
        volume = _find(scene, "PersistentVolume", claim["spec"].get("volumeName", ""))
        if volume is not None:
            found.add((volume["spec"]["csi"]["driver"], volume["spec"]["csi"]["volumeHandle"]))
            continue
        of_class = _find(scene, "StorageClass", claim["spec"]["storageClassName"])
        found.add((of_class["provisioner"], f"{namespace}/{name}"))
    return found
