"""Claims that wait for volumes made by hand, against kube-scheduler's own choice, slowly."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduling.cycle import run_cycle
from scheduling.model import Member, Mount, NodeTerm, PendingGang
from scheduling.storage import KINDS, Claim, Fact, StorageClass, StorageTable, Volume
from scheduling.verdict import Admitted, Verdict
from scheduling.volumes import NO_PROVISIONER, Volumes
from tests.builders import columns, gang, group, node, require, shape

HOST, TEAM = "kubernetes.io/hostname", "team"
NODES = ("a", "b", "c")
CLASS = StorageClass("local", NO_PROVISIONER, waits=True)

Choice = Mapping[str, str]
"""Name of the node by pod."""


@dataclass(frozen=True)
class Pod:
    """A pod of a gang: its pod set, and the claims of its own."""

    name: str
    pod_set: str
    claims: tuple[Claim, ...]


def volumes_of(drawn: Sequence[tuple[str, int]], wide: Sequence[tuple[int, int]]) -> list[Volume]:
    """Make free volumes: (node, size), and for several nodes (how many, size)."""
    places = [*(((name,), size) for name, size in drawn), *((NODES[:n], size) for n, size in wide)]
    return [
        Volume(
            f"v{at}", "local", open=True, size=size,
            terms=(NodeTerm((require(HOST, "In", *names),)),),
        )
        for at, (names, size) in enumerate(places)
    ]  # fmt: skip


def pods_of(sets: Sequence[tuple[int, Sequence[int]]]) -> list[Pod]:
    """Make pod sets: (pods, sizes of the claims that each pod has)."""
    return [
        Pod(
            f"s{number}-{at}",
            f"s{number}",
            tuple(
                Claim(TEAM, f"s{number}-{at}-{of}", f"u{number}-{at}", "local", size=size)
                for of, size in enumerate(sizes)
            ),
        )
        for number, (count, sizes) in enumerate(sets)
        for at in range(count)
    ]


def asked(pods: Sequence[Pod], name: str = "g") -> PendingGang:
    """Return the gang of the pods, whose claims are of generic ephemeral volumes."""
    shapes = {
        pod.pod_set: replace(
            shape(cpu=1), volumes=tuple(f"ephemeral {at}" for at in range(len(pod.claims)))
        )
        for pod in pods
    }
    counts = {name: sum(pod.pod_set == name for pod in pods) for name in shapes}
    members = tuple(
        Member(
            pod.pod_set,
            shapes[pod.pod_set],
            (),
            mounts=tuple(Mount(c.name, str(at), c.owner) for at, c in enumerate(pod.claims)),
        )
        for pod in pods
    )
    groups = (group(name, count, shapes[name]) for name, count in counts.items())
    return replace(gang(name, *groups), members=members)


def table(volumes: Sequence[Volume], pods: Sequence[Pod]) -> StorageTable:
    made = StorageTable()
    for kind in KINDS:
        made.see(kind)
    facts: list[Fact] = [CLASS, *volumes, *(claim for pod in pods for claim in pod.claims)]
    for fact in facts:
        made.put(fact)
    return made


def decide(volumes: Sequence[Volume], pods: Sequence[Pod], cpus: int) -> Verdict:
    nodes = [node(name, cpu=cpus, labels={HOST: name}) for name in NODES]
    known = Volumes(table(volumes, pods))
    return run_cycle([asked(pods)], columns(*nodes), volumes=known)[0].verdict


def suits(volume: Volume, claim: Claim, where: str) -> bool:
    [term] = volume.terms or ()
    return volume.size >= (claim.size or 0) and where in term.labels[0].values


def bound(
    free: frozenset[Volume], claims: Sequence[Claim], where: str
) -> Iterator[frozenset[Volume] | None]:
    """Yield what may be left once a pod's claims are bound there; None where one finds nothing.

    The smaller claim comes first; of equal volumes kube-scheduler may take any.
    """
    if not claims:
        yield free
        return
    first, *rest = claims
    found = [volume for volume in free if suits(volume, first, where)]
    least = min((volume.size for volume in found), default=0)
    if not found:
        yield None
    for volume in (each for each in found if each.size == least):
        yield from bound(free - {volume}, rest, where)


def all_bound(free: frozenset[Volume], pods: Sequence[Pod], choice: Choice) -> bool:
    """Say whether all pods get all volumes in this order, whatever kube-scheduler picks."""
    if not pods:
        return True
    first, *rest = pods
    for claims in orders_of(first.claims):
        for left in bound(free, claims, choice[first.name]):
            if left is None or not all_bound(left, rest, choice):
                return False
    return True


def orders_of(claims: Sequence[Claim]) -> Iterator[Sequence[Claim]]:
    """Yield the claims by size; its sort is not stable."""
    for order in permutations(claims):
        sizes = [claim.size or 0 for claim in order]
        if sizes == sorted(sizes):
            yield order


def choices(verdict: Admitted, pods: Sequence[Pod]) -> Choice:
    nodes = {
        each.pod_set: [name for name, count in each.nodes for _ in range(count)]
        for each in verdict.placement.assignments
    }
    return {pod.name: nodes[pod.pod_set].pop() for pod in pods}


def some_way(volumes: Sequence[Volume], pods: Sequence[Pod], cpus: int) -> bool:
    """Say whether any choice of nodes binds all in every order."""
    for nodes in product(NODES, repeat=len(pods)):
        choice = dict(zip((pod.name for pod in pods), nodes, strict=True))
        if max(nodes.count(name) for name in NODES) <= cpus and in_every_order(
            volumes, pods, choice
        ):
            return True
    return False


def in_every_order(volumes: Sequence[Volume], pods: Sequence[Pod], choice: Choice) -> bool:
    return all(all_bound(frozenset(volumes), order, choice) for order in permutations(pods))


def assert_exact(volumes: Sequence[Volume], pods: Sequence[Pod], cpus: int) -> None:
    """Check that a gang is admitted if and only if it can be, and that its placement holds."""
    verdict = decide(volumes, pods, cpus)
    assert isinstance(verdict, Admitted) is some_way(volumes, pods, cpus)
    if isinstance(verdict, Admitted):
        assert in_every_order(volumes, pods, choices(verdict, pods))


SIZES = st.integers(1, 3)
LOCAL = st.lists(st.tuples(st.sampled_from(NODES), SIZES), max_size=6)
WIDE = st.lists(st.tuples(st.integers(2, 3), SIZES), max_size=3)
SETS = st.lists(
    st.tuples(st.integers(1, 2), st.lists(SIZES, min_size=1, max_size=2)), min_size=1, max_size=2
)


@settings(max_examples=150, deadline=None)
@given(LOCAL, SETS, st.integers(1, 3))
def test_claims_on_local_volumes_are_decided_exactly(
    local: list[tuple[str, int]], sets: list[tuple[int, list[int]]], cpus: int
) -> None:
    assert_exact(volumes_of(local, ()), pods_of(sets), cpus)


@settings(max_examples=150, deadline=None)
@given(st.lists(SIZES, max_size=6), st.integers(2, 3), SETS, st.integers(1, 3))
def test_claims_on_volumes_that_the_same_nodes_share_are_decided_exactly(
    sizes: list[int], reach: int, sets: list[tuple[int, list[int]]], cpus: int
) -> None:
    assert_exact(volumes_of((), [(reach, size) for size in sizes]), pods_of(sets), cpus)


@settings(max_examples=150, deadline=None)
@given(LOCAL, WIDE, SETS, st.integers(1, 3))
def test_a_yes_holds_whichever_volume_is_picked(
    local: list[tuple[str, int]],
    wide: list[tuple[int, int]],
    sets: list[tuple[int, list[int]]],
    cpus: int,
) -> None:
    """With volumes of several nodes too, which nothing is promised on that could be taken away."""
    volumes, pods = volumes_of(local, wide), pods_of(sets)
    verdict = decide(volumes, pods, cpus)
    if isinstance(verdict, Admitted):
        assert in_every_order(volumes, pods, choices(verdict, pods))


@settings(max_examples=100, deadline=None)
@given(LOCAL, WIDE, SETS, SETS)
def test_two_gangs_of_a_cycle_are_never_promised_the_same_volume(
    local: list[tuple[str, int]],
    wide: list[tuple[int, int]],
    mine: list[tuple[int, list[int]]],
    yours: list[tuple[int, list[int]]],
) -> None:
    volumes, pods = volumes_of(local, wide), pods_of([*mine, *yours])
    first = [pod for pod in pods if int(pod.pod_set[1:]) < len(mine)]
    gangs = [asked(first, "g"), asked(pods[len(first) :], "h")]
    nodes = [node(name, labels={HOST: name}) for name in NODES]
    known = Volumes(table(volumes, pods))
    verdicts = [each.verdict for each in run_cycle(gangs, columns(*nodes), volumes=known)]
    assert_kept(volumes, ((verdicts[0], first), (verdicts[1], pods[len(first) :])))


@settings(max_examples=100, deadline=None)
@given(LOCAL, WIDE, SETS, SETS)
@example([("a", 2)], [], [(1, [1])], [(1, [2])])
def test_what_an_earlier_cycle_has_promised_is_kept(
    local: list[tuple[str, int]],
    wide: list[tuple[int, int]],
    mine: list[tuple[int, list[int]]],
    yours: list[tuple[int, list[int]]],
) -> None:
    """The first gang is on its way, and its placement is all that is known of it."""
    volumes, pods = volumes_of(local, wide), pods_of([*mine, *yours])
    first = [pod for pod in pods if int(pod.pod_set[1:]) < len(mine)]
    rest = pods[len(first) :]
    nodes = [node(name, labels={HOST: name}) for name in NODES]
    facts = table(volumes, pods)
    [one] = run_cycle([asked(first)], columns(*nodes), volumes=Volumes(facts))
    held: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in one.verdict.placement.assignments if isinstance(one.verdict, Admitted) else ():
        for (row, amount), (name, count) in product(each.requests, each.nodes):
            held[row][name] += amount * count
    then = Volumes(facts, lambda start: {r: n for r, n in held.items() if r.startswith(start)})
    [other] = run_cycle([asked(rest)], columns(*nodes), volumes=then)
    assert_kept(volumes, ((one.verdict, first), (other.verdict, rest)))


def assert_kept(volumes: Sequence[Volume], told: Iterable[tuple[Verdict, Sequence[Pod]]]) -> None:
    """Check that all who were admitted are bound, in several orders, whatever is picked."""
    placed: dict[str, str] = {}
    pods: list[Pod] = []
    for verdict, of in told:
        if isinstance(verdict, Admitted):
            placed |= choices(verdict, of)
            pods += of
    orders = (pods, pods[::-1], sorted(pods, key=lambda pod: pod.name[::-1]))
    assert all(all_bound(frozenset(volumes), order, placed) for order in orders)
