"""A whole cluster in memory: toy KubeRay, kube-scheduler, kubelets and garbage collector around
an API server, and one or more replicas of the coordinator, each driven step by step."""

import contextlib
import copy
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import cast

import msgspec

from coordinator.gang.nominations import Guard
from coordinator.gang.priority import AllowedClasses
from kube.codec import node as node_codec
from kube.codec.fields import InvalidObject
from kube.codec.observed_pod import observe
from kube.codec.pod import nominated_priority, room_on
from kube.codec.pod_patches import gate_patch, pinned_node
from kube.codec.pod_requests import pod_used
from kube.codec.profiles.scheduler_profiles import STOCK, Profiles
from kube.objects import core as core_objects
from kube.objects import names
from kube.ray.ray_cluster import opt_in
from scheduling.filters.feasibility import feasible
from scheduling.model import node as node_model
from scheduling.model.gang import GangKey
from scheduling.model.pod import LOWEST_PRIORITY
from scheduling.state.node_table import node_snapshot_of
from tests.coordinator import app_wrappers
from tests.coordinator.api import Api, Json, Key, key_of
from tests.coordinator.builders import TEAM, is_left_alone, pod_of
from tests.coordinator.device_world import allocate, given_by_classes, make_claims
from tests.coordinator.ray_jobs import reconcile as reconcile_ray_jobs
from tests.coordinator.replica import Replica
from tests.oracle.ingredients.pod_affinity import PodAffinity
from tests.oracle.model import Scene

STEPS = 400  # rounds after which a world that does not come to rest is broken


