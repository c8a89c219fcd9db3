"""The promises hold under random events, in any order.

A walk through a world of a few nodes and Ray clusters: users, nodes and foreign pods come and
go, watches lag, writes fail, are lost, or arrive long after their term, replicas crash and take
over. The promises are checked after every step, and once more when all has come to rest.
"""

from collections import Counter, defaultdict
from functools import partial
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coordinator.gang.nominations import Guard
from coordinator.messages.events import SchedulerSeen
from coordinator.state.cycle.run_cycle import existing_pods
from kube.codec.pod_patches import pinned_node
from kube.objects import core as core_objects
from kube.objects import names
from scheduling.cycle import run_cycle
from scheduling.model.gang import PendingGang
from scheduling.model.verdict import Refusal
from tests.coordinator.api import WATCHED, Change, Json, Key, key_of
from tests.coordinator.builders import affinity_to, foreign_pod, group, node, ray_cluster, template
from tests.coordinator.client import Outcome
from tests.coordinator.held import held
from tests.coordinator.replica import Replica
from tests.coordinator.validate import essence, repeated_nominations, validate
from tests.coordinator.world import World, is_gated, name_of

NODES = ("n1", "n2", "n3", "n4")
ZONES = {"n1": "1", "n2": "1", "n3": "2", "n4": "2"}
CLUSTERS = ("a", "b", "c", "d")
LONG = 1000.0  # seconds, longer than all patience of the repair

pick = st.integers(min_value=0, max_value=1 << 16)
small = st.integers(min_value=0, max_value=4)
topology = st.lists(
    st.sampled_from(
        [names.TOPOLOGY_REQUIRED, names.TOPOLOGY_PREFERRED, names.REPLICA_TOPOLOGY_REQUIRED]
    ),
    max_size=2,
).map(lambda keys: dict.fromkeys(keys, "zone"))


