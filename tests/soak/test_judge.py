"""The judge of a soak finds each kind of fault, in a record that is made up."""

from __future__ import annotations

from typing import Any

import pytest

from kube.objects import names
from testbed.api import Json
from testbed.cluster import Cluster
from testbed.following import DELETED
from tests.soak import record as recording
from tests.soak.amounts import GPU, amount
from tests.soak.fair_clock import FairClock
from tests.soak.judge import Judge
from tests.soak.record import Record
from tests.soak.stage import QUOTED

OWNER = "uid-of-the-cluster"
LONG = 1000.0
_OWNERS = [{"uid": OWNER, "controller": True}]


class _Follower:
    """Tells nothing by itself."""

    relisting = False

    def __init__(self, *_: object) -> None:
        pass

    def wait_synced(self) -> None:
        pass

    def close(self) -> None:
        pass


class World:
    """A record that is told of changes by hand, and its judge."""

    def __init__(self, cluster: Cluster) -> None:
        self.clock = FairClock(lambda: False)
        self.record = Record(cluster, self.clock)
        self.judge = Judge(self.record, self.clock, nodes=2)
        self._version = 0

    def _stamped(self, name: str, **more: object) -> Json:
        self._version += 1
        version = str(self._version)
        return {"name": name, "namespace": "beta", "resourceVersion": version, **more}

    def node(self, name: str, gpus: int, kind: str = "MODIFIED") -> None:
        """A node offers so many GPUs."""
        offer = {"cpu": "64", "memory": "256Gi", GPU: str(gpus), "pods": "20"}
        ready = [{"type": "Ready", "status": "True"}]
        node = {"metadata": {**self._stamped(name), "uid": name}, "spec": {}}
        node["status"] = {"allocatable": offer, "conditions": ready}
        self.record._node(kind, node, False)

    def ray_cluster(self, kind: str = "MODIFIED") -> None:
        """The RayCluster of the gang."""
        self.record._owner(kind, {"metadata": self._stamped("g", uid=OWNER), "spec": {}}, False)

    def app_wrapper(self, pods: int, gpus: int = 8) -> None:
        """The AppWrapper of the gang: a Job of so many pods."""
        asked = {"requests": {"cpu": "4", "memory": "8Gi", GPU: str(gpus)}}
        pod = {"spec": {"containers": [{"resources": asked}]}}
        job = {"kind": "Job", "spec": {"parallelism": pods, "template": pod}}
        meta = self._stamped("g", uid=OWNER)
        spec = {"components": [{"template": job}]}
        self.record._owner("MODIFIED", {"metadata": meta, "spec": spec}, False)

    def queue(self, name: str, gpus: int) -> None:
        """A queue that says how many GPUs are used in it."""
        queue = {"metadata": {"name": name}, "status": {"usage": {GPU: str(gpus)}}}
        self.record._queue("MODIFIED", queue, False)

    def gang(self, minimum: int, kind: str = "MODIFIED", **status: object) -> None:
        """The Gang of the RayCluster, with a status."""
        meta = self._stamped("g", uid="gang", ownerReferences=_OWNERS)
        spec = {"podSets": [{"name": "workers", "minimum": minimum}]}
        self.record._gang(kind, {"metadata": meta, "spec": spec, "status": status}, False)

    def pod(self, name: str, kind: str = "MODIFIED", *, gpus: int = 8, **how: str) -> None:
        """A pod of the gang: `gated`, `pinned` to a node, `bound` to one, `leaving`."""
        labels = {names.RAY_CLUSTER: "g", names.RAY_GROUP: "workers"}
        owners = _OWNERS
        if "wrapped" in how:
            owners = [{"uid": "uid-of-a-job", "controller": True}]
            labels = {names.APP_WRAPPER: "g", names.APP_WRAPPER_UID: OWNER}
            labels[names.POD_SET] = "workers"
        meta = self._stamped(name, uid=name, labels=labels, ownerReferences=owners)
        if "leaving" in how:
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        container = {"resources": {"requests": {"cpu": "4", "memory": "8Gi", GPU: str(gpus)}}}
        spec: Json = {"containers": [container]}
        if "gated" in how:
            spec["schedulingGates"] = [{"name": names.GATE}]
        if "pinned" in how:
            spec["affinity"] = _pinned(how["pinned"])
        if "bound" in how:
            spec["nodeName"] = how["bound"]
        self.record._pod(kind, {"metadata": meta, "spec": spec, "status": {}}, False)

    def release(self, name: str, node: str, **how: Any) -> None:
        """A pod comes gated, is released to a node and bound there."""
        self.pod(name, gated="yes", **how)
        self.pod(name, pinned=node, **how)
        self.pod(name, pinned=node, bound=node, **how)

    def found(self, later: float = 10.0) -> str:
        """What the judge finds now and after some fair seconds."""
        first = self.judge.look()
        self.clock.seconds += later
        return "\n".join(map(str, [*first, *self.judge.look()]))


