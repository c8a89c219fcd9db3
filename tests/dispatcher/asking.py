"""Carries out on real members what `dispatcher.protocol.dispatching` decides for one gang.

The record, which is to be a Gang on a manager, is in memory here: nothing else writes it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dispatcher.protocol.dispatching import Leader, ObservedMember, next_step
from dispatcher.protocol.objects import Lease, Offer, Phase, Record
from dispatcher.protocol.steps import (
    Accept,
    Ask,
    Choose,
    Retry,
    Step,
    TakeMember,
    TakeRecord,
    Withdraw,
)
from kube.objects import names
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json

MANAGER = "6f0b5b0e-0d54-4a0c-8d0d-5a2b6cc5c9f1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases"
LEASE = f"{names.DISPATCHER_LEASE}-{MANAGER}"


@dataclass
class Asker:
    """One gang that is to run on one of several members, each of which is a plot."""

    members: Mapping[str, Plot]
    cluster: Json
    leader: Leader = field(default_factory=lambda: Leader(1, time.monotonic()))
    record: Record = field(default_factory=Record)

    @property
    def name(self) -> str:
        """That of its RayCluster."""
        return str(self.cluster["metadata"]["name"])

    def go_on(self) -> None:
        """Take the next step, if there is one; create the RayCluster where it is started."""
        seen = {name: self._observed(plot) for name, plot in self.members.items()}
        step = next_step(self.leader, self.record, seen, list(self.members))
        if step is not None:
            self._carry_out(step)
        mine = seen.get(self.record.cluster)
        if mine is not None and mine.offer is not None and mine.offer.phase is Phase.STARTED:
            self._create(self.members[self.record.cluster])

    def answers(self) -> dict[str, Json]:
        """What each member says to the attempt of now."""
        return {name: self._status(plot) for name, plot in self.members.items()}

    # ---- reading

    def _offers(self, plot: Plot) -> list[Json]:
        return [each for each in plot.all("GangOffer") if each["spec"]["uid"] == self.name]

    def _status(self, plot: Plot) -> Json:
        now = (o for o in self._offers(plot) if o["spec"]["attempt"] == self.record.attempt)
        found: Json = next(now, {}).get("status") or {}
        return found

    def _observed(self, plot: Plot) -> ObservedMember:
        offers = [_offer(each) for each in self._offers(plot)]
        now = next((each for each in offers if each.attempt == self.record.attempt), None)
        earlier = tuple(each for each in offers if each.attempt < self.record.attempt)
        path = f"{LEASES}/{LEASE}"
        api = plot.cluster.api
        spec = api.get(path)["spec"] if api.exists(path) else {}
        return ObservedMember(Lease(spec.get("leaseTransitions", 0)), now, earlier)

    # ---- writing

    def _carry_out(self, step: Step) -> None:
        match step:
            case TakeRecord(term=term):
                self._write(term=term)
            case Choose(cluster=cluster):
                self._write(cluster=cluster)
            case Retry(attempt=attempt):
                self._write(attempt=attempt, cluster="")
            case TakeMember(cluster=cluster, term=term):
                lease = {"metadata": {"name": LEASE}, "spec": {"leaseTransitions": term}}
                self.members[cluster].cluster.api.create(LEASES, lease)
            case Ask(cluster=cluster, attempt=attempt):
                self.members[cluster].create(self._asked(attempt))
            case Accept():
                self._accept(step)
            case Withdraw(cluster=cluster, attempt=attempt):
                self.members[cluster].delete("GangOffer", f"{self.name}-{attempt}")

    def _write(self, **changes: Any) -> None:
        self.record = replace(self.record, **changes, version=self.record.version + 1)

    def _accept(self, step: Accept) -> None:
        tests = {"uid": step.uid, "resourceVersion": str(step.version)}
        change = {"metadata": tests, "spec": {"acceptedBy": step.term}}
        self.members[step.cluster].patch("GangOffer", f"{self.name}-{step.attempt}", change)

    def _asked(self, attempt: int) -> Json:
        meta = self.cluster["metadata"]
        template = {"name": self.name, "labels": meta["labels"], "spec": self.cluster["spec"]}
        asked = {"manager": MANAGER, "uid": self.name, "attempt": attempt, "template": template}
        meta = {"name": f"{self.name}-{attempt}"}
        return {
            "apiVersion": names.API_VERSION,
            "kind": "GangOffer",
            "metadata": meta,
            "spec": asked,
        }

    def _create(self, plot: Plot) -> None:
        if any(each["metadata"]["name"] == self.name for each in plot.all("RayCluster")):
            return
        offer = plot.get("GangOffer", f"{self.name}-{self.record.attempt}")["metadata"]
        owner = {
            "apiVersion": names.API_VERSION,
            "kind": "GangOffer",
            "name": offer["name"],
            "uid": offer["uid"],
        }
        meta = {**self.cluster["metadata"], "ownerReferences": [owner]}
        plot.create({**self.cluster, "metadata": meta})


def _offer(found: Json) -> Offer:
    meta, spec, status = found["metadata"], found["spec"], found.get("status") or {}
    return Offer(
        attempt=spec["attempt"],
        uid=meta["uid"],
        version=int(meta["resourceVersion"]),
        phase=Phase(status.get("phase") or Phase.ASKED),
        accepted_by=spec.get("acceptedBy", 0),
        withdrawn="deletionTimestamp" in meta,
    )
