"""Keeps a connection to each MemberCluster, and writes the connection's state into its status."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import structlog

from dispatcher.candidates import Member
from dispatcher.messages import Action, Event, MemberDown
from dispatcher.metrics import Metrics
from dispatcher.settings import Settings
from dispatcher.shell.member import Connection, Greeting, RefusedMember, Surroundings
from dispatcher.shell.writing import MemberWriter, not_done, target_of_action
from kube.api.client import Client
from kube.api.errors import KubeError
from kube.api.leader_election import Term
from kube.api.resources import MEMBER_CLUSTERS
from kube.objects.clusters.member_cluster import COMPATIBLE, CONNECTED, MemberCluster
from runtime.controller.workers import Feed

log = structlog.get_logger(__name__)

LOOK_EVERY = 0.5
"""Seconds from one look at the MemberClusters to the next."""

COUNT_EVERY = 15.0
"""Seconds from one status to the next that has but another number of gangs."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _State:
    """How a member is, as its conditions say it."""

    uid: str = ""
    connected: str = "Unknown"
    reason: str = "NotTried"
    message: str = ""
    compatible: str = "Unknown"
    version: str = ""


@dataclass(slots=True)
class _Kept:
    """The connection to one member."""

    cluster: MemberCluster
    task: asyncio.Task[None]


class Fleet:
    """The connections of one term."""

    def __init__(
        self,
        settings: Settings,
        client: Client,
        term: Term,
        manager: str,
        feed: Feed[Event],
        metrics: Metrics,
        clusters: Callable[[], Iterable[MemberCluster]],
    ) -> None:
        self._around = Surroundings(settings, client, term, manager, feed, metrics, self)
        self._clusters = clusters
        self._kept: dict[str, _Kept] = {}
        self._states: dict[str, _State] = {}
        self._writers: dict[str, MemberWriter] = {}
        self._told_at: dict[str, float] = {}
        """When the status of a MemberCluster was written last."""

    def submit(self, actions: Iterable[Action]) -> None:
        """Carry out actions, each by the member that it is for."""
        for each in actions:
            writer = self._writers.get(target_of_action(each))
            if writer is None:
                self._around.feed([not_done(each, "the member is not connected")])
            else:
                writer.submit([each])

    async def run(self, members: Mapping[str, Member]) -> None:
        """Follow the MemberClusters until cancelled; `members` say how many gangs each has."""
        try:
            while True:
                found = {each.metadata.name: each for each in self._clusters()}
                await self._follow(found)
                for cluster in found.values():
                    await self._tell(cluster, members)
                await asyncio.sleep(LOOK_EVERY)
        finally:
            await asyncio.gather(*(self._drop(name) for name in list(self._kept)))

    async def _follow(self, found: Mapping[str, MemberCluster]) -> None:
        for name, kept in list(self._kept.items()):
            if kept.task.done():
                kept.task.result()  # a bug comes out here
            if name not in found or _differs(kept.cluster, found[name]):
                await self._drop(name)
        for name, cluster in found.items():
            if name not in self._kept:
                run = Connection(cluster, self._around).run()
                self._kept[name] = _Kept(cluster, asyncio.create_task(run))

    async def _drop(self, name: str) -> None:
        kept = self._kept.pop(name)
        self._writers.pop(name, None)
        self._states.pop(name, None)
        kept.task.cancel()
        await asyncio.gather(kept.task, return_exceptions=True)
        self._around.feed([MemberDown(name, "its MemberCluster changed")])

    # --- what connections tell ----------------------------------------------------------------

    def admit(self, member: str, uid: str) -> None:
        """Refuse the manager itself, another cluster than before, and one that another names."""
        if uid == self._around.manager:
            raise RefusedMember("ItIsTheManager", "it is the manager itself")
        for each in self._clusters():
            name, known = each.metadata.name, each.status.uid
            if name == member and known not in ("", uid):
                said = f"another cluster answers: uid {uid} of kube-system, before {known}"
                raise RefusedMember("AnotherCluster", said)
            if name != member and uid in (known, self._uid_of(name)):
                raise RefusedMember("SameCluster", f"it is the cluster of MemberCluster {name}")
        self._states[member] = replace(self._states.get(member, _State()), uid=uid)

    def connected(self, member: str, greeting: Greeting, writer: MemberWriter) -> None:
        """Take a member that is up."""
        said = f"Kubernetes {greeting.version}"
        self._writers[member] = writer
        self._states[member] = _State(greeting.uid, "True", "Connected", "", "True", said)

    def lost(self, member: str, reason: str, message: str) -> None:
        """Take a member that is not."""
        self._writers.pop(member, None)
        known = self._states.get(member, _State())
        compatible = "False" if reason == "Incompatible" else known.compatible
        refused = reason in ("ItIsTheManager", "AnotherCluster", "SameCluster")
        uid = "" if refused else known.uid
        self._states[member] = _State(
            uid, "False", reason, message, compatible, message if compatible == "False" else ""
        )

    def _uid_of(self, member: str) -> str:
        return self._states.get(member, _State()).uid

    # --- what is told -------------------------------------------------------------------------

    async def _tell(self, cluster: MemberCluster, members: Mapping[str, Member]) -> None:
        """Write how a member is, where its MemberCluster says something else."""
        name = cluster.metadata.name
        state, member = self._states.get(name), members.get(name)
        if state is None or member is None or not self._around.term.valid():
            return
        age = time.monotonic() - self._told_at.get(name, -math.inf)
        gangs = gangs_to_tell(cluster.status.gangs, len(member.gangs), age)
        after = _status(cluster, state, gangs)
        if after is None:
            return
        self._told_at[name] = time.monotonic()
        try:
            await self._around.client.merge_patch(
                MEMBER_CLUSTERS.path(name=name, subresource="status"), {"status": after}
            )
        except KubeError as error:
            log.info("status of a MemberCluster not written", cluster=name, error=str(error))


def gangs_to_tell(told: int, gangs: int, age: float) -> int:
    """Return how many gangs a status that is so old is to have; that there are any is told at once.

    A MemberCluster with gangs is kept from deletion.
    """
    return gangs if age >= COUNT_EVERY or not told else told


def _differs(before: MemberCluster, now: MemberCluster) -> bool:
    """Say whether another connection is needed."""
    one, other = before.spec, now.spec
    same = one.kubeconfig_secret == other.kubeconfig_secret and one.namespaces == other.namespaces
    return not same or before.metadata.uid != now.metadata.uid


def _status(cluster: MemberCluster, state: _State, gangs: int) -> Json | None:
    """Return the status of a MemberCluster; None where it says all that already."""
    wanted = (
        (CONNECTED, state.connected, state.reason, state.message),
        (COMPATIBLE, state.compatible, _compatible(state), state.version),
    )
    known = cluster.status
    before = {(each.type, each.status, each.reason, each.message) for each in known.conditions}
    uid = known.uid or state.uid
    if before == set(wanted) and (known.gangs, known.uid) == (gangs, uid):
        return None
    conditions = [_condition(cluster, *each) for each in wanted]
    told: Json = {"gangs": gangs, "conditions": conditions}
    return {**told, "uid": uid} if uid else told


def _compatible(state: _State) -> str:
    return {"True": "Compatible", "False": "Incompatible"}.get(state.compatible, "NotTried")


def _condition(cluster: MemberCluster, kind: str, status: str, reason: str, message: str) -> Json:
    same = (
        each for each in cluster.status.conditions if (each.type, each.status) == (kind, status)
    )
    before = next(same, None)
    now = datetime.fromtimestamp(int(time.time()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": before.last_transition_time if before is not None else now,
    }
