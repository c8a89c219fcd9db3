"""Disks that pods share, and the number that a node attaches, against counting as nodes do."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from hypothesis import event, example, given
from hypothesis import strategies as st

from scheduling.cycle import run_cycle
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.gang import Member, PendingGang
from scheduling.model.pod import Mount
from scheduling.model.verdict import Admitted, Reason, Refusal, Verdict
from scheduling.model.volume import Attachment, Claim, Fact, Limits, Volume
from scheduling.state.volume_index import KINDS, VolumeIndex
from tests.builders import columns, gang, group, node, shape
from tests.examples import examples

NODES, TEAM, DISK = ("a", "b", "c"), "team", "disk.example"
CLAIMS = ("v", "w", "x")
CPUS = 4

There = Mapping[str, set[str]]
"""Disks by node, each called as its claim is."""


def asked(name: str, pods: int, claims: Sequence[str], own: int) -> PendingGang:
    """Return a gang whose pods all mount these claims; `own` of another set mount one more each."""
    mounts: dict[str, list[tuple[str, ...]]]
    mounts = {"s": [tuple(claims)] * pods, "t": [(f"own-{at}",) for at in range(own)]}
    groups, members = [], []
    for pod_set, each in mounts.items():
        for at, mounted in enumerate(each):
            named = tuple(f"persistentVolumeClaim {claim}" for claim in mounted)
            made = replace(shape(cpu=1), volumes=named)
            members.append(Member(pod_set, made, (), mounts=tuple(map(Mount, mounted))))
            if pod_set == "t" or at == 0:
                groups.append(group(pod_set, pods if pod_set == "s" else 1, made))
    return replace(gang(name, *groups), members=tuple(members))


def table(limits: Sequence[int | None], there: There) -> VolumeIndex:
    made = VolumeIndex()
    facts: list[Fact] = []
    for claim in (*CLAIMS, "own-0", "own-1"):
        facts.append(Claim(TEAM, claim, volume=claim, bound=True))
        facts.append(Volume(claim, driver=DISK, handle=claim))
    for name, limit in zip(NODES, limits, strict=True):
        facts.append(Limits(name, () if limit is None else ((DISK, limit),)))
        facts += (Attachment(f"{name}-{disk}", name, DISK, disk) for disk in there[name])
    for kind in KINDS:
        made.see(kind)
    for fact in facts:
        made.put(fact)
    return made


def decide(
    gangs: Sequence[PendingGang], known: VolumeIndex, held: Mapping[str, Counter[str]]
) -> list[Verdict]:
    nodes = [node(name, cpu=CPUS) for name in NODES]
    used = {name: {"cpu": 1000 * held["cpu"][name]} for name in NODES}
    volumes = Volumes(known, lambda start: {r: n for r, n in held.items() if r.startswith(start)})
    return [each.verdict for each in run_cycle(gangs, columns(*nodes, used=used), volumes=volumes)]


def held_by(verdict: Verdict) -> defaultdict[str, Counter[str]]:
    held: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in verdict.placement.assignments if isinstance(verdict, Admitted) else ():
        for (row, amount), (name, count) in product(each.requests, each.nodes):
            held[row][name] += amount * count if row != "cpu" else count
    return held


def bind(
    gangs: Sequence[tuple[PendingGang, Verdict]], limits: Sequence[int | None], there: There
) -> bool:
    """Bind pod after pod as kube-scheduler counts; say whether all get in."""
    on = {name: set(disks) for name, disks in there.items()}
    most = dict(zip(NODES, limits, strict=True))
    for asking, verdict in gangs:
        for each in verdict.placement.assignments if isinstance(verdict, Admitted) else ():
            mounted = next(m.mounts for m in asking.members if m.shape.key == each.shape)
            for name, _ in each.nodes:
                new = {mount.claim for mount in mounted} - on[name]
                limit = most[name]
                if new and limit is not None and len(on[name]) + len(new) > limit:
                    return False
                on[name] |= new
    return True


LIMITS = st.lists(st.sampled_from([None, 0, 1, 2, 3]), min_size=3, max_size=3)
THERE = st.fixed_dictionaries({name: st.sets(st.sampled_from(CLAIMS)) for name in NODES})
SHARED = st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=2, unique=True)


@examples(300)
@given(LIMITS, THERE, SHARED, st.integers(1, 12))
@example([0, 0, 0], {"a": {"v"}, "b": set(), "c": set()}, ["v"], 1)
@example([1, 0, 0], {name: set() for name in NODES}, ["v"], 2)
@example([None, 0, 0], {name: set() for name in NODES}, ["v"], 5)
def test_no_gang_that_fits_is_refused_for_good(
    limits: list[int | None], there: There, claims: list[str], pods: int
) -> None:
    """Nodes attach a disk once, and not again if they have it; what is counted is each pod."""
    asking = asked("g", pods, claims, 0)
    [verdict] = decide([asking], table(limits, there), defaultdict(Counter))
    open_to = 0
    for name, limit in zip(NODES, limits, strict=True):
        new = {*claims} - there[name]
        open_to += not new or limit is None or len(there[name]) + len(new) <= limit
    fits = pods <= CPUS * open_to
    if isinstance(verdict, Refusal):
        unsure = verdict.reason is Reason.UNSUPPORTED
        event("unsupported" if unsure else "refused for good")
        assert unsure or not fits
        named = (f'volume claim "{claim}" of {DISK}' in verdict.message for claim in claims)
        assert not unsure or any(named)
    else:
        assert fits
    if pods > CPUS * len(NODES):
        assert isinstance(verdict, Refusal)
        assert verdict.reason is not Reason.UNSUPPORTED
    assert bind([(asking, verdict)], limits, there)


GANG = st.tuples(st.integers(0, 4), SHARED, st.integers(0, 2)).filter(lambda g: g[0] + g[2] > 0)


@examples(200)
@given(LIMITS, THERE, GANG, GANG)
@example([1, 0, 0], {name: set() for name in NODES}, (2, ["v"], 0), (2, ["w"], 0))
@example([1, 0, 0], {name: set() for name in NODES}, (2, ["v"], 0), (0, ["v"], 1))
@example([1, 0, 0], {name: set() for name in NODES}, (0, ["v"], 1), (2, ["w"], 0))
def test_no_node_is_promised_more_disks_than_it_attaches(
    limits: list[int | None],
    there: There,
    mine: tuple[int, list[str], int],
    yours: tuple[int, list[str], int],
) -> None:
    """In one cycle, and in two where all that is known of the first gang is its placement."""
    gangs = asked("g", *mine), asked("h", *yours)
    known = table(limits, there)
    verdicts = decide(gangs, known, defaultdict(Counter))
    assert bind(list(zip(gangs, verdicts, strict=True)), limits, there)
    [first] = decide(gangs[:1], known, defaultdict(Counter))
    [then] = decide(gangs[1:], known, held_by(first))
    assert bind([(gangs[0], first), (gangs[1], then)], limits, there)
