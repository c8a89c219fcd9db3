"""What must never happen is planted on a real API server, and both watches find it there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kube.objects import names
from testbed.components import KUBERAY, SCHEDULER
from testbed.muster import Muster
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import GANG, Json, cluster_spec, pod
from tests.faults.chronicle import Chronicle
from tests.faults.ledger import problems
from tests.faults.traffic import wrapped_deployment
from tests.soak.fair_clock import FairClock
from tests.soak.judge import Judge
from tests.soak.record import Record

LONG = 400.0
"""Fair seconds after which nothing may stay as it is."""


class Planted:
    """A gang of which the pods are written by hand, while nobody else acts on them."""

    def __init__(self, plot: Plot, owner: Json, gang: str, labels: dict[str, str]) -> None:
        self._plot, self._owner, self._gang, self._labels = plot, owner, gang, labels

    def add_gang(self, minimum: int) -> None:
        """Its Gang, which promises nothing."""
        meta = {"name": self._gang, "ownerReferences": [self._reference()]}
        sets = [{"name": "workers", "count": minimum, "minimum": minimum}]
        body = {"apiVersion": names.API_VERSION, "kind": "Gang", "metadata": meta}
        self._plot.create({**body, "spec": {"queue": "default", "podSets": sets}})

    def add_pod(self, name: str, **spec: object) -> None:
        """One of its pods."""
        made = pod(name, self._labels, **spec)
        made["metadata"]["ownerReferences"] = [self._reference()]
        self._plot.create(made)

    def release(self, name: str, node: str) -> None:
        """Take its gate off and pin it, as the coordinator does."""
        rule = {"key": "metadata.name", "operator": "In", "values": [node]}
        terms = {"nodeSelectorTerms": [{"matchFields": [rule]}]}
        pin = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        self._plot.patch("Pod", name, {"spec": {"schedulingGates": None, "affinity": pin}})

    def bind(self, name: str, node: str) -> None:
        """Bind it to a node, whatever its pin says."""
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        body = json.dumps(binding).encode()
        with self._plot.cluster.api.session() as session:
            session.call("POST", f"{self._plot.path('Pod', name)}/binding", body)

    def _reference(self) -> Json:
        meta, kind = self._owner["metadata"], self._owner["kind"]
        of = {"apiVersion": self._owner["apiVersion"], "kind": kind, "name": meta["name"]}
        return {**of, "uid": meta["uid"], "controller": True}


@pytest.fixture(params=["RayCluster", "AppWrapper"])
def planted(request: pytest.FixtureRequest, plot: Plot) -> Iterator[Planted]:
    """A gang of either kind, without KubeRay and kube-scheduler."""
    plot.add_equal_nodes(2, 1)
    with ExitStack() as stack:
        for each in (KUBERAY, SCHEDULER):
            stack.enter_context(plot.cluster.process(each).paused())
        if request.param == "AppWrapper":
            owner = plot.create(wrapped_deployment("g", 2))
            marks = {names.APP_WRAPPER: "g", names.APP_WRAPPER_UID: owner["metadata"]["uid"]}
            gang, marks[names.POD_SET] = f"{names.APP_WRAPPER_GANG}g", "workers"
        else:
            meta = {"name": "g", "labels": GANG}
            body = {"apiVersion": names.RAY_API_VERSION, "kind": "RayCluster", "metadata": meta}
            owner = plot.create({**body, "spec": cluster_spec()})
            gang, marks = "g", {names.RAY_CLUSTER: "g", names.RAY_GROUP: "workers"}
        yield Planted(plot, owner, gang, marks)


def test_both_watches_find_what_is_planted(
    planted: Planted, plot: Plot, muster: Muster, chronicle: Chronicle
) -> None:
    clock = FairClock(lambda: False)
    zero, one = plot.node("n-0"), plot.node("n-1")
    with Record(muster.cluster, clock) as record:
        planted.add_gang(minimum=4)
        # One with a node is left alone by the webhook.
        planted.add_pod("slipped", nodeName=zero)
        for name in ("strayed", "crowded"):
            planted.add_pod(name, schedulingGates=[{"name": names.GATE}])
        planted.release("strayed", zero)
        planted.bind("strayed", one)
        planted.release("crowded", one)
        planted.bind("crowded", one)
        judge, found = Judge(record, clock, nodes=2), set[str]()

        def all_found() -> bool:
            found.update(str(each) for each in judge.look())
            clock.seconds += LONG
            return all(any(each in said for said in found) for each in expected)

        expected = (
            "slipped came without our gate",
            f"strayed was released to {zero}; the placement was",
            f"strayed is on {one}, pinned to {zero}",
            f"2000 cpu of {one} are taken, which has 1000",
            "partial gang",
        )
        wait_until(all_found, f"all of {expected} in {sorted(found)}")
    said = "; ".join(problems(chronicle.ledger, {zero: 1, one: 1}))
    assert "slipped was never gated" in said
    assert f"strayed was released to {zero}, and the placement of that moment" in said
    assert f"{one} has room for 1 and was given to" in said or f"{zero} has room for 1" in said
