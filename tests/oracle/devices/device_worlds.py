"""Makes random small clusters with devices, and a gang whose pods claim some of them."""

from collections.abc import Sequence, Set
from copy import deepcopy
from dataclasses import dataclass
from random import Random

import msgspec

from kube.codec.devices.extended_requests import extended_requests
from kube.objects.core import Pod
from tests.oracle.devices.claims import claim_spec, contending_specs
from tests.oracle.devices.extended import lay_extended
from tests.oracle.devices.far import lay_far
from tests.oracle.devices.partitions import PARTITIONS, lay_partitions
from tests.oracle.devices.published import Published, given, published
from tests.oracle.devices.shares import lay_shares
from tests.oracle.draw import Draw
from tests.oracle.model import GANG, GATE, HIGH, POD_SET, Json, World, name_of
from tests.oracle.worlds import named_copy

FOREIGN = "foreign"
"""The label of a pod of another gang, which names its node."""

_POD_SETS = (("worker",), ("worker",), ("head", "worker"), ("head", "worker"), ("a", "b", "c"))
_CONTENDING = (("a", "b"), ("a", "b", "c"))


@dataclass(frozen=True)
class DeviceWorld:
    """A world whose `gang` holds pods of others as well, in the order in which they are created."""

    world: World
    present: frozenset[str]


def is_foreign(pod: Json) -> bool:
    """Say whether a pod is of another gang, that is on its way to its node."""
    return FOREIGN in pod["metadata"]["labels"]


def on_the_way(pods: Sequence[tuple[Json, str]], world: World) -> list[Json]:
    """Return the pods of others that are to get their devices where pods of the gang take some.

    Elsewhere nobody says that what they claim is there at all.
    """
    allocated = {
        name_of(each) for each in world.objects if each.get("status", {}).get("allocation")
    }
    listed = {name_of(each): each["status"]["allocatable"] for each in world.nodes}
    nodes = {node for pod, node in pods if _takes_devices(pod, allocated, listed[node])}
    return [pod for pod in filter(is_foreign, world.gang) if _goes_to(pod) in nodes]


def _takes_devices(pod: Json, allocated: Set[str], listed: Json) -> bool:
    asked = pod["spec"].get("resourceClaims", [])
    extended = extended_requests(msgspec.convert(pod, Pod))
    return any(each.get("resourceClaimName", "") not in allocated for each in asked) or any(
        listed.get(each.resource, "0") == "0" for each in extended
    )


def _goes_to(pod: Json) -> str:
    node: str = pod["metadata"]["labels"][FOREIGN]
    return node


def device_world(slot: str, seed: str, turn: int = 1) -> DeviceWorld:
    """Draw the world of this seed; another turn names it anew, and mixes the order of its pods."""
    return _Making(slot, seed, turn).drawn()


