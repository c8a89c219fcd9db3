"""The invariants of a soak, judged on what the record has seen."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from testbed.api import Json
from tests.soak.amounts import GPU, RESOURCES, Amounts, amount, pod_amounts
from tests.soak.fair_clock import FairClock
from tests.soak.fit import fits, free_room
from tests.soak.record import Pod, Record, Release, promises
from tests.soak.stage import BIND_PATIENCE, QUOTED, SLOT_PATIENCE, TORN_PATIENCE, quota_of

SLACK = 90.0
"""Fair seconds for what has no deadline of its own: watches that are opened again, a new term."""
_HEARD = 15.0
"""Fair seconds in which a coordinator may act on a node as it was."""
_LATER = 5.0
"""Fair seconds until the other watches have told what belongs to a release."""

Place = tuple[str, str]


@dataclass(frozen=True)
class Violation:
    """An invariant that does not hold."""

    invariant: str
    gang: Place
    text: str
    node: str = ""

    def __str__(self) -> str:
        return f"{self.invariant}: {'/'.join(self.gang)}: {self.text}"


@dataclass
class Judge:
    """Looks at the record again and again; what must not last is remembered from look to look."""

    record: Record
    clock: FairClock
    nodes: int
    checks: Counter[str] = field(default_factory=Counter)
    _since: dict[tuple[str, str], float] = field(default_factory=dict)
    _whole: set[str] = field(default_factory=set)
    """Gangs by owner that ran whole since they last had no pod on a node."""

    def look(self) -> list[Violation]:
        """All that is wrong now."""
        with self.record.lock:
            standing: dict[tuple[str, str], Violation] = {}
            found = [*self._at_once(), *self._releases(), *self._overfull()]
            lasting = (
                *self._partial(),
                *self._leaked(),
                *self._kept(),
                *self._gated(),
                *self._uncounted(),
            )
            for key, limit, violation in lasting:
                standing[key] = violation
                if self.clock.seconds - self._since.setdefault(key, self.clock.seconds) > limit:
                    found.append(violation)
            self._since = {k: since for k, since in self._since.items() if k in standing}
            return found

    # --- what is wrong at once

    def _at_once(self) -> Iterator[Violation]:
        yield from (Violation(*each) for each in self.record.wrong)
        self.record.wrong.clear()

    def _releases(self) -> Iterator[Violation]:
        now, waiting = self.clock.seconds, []
        for release in self.record.releases:
            if now - release.fair < _LATER:
                waiting.append(release)
                continue
            self.checks["releases"] += 1
            yield from self._crowded(release)
            yield from self._unpromised(release)
        self.record.releases[:] = waiting

    def _crowded(self, release: Release) -> Iterator[Violation]:
        event = release.pod.at
        room = self.record.nodes[release.node].most(release.fair - _HEARD)
        if room is None:
            text = f"{event.name} was released to {release.node}, which was gone"
            yield Violation("released to no node", event.gang, text, release.node)
            return
        # A pod makes nothing worse of which it takes none: others may have taken too much before.
        takes = [name for name in RESOURCES if release.pod.takes.get(name)]
        over = [name for name in takes if release.taken.get(name, 0) > room[name]]
        if over:
            text = (
                f"with {event.name} {_some(release.taken, over)} of {release.node} are taken, "
                f"which has {_some(room, over)}"
            )
            yield Violation("node over its allocatable", event.gang, text, release.node)

    def _unpromised(self, release: Release) -> Iterator[Violation]:
        event = release.pod.at
        written = self.record.written.get(event.owner, [])
        before = [each for each in written if each.version < release.version]
        after = [each for each in written if each.version >= release.version]
        if release.pod.unseen or any(each.unseen for each in (*before[-1:], *after[:1])):
            return
        promised = before[-1].promised if before else {}
        if release.count > promised.get((event.group, release.node), 0):
            text = f"{event.name} was released to {release.node}; the placement was {promised}"
            yield Violation("off its placement", event.gang, text)

    def _overfull(self) -> Iterator[Violation]:
        """Bound pods alone: what kube-scheduler let in."""
        taken: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for pod in self.record.pods.values():
            if pod.at.node and not pod.ended:
                taken[pod.at.node].update(pod.takes)
        for node, amounts in taken.items():
            room = self.record.nodes[node].most(0.0)
            self.checks["nodes"] += 1
            over = [name for name in RESOURCES if room and amounts[name] > room[name]]
            if over and room:
                text = f"{_some(amounts, over)} of {node} are taken, which has {_some(room, over)}"
                yield Violation("node over its allocatable", ("", node), text)

    # --- what must not last: key, fair seconds, and what it is

    def _partial(self) -> Iterator[tuple[tuple[str, str], float, Violation]]:
        limit = TORN_PATIENCE + BIND_PATIENCE + SLACK
        for gang, owner, pods in self._gangs():
            self.checks["gangs"] += 1
            minimum = minimum_of(gang)
            bound = sum(pod.whole for pod in pods)
            if bound >= minimum:
                self._whole.add(owner)
            elif not bound:
                self._whole.discard(owner)
            elif owner not in self._whole:
                text = f"{bound} of {minimum} pods of the minimum were bound for over {limit} s"
                yield ("partial", owner), limit, Violation("partial gang", _place(gang), text)

    def _leaked(self) -> Iterator[tuple[tuple[str, str], float, Violation]]:
        for uid, gang in self.record.gangs.items():
            if self._owner(gang) not in self.record.owners:
                text = "the Gang is there, and what it is of is not"
                yield ("leaked", uid), SLACK, Violation("leaked gang", _place(gang), text)

    def _kept(self) -> Iterator[tuple[tuple[str, str], float, Violation]]:
        limit = SLOT_PATIENCE + BIND_PATIENCE + SLACK
        for gang, owner, pods in self._gangs():
            there = Counter((pod.at.group, pod.target) for pod in pods if pod.target)
            for slot, count in promises(gang).items():
                if count > there[slot]:
                    text = f"{count} pods of {slot[0]} are promised to {slot[1]}, {there[slot]} are"
                    key = f"{owner} {slot[0]} {slot[1]}"
                    yield ("kept", key), limit, Violation("room kept", _place(gang), text)

    def _gated(self) -> Iterator[tuple[tuple[str, str], float, Violation]]:
        reasons = {self._owner(g): g for g in self.record.gangs.values()}
        for uid, pod in self.record.pods.items():
            if not pod.gated or pod.at.deleting or pod.ended or not pod.at.cluster:
                continue
            if pod.at.owner not in self.record.owners:
                continue  # it was left behind, and an Event on it says so
            self.checks["gated pods"] += 1
            why = _explained(reasons.get(pod.at.owner), pod)
            if why:
                text = f"{pod.at.name} is gated, and {why}"
                yield ("gated", uid), SLACK, Violation("gated without a reason", pod.at.gang, text)

    def _uncounted(self) -> Iterator[tuple[tuple[str, str], float, Violation]]:
        """Queues that hold less than is on nodes, what was left behind included."""
        for queue in self.record.queues.keys() & set(QUOTED):
            self.checks["queues"] += 1
            status = self.record.queues[queue].get("status", {})
            counted = amount((status.get("usage") or {}).get(GPU, 0))
            there = sum(pod.takes.get(GPU, 0) for pod in self._pods_of(queue) if pod.whole)
            if counted < there:
                text = f"{there} GPUs of it are on nodes, {counted} are counted"
                yield ("counted", queue), SLACK, Violation("not counted", ("", queue), text)

    def _pods_of(self, team: str) -> Iterator[Pod]:
        return (p for p in self.record.pods.values() if p.at.cluster and p.at.namespace == team)

    # --- the end

    def unsettled(self) -> list[Violation]:
        """Gangs that do not run whole though an independent first fit finds room and quota."""
        with self.record.lock:
            free = free_room(self.record.node_objects, self.record.pods.values())
            return [
                found
                for gang, _, pods in self._gangs()
                if (found := self._misses(gang, pods, free))
            ]

    def _misses(
        self, gang: Json, pods: list[Pod], free: dict[str, Counter[str]]
    ) -> Violation | None:
        place = _place(gang)
        if _phase(gang) == "Finished":
            return None
        if _held(gang) == "Waiting":
            return self._misses_held(gang, pods, free)
        gated = [pod for pod in pods if pod.gated and not pod.at.deleting]
        waits = [pod for pod in pods if not pod.gated and not pod.at.node and not pod.ended]
        leaving = [pod for pod in pods if pod.at.deleting]
        if waits or leaving:
            return Violation("does not run", place, f"{len(waits)} wait, {len(leaving)} leave")
        minimum, bound = minimum_of(gang), sum(pod.whole for pod in pods)
        wanted = [pod.takes for pod in gated]
        if bound >= minimum:
            wanted = wanted[:1]
        else:
            head = [pod.takes for pod in gated if pod.at.group == "headgroup"]
            rest = [pod.takes for pod in gated if pod.at.group != "headgroup"]
            wanted = [*head, *rest][: max(0, minimum - bound)]
            if len(wanted) < minimum - bound:
                said = f"{bound} of {minimum} are bound, {len(gated)} are gated"
                true = self._asks_for_none(gang) or _reason(gang) == "GangIncomplete"
                return None if true else Violation("does not run", place, said)
        if wanted and fits(wanted, free) and self._quota_allows(gang, wanted):
            text = f"{len(wanted)} gated pods fit by first fit, and the Gang says {_said(gang)}"
            return Violation("fits and does not run", place, text)
        return None

    def _misses_held(
        self, gang: Json, pods: list[Pod], free: dict[str, Counter[str]]
    ) -> Violation | None:
        """One without pods waits for room, or for the end of a pause after starts in vain."""
        if pods:
            return Violation("does not run", _place(gang), f"{len(pods)} pods are there still")
        wanted = pods_to_come(self.record.owners[self._owner(gang)])[: minimum_of(gang)]
        if _reason(gang) == "Held" or not fits(wanted, free):
            return None
        if not self._quota_allows(gang, wanted):
            return None
        text = f"{len(wanted)} pods to come fit by first fit, and the Gang says {_said(gang)}"
        return Violation("fits and does not run", _place(gang), text)

    def _asks_for_none(self, gang: Json) -> bool:
        return bool(self.record.owners[self._owner(gang)]["spec"].get("suspend"))

    def _quota_allows(self, gang: Json, wanted: list[Amounts]) -> bool:
        """Whether both queues together have so many GPUs left."""
        if gang["spec"].get("queue") not in QUOTED:
            return True
        every = (pod for team in QUOTED for pod in self._pods_of(team))
        used = sum(pod.takes.get(GPU, 0) for pod in every if pod.target)
        return used + sum(each[GPU] for each in wanted) <= 2 * quota_of(self.nodes)

    # --- common

    def _gangs(self) -> Iterator[tuple[Json, str, list[Pod]]]:
        """Each Gang that has its owner still, with that and its pods."""
        pods: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in self.record.pods.values():
            pods[pod.at.owner].append(pod)
        for gang in self.record.gangs.values():
            owner = self._owner(gang)
            mark = self.record.owners.get(owner, {}).get("metadata", {})
            if mark and "deletionTimestamp" not in mark:
                yield gang, owner, pods[owner]

    def _owner(self, gang: Json) -> str:
        owners = gang["metadata"].get("ownerReferences") or [{"uid": ""}]
        return str(owners[0]["uid"])


def pods_to_come(owner: Json) -> list[Amounts]:
    """What the pods take that a RayCluster or AppWrapper has once it is started, heads first."""
    spec = owner["spec"]
    found = [pods_to_come(each["template"]) for each in spec.get("components") or ()]
    if "headGroupSpec" in spec:
        found.append([pod_amounts(spec["headGroupSpec"]["template"])])
    workers = spec.get("workerGroupSpecs") or ()
    found += [[pod_amounts(each["template"])] * each.get("replicas", 0) for each in workers]
    if "template" in spec:
        count = spec["parallelism"] if "parallelism" in spec else spec["replicas"]
        found.append([pod_amounts(spec["template"])] * count)
    return [each for some in found for each in some]


def _phase(gang: Json) -> str:
    return str(gang.get("status", {}).get("phase"))


def _held(gang: Json) -> str:
    return str((gang.get("status", {}).get("held") or {}).get("phase"))


def minimum_of(gang: Json) -> int:
    """Pods of the minimum."""
    return sum(each.get("minimum", 0) for each in gang["spec"].get("podSets") or ())


def _explained(gang: Json | None, pod: Pod) -> str:
    """What is wrong with the reason of a gated pod; empty where it has one."""
    if gang is None:
        return "there is no Gang for it"
    status = gang.get("status", {})
    sets = {each["name"]: each for each in status.get("podSets") or ()}
    told = sets.get(pod.at.group, {})
    if status.get("phase") in ("Running", "Admitted"):
        reason, message = told.get("reason"), told.get("message")
    else:
        reason, message = status.get("reason"), status.get("message")
    return "" if reason and message else f"its Gang says {_said(gang)}"


def _reason(gang: Json) -> str:
    return str(gang.get("status", {}).get("reason"))


def _said(gang: Json) -> str:
    status = gang.get("status", {})
    said = [str(status.get(key)) for key in ("phase", "reason", "message")]
    sets = [
        f"{s['name']}: {s.get('reason')} {s.get('message')}" for s in status.get("podSets") or ()
    ]
    return f"{' '.join(said)} ({'; '.join(sets)})"


def _place(gang: Json) -> Place:
    return gang["metadata"]["namespace"], gang["metadata"]["name"]


def _some(amounts: Amounts, wanted: list[str]) -> str:
    return ", ".join(f"{amounts.get(name, 0)} {name}" for name in wanted)