def _pinned(node: str) -> Json:
    rule = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [rule]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _placed(**nodes: int) -> Json:
    """A placement of workers."""
    named = {name.replace("_", "-"): count for name, count in nodes.items()}
    return {"podSets": [{"name": "workers", "assignments": [{"nodes": named}]}]}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Two nodes with 8 GPUs and a RayCluster."""
    monkeypatch.setattr(recording, "Follower", _Follower)
    made = World(type("Nothing", (), {"api": None})())
    made.node("n-0", 8)
    made.node("n-1", 8)
    for queue in QUOTED:
        made.queue(queue, 100)
    made.ray_cluster()
    return made


def test_a_gang_that_starts_whole_is_fine(world: World) -> None:
    """Whatever else is found must be a fault."""
    world.gang(2, phase="Admitted", placement=_placed(n_0=1, n_1=1))
    world.release("a", "n-0")
    world.release("b", "n-1")
    assert world.found(LONG) == ""


def test_a_part_of_a_gang_must_not_stay_alone(world: World) -> None:
    """One of two is bound for ever."""
    world.gang(2, phase="Admitted", placement=_placed(n_0=1))
    world.release("a", "n-0")
    assert world.found(60) == ""
    assert "partial gang: beta/g: 1 of 2" in world.found(LONG)


def test_a_gang_that_was_whole_may_lack_a_pod(world: World) -> None:
    """Its policy is to run on."""
    world.gang(2, phase="Running", placement=_placed(n_0=1, n_1=1))
    world.release("a", "n-0")
    world.release("b", "n-1")
    world.judge.look()
    world.pod("b", DELETED, pinned="n-1", bound="n-1")
    world.gang(2, phase="Running", placement=_placed(n_0=1))
    assert world.found(LONG) == ""


def test_a_node_is_not_filled_beyond_what_it_offers(world: World) -> None:
    """Its GPUs had been gone for a minute when the pod was released."""
    world.gang(1, phase="Admitted", placement=_placed(n_0=1))
    world.node("n-0", 0)
    world.clock.seconds += 60
    world.release("a", "n-0")
    assert "8 nvidia.com/gpu of n-0 are taken, which has 0" in world.found()


def test_a_node_whose_gpus_went_just_now_is_forgiven(world: World) -> None:
    """Nobody can have heard of it."""
    world.gang(1, phase="Admitted", placement=_placed(n_0=1))
    world.node("n-0", 0)
    world.release("a", "n-0")
    assert world.found() == ""


def test_a_node_that_is_gone_gets_no_pod(world: World) -> None:
    """It has been gone for a minute."""
    world.gang(1, phase="Admitted", placement=_placed(n_0=1))
    world.node("n-0", 8, DELETED)
    world.clock.seconds += 60
    world.release("a", "n-0")
    assert "released to n-0, which was gone" in world.found()


def test_two_gangs_worth_of_pods_do_not_share_a_node(world: World) -> None:
    """Each asks for all of its GPUs."""
    world.gang(2, phase="Admitted", placement=_placed(n_0=2))
    world.release("a", "n-0")
    world.release("b", "n-0")
    assert "16 nvidia.com/gpu of n-0 are taken" in world.found()


def test_a_pod_makes_a_node_no_fuller_of_what_it_takes_nothing_of(world: World) -> None:
    """Found by the soak: a pod of others and a released one raced for the last GPU of a node."""
    world.gang(2, phase="Admitted", placement=_placed(n_0=2))
    world.release("a", "n-0")
    assert world.found() == ""
    world.node("n-0", 1)
    world.clock.seconds += 60
    world.pod("b", gated="yes", gpus=0)
    world.pod("b", gpus=0, pinned="n-0")
    assert world.found() == ""


def test_a_pod_that_leaves_unbound_holds_no_room(world: World) -> None:
    """The API server refuses to bind it; found by the soak, in which it passed for a violation."""
    world.gang(2, phase="Admitted", placement=_placed(n_0=1))
    world.pod("a", gated="yes")
    world.pod("a", pinned="n-0")
    world.pod("a", pinned="n-0", leaving="yes")
    world.release("b", "n-0")
    assert world.found() == ""


def test_a_pod_is_released_to_its_placement(world: World) -> None:
    """The Gang promises another node."""
    world.gang(1, phase="Admitted", placement=_placed(n_1=1))
    world.release("a", "n-0")
    assert "off its placement: beta/g: a was released to n-0" in world.found()


def test_a_pod_is_bound_where_it_is_pinned(world: World) -> None:
    """On another node it takes room that nobody counts."""
    world.gang(1, phase="Admitted", placement=_placed(n_0=1))
    world.release("a", "n-0")
    world.pod("a", pinned="n-0", bound="n-1")
    assert "a is on n-1, pinned to n-0" in world.found()


def test_a_pod_is_pinned_once(world: World) -> None:
    """A second release would say another node."""
    world.gang(1, phase="Admitted", placement=_placed(n_0=1))
    world.pod("a", gated="yes")
    world.pod("a", pinned="n-0")
    world.pod("a", pinned="n-1")
    assert "released twice: beta/g: a was released, pinned to ['n-0', 'n-1']" in world.found()


def test_a_pod_without_the_gate_is_found(world: World) -> None:
    """The webhook must have let it through."""
    world.pod("a")
    assert "a came without our gate" in world.found()


def test_a_pod_of_a_cluster_that_is_gone_needs_the_gate_too(world: World) -> None:
    """KubeRay made it too late: the webhook gates or refuses it."""
    world.ray_cluster(DELETED)
    world.pod("a", gated="yes")
    assert world.found(0) == ""
    world.pod("b")
    assert "b came without our gate" in world.found(0)


def test_pods_that_were_left_behind_count_until_they_end(world: World) -> None:
    """`--cascade=orphan` took their RayCluster; one of them is gated still."""
    world.gang(1, phase="Running", placement=_placed(n_0=1))
    world.release("a", "n-0")
    world.ray_cluster(DELETED)
    world.gang(1, DELETED)
    world.pod("b", gated="yes")
    assert world.found(LONG) == ""
    world.queue("beta", 7)
    assert "8 GPUs of it are on nodes, 7 are counted" in world.found(LONG)
    world.pod("a", DELETED, pinned="n-0", bound="n-0")
    assert world.found(LONG) == ""


# --- AppWrappers: all of the above is by the gang, so one of each is enough -----------------------


def test_an_app_wrapper_that_starts_whole_is_fine(world: World) -> None:
    world.app_wrapper(2)
    world.gang(2, phase="Admitted", placement=_placed(n_0=1, n_1=1))
    world.release("a", "n-0", wrapped="yes")
    world.release("b", "n-1", wrapped="yes")
    assert world.found(LONG) == ""


def test_a_part_of_an_app_wrapper_must_not_stay_alone(world: World) -> None:
    world.app_wrapper(2)
    world.gang(2, phase="Admitted", placement=_placed(n_0=1))
    world.release("a", "n-0", wrapped="yes")
    assert "partial gang: beta/g: 1 of 2" in world.found(LONG)


def test_a_pod_of_an_app_wrapper_is_gated_pinned_once_and_where_it_is_promised(
    world: World,
) -> None:
    world.app_wrapper(1)
    world.gang(1, phase="Admitted", placement=_placed(n_1=1))
    world.pod("a", wrapped="yes")
    world.pod("b", wrapped="yes", gated="yes")
    world.pod("b", wrapped="yes", pinned="n-0")
    world.pod("b", wrapped="yes", pinned="n-1", bound="n-0")
    found = world.found()
    assert "gated: beta/appwrapper.g: a came without our gate" in found
    assert "b was released to n-0; the placement was" in found
    assert "b was released, pinned to ['n-0', 'n-1']" in found
    assert "b is on n-0, pinned to n-1" in found


def test_an_app_wrapper_without_pods_must_run_in_the_end_where_they_would_fit(
    world: World,
) -> None:
    world.app_wrapper(2)
    waits: Json = {"phase": "Queued", "held": {"phase": "Waiting"}}
    world.gang(2, **waits, reason="InsufficientResources", message="no room")
    (found,) = world.judge.unsettled()
    assert "2 pods to come fit by first fit" in str(found)
    world.app_wrapper(3)
    world.gang(3, **waits, reason="InsufficientResources", message="no room")
    assert world.judge.unsettled() == []
    world.gang(2, **waits, reason="Held", message="it was stopped")
    assert world.judge.unsettled() == []
    world.gang(2, phase="Finished")
    assert world.judge.unsettled() == []


def test_a_gang_goes_with_its_cluster(world: World) -> None:
    """The garbage collector needs some seconds."""
    world.gang(1)
    world.ray_cluster(DELETED)
    assert world.found(30) == ""
    assert "leaked gang" in world.found(LONG)


def test_room_is_not_kept_for_nobody(world: World) -> None:
    """The pod has been gone for long."""
    world.gang(1, phase="Running", placement=_placed(n_0=1))
    world.release("a", "n-0")
    world.judge.look()
    world.pod("a", DELETED, pinned="n-0", bound="n-0")
    assert world.found(60) == ""
    assert "1 pods of workers are promised to n-0, 0 are" in world.found(LONG)


def test_a_gated_pod_has_a_reason(world: World) -> None:
    """Without a Gang, or with one that says nothing, nobody knows why it waits."""
    world.pod("a", gated="yes")
    assert "there is no Gang for it" in world.found(LONG)
    world.gang(1, phase="Queued")
    assert "a is gated, and its Gang says Queued None None" in world.found(LONG)
    world.gang(1, phase="Queued", reason="InsufficientResources", message="no room")
    assert world.found(LONG) == ""


def test_time_stands_still_while_nothing_can_be_expected() -> None:
    """An outage of the API server is no fault of the programs."""
    clock = FairClock(lambda: True)
    clock.tick()
    assert clock.seconds == 0


def test_what_fits_must_run_in_the_end(world: World) -> None:
    """Two GPUs too many, and waiting is right."""
    world.gang(1, phase="Queued", reason="InsufficientResources", message="no room")
    world.pod("a", gated="yes", gpus=10)
    assert world.judge.unsettled() == []
    world.pod("a", DELETED)
    world.pod("b", gated="yes", gpus=8)
    (found,) = world.judge.unsettled()
    assert "1 gated pods fit by first fit" in str(found)


@pytest.mark.parametrize(
    ("text", "scale", "expected"),
    [("500m", 1000, 500), ("64", 1000, 64_000), ("8Gi", 1, 8 << 30), (8, 1, 8), ("1k", 1, 1000)],
)
def test_amounts_are_read(text: str | int, scale: int, expected: int) -> None:
    """By the soak's own reading: that of Muster is what is judged."""
    assert amount(text, scale) == expected
