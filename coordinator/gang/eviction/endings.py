"""Holds what of a running gang is to be evicted, for what cause, and how far that has come.

An ending is proposed first: a dry run asks the API server whether it would let go of every pod.
Then it is decided, and written to the Gang. Only what is written is carried out, and from then on
the pods that it covers are no members any more. A new leader reads it off the record.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from coordinator.gang.eviction.budgets import Objection
from coordinator.gang.pods.pod_sets import PodSetStanding, Standing
from kube.codec.observed_pod import ObservedPod
from kube.objects.gang import GangEviction
from kube.ray.gang_terms import GangTerms
from reservation.slots import Slot
from scheduling.model.gang import GangKey
from scheduling.model.verdict import Reason

NAMED = 3  # pods; a message counts the others
REFUSAL_LIMIT = 300  # characters of what the API server says
FIRST_KEEP = 60.0  # seconds for which a part is not chosen again whose eviction would be refused
LAST_KEEP = 600.0
FIRST_PAUSE = 1.0  # seconds after a refused eviction; doubled with each one that follows
LAST_PAUSE = 60.0


@dataclass(frozen=True, slots=True)
class Ending:
    """What of a gang is to end: the replicas named, or the whole gang where none is.

    `reason` and `message` say why; `since` is when it was decided (RFC 3339). `preemptor` is the
    gang that it ends for, None where it ends for its own sake, and `preemptor_uid` tells its
    RayCluster from another one of the same name; empty where an earlier release wrote it down.
    """

    reason: Reason
    message: str
    since: str
    preemptor: GangKey | None = None
    replicas: tuple[str, ...] = ()
    preemptor_uid: str = ""

    @property
    def is_whole(self) -> bool:
        """Say whether the whole gang ends."""
        return not self.replicas

    def in_words(self) -> str:
        """Say how much surplus ends, and why."""
        count = len(self.replicas)
        return f"{count} surplus replica{' is' if count == 1 else 's are'} {self.message}"


@dataclass(frozen=True, slots=True)
class Evicted:
    """Why the gang was ended last: what it is told by until it is admitted again."""

    reason: Reason
    message: str


@dataclass(slots=True)
class Probe:
    """An ending that is proposed: what the API server says to a dry run of it."""

    ending: Ending
    accepted: dict[str, bool] = field(default_factory=dict)
    """By uid of the pods (or of the RayJob) whether it lets go; False while that is asked."""
    objection: Objection | None = None
    """What is said against one."""
    passed: bool = False

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to ask any more."""
        return self.passed or self.objection is not None

    def heard(self, uid: str, objection: Objection | None) -> None:
        """Take in an answer; None is a yes."""
        if objection is None:
            self.accepted[uid] = True
        elif self.accepted.get(uid) is False:
            del self.accepted[uid]
            self.objection = self.objection or objection


@dataclass(frozen=True, slots=True)
class Kept:
    """Why a part cannot be taken, until when, for how long that was said, and if that is over.

    `in_short` is what gangs of other namespaces are told.
    """

    because: str
    in_short: str
    until: float
    seconds: float
    reopened: bool = False