class Walk(RuleBasedStateMachine):
    """The world, and what has to be remembered of its history to judge it."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(replicas=2, guard=Guard.NOMINATION)
        self.read = 0
        self.past: dict[Key, Json] = {}
        self.released: Counter[str] = Counter()
        self.placed: defaultdict[str, set[tuple[str, str | None]]] = defaultdict(set)
        self.covered: defaultdict[str, set[tuple[str, str | None]]] = defaultdict(set)
        self.least: dict[tuple[str, str], int] = {}
        self.disturbed: set[str] = set()
        self.lost: set[str] = set()
        self.foreign = 0

    # ---- users

    @initialize(cpus=st.lists(st.integers(1, 8), min_size=1, max_size=3))
    def some_nodes(self, cpus: list[int]) -> None:
        self.world.create(*(zoned(name, cpu) for name, cpu in zip(NODES, cpus, strict=False)))

    @rule(
        name=st.sampled_from(CLUSTERS),
        workers=small,
        cpu=st.integers(1, 3),
        least=small,
        within=topology,
        hold=st.booleans(),
    )
    def create(
        self,
        name: str,
        workers: int,
        cpu: int,
        least: int,
        within: dict[str, str],
        hold: bool,
    ) -> None:
        spare = {names.MIN_REPLICAS: f"workers={least}"} if least < workers else {}
        workers_group = group("workers", workers, cpu=cpu)
        self._create(ray_cluster(name, workers_group, annotations={**spare, **within}), hold=hold)

    @rule(
        name=st.sampled_from(CLUSTERS),
        replicas=st.integers(1, 2),
        least=st.integers(0, 2),
        within=topology,
        hold=st.booleans(),
    )
    def create_multi_host(
        self, name: str, replicas: int, least: int, within: dict[str, str], hold: bool
    ) -> None:
        spare = {names.MIN_REPLICAS: f"workers={least}"} if least < replicas else {}
        workers = group("workers", replicas, hosts=2)
        self._create(ray_cluster(name, workers, annotations={**spare, **within}), hold=hold)

    @rule(
        name=st.sampled_from(CLUSTERS),
        workers=small,
        zones=st.tuples(*[st.sampled_from(["1", "2"])] * 2),
        least=small,
        hold=st.booleans(),
    )
    def create_with_affinity(
        self, name: str, workers: int, zones: tuple[str, str], least: int, hold: bool
    ) -> None:
        """Workers have affinity to their cluster: one may have to be bound before the head."""
        spare = {names.MIN_REPLICAS: f"workers={least}"} if least < workers else {}
        where, theirs = ({"zone": zone} for zone in zones)
        head = template(cpu=1, nodeSelector=where)
        workers_with_affinity = group(
            "workers", workers, affinity=affinity_to(name), nodeSelector=theirs
        )
        cluster = ray_cluster(name, workers_with_affinity, head=head, annotations=spare)
        self._create(cluster, hold=hold)

    @rule(name=st.sampled_from(CLUSTERS), ungated=st.booleans())
    def create_with_foreign_gate(self, name: str, ungated: bool) -> None:
        gated = template(cpu=1, schedulingGates=[{"name": "example.com/x"}])
        self._create(ray_cluster(name, group("workers", 1), head=gated))
        self.world.kuberay()
        for pod in self.world.pods(name) if ungated else ():
            self.world.api.change(pod, _without_foreign_gates)

    def _create(self, cluster: Json, *, hold: bool = False) -> None:
        if Key("rayclusters", "team", name_of(cluster)) not in self.world.api.objects:
            self.world.create(held(cluster) if hold else cluster)
            self._note_minimum(name_of(cluster))

    @rule(at=pick, what=st.sampled_from(["delete", "hold", "scale", "suspend"]), replicas=small)
    def change_a_cluster(self, at: int, what: str, replicas: int) -> None:
        for cluster in self._some("rayclusters", at):
            match what:
                case "delete":
                    self.world.api.delete(key_of(cluster))
                case "hold":
                    self.world.api.change(cluster, _delete_but_hold)
                case "scale":
                    self._scale(cluster, replicas)
                case "suspend":
                    suspended = bool(cluster["spec"].get("suspend"))
                    self.world.edit(name_of(cluster), suspend=not suspended)

    @rule(at=pick)
    def hold_a_gang_or_let_it_go(self, at: int) -> None:
        for gang in self._some("gangs", at):
            if gang["metadata"].get("finalizers"):
                self.world.api.unhold(gang)
            else:
                self.world.api.hold(gang, "example.com/hold")

    def _scale(self, cluster: Json, replicas: int) -> None:
        self.world.api.change(
            cluster, lambda obj: obj["metadata"]["annotations"].pop(names.MIN_REPLICAS, None)
        )
        self.world.scale(name_of(cluster), replicas)
        self._note_minimum(name_of(cluster))

    @rule(at=pick, cpu=st.integers(1, 3))
    def change_a_template(self, at: int, cpu: int) -> None:
        """Pods that come from now on are of another shape."""
        for cluster in self._some("rayclusters", at):
            [workers] = cluster["spec"]["workerGroupSpecs"]
            changed = {**workers, "template": template(cpu=cpu)}
            self.world.edit(name_of(cluster), workerGroupSpecs=[changed])

    @rule(at=pick)
    def delete_pod(self, at: int) -> None:
        for pod in self._some("pods", at):
            self.world.api.delete(key_of(pod))

    @rule(at=pick, name=st.sampled_from(("", *NODES)))
    def nominate(self, at: int, name: str) -> None:
        """Others write, or take back, that a pod is expected on a node."""
        for pod in self._some("pods", at):
            if "nodeName" not in pod["spec"]:
                self.disturbed.add(name)
                self.world.api.change(pod, partial(_nominate, name=name))

    # ---- the cluster

    @rule(name=st.sampled_from(NODES), cpu=st.integers(1, 8))
    def add_node(self, name: str, cpu: int) -> None:
        self.disturbed.add(name)
        if Key("nodes", "", name) not in self.world.api.objects:
            self.world.create(zoned(name, cpu))

    @rule(at=pick, cordon=st.booleans())
    def lose_a_node(self, at: int, cordon: bool) -> None:
        for each in self._some("nodes", at):
            if cordon:
                self.world.api.change(each, _cordon_or_not)
            else:
                self.lost.add(name_of(each))
                self.world.delete("nodes", name_of(each))

    @rule(at=pick, cpu=st.integers(1, 4))
    def foreign_pod_comes(self, at: int, cpu: int) -> None:
        for each in self._some("nodes", at):
            name = name_of(each)
            used = self.world.used().get(name, {}).get("cpu", 0)
            if used + 1000 * cpu <= 1000 * int(each["status"]["allocatable"]["cpu"]):
                self.foreign += 1
                self.disturbed.add(name)
                self.world.create(foreign_pod(f"foreign-{self.foreign}", name, cpu=cpu))

    @rule(at=pick)
    def foreign_pod_goes(self, at: int) -> None:
        pods = [p for p in self.world.api.all("pods") if names.RAY_CLUSTER not in _labels(p)]
        for pod in pods[at % len(pods) :][:1] if pods else []:
            self.world.api.remove(key_of(pod))

    @rule(at=pick)
    def scheduler_turns_against_a_node(self, at: int) -> None:
        self.world.grudges ^= {name_of(each) for each in self._some("nodes", at)}

    @rule(which=st.sampled_from(["kuberay", "schedule", "kubelets", "collect_garbage"]))
    def controller(self, which: str) -> None:
        getattr(self.world, which)()

    # ---- the replicas

    @rule(rounds=st.integers(1, 6), acts=st.integers(0, 12))
    def work(self, rounds: int, acts: int) -> None:
        """Everybody works, but the replicas get no further than so many writes a round."""
        for _ in range(rounds):
            self.world.controllers()
            for replica in self.world.replicas:
                replica.hear_all()
                replica.tick()
                replica.cycle()
                for _ in range(min(acts, len(replica.todo))):
                    replica.act()

    @rule(rounds=st.integers(1, 6), acts=st.integers(1, 3))
    def work_with_late_watches(self, rounds: int, acts: int) -> None:
        """The replicas act on what they know, and learn of nothing but their own writes."""
        for _ in range(rounds):
            self.world.controllers()
            for replica in self.world.replicas:
                replica.tick()
                replica.cycle()
                for _ in range(min(acts, len(replica.todo))):
                    replica.act(len(replica.todo) - 1)

    @rule(seconds=st.sampled_from([0.1, 10.0, 400.0]))
    def work_until_all_is_done(self, seconds: float) -> None:
        self.world.settle(seconds=seconds)

    @rule(at=pick, resource=st.sampled_from(WATCHED), most=st.integers(1, 5))
    def hear(self, at: int, resource: str, most: int) -> None:
        self._replica(at).hear(resource, most)

    @rule(at=pick)
    def cycle(self, at: int) -> None:
        self._replica(at).cycle()

    @rule(seconds=st.sampled_from([0.05, 1.0, 10.0, 40.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.api.now += seconds
        for replica in self.world.replicas:
            replica.tick()

    @rule(at=pick, which=pick)
    def act(self, at: int, which: int) -> None:
        replica = self._replica(at)
        if replica.todo:
            replica.act(which % len(replica.todo))

    @rule(at=pick, which=pick, outcome=st.sampled_from(Outcome), reads_fail=st.booleans())
    def act_badly(self, at: int, which: int, outcome: Outcome, reads_fail: bool) -> None:
        replica = self._replica(at)
        if replica.todo:
            replica.act(which % len(replica.todo), outcome, reads_fail=reads_fail)

    @rule(outcome=st.sampled_from(Outcome), reads_fail=st.booleans())
    def work_badly(self, outcome: Outcome, reads_fail: bool) -> None:
        """Every second write ends badly, however it is that this one time."""
        self.world.controllers()
        for replica in self.world.replicas:
            replica.hear_all()
            replica.cycle()
            for at in range(len(replica.todo)):
                replica.act(0, outcome if at % 2 else Outcome.DONE, reads_fail=reads_fail)

    @precondition(lambda self: any(r.client.held for r in self.world.replicas))
    @rule(at=pick)
    def a_held_write_arrives(self, at: int) -> None:
        holding = [replica for replica in self.world.replicas if replica.client.held]
        holding[at % len(holding)].client.let_go()

    @rule(at=pick)
    def crash_and_take_over(self, at: int) -> None:
        self._replica(at).restart()
        self.take_over(at + 1)

    @rule(at=pick)
    def take_over(self, at: int) -> None:
        self._replica(at + 1).leading = False  # whether it knows or not, it may not send
        self.world.elect(at % 2, hear="gangs and pods")

    @rule(at=pick)
    def hand_over(self, at: int) -> None:
        """The leader ends in order, and the next takes its word for whether all is answered."""
        old = self._replica(at + 1)
        clean = old.has_answers(self.world.epoch)
        old.resign()
        self.world.elect(at % 2, hear="gangs and pods", clean=clean)

    @rule(holder=st.sampled_from("xy"))
    def kube_scheduler_starts(self, holder: str) -> None:
        for replica in self.world.replicas:
            replica.handle([SchedulerSeen(holder)])

    @rule(at=pick)
    def learn_of_the_end(self, at: int) -> None:
        replica = self._replica(at)
        if not replica.leading:
            replica.resign()

    def _replica(self, at: int) -> Replica:
        return self.world.replicas[at % 2]

    def _some(self, plural: str, at: int) -> list[Json]:
        """One of the objects, if there is any; of the pods one of a Ray cluster."""
        found = self.world.pods() if plural == "pods" else list(self.world.api.all(plural))
        return [found[at % len(found)]] if found else []

    # ---- what must hold at every moment

    @invariant()
    def the_ledgers_are_what_a_fresh_count_gives(self) -> None:
        for replica in self.world.replicas:
            validate(replica.state)

    @invariant()
    def the_history_is_clean(self) -> None:
        news, self.read = self.world.api.history[self.read :], len(self.world.api.history)
        for change in news:
            self._check(change)

    def _check(self, change: Change) -> None:
        """Judge a change by the world as it was then."""
        self.past.pop(change.key, None)
        if change.new is not None:
            self.past[change.key] = change.new
        if change.key.plural == "gangs" and change.new is not None:
            self._note_placement(change.new)
        elif _is_release(change):
            self._check_release(change.new or {})

    def _note_placement(self, gang: Json) -> None:
        """Remember what was promised, and what of it covered the minimum of the gang."""
        owner = gang["spec"]["rayClusterUid"]
        placement = (gang.get("status") or {}).get("placement") or {}
        slots = _slots(placement)
        least = {pod_set: n for (uid, pod_set), n in self.least.items() if uid == owner}
        promised = {
            (pod_set["name"], node)
            for pod_set in placement.get("podSets", ())
            for each in pod_set["assignments"]
            for node in each["nodes"]
        }
        self.placed[owner] |= promised
        if all(slots[pod_set] >= n for pod_set, n in least.items()):
            self.covered[owner] |= promised

    def _check_release(self, pod: Json) -> None:
        """A pod is released once, to a node that was written down.

        The first one of a gang goes only where a placement has sent it that held the whole
        minimum; that may have been given up since, while the release was on its way.
        """
        uid, owner = pod["metadata"]["uid"], pod["metadata"]["ownerReferences"][0]["uid"]
        self.released[uid] += 1
        assert self.released[uid] == 1
        promised = (
            _labels(pod)[names.RAY_GROUP],
            pinned_node(msgspec.convert(pod, core_objects.Pod)),
        )
        assert promised in self.placed[owner]
        assert not pod["spec"]["schedulingGates"]
        mine = [each for each in self.past.values() if each["kind"] == "Pod" and owned(each, owner)]
        if [each for each in mine if not is_gated(each)] == [pod]:
            assert promised in self.covered[owner]

    def _settled(self, owner: str) -> Counter[str]:
        mine = [pod for pod in self.world.pods() if owned(pod, owner)]
        return Counter(_labels(pod)[names.RAY_GROUP] for pod in mine if not is_gated(pod))

    def _note_minimum(self, name: str) -> None:
        """The least minimum that a Ray cluster ever had: what is written may lag behind."""
        cluster = self.world.api.get(Key("rayclusters", "team", name))
        uid = cluster["metadata"]["uid"]
        resumed = {**cluster, "spec": {**cluster["spec"], "suspend": False}}
        for pod_set, minimum in minimums(resumed).items():
            known = self.least.get((uid, pod_set), minimum)
            self.least[uid, pod_set] = min(known, minimum)

    @invariant()
    def nobody_is_promised_what_is_not_there(self) -> None:
        """Only what came or changed behind the coordinator's back may exceed a node."""
        for replica in [each for each in self.world.replicas if each.leading]:
            columns = replica.state.known.cache.columns()
            for name, at in columns.index.items():
                assert name in self.disturbed or columns.free[:, at].min() >= 0

    # ---- what must hold in the end

    def teardown(self) -> None:
        self.come_to_rest()
        self.every_gang_is_whole_or_holds_nothing()
        self.nominations_repeat_placements()
        self.no_gang_waits_that_could_start()
        self.topology_is_kept()
        self.a_new_leader_knows_the_same()

    def come_to_rest(self) -> None:
        for replica in self.world.replicas:
            while replica.client.held:
                replica.client.let_go()
        for gang in list(self.world.api.all("gangs")):
            self.world.api.unhold(gang)
        self.world.grudges.clear()
        first, second = self.world.replicas
        second.resign()
        first.resign()
        self.world.elect(0)
        self.world.settle(seconds=LONG)
        self.the_history_is_clean()
        validate(first.state)

    def nominations_repeat_placements(self) -> None:
        state = self.world.leader.state
        pods = [pod for pod in state.known.cache.pods.values() if pod.gated and pod.nominated_to]
        assert {pod.uid for pod in pods} <= repeated_nominations(state)

    def every_gang_is_whole_or_holds_nothing(self) -> None:
        for cluster in self.world.api.all("rayclusters"):
            if "deletionTimestamp" in cluster["metadata"]:
                self._nothing_is_kept_for(cluster)
                continue
            status = self.world.status(name_of(cluster))
            owner = cluster["metadata"]["uid"]
            settled = self._settled(owner)
            bound = sum(self.world.bound(name_of(cluster)).values())
            assert bound == sum(settled.values())
            assert status["reason"]
            # What was added to a minimum after the start is surplus.
            least = {s: self.least.get((owner, s), n) for s, n in minimums(cluster).items()}
            whole = all(settled[s] >= n for s, n in least.items())
            if status["reason"] == "Running":
                assert whole
                assert status["phase"] == "Running"
            elif status["phase"] != "Running":  # a gang that ran may lack what it lost
                assert not settled
                assert "placement" not in status

    def _nothing_is_kept_for(self, cluster: Json) -> None:
        """It may have no Gang: none is made for one that is being deleted."""
        gang = self.world.api.objects.get(Key("gangs", "team", name_of(cluster)))
        status = (gang or {}).get("status") or {"reason": "Terminating"}
        assert (status["reason"], status.get("placement")) == ("Terminating", None)

    def no_gang_waits_that_could_start(self) -> None:
        known = self.world.leader.state.known
        demands = (view.queueing.asked for view in known.views.values())
        asked = [each for each in demands if isinstance(each, PendingGang)]
        for decision in run_cycle(asked, known.cache.columns(), existing=existing_pods(known)):
            assert isinstance(decision.verdict, Refusal) or not decision.verdict.units
            assert isinstance(decision.verdict, Refusal) or not _minimum(asked, decision.key)

    def topology_is_kept(self) -> None:
        """Where a node was lost and came again its pods may be elsewhere already."""
        for cluster in self.world.api.all("rayclusters"):
            found: defaultdict[str, set[str]] = defaultdict(set)
            for pod in self.world.pods(name_of(cluster)):
                where, labels = pod["spec"].get("nodeName"), _labels(pod)
                if where and where not in self.lost and labels[names.RAY_GROUP] == "workers":
                    found[names.TOPOLOGY_REQUIRED].add(ZONES[where])
                    found[labels.get(names.RAY_REPLICA_NAME, "")].add(ZONES[where])
            said = cluster["metadata"]["annotations"]
            if names.TOPOLOGY_REQUIRED in said:
                assert len(found[names.TOPOLOGY_REQUIRED]) <= 1
            if names.REPLICA_TOPOLOGY_REQUIRED in said:
                named = found.keys() - {names.TOPOLOGY_REQUIRED, ""}
                assert all(len(found[replica]) == 1 for replica in named)

    def a_new_leader_knows_the_same(self) -> None:
        ran_on = self.world.leader.state
        other = self.world.replicas[1]
        other.restart()
        other.hear_all()
        other.lead(self.world.epoch + 1)
        assert essence(other.state) == essence(ran_on)