class World:
    """The API server and all that works on it."""

    def __init__(
        self,
        *start: Json,
        replicas: int = 1,
        profiles: Profiles = STOCK,
        allowed: Mapping[str, Collection[str]] | None = None,
        guard: Guard = Guard.NONE,
        adding: Collection[str] = (),
        home: str = names.DEFAULT_NAMESPACE,
    ) -> None:
        self.api = Api()
        self.epoch = 0
        self.refused: Json = {}  # why KubeRay creates no pods
        self.webhook = True  # whether new pods of gangs are gated
        self.policy = False  # whether new pods of every RayCluster are
        self.scheduler = True  # whether kube-scheduler comes to any pod
        self.claims = True  # whether claims of devices are made for pods
        self.wrapper = True  # whether objects of AppWrappers are created and deleted
        self.grudges: set[str] = set()  # nodes that the scheduler refuses, which no object tells
        self.api.create({"kind": "Namespace", "metadata": {"name": TEAM}})
        for obj in start:
            self.api.create(obj)
        reduce = partial(observe, profiles=profiles)
        classes = AllowedClasses(allowed or {}, adding)
        self.replicas = [Replica(self.api, reduce, classes, guard, home) for _ in range(replicas)]
        self.elect(0)

    @property
    def leader(self) -> Replica:
        return self.replicas[0]

    def elect(self, index: int, *, hear: str = "", clean: bool = False) -> Replica:
        """Have a replica lead; whether the earlier leader knows is its own matter.

        It has heard of everything, or, where it is `synced` already, of no more than it must.
        """
        self.epoch += 1
        replica = self.replicas[index]
        if replica.leading:
            replica.resign()
        if not (hear and replica.synced):
            replica.hear_all()
        replica.lead(self.epoch, clean=clean)
        return replica

    # ---- users

    def create(self, *objs: Json) -> None:
        for obj in objs:
            self.api.create(obj)

    def delete(self, plural: str, name: str, namespace: str = TEAM) -> None:
        where = "" if plural == "nodes" else namespace
        self.api.delete(Key(plural, where, name))

    def edit(self, name: str, *, namespace: str = TEAM, **spec: object) -> None:
        """Change the spec of a RayCluster."""
        cluster = self.api.get(Key("rayclusters", namespace, name))
        self.api.change(cluster, lambda obj: obj["spec"].update(spec))

    def scale(self, name: str, replicas: int) -> None:
        cluster = self.api.get(Key("rayclusters", TEAM, name))
        groups = copy.deepcopy(cluster["spec"]["workerGroupSpecs"])
        groups[0]["replicas"] = replicas
        self.edit(name, workerGroupSpecs=groups)

    # ---- looking

    def gang(self, name: str) -> Json:
        return self.api.get(Key("gangs", TEAM, name))

    def status(self, name: str) -> Json:
        return self.gang(name).get("status") or {}

    def pods(self, cluster: str = "") -> list[Json]:
        pods = [pod for pod in self.api.all("pods") if names.RAY_CLUSTER in _labels(pod)]
        return [pod for pod in pods if cluster in ("", _labels(pod)[names.RAY_CLUSTER])]

    def bound(self, cluster: str = "") -> Counter[str]:
        """How many pods of a Ray cluster are on which node."""
        return Counter(pod["spec"]["nodeName"] for pod in self.pods(cluster) if _node(pod))

    def gated(self, cluster: str = "") -> int:
        return sum(is_gated(pod) for pod in self.pods(cluster))

    def released_by(self, replica: Replica) -> list[tuple[str, str]]:
        """The releases that a replica has asked for, and that were carried out."""
        pods = {
            name_of(pod): pinned_node(msgspec.convert(pod, core_objects.Pod)) for pod in self.pods()
        }
        return [(pod, node) for pod, node in replica.releases() if pods.get(pod) == node]

    # ---- everybody's work

    def controllers(self) -> None:
        steps = (self.collect_garbage, self.wrap, self.kuberay, self.schedule, self.kubelets)
        for step in steps:
            step()
        if self.claims:
            make_claims(self.api)

    def settle(self, *, seconds: float = 0.0) -> None:
        """Have everybody work until nothing changes any more, then let time pass, and again."""
        self._come_to_rest()
        end = self.api.now + seconds
        while self.api.now < end:
            self.api.now = min(end, self._next_moment(end))
            self._come_to_rest()

    def _next_moment(self, end: float) -> float:
        wakes = (replica.state.next_wake for replica in self.replicas if replica.leading)
        return min((max(at, self.api.now + 0.001) for at in wakes if at is not None), default=end)

    def _come_to_rest(self) -> None:
        for _ in range(STEPS):
            before = len(self.api.history)
            self.controllers()
            busy = [self._work(replica) for replica in self.replicas]
            if not any(busy) and len(self.api.history) == before:
                return
        raise AssertionError("the world does not come to rest")

    def _work(self, replica: Replica) -> bool:
        """One round of a replica; says whether it had anything to do."""
        due = replica.state.next_wake is not None and replica.state.next_wake <= self.api.now
        busy = bool(replica.watch.waiting() or replica.todo or replica.state.cycle_wanted or due)
        replica.hear_all()
        replica.act_all()
        replica.tick()
        if replica.leading:
            replica.cycle()
        replica.act_all()
        return busy and replica.leading

    # ---- the toys

    @contextlib.contextmanager
    def kuberay_refuses(self, condition: Json) -> Iterator[None]:
        """KubeRay creates no pods, and says so on every RayCluster, until the block ends."""
        self.refused = condition
        yield
        self.refused = {}
        for cluster in list(self.api.all("rayclusters")):
            self.api.change(cluster, lambda obj: obj.update(status={}))

    def kuberay(self) -> None:
        reconcile_ray_jobs(self.api)
        for cluster in list(self.api.all("rayclusters")) if self.refused else ():
            seen = {"observedGeneration": cluster["metadata"]["generation"]}
            self._say(cluster, {**seen, "conditions": [self.refused]})
        owned = self._alive_by_owner()
        for cluster in list(self.api.all("rayclusters")):
            if is_left_alone(cluster):
                continue
            self._reconcile_cluster(cluster, owned[cluster["metadata"]["uid"]])

    def _reconcile_cluster(self, cluster: Json, owned: list[Json]) -> None:
        for pod_set, pods, wanted in self._sets(cluster, owned):
            self._reconcile(cluster, pod_set, pods, wanted)

    def _say(self, cluster: Json, status: Json) -> None:
        self.api.change(cluster, lambda obj: obj.update(status=status))

    def _alive_by_owner(self) -> defaultdict[str, list[Json]]:
        found: defaultdict[str, list[Json]] = defaultdict(list)
        for pod in self.api.all("pods"):
            if "deletionTimestamp" not in pod["metadata"]:
                found[_owner(pod)].append(pod)
        return found

    def _sets(self, cluster: Json, owned: Sequence[Json]) -> Iterator[tuple[Json, list[Json], int]]:
        spec = cluster["spec"]
        head = {"groupName": names.RAY_HEAD_GROUP, "replicas": 1, **spec["headGroupSpec"]}
        every = [head, *spec["workerGroupSpecs"]]
        for each in every:
            wanted = 0 if spec.get("suspend") or each.get("suspend") else each["replicas"]
            mine = [p for p in owned if _labels(p)[names.RAY_GROUP] == each["groupName"]]
            yield each, mine, wanted
        kept = {each["groupName"] for each in every}
        for pod in [p for p in owned if _labels(p)[names.RAY_GROUP] not in kept]:
            self._delete(pod)

    def _reconcile(self, cluster: Json, pod_set: Json, pods: list[Json], wanted: int) -> None:
        hosts = pod_set.get("numOfHosts") or 1
        replicas: dict[str, list[Json]] = {}
        for pod in pods:
            said = _labels(pod).get(names.RAY_REPLICA_NAME) if hosts > 1 else ""
            name = said or pod["metadata"]["name"]
            replicas.setdefault(name, []).append(pod)
        whole = {name for name, each in replicas.items() if len(each) == hosts}
        for name in [*(replicas.keys() - whole), *sorted(whole)[wanted:]]:
            for pod in replicas[name]:
                self._delete(pod)
        for _ in range(len(whole), 0 if self.refused else wanted):
            self._make_replica(cluster, pod_set, hosts)

    def _make_replica(self, cluster: Json, pod_set: Json, hosts: int) -> None:
        name, self._made = f"{pod_set['groupName']}-{self._made:04}", self._made + 1
        for _ in range(hosts):
            self._make_pod(cluster, pod_set, name if hosts > 1 else "")

    _made = 0

    def _make_pod(self, cluster: Json, pod_set: Json, replica: str) -> None:
        template = pod_set["template"]
        gates = [gate["name"] for gate in template["spec"].get("schedulingGates", ())]
        pod = pod_of(cluster, pod_set["groupName"], "", template, replica, gates)
        del pod["metadata"]["name"]
        pod["metadata"]["generateName"] = f"{cluster['metadata']['name']}-{pod_set['groupName']}-"
        self.api.create(self._reviewed(cluster, pod))

    def wrap(self) -> None:
        """What the program `wrapper` does, and the controllers of what it creates."""
        if self.wrapper:
            app_wrappers.reconcile(self.api)
        app_wrappers.make_pods(self.api, self._reviewed)

    def _reviewed(self, cluster: Json, pod: Json) -> Json:
        """What the webhook does, or a policy that gates the pods of every RayCluster."""
        if app_wrappers.is_wrapped(pod):
            return app_wrappers.gated(self.api, pod) if self.webhook else pod
        meta = cluster["metadata"]
        namespace = self.api.get(Key("namespaces", "", meta["namespace"]))
        answer = opt_in(meta["labels"], meta["annotations"], _labels(namespace))
        others = pod["spec"].get("schedulingGates", ())
        gated = self.policy or (self.webhook and answer.gated)
        if not (gated and gate_patch([each["name"] for each in others])):
            return pod
        gates = [*others, {"name": names.GATE}]
        return {**pod, "spec": {**pod["spec"], "schedulingGates": gates}}

    def _delete(self, pod: Json) -> None:
        self.api.delete(key_of(pod))

    def schedule(self) -> None:
        """Bind ungated pods where they may go and fit; say of the others that they do not."""
        for raw in list(self.api.all("pods")) if self.scheduler else ():
            gates = raw["spec"].get("schedulingGates")
            foreign = not raw["metadata"].get("ownerReferences")
            if not (_node(raw) or gates or foreign or "deletionTimestamp" in raw["metadata"]):
                self._schedule_one(raw)

    def _schedule_one(self, raw: Json) -> None:
        pod = msgspec.convert(raw, core_objects.Pod)
        node = next((name for name in self._candidates(pod) if self._is_company(raw, name)), "")
        if node and allocate(self.api, raw, node):
            raw = self.api.get(key_of(raw))
            self.api.change(raw, lambda obj: obj["spec"].update(nodeName=node))
        else:
            self._condition(raw, "PodScheduled", "False", "Unschedulable", "0 nodes available")

    def _candidates(self, pod: core_objects.Pod) -> Iterator[str]:
        seen = observe(pod)
        nodes = (msgspec.convert(obj, core_objects.Node) for obj in self.api.all("nodes"))
        used = self.used(pod.spec.priority or 0, but=pod.metadata.uid)
        columns = node_snapshot_of(readable(nodes), used)
        shape = seen.member.shape if seen.member is not None else None
        assert shape is not None, "only Ray pods go through the toy scheduler"
        given = given_by_classes(self.api)
        pin = pinned_node(pod)
        for at, allowed in enumerate(feasible(shape, columns)):
            listed = columns.nodes[at].allocatable
            asked = [e for e in shape.requests if listed.get(e[0]) or e[0] not in given]
            fits = all(columns.free[columns.row[name], at] >= n for name, n in asked)
            name = columns.names[at]
            if allowed and fits and pin in (None, name) and name not in self.grudges:
                yield name

    def _is_company(self, raw: Json, name: str) -> bool:
        """Say whether the pods that are bound let a pod onto a node that draws it to them."""
        if "podAffinity" not in raw["spec"].get("affinity", {}):
            return True
        nodes = {name_of(node): node for node in self.api.all("nodes")}
        bound = [(pod, nodes[_node(pod)]) for pod in self.api.all("pods") if _node(pod) in nodes]
        namespaces = {name_of(each): _labels(each) for each in self.api.all("namespaces")}
        return not PodAffinity().refuses(raw, nodes[name], Scene([], bound, namespaces))

    def used(self, priority: int = LOWEST_PRIORITY, but: str = "") -> dict[str, dict[str, int]]:
        """What pods take, by node; those that are nominated with a lower priority take nothing.

        One pod, by its uid, may be left out.
        """
        sums: dict[str, Counter[str]] = {}
        for raw in self.api.all("pods"):
            pod = msgspec.convert(raw, core_objects.Pod)
            yields = nominated_priority(pod)
            counts = yields is None or yields >= priority
            if room_on(pod) and counts and pod.metadata.uid != but:
                sums.setdefault(room_on(pod), Counter()).update(pod_used(pod))
        return {node: dict(used) for node, used in sums.items()}

    def kubelets(self) -> None:
        for pod in list(self.api.all("pods")):
            if not _node(pod) or not _labels(pod).keys() & {names.RAY_CLUSTER, names.APP_WRAPPER}:
                continue
            if "deletionTimestamp" in pod["metadata"]:
                self.api.remove(key_of(pod))
            elif pod["status"].get("phase") != "Succeeded":
                self._condition(pod, "Ready", "True", "", "")

    def _condition(self, pod: Json, kind: str, status: str, reason: str, message: str) -> None:
        new = {"type": kind, "status": status, "reason": reason, "message": message}

        def change(obj: Json) -> None:
            others = [c for c in obj["status"].get("conditions", ()) if c["type"] != kind]
            obj["status"]["conditions"] = [*others, new]

        if new not in pod["status"].get("conditions", ()):
            self.api.change(pod, change)

    def collect_garbage(self) -> None:
        """What is owned goes with its owner; pods of a node go with the node."""
        kinds = ("appwrappers", "gangoffers", "rayjobs", "rayservices", "jobs", "rayclusters")
        owners = {obj["metadata"]["uid"] for kind in kinds for obj in self.api.all(kind)}
        for kind in (*kinds, "configmaps"):
            for obj in list(self.api.all(kind)):
                if _owner(obj) not in ("", *owners):
                    self.api.delete(key_of(obj))
        uids = {obj["metadata"]["uid"] for kind in kinds for obj in self.api.all(kind)}
        nodes = {obj["metadata"]["name"] for obj in self.api.all("nodes")}
        uids |= {obj["metadata"]["uid"] for obj in self.api.all("gangs")}
        asked = [*self.api.all("provisioningrequests"), *self.api.all("podtemplates")]
        for obj in [*self.api.all("gangs"), *self.api.all("pods"), *asked]:
            if _owner(obj) and _owner(obj) not in uids:
                self.api.delete(key_of(obj))
            elif obj["kind"] == "Pod" and _node(obj) and _node(obj) not in nodes:
                self.api.remove(key_of(obj))


def name_of(obj: Json) -> str:
    return cast(str, obj["metadata"]["name"])


def readable(nodes: Iterable[core_objects.Node]) -> Iterator[node_model.Node]:
    for each in nodes:
        with contextlib.suppress(InvalidObject):
            yield node_codec.node(each)


def is_gated(pod: Json) -> bool:
    return {"name": names.GATE} in pod["spec"].get("schedulingGates", ())


def _labels(obj: Json) -> dict[str, str]:
    return cast(dict[str, str], obj["metadata"].get("labels", {}))


def _node(pod: Json) -> str:
    return cast(str, pod["spec"].get("nodeName", ""))


def _owner(obj: Json) -> str:
    owners = obj["metadata"].get("ownerReferences") or [{"uid": ""}]
    return cast(str, owners[0]["uid"])


def key(name: str) -> GangKey:
    return GangKey(TEAM, name)