NOT_KEPT = Kept("", "", 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Pause:
    """When the next eviction may be after a refused one, seconds until then, and what was said."""

    until: float = 0.0
    seconds: float = 0.0
    refusal: str = ""


@dataclass(slots=True)
class Eviction:
    """The endings of one gang.

    Written by `state.cycle`, `reconcile.eviction` and `reconcile.opening`.
    """

    endings: tuple[Ending, ...] = ()
    """Those that are decided."""
    probes: dict[GangKey, Probe] = field(default_factory=dict)
    """Those that are proposed, by the gang that they are for."""
    begun: bool = False
    """A pod may be gone for it: a whole gang is then ended."""
    sent: dict[str, str] = field(default_factory=dict)
    """The versions of the pods, or of the RayJob, with a write under way, by uid."""
    pause: Pause = Pause()
    kept: dict[str, Kept] = field(default_factory=dict)
    """The parts that cannot be taken for a time, the whole gang under the empty name."""
    text: str = ""
    """How far it has come."""
    told: set[tuple[GangKey | None, str]] = field(default_factory=set)
    """The endings that an Event told of."""
    slots: dict[str, Slot] = field(default_factory=dict)
    """The slots of surplus that ends, by uid, until they are dropped."""
    resumptions: int = 0
    """How often others undid the suspension of a RayJob before KubeRay acted."""
    ended: Evicted | None = None
    """Why the gang was ended last, before what is to end now."""

    @property
    def whole(self) -> Ending | None:
        """Return the ending of the whole gang, where that is decided."""
        return next((each for each in self.endings if each.is_whole), None)

    @property
    def last(self) -> Evicted | None:
        """Return why the gang was ended last, or is to be."""
        whole = self.whole
        return self.ended if whole is None else Evicted(whole.reason, whole.message)

    def decide(self, ending: Ending) -> None:
        """Have something end; the end of the whole gang takes the place of all others."""
        others = () if ending.is_whole else self.endings
        self.endings = (*others, ending)
        if ending.is_whole:
            self.slots.clear()
            self.begun = False

    def finish(self) -> None:
        """Note that what was to end has ended."""
        self.ended = self.last
        self.drop()

    def drop(self) -> None:
        """Have nothing end any more."""
        self.endings, self.begun, self.text = (), False, ""
        self.pause = Pause(self.pause.until, self.pause.seconds)

    def keep(self, part: str, against: Objection, now: float) -> None:
        """Note that a part cannot be taken; it is asked for again after a time that doubles."""
        before = self.kept.get(part)
        seconds = min(LAST_KEEP, 2 * before.seconds) if before is not None else FIRST_KEEP
        because = against.because[:REFUSAL_LIMIT]
        self.kept[part] = Kept(because, against.in_short, now + seconds, seconds)

    def kept_now(self, part: str, now: float) -> Kept:
        """Return why a part cannot be taken now; `NOT_KEPT` where it can."""
        kept = self.kept.get(part)
        return kept if kept is not None and now < kept.until else NOT_KEPT

    def refused(self, now: float, refusal: str) -> None:
        """Note that an eviction failed: the next one waits. An empty refusal was no judgement."""
        seconds = min(LAST_PAUSE, max(FIRST_PAUSE, 2 * self.pause.seconds))
        self.pause = Pause(now + seconds, seconds, refusal[:REFUSAL_LIMIT])

    def accepted(self) -> None:
        """Note that an eviction was accepted."""
        self.begun, self.pause = True, Pause(self.pause.until)

    def resumed(self, now: float) -> None:
        """Note that others undid a suspension: the next one waits, each time for twice as long."""
        seconds = min(LAST_PAUSE, FIRST_PAUSE * 2**self.resumptions)
        self.pause = replace(self.pause, until=now + seconds)
        self.resumptions = min(self.resumptions + 1, 16)

    def reopen(self, now: float) -> bool:
        """Let parts be chosen again whose time is over; say whether there are any."""
        over = [part for part, kept in self.kept.items() if not kept.reopened and kept.until <= now]
        for part in over:
            self.kept[part] = replace(self.kept[part], reopened=True)
        for part in [part for part, kept in self.kept.items() if kept.until + LAST_KEEP <= now]:
            del self.kept[part]
        return bool(over)

    def moments(self) -> Iterator[float]:
        """Yield when time alone lets something go on."""
        yield self.pause.until
        yield from (each.until for each in self.kept.values())


def replica_of(pod: ObservedPod, hosts: int) -> str:
    """Name the replica of a pod within its gang; empty where its pods do not tell which it is."""
    member = pod.member
    if member is None or (hosts > 1 and not member.replica):
        return ""
    return f"{member.pod_set}/{member.replica if hosts > 1 else pod.name}"


def replicas(terms: GangTerms | None, pods: Iterable[ObservedPod]) -> Mapping[str, str]:
    """Return the name of each pod's replica, by uid."""
    hosts = {each.name: each.hosts for each in terms.pod_sets} if terms is not None else {}
    members = ((pod, hosts.get(pod.member.pod_set)) for pod in pods if pod.member is not None)
    return {pod.uid: replica_of(pod, n) for pod, n in members if n is not None}


def spare_replicas(
    standing: Standing, ending: Container[str] = ()
) -> dict[str, tuple[ObservedPod, ...]]:
    """Return the replicas on nodes beyond the minimum, with their pods.

    Slots without a pod are no part of them: what runs must not end while the minimum has a slot
    alone. Nor are pods that end already (`ending`, by uid), also before that is written.
    """
    return {name: pods for each in standing for name, pods in _spare(each, ending)}


def _spare(
    each: PodSetStanding, ending: Container[str]
) -> Iterator[tuple[str, tuple[ObservedPod, ...]]]:
    """Those that are not ready end first, so that the minimum keeps those that are."""
    hosts = each.terms.hosts
    found: dict[str, list[ObservedPod]] = {}
    for pod in each.settled:
        if pod.uid not in ending:
            found.setdefault(replica_of(pod, hosts), []).append(pod)
    halves = found.pop("", [])
    whole = {name: pods for name, pods in found.items() if len(pods) == hosts and hosts}
    best = sorted(whole, key=lambda name: (_unfit(whole[name]), name))
    needed = -(-each.terms.minimum // hosts) if hosts and not halves else len(whole)
    for name in best[needed:]:
        yield name, tuple(whole[name])


def _unfit(pods: Iterable[ObservedPod]) -> tuple[bool, bool]:
    pods = list(pods)
    return not all(pod.node for pod in pods), not all(pod.ready for pod in pods)


def covered(
    ending: Ending, terms: GangTerms | None, pods: Iterable[ObservedPod]
) -> list[ObservedPod]:
    """Return the pods that an ending is of: those that hold room, or will; not the gated ones."""
    mine = [pod for pod in pods if not pod.gated and not pod.terminal]
    if ending.is_whole:
        return mine
    names, wanted = replicas(terms, mine), set(ending.replicas)
    return [pod for pod in mine if names.get(pod.uid) in wanted]


def left_in_words(ending: Ending, pods: Sequence[ObservedPod], refusal: str) -> str:
    """Say why a gang is stopped, and which of its pods are left."""
    named = sorted(pod.name for pod in pods)
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    count = "1 pod is" if len(named) == 1 else f"{len(named)} pods are"
    left = f"; {count} left: {', '.join(named[:NAMED])}{more}" if named else ""
    return f"{ending.message}{left}" + (f"; an eviction is refused: {refusal}" if refusal else "")


def endings_json(endings: Iterable[Ending]) -> list[dict[str, Any]]:
    """Write endings down as the record holds them."""
    return [_json(each) for each in endings]


def _json(ending: Ending) -> dict[str, Any]:
    written = {
        "reason": str(ending.reason),
        "message": ending.message,
        "since": ending.since,
        "preemptor": str(ending.preemptor) if ending.preemptor is not None else "",
        "preemptorUid": ending.preemptor_uid,
        "replicas": list(ending.replicas),
    }
    return {key: value for key, value in written.items() if value}


def endings_recorded(written: Iterable[GangEviction]) -> tuple[Ending, ...]:
    """Read the endings that a record holds."""
    return tuple(
        Ending(
            reason_recorded(each.reason),
            each.message,
            each.since,
            _key(each.preemptor),
            each.replicas,
            each.preemptor_uid,
        )
        for each in written
    )


def reason_recorded(written: str) -> Reason:
    """Read the reason of an ending; one that is not known may be of a later release."""
    return next((each for each in Reason if each == written), Reason.PREEMPTED)


def _key(name: str) -> GangKey | None:
    namespace, slash, rest = name.partition("/")
    return GangKey(namespace, rest) if slash else None
