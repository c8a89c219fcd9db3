"""Claims that are to be bound to free volumes, against kube-scheduler's own choice, slowly."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

from hypothesis import event, example, given
from hypothesis import strategies as st

from scheduling.admission.refusal_memory import CERTAIN
from scheduling.cycle import run_cycle
from scheduling.filters.volumes.provisioning import NO_PROVISIONER
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.constraints import NodeTerm
from scheduling.model.gang import Member, PendingGang
from scheduling.model.pod import Mount
from scheduling.model.verdict import Admitted, Refusal, Verdict
from scheduling.model.volume import Claim, Fact, StorageClass, Volume
from scheduling.state.volume_index import KINDS, VolumeIndex
from tests.builders import columns, gang, group, node, require, shape
from tests.examples import examples

HOST, TEAM = "kubernetes.io/hostname", "team"
NODES = ("a", "b", "c")
CPUS = 3
CLASS = StorageClass("local", NO_PROVISIONER, waits=True)


@dataclass(frozen=True)
class Pod:
    """A pod of a gang: its pod set, the claims of its own, and those that its set shares."""

    name: str
    pod_set: str
    own: tuple[Claim, ...]
    shared: tuple[Claim, ...]

    @property
    def claims(self) -> tuple[Claim, ...]:
        return self.own + self.shared

    @property
    def mounts(self) -> tuple[Mount, ...]:
        named = (Mount(each.name) for each in self.shared)
        return (*(Mount(c.name, str(at), c.owner) for at, c in enumerate(self.own)), *named)


Place = tuple[str, int]
"""The node of a pod, and the wave in which it is released."""

PodSet = tuple[int, Sequence[int], Sequence[int]]
"""How many pods, the sizes of the claims that each has, and the numbers of those they share."""

Given = tuple[Sequence[str], int]
"""The nodes that reach a volume, and its size."""


def volumes_of(drawn: Sequence[Given]) -> list[Volume]:
    return [
        Volume(
            f"v{at}", "local", open=True, size=size,
            terms=None if len(at_nodes) == len(NODES)
            else (NodeTerm((require(HOST, "In", *at_nodes),)),),
        )
        for at, (at_nodes, size) in enumerate(drawn)
    ]  # fmt: skip


def pods_of(sets: Sequence[PodSet], prefix: str = "s") -> list[Pod]:
    made = []
    for number, (count, sizes, shared) in enumerate(sets):
        for at in range(count):
            name = f"{prefix}{number}-{at}"
            own = (
                Claim(TEAM, f"{name}-{of}", f"u{name}", "local", size=size)
                for of, size in enumerate(sizes)
            )
            named = (Claim(TEAM, f"shared-{each}", "", "local", size=each) for each in shared)
            made.append(Pod(name, f"{prefix}{number}", tuple(own), tuple(named)))
    return made


def asked(pods: Sequence[Pod], name: str = "g") -> PendingGang:
    groups, members = {}, []
    for pod in pods:
        volumes = (f"ephemeral {m.volume}" if m.volume else f"persistentVolumeClaim {m.claim}"
                   for m in pod.mounts)  # fmt: skip
        made = replace(shape(cpu=1), volumes=tuple(volumes))
        members.append(Member(pod.pod_set, made, (), mounts=pod.mounts))
        groups[pod.pod_set] = group(
            pod.pod_set, sum(other.pod_set == pod.pod_set for other in pods), made
        )
    return replace(gang(name, *groups.values()), members=tuple(members))


def table(volumes: Sequence[Volume], pods: Sequence[Pod]) -> VolumeIndex:
    made = VolumeIndex()
    for kind in KINDS:
        made.see(kind)
    facts: list[Fact] = [CLASS, *volumes, *(claim for pod in pods for claim in pod.claims)]
    for fact in facts:
        made.put(fact)
    return made


def decide(gangs: Sequence[PendingGang], volumes: Volumes) -> list[Verdict]:
    nodes = [node(name, cpu=CPUS, labels={HOST: name}) for name in NODES]
    return [each.verdict for each in run_cycle(gangs, columns(*nodes), volumes=volumes)]


# ---- kube-scheduler, slowly

Bound = Mapping[tuple[str, str], Volume]
"""Volumes by claim."""


def bindings(
    free: frozenset[Volume], bound: Bound, claims: Sequence[Claim], where: str
) -> Iterator[tuple[frozenset[Volume], Bound] | None]:
    """Yield what may come of a pod's claims there; None where one finds nothing.

    The smaller claim comes first; of equal volumes any may be taken.
    """
    if not claims:
        yield free, bound
        return
    first, *rest = claims
    if first.key in bound:
        there = reaches(bound[first.key], where)
        yield from bindings(free, bound, rest, where) if there else iter((None,))
        return
    found = [each for each in free if reaches(each, where) and each.size >= (first.size or 0)]
    least = min((volume.size for volume in found), default=0)
    if not found:
        yield None
    for volume in (each for each in found if each.size == least):
        yield from bindings(free - {volume}, {**bound, first.key: volume}, rest, where)


def reaches(volume: Volume, where: str) -> bool:
    return volume.terms is None or where in volume.terms[0].labels[0].values


def all_bound(
    free: frozenset[Volume], bound: Bound, pods: Sequence[Pod], choice: Mapping[str, Place]
) -> bool:
    """Say whether all pods get all volumes in this order, whatever is picked."""
    if not pods:
        return True
    first, *rest = pods
    for claims in orders_of(first.claims):
        for left in bindings(free, bound, claims, choice[first.name][0]):
            if left is None or not all_bound(*left, rest, choice):
                return False
    return True


def orders_of(claims: Sequence[Claim]) -> Iterator[Sequence[Claim]]:
    """Yield the claims by size; its sort is not stable."""
    for order in permutations(claims):
        sizes = [claim.size or 0 for claim in order]
        if sizes == sorted(sizes):
            yield order


def in_every_order(
    volumes: Sequence[Volume], pods: Sequence[Pod], choice: Mapping[str, Place]
) -> bool:
    """Say whether all pods are bound in any order that the waves leave."""
    waves: defaultdict[int, list[Pod]] = defaultdict(list)
    for pod in pods:
        waves[choice[pod.name][1]].append(pod)
    orders = product(*(permutations(waves[at]) for at in sorted(waves)))
    return all(
        all_bound(frozenset(volumes), {}, [pod for wave in order for pod in wave], choice)
        for order in orders
    )


def choices(verdict: Admitted, pods: Sequence[Pod]) -> dict[str, Place]:
    places: defaultdict[str, list[Place]] = defaultdict(list)
    for each in verdict.placement.assignments:
        for name, count in each.nodes:
            places[each.pod_set] += [(name, each.wave)] * count
    return {pod.name: places[pod.pod_set].pop() for pod in pods}


def some_way(volumes: Sequence[Volume], pods: Sequence[Pod]) -> bool:
    """Say whether any choice of nodes, released all at once, binds all in some order."""
    for nodes in product(NODES, repeat=len(pods)):
        if max(nodes.count(name) for name in NODES) > CPUS:
            continue
        choice = {pod.name: (name, 0) for pod, name in zip(pods, nodes, strict=True)}
        if any(all_bound(frozenset(volumes), {}, o, choice) for o in permutations(pods)):
            return True
    return False


SIZES = st.integers(1, 3)
PLACES = st.lists(st.sampled_from(NODES), min_size=1, max_size=3, unique=True).map(sorted)
VOLUMES = st.lists(st.tuples(PLACES, SIZES), max_size=6)
SETS = st.lists(
    st.tuples(
        st.integers(1, 2),
        st.lists(SIZES, max_size=2),
        st.lists(SIZES, max_size=2, unique=True),
    ).filter(lambda drawn: drawn[1] or drawn[2]),
    min_size=1,
    max_size=2,
)


@examples(150)
@given(VOLUMES, SETS)
@example([(["a"], 1), (["a"], 1)], [(2, [1], [])])
@example([(["a"], 1), (["b"], 1)], [(1, [1], []), (1, [1], [])])
@example([(["a"], 1), (["b"], 1)], [(2, [], [1])])
@example([(["a", "b"], 1)], [(2, [], [1])])
@example([(["a"], 1), (["a"], 3)], [(1, [1], []), (1, [3], [])])
@example([(["a"], 1), (["a", "b"], 1), (["b"], 2)], [(2, [1], [])])
def test_a_yes_holds_whichever_volume_is_picked_and_a_certain_no_too(
    drawn: Sequence[Given], sets: Sequence[PodSet]
) -> None:
    volumes, pods = volumes_of(drawn), pods_of(sets)
    [verdict] = decide([asked(pods)], Volumes(table(volumes, pods)))
    if isinstance(verdict, Admitted):
        event("admitted")
        assert in_every_order(volumes, pods, choices(verdict, pods))
    elif isinstance(verdict, Refusal) and verdict.reason in CERTAIN:
        event("refused for good")
        assert not some_way(volumes, pods), verdict


@examples(100)
@given(PLACES, st.lists(SIZES, max_size=5), SETS)
def test_of_volumes_reached_from_the_same_nodes_every_gang_that_fits_is_admitted(
    places: list[str], sizes: Sequence[int], sets: Sequence[PodSet]
) -> None:
    volumes, pods = volumes_of([(places, size) for size in sizes]), pods_of(sets)
    [verdict] = decide([asked(pods)], Volumes(table(volumes, pods)))
    assert isinstance(verdict, Admitted) is some_way(volumes, pods), verdict


@examples(100)
@given(VOLUMES, SETS, SETS)
@example([(["a"], 1), (["a", "b"], 1), (["a", "b"], 1)], [(1, [1], [])], [(1, [1], [])])
def test_what_was_promised_is_kept_beside_later_gangs(
    drawn: Sequence[Given], mine: Sequence[PodSet], yours: Sequence[PodSet]
) -> None:
    """Two gangs of a cycle, or the first is on its way: its claims are all that is known of it."""
    ours, theirs = pods_of(mine, "m"), pods_of(yours, "y")
    theirs = [replace(pod, shared=()) for pod in theirs if pod.own]
    volumes = volumes_of(drawn)
    if not theirs or len(ours) + len(theirs) > 5:
        return
    known = table(volumes, [*ours, *theirs])
    first, second = decide([asked(ours, "g"), asked(theirs, "h")], Volumes(known))
    keep_promises(volumes, ((first, ours), (second, theirs)))
    [first] = decide([asked(ours, "g")], Volumes(known))
    way = [claim.key for pod in ours for claim in pod.claims if isinstance(first, Admitted)]
    [second] = decide([asked(theirs, "h")], Volumes(known, assumed=way))
    keep_promises(volumes, ((first, ours), (second, theirs)))


def keep_promises(volumes: Sequence[Volume], told: Iterable[tuple[Verdict, Sequence[Pod]]]) -> None:
    placed: dict[str, Place] = {}
    pods: list[Pod] = []
    for verdict, of in told:
        if isinstance(verdict, Admitted):
            placed |= choices(verdict, of)
            pods += of
    assert in_every_order(volumes, pods, placed)
