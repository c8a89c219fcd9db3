"""Ranks the members to ask for a gang, and says why the other members are not asked.

Members whose GangQueue shows room for the gang come first. Among equals come the members that the
queue names, in its order, and then those with the fewest gangs. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dispatcher.reading import QueueRoom, labels_match
from kube.gang.holes import Need, Room, room_for
from kube.objects.clusters.dispatch import ClusterRefusal
from kube.objects.clusters.member_cluster import ACTIVE, MemberCluster
from kube.objects.clusters.queue_clusters import QueueClusters
from kube.objects.queues.queue import QueueHole

LONGEST_REFUSAL = 1024

NEVER = float("-inf")

NO_TROUBLE: Mapping[str, str] = {}


@dataclass(slots=True)
class Member:
    """What is known of a member."""

    cluster: MemberCluster
    up: bool = False
    """Whether its watches are complete, and it answered when it was last asked."""
    why_down: str = ""
    """Why it is not up; empty where it was not tried yet."""
    term: int = 0
    """The term that this leader has written on its Lease there; 0 while it has not."""
    lease_fault: str = ""
    """Why that failed last: nothing is accepted there."""
    renewed_at: float = NEVER
    """When this leader wrote the stamp of its coordinator back last (monotonic seconds)."""
    gangs: set[str] = field(default_factory=set)
    """Uids of the objects that are on record there."""
    rooms: dict[str, QueueRoom] = field(default_factory=dict)
    """By queue what still fits on its nodes there."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.cluster.metadata.name

    def holes(self, queue: str) -> tuple[QueueHole, ...]:
        """Return what a queue shows of its nodes."""
        room = self.rooms.get(queue)
        return room.holes if room is not None else ()

    @property
    def is_tried(self) -> bool:
        """Whether it was connected to in this term, with or without success."""
        return self.up or bool(self.why_down)


def able(
    clusters: QueueClusters,
    namespace: str,
    members: Mapping[str, Member],
    trouble: Mapping[str, str] = NO_TROUBLE,
) -> list[Member]:
    """List the members that may take a gang of a namespace.

    `trouble` has those that are left out for a time, and why.
    """
    return [
        each
        for each in selected(clusters, members.values())
        if each.name not in trouble and not why_not(each, namespace)
    ]


def ranked(
    clusters: QueueClusters, queue: str, needs: Iterable[Need], members: Iterable[Member]
) -> list[tuple[Room, str]]:
    """Sort members by what their GangQueue shows of a gang, the best first; each with that."""
    asked = tuple(needs)
    rooms = [(room_for(asked, each.holes(queue)), each) for each in members]
    rooms.sort(key=lambda found: (found[0], *_rank(clusters, found[1])))
    return [(room, each.name) for room, each in rooms]


def refusals(
    clusters: QueueClusters,
    namespace: str,
    members: Mapping[str, Member],
    said: Mapping[str, str],
) -> tuple[ClusterRefusal, ...]:
    """Say in one line each why a member has no room for the gang, or is not asked."""
    found = sorted(selected(clusters, members.values()), key=lambda each: _rank(clusters, each))
    lines = ((each.name, why_not(each, namespace) or said.get(each.name, "")) for each in found)
    return tuple(ClusterRefusal(name, one_line(line)) for name, line in lines if line)


def selected(clusters: QueueClusters, members: Iterable[Member]) -> Iterator[Member]:
    """Yield the members that the queue selects."""
    wanted = clusters.selector.match_labels
    for each in members:
        if labels_match(wanted, each.cluster.metadata.labels):
            yield each


def why_not(member: Member, namespace: str) -> str:
    """Say why a member takes nothing new of a namespace; empty where it does."""
    spec = member.cluster.spec
    if spec.state != ACTIVE:
        return f"it is {spec.state}"
    if namespace not in spec.namespaces:
        return f"namespace {namespace} is not among spec.namespaces of MemberCluster {member.name}"
    return "" if member.up else f"not connected: {member.why_down or 'not tried yet'}"


def one_line(text: str) -> str:
    """Return a text as one line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_REFUSAL else f"{line[: LONGEST_REFUSAL - 1]}…"


def _rank(clusters: QueueClusters, member: Member) -> tuple[int, int, str]:
    order = clusters.order
    place = order.index(member.name) if member.name in order else len(order)
    return place, len(member.gangs), member.name