def zoned(name: str, cpu: int) -> Json:
    return node(name, cpu=cpu, labels={"zone": ZONES[name]})


def owned(pod: Json, owner: str) -> bool:
    """Whether a pod belongs to the RayCluster of this uid."""
    return any(each["uid"] == owner for each in pod["metadata"].get("ownerReferences", ()))


def minimums(cluster: Json) -> Counter[str]:
    """Pods per pod set that must start at once."""
    if cluster["spec"].get("suspend"):
        return Counter()
    [workers] = cluster["spec"]["workerGroupSpecs"]
    said = cluster["metadata"]["annotations"].get(names.MIN_REPLICAS)
    replicas = int(said.partition("=")[2]) if said else workers["replicas"]
    hosts = workers.get("numOfHosts", 1)
    return Counter({names.RAY_HEAD_GROUP: 1, "workers": replicas * hosts})


def _is_release(change: Change) -> bool:
    if change.key.plural != "pods" or change.old is None or change.new is None:
        return False
    return is_gated(change.old) and not is_gated(change.new)


def _minimum(asked: list[PendingGang], key: object) -> object:
    return next(each.minimum for each in asked if each.key == key)


def _slots(placement: Json) -> Counter[str]:
    slots: Counter[str] = Counter()
    for pod_set in placement.get("podSets", ()):
        for each in pod_set["assignments"]:
            slots[pod_set["name"]] += sum(each["nodes"].values())
    return slots


def _labels(obj: Json) -> dict[str, Any]:
    return obj["metadata"].get("labels") or {}


def _without_foreign_gates(pod: Json) -> None:
    gates = pod["spec"]["schedulingGates"]
    pod["spec"]["schedulingGates"] = [g for g in gates if g["name"] == names.GATE]


def _delete_but_hold(cluster: Json) -> None:
    """A finalizer of others holds it."""
    cluster["metadata"]["deletionTimestamp"] = "now"


def _nominate(pod: Json, name: str) -> None:
    pod.setdefault("status", {})["nominatedNodeName"] = name


def _cordon_or_not(node: Json) -> None:
    node["spec"]["unschedulable"] = not node["spec"].get("unschedulable", False)


TestWalk = Walk.TestCase
TestWalk.settings = settings(
    max_examples=24,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