class _Making:
    """One world in the making."""

    def __init__(self, slot: str, seed: str, turn: int) -> None:
        name = f"{seed.replace('/', '-')}-{turn}"
        self.draw = Draw(slot, name, Random(f"{seed}/devices"))
        self.order = Random(f"{seed}/{turn}/order")
        self.extended = Random(f"{seed}/extended")
        self.partitions = Random(f"{seed}/partitions")
        self.far = Random(f"{seed}/far")
        self.shares = Random(f"{seed}/shares")
        self.random = self.draw.random
        self.objects = self.draw.objects
        self.present: set[str] = set()

    def drawn(self) -> DeviceWorld:
        """Draw everything."""
        contend = self.draw.happens(0.4)
        counts = (1, 1, 2) if contend else (1, 2, 2, 3, 3)
        nodes = [self._node(at) for at in range(self.random.choice(counts))]
        found = published(self.draw, nodes)
        self.present |= found.oddities
        counters = lay_partitions(self.partitions, self.draw, found.slices)
        self.present |= {PARTITIONS} if counters else set()
        specs = [claim_spec(self.draw) for _ in range(self.random.choice((1, 2, 2, 3)))]
        if contend:
            self.present.add("contending claims")
            specs = contending_specs(self.draw)
        self.present |= lay_shares(self.shares, self.draw, found, specs)
        self.present |= lay_far(self.far, self.draw, found, specs)
        self.objects += [*found.classes, *found.slices, *counters, *found.taken]
        sets = [
            self._pod_set(name, specs, found)
            for name in self.random.choice(_CONTENDING if contend else _POD_SETS)
        ]
        foreign = [
            self._foreign(at, specs, nodes) for at in range(self.random.choice((0, 0, 0, 0, 1, 2)))
        ]
        self._lay_extended(nodes, sets, foreign)
        pods = [*(pod for each in sets for pod in each), *foreign]
        self._note(specs, foreign)
        self.order.shuffle(pods)
        return DeviceWorld(
            World(self.draw.slot, nodes, [], pods, self.objects), frozenset(self.present)
        )

    def _lay_extended(
        self, nodes: list[Json], sets: Sequence[list[Json]], foreign: list[Json]
    ) -> None:
        """Have pods ask for extended resources; those of one set for the same."""
        templates = [deepcopy(each[0]) for each in sets if each]
        self.present |= lay_extended(self.extended, self.draw, nodes, [*templates, *foreign])
        for template, pods in zip(templates, filter(None, sets), strict=True):
            for pod in pods:
                pod["spec"] = {**deepcopy(template["spec"])}

    def _note(self, specs: list[Json], foreign: list[Json]) -> None:
        text = str(specs)
        for word in (
            "firstAvailable",
            "matchAttribute",
            "distinctAttribute",
            "'All'",
            "tolerations",
        ):
            if word in text:
                self.present.add(word.strip("'"))
        if foreign:
            self.present.add("pods of others")

    def _node(self, at: int) -> Json:
        name = f"{self.draw.node_names}{at}"
        zone = self.draw.maybe(0.8, lambda: {self.draw.zone: self.random.choice("xy")}, {})
        amounts = {
            "cpu": str(self.random.choice((4, 8, 16, 16))),
            "memory": "16Gi",
            "pods": "110",
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"world": self.draw.slot, self.draw.host: name, **zone},
            },
            "spec": {},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "capacity": amounts,
                "allocatable": amounts,
            },
        }

    # ---- pods

    def _pod_set(self, name: str, specs: list[Json], found: Published) -> list[Json]:
        pod = self._pod({POD_SET: name}, GANG)
        count = 1 if name == "head" else self.random.choice((1, 1, 2, 2, 3))
        least = 0 if name == "head" else 1
        for at in range(self.random.choice((least, 1, 1, 2))):
            spec = self.random.choice(specs)
            if self.draw.happens(0.2 if count == 1 else 0.12):
                claim = self._claim(f"{name}-{at}", spec, found)
                self.present.add("named claims" if count == 1 else "shared claims")
                asked = {"name": f"c{at}", "resourceClaimName": name_of(claim)}
            else:
                asked = {"name": f"c{at}", "resourceClaimTemplateName": self._template(spec)}
            pod["spec"].setdefault("resourceClaims", []).append(asked)
        return [named_copy(pod, f"{self.draw.pod_names}{name}-{at}") for at in range(count)]

    def _foreign(self, at: int, specs: list[Json], nodes: list[Json]) -> Json:
        node = name_of(self.random.choice(nodes))
        pod = self._pod({FOREIGN: node}, self.random.choice((GANG, GANG, HIGH)))
        pod["spec"]["containers"][0]["resources"] = {}
        template = self._template(self.random.choice(specs))
        pod["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimTemplateName": template}]
        return named_copy(pod, f"{self.draw.pod_names}foreign-{at}")

    def _pod(self, labels: dict[str, str], priority: str) -> Json:
        container: Json = {"name": "main", "image": "none"}
        container["resources"] = {"requests": {"cpu": str(self.random.choice((0, 0, 1, 2)))}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"namespace": self.draw.namespaces[0], "labels": labels},
            "spec": {
                "containers": [container],
                "terminationGracePeriodSeconds": 0,
                "schedulingGates": [{"name": GATE}],
                "nodeSelector": {"world": self.draw.slot},
                "priorityClassName": priority,
            },
        }

    # ---- claims

    def _template(self, spec: Json) -> str:
        """Return a template of the spec; one is enough for all pods."""
        for each in self.objects:
            if each["kind"] == "ResourceClaimTemplate" and each["spec"]["spec"] == spec:
                return name_of(each)
        number = sum(each["kind"] == "ResourceClaimTemplate" for each in self.objects)
        made = self._object("ResourceClaimTemplate", f"t{number}", {"spec": spec})
        self.objects.append(made)
        return name_of(made)

    def _claim(self, name: str, spec: Json, found: Published) -> Json:
        """Return a claim that one pod names, allocated already or not."""
        claim = self._object("ResourceClaim", name, spec)
        if found.taken and self.draw.happens(0.4):
            before = self.random.choice(found.taken)
            [result] = before["status"]["allocation"]["devices"]["results"]
            where = self._published(result)
            if where is not None:
                self.objects.remove(before)
                found.taken.remove(before)
                claim = given(self.draw, name, where, result["device"])
                claim["metadata"]["namespace"] = self.draw.namespaces[0]
                self.present.add("claims allocated before")
        self.objects.append(claim)
        return claim

    def _published(self, result: Json) -> Json | None:
        slices: list[Json] = [
            each["spec"] for each in self.objects if each["kind"] == "ResourceSlice"
        ]
        for each in slices:
            devices = {device["name"] for device in each.get("devices", ())}
            same = (each["driver"], each["pool"]["name"]) == (result["driver"], result["pool"])
            if same and result["device"] in devices:
                return each
        return None

    def _object(self, kind: str, name: str, spec: Json) -> Json:
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": kind,
            "metadata": {
                "name": f"{self.draw.pod_names}{name}",
                "namespace": self.draw.namespaces[0],
            },
            "spec": deepcopy(spec),
        }
