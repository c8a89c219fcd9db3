"""What do claims leave of the nodes, and what is said of those that leave none?"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from scheduling.cycle import next_cycle, run_cycle
from scheduling.filters.volumes.volume_binding import NO_PROVISIONER, Volumes
from scheduling.model.constraints import NodeTerm, NodeTerms
from scheduling.model.gang import Group, Member, PendingGang
from scheduling.model.node import Node
from scheduling.model.pod import Mount, PodShape
from scheduling.model.verdict import Admitted, Refusal, Verdict
from scheduling.model.volume import (
    Attachment,
    Capacity,
    Claim,
    Driver,
    Fact,
    Limits,
    StorageClass,
    Volume,
)
from scheduling.queueing.queues import one_queue
from scheduling.state.volume_index import KINDS, VolumeIndex
from tests.builders import columns, gang, group, node, require, shape

ZONE = "topology.kubernetes.io/zone"
TEAM = "team"
DISK = "disk.example"
NODES = (
    node("a1", cpu=4, labels={ZONE: "a"}),
    node("a2", cpu=4, labels={ZONE: "a"}),
    node("b1", cpu=4, labels={ZONE: "b"}),
)
WAITING = StorageClass("wait", DISK, waits=True)
STATIC = StorageClass("wait", NO_PROVISIONER, waits=True)
IN_B = (NodeTerm((require(ZONE, "In", "b"),)),)


def table(*facts: Fact) -> VolumeIndex:
    made = VolumeIndex()
    for kind in KINDS:
        made.see(kind)
    for fact in facts:
        made.put(fact)
    return made


def bound(name: str = "data", volume: str = "pv", **more: object) -> Claim:
    return replace(Claim(TEAM, name, volume=volume, bound=True), **more)  # type: ignore[arg-type]


def waiting(name: str = "data", **more: object) -> Claim:
    return replace(Claim(TEAM, name, storage_class="wait"), **more)  # type: ignore[arg-type]


def mounting(*claims: str, cpu: int = 1) -> PodShape:
    return replace(shape(cpu=cpu), volumes=tuple(f"persistentVolumeClaim {c}" for c in claims))


def ephemeral(*volumes: str, cpu: int = 1) -> PodShape:
    return replace(shape(cpu=cpu), volumes=tuple(f"ephemeral {each}" for each in volumes))


def with_members(
    asked: PendingGang, mounts: Mapping[str, Iterable[Mount]] | None = None
) -> PendingGang:
    """Say which pods there are; those of a pod set in `mounts` have one claim each of their own."""
    own = {name: iter(each) for name, each in (mounts or {}).items()}
    members = []
    for each in asked.groups():
        for _ in range(each.count):
            named = [Mount(v.split()[1]) for v in each.shape.volumes if each.pod_set not in own]
            found = [next(own[each.pod_set])] if each.pod_set in own else named
            members.append(Member(each.pod_set, each.shape, (), mounts=tuple(found)))
    return replace(asked, members=tuple(members))


def decide(
    known: VolumeIndex,
    *groups: Group,
    nodes: Iterable[Node] = NODES,
    surplus: tuple[tuple[Group, ...], ...] = (),
    promised: Iterable[tuple[str, str]] = (),
    mounts: Mapping[str, Iterable[Mount]] | None = None,
) -> Verdict:
    asked = with_members(gang("g", *groups, surplus=surplus), mounts)
    volumes = Volumes(known, promised=promised)
    [decision] = run_cycle([asked], columns(*nodes), volumes=volumes)
    return decision.verdict


def where(verdict: Verdict) -> set[str]:
    assert isinstance(verdict, Admitted), verdict
    return {name for each in verdict.placement.assignments for name, _ in each.nodes}


def why(verdict: Verdict) -> str:
    assert isinstance(verdict, Refusal), verdict
    return f"{verdict.reason}: {verdict.message}"


HEAD = group("head", 1, mounting("data"))


# ---- bound claims


def test_a_bound_claim_leaves_the_nodes_that_its_volume_can_be_reached_from() -> None:
    known = table(bound(), Volume("pv", terms=IN_B))
    assert where(decide(known, group("w", 4, mounting("data")))) == {"b1"}
    assert why(decide(known, group("w", 5, mounting("data")))) == (
        "InsufficientResources: 4 of 5 w fit: each needs 1 cpu on one node, the gang 5 in all; "
        "4 are free, and those that fit leave 0 "
        '(left out: 2 are ruled out by VolumeBinding: volume claim "data")'
    )


def test_a_volume_without_node_affinity_leaves_all_nodes_and_one_without_terms_none() -> None:
    assert len(where(decide(table(bound(), Volume("pv")), group("w", 12, mounting("data"))))) == 3
    assert "3 are ruled out by VolumeBinding" in why(
        decide(table(bound(), Volume("pv", terms=())), HEAD)
    )


def test_labels_of_zone_on_a_volume_count_where_a_node_has_any() -> None:
    known = table(bound(), Volume("pv", zones=((ZONE, ("b", "c")),)))
    assert where(decide(known, HEAD)) == {"b1"}
    assert where(decide(known, HEAD, nodes=[node("plain")])) == {"plain"}
    assert why(decide(known, HEAD, nodes=NODES[:2])).endswith(
        '(2 nodes: 2 are ruled out by VolumeZone: volume claim "data")'
    )


def test_the_old_label_of_a_volume_is_matched_by_the_new_one_of_nodes_that_lack_it() -> None:
    old = "failure-domain.beta.kubernetes.io/zone"
    known = table(bound(), Volume("pv", zones=((old, ("b",)),)))
    nodes = [*NODES, node("c1", cpu=4, labels={ZONE: "b", old: "a"})]
    assert where(decide(known, HEAD, nodes=nodes)) == {"b1"}


def test_a_generic_ephemeral_volume_is_not_asked_for_its_labels_of_zone() -> None:
    known = table(bound("p-s", owner="uid"), Volume("pv", zones=((ZONE, ("z",)),)))
    own = {"w": [Mount("p-s", "s", "uid")]}
    assert where(decide(known, group("w", 1, ephemeral("s")), mounts=own))


# ---- claims that nobody can use


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ((), 'volume claim "data" does not exist'),
        ((bound(),), 'volume claim "data" is bound to a volume that does not exist'),
        ((bound(lost=True), Volume("pv")), 'volume claim "data" has lost its volume'),
        ((bound(deleted=True), Volume("pv")), 'volume claim "data" is being deleted'),
        ((bound(bound=False), Volume("pv")), 'volume claim "data" is not bound'),
        ((Claim(TEAM, "data"),), 'volume claim "data" is not bound'),
        ((waiting(), StorageClass("wait", DISK)), 'volume claim "data" is not bound'),
        ((waiting(),), 'volume claim "data" has storage class "wait", which does not exist'),
        (
            (waiting(), STATIC),
            'volume claim "data" finds no free volume of storage class "wait"',
        ),
    ],
)
def test_a_claim_that_nobody_can_use_is_named_with_the_reason(
    facts: tuple[Fact, ...], said: str
) -> None:
    told = why(decide(table(*facts), HEAD))
    assert told == (
        "NoFeasibleNode: 0 of 1 head fits: no node is feasible for it "
        f"(3 nodes: 3 are ruled out by VolumeBinding: {said})"
    )


def test_a_claim_of_another_namespace_is_none() -> None:
    elsewhere = replace(bound(), namespace="others")
    assert "does not exist" in why(decide(table(elsewhere, Volume("pv")), HEAD))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (
            (waiting(), StorageClass("wait", "kubernetes.io/rbd", waits=True)),
            'volume claim "data" of provisioner "kubernetes.io/rbd" (use a class of a CSI driver)',
        ),
        (
            (waiting(), StorageClass("wait", "", waits=True)),
            'volume claim "data" of provisioner "" (use a class of a CSI driver)',
        ),
    ],
)  # fmt: skip
def test_what_is_not_modelled_is_named(facts: tuple[Fact, ...], said: str) -> None:
    assert why(decide(table(*facts), HEAD)) == (
        f"Unsupported: not supported by Muster; head: {said}"
    )


def test_without_sight_of_volumes_only_those_wait_that_mount_any() -> None:
    known = table(bound(), Volume("pv"))
    known.lose_sight(Volume)
    assert "cannot be judged, because volumes cannot be watched" in why(decide(known, HEAD))
    assert where(decide(known, group("w", 1, shape(cpu=1))))
    known.see(Volume)
    assert where(decide(known, HEAD))


# ---- claims that wait for their first pod


def test_a_claim_that_waits_leaves_where_its_class_allows_a_volume() -> None:
    allowed = replace(WAITING, topologies=IN_B)
    assert where(decide(table(waiting(), allowed), HEAD)) == {"b1"}
    assert where(decide(table(waiting(), WAITING), HEAD, nodes=NODES[:1])) == {"a1"}
    selected = waiting(selected="a2")
    assert where(decide(table(selected, WAITING), HEAD)) == {"a2"}


def test_a_driver_that_says_where_it_has_storage_is_believed() -> None:
    here = (require(ZONE, "In", "b"),)
    claim, tracks = waiting(size=10), Driver(DISK, tracks=True)
    enough = Capacity("k", "1", "wait", 10, here)
    assert where(decide(table(claim, WAITING, tracks, enough), HEAD)) == {"b1"}
    for poor in (
        replace(enough, size=9),
        replace(enough, size=None),
        replace(enough, storage_class="other"),
        replace(enough, selector=None),
    ):
        told = why(decide(table(claim, WAITING, tracks, poor), HEAD))
        assert 'VolumeBinding: volume claim "data" (storage capacity)' in told
    there = [replace(enough, name=z, selector=(require(ZONE, "In", z),)) for z in "abc"]
    odd = replace(enough, name="odd", selector=(require(ZONE, "Exists"), require("x", "Exists")))
    for each in NODES:
        known = table(claim, WAITING, tracks, *there, odd)
        assert where(decide(known, HEAD, nodes=[each])) == {each.name}
    everywhere = replace(enough, selector=())
    for known in (
        table(claim, WAITING, tracks, everywhere),
        table(claim, WAITING, Driver(DISK)),
        table(claim, WAITING),
        table(waiting(), WAITING, tracks),
    ):
        assert where(decide(known, HEAD, nodes=NODES[:1])) == {"a1"}


@pytest.mark.parametrize(("size", "zones"), [(9, "abc"), (10, "bc"), (11, "c"), (12, "")])
def test_storage_counts_where_there_is_enough_of_it(size: int, zones: str) -> None:
    there = [
        Capacity("k", zone, "wait", most, (require(ZONE, "In", zone),))
        for zone, most in {"b": 10, "a": 9, "c": 11}.items()
    ]
    for each in (*NODES, node("c1", cpu=4, labels={ZONE: "c"})):
        known = table(waiting(size=size), WAITING, Driver(DISK, tracks=True), *there)
        verdict = decide(known, HEAD, nodes=[each])
        assert isinstance(verdict, Admitted) is (each.labels[ZONE] in zones)


def test_storage_that_comes_and_goes_counts_at_once() -> None:
    known = table(waiting(size=10), WAITING, Driver(DISK, tracks=True))
    enough = Capacity("k", "1", "wait", 10, (require(ZONE, "In", "b"),))
    assert "(storage capacity)" in why(decide(known, HEAD))
    known.put(enough)
    assert where(decide(known, HEAD)) == {"b1"}
    known.put(replace(enough, size=9))
    assert "(storage capacity)" in why(decide(known, HEAD))
    known.put(enough)
    known.drop(enough)
    assert "(storage capacity)" in why(decide(known, HEAD))


def test_as_many_alternatives_as_nodes_are_hashed_once() -> None:
    """Hashing them for each pod and claim anew took a minute a cycle on 5,000 nodes."""
    hashed = []

    class Term(NodeTerm):
        def __hash__(self) -> int:
            hashed.append(self)
            return 1

    terms = NodeTerms([Term(), Term()])
    assert hash(terms) == hash(terms) == hash(tuple(terms))
    assert len(hashed) == 2 + 2  # once each, and once each as a plain tuple
    assert terms == tuple(terms)


def on_all(*keys: str) -> list[Limits]:
    """Say that the driver is on all nodes, and by which labels it tells its volumes apart."""
    return [Limits(each.name, drivers=((DISK, keys),)) for each in NODES]


def together(verdict: Verdict) -> list[tuple[int, str, int]]:
    """Return wave, node and number of pods."""
    assert isinstance(verdict, Admitted), verdict
    placed = verdict.placement.assignments
    return sorted((each.wave, node, count) for each in placed for node, count in each.nodes)


def test_pods_that_share_a_claim_go_where_the_first_of_them_leaves_them() -> None:
    """Anywhere if the driver's volumes are reached from anywhere, once the first is bound."""
    pods = group("w", 10, mounting("data"))
    known = table(waiting(), WAITING, *on_all())
    assert together(decide(known, pods)) == [(0, "a1", 4), (1, "a2", 4), (1, "b1", 2)]
    zoned = table(waiting(), WAITING, *on_all(ZONE))
    assert why(decide(zoned, pods)) == (
        "InsufficientResources: no single topology.kubernetes.io/zone holds the pods that share "
        'volume claim "data"; a comes closest: 8 of 10 w fit: each needs 1 cpu on one node, the '
        "gang 10 in all; 8 are free, and those that fit leave 0 (left out: 1 is in another domain)"
    )
    six = group("w", 6, mounting("data"))
    assert together(decide(zoned, six)) == [(0, "a1", 4), (1, "a2", 2)]
    beside = group("other", 4, shape(cpu=1))
    assert together(decide(zoned, six, beside))[-1] == (1, "a2", 2)


def test_where_nothing_is_known_of_the_driver_they_share_a_node() -> None:
    known = table(waiting(), WAITING)
    assert together(decide(known, HEAD, group("w", 3, mounting("data")))) == [
        (0, "a1", 1), (0, "a1", 3)
    ]  # fmt: skip
    told = why(decide(known, HEAD, group("w", 4, mounting("data"))))
    assert told == (
        "Unsupported: not supported by Muster; no single node holds the pods that share volume "
        'claim "data", and it is not known which others reach the volume (bind the claim first '
        "with a pod of its own, or use a class that binds immediately)"
    )


def test_a_free_volume_may_be_taken_instead_of_a_new_one() -> None:
    """Then it is not the driver that says where it is."""
    free = Volume("v", "wait", open=True, terms=IN_B)
    known = table(waiting(), WAITING, free, *on_all())
    assert together(decide(known, group("w", 4, mounting("data"))))[0][2] == 4
    assert "no single node holds" in why(decide(known, group("w", 5, mounting("data"))))


def test_what_a_driver_took_over_keeps_to_the_zone_too() -> None:
    driver = "pd.csi.storage.gke.io"
    made = StorageClass("wait", "kubernetes.io/gce-pd", waits=True)
    known = table(
        waiting(), made, *(replace(each, drivers=((driver, ("g",)),)) for each in on_all())
    )
    region = {"topology.kubernetes.io/region": "r"}
    nodes = [node(each.name, cpu=4, labels={"g": "x", **region, **each.labels}) for each in NODES]
    assert len(together(decide(known, group("w", 8, mounting("data")), nodes=nodes))) == 2
    assert "comes closest" in why(decide(known, group("w", 9, mounting("data")), nodes=nodes))


def test_claims_shared_by_different_pods_are_named() -> None:
    known = table(waiting(), waiting("more"), WAITING, *on_all())
    told = why(decide(known, HEAD, group("w", 2, mounting("data", "more"))))
    assert 'volume claim "data", not bound yet and mounted by 3 pods (bind the claim first ' in told
    alike = decide(known, group("w", 3, mounting("data", "more")))
    assert isinstance(alike, Admitted)


def test_a_claim_that_is_on_its_way_is_kept_for_that_pod() -> None:
    known = table(waiting(), WAITING)
    told = why(decide(known, HEAD, promised=[(TEAM, "data")]))
    assert 'VolumeBinding: volume claim "data" is reserved for another pod' in told
    assert where(decide(known, HEAD, promised=[("others", "data")]))


def test_surplus_that_shares_such_a_claim_waits_until_it_is_bound() -> None:
    known = table(waiting(), WAITING)
    more = ((group("w", 1, mounting("data")),), (group("v", 1, shape(cpu=1)),))
    verdict = decide(known, HEAD, surplus=more)
    assert isinstance(verdict, Admitted)
    assert verdict.units == (1,)


# ---- ReadWriteOncePod


def test_a_claim_for_one_pod_is_refused_to_a_second() -> None:
    known = table(bound(once=True), Volume("pv"))
    assert where(decide(known, HEAD))
    assert 'volume claim "data" is ReadWriteOncePod and 3 pods of the gang mount it' in why(
        decide(known, HEAD, group("w", 2, mounting("data")))
    )
    more = ((group("w", 1, mounting("data")),),)
    verdict = decide(known, HEAD, surplus=more)
    assert isinstance(verdict, Admitted)
    assert verdict.units == ()
    assert "is reserved for another pod" in why(decide(known, HEAD, promised=[(TEAM, "data")]))
    known.use(TEAM, [Mount("data")], "a1", +1)
    assert "is ReadWriteOncePod and in use" in why(decide(known, HEAD))
    known.use(TEAM, [Mount("data")], "a1", -1)
    assert where(decide(known, HEAD))


def test_of_two_gangs_in_one_cycle_one_gets_a_claim_for_one_pod() -> None:
    known = table(bound(once=True), Volume("pv"))
    gangs = [with_members(gang(name, HEAD)) for name in ("g", "h")]
    first, second = run_cycle(gangs, columns(*NODES), volumes=Volumes(known))
    assert where(first.verdict)
    assert "is reserved for another pod" in why(second.verdict)


# ---- ephemeral volumes


def test_pods_with_ephemeral_volumes_of_their_own_stay_one_shape() -> None:
    claims = [waiting(f"w-{at}-s", owner=f"u{at}") for at in range(12)]
    own = {"w": [Mount(each.name, "s", each.owner) for each in claims]}
    verdict = decide(
        table(*claims, replace(WAITING, topologies=IN_B)), group("w", 4, ephemeral("s")), mounts=own
    )
    assert where(verdict) == {"b1"}
    assert isinstance(verdict, Admitted)
    assert [each.shape for each in verdict.placement.assignments] == [ephemeral("s").key]


def test_of_ephemeral_volumes_nobody_asks_whether_they_are_for_one_pod() -> None:
    """Plugin VolumeRestrictions looks at the claims that pods name, and ReadWriteOncePod is one."""
    claims = [waiting(f"w-{at}-s", owner=f"u{at}", once=True) for at in range(2)]
    own = [Mount(each.name, "s", each.owner) for each in claims]
    known = table(*claims, WAITING)
    known.use(TEAM, [Mount("w-0-s")], "a1", +1)
    pods = group("w", 2, ephemeral("s"))
    assert isinstance(decide(known, pods, mounts={"w": own}), Admitted)


def test_the_claim_of_an_ephemeral_volume_must_be_there_and_the_pods_own() -> None:
    pods = group("w", 2, ephemeral("s"))
    claims = [waiting(f"w-{at}-s", owner=f"u{at}") for at in range(2)]
    own = {"w": [Mount(each.name, "s", each.owner) for each in claims]}
    told = why(decide(table(claims[0], WAITING), pods, mounts=own))
    assert 'VolumeBinding: ephemeral volume "s" has no claim yet' in told
    stranger = replace(claims[1], owner="somebody")
    told = why(decide(table(claims[0], stranger, WAITING), pods, mounts=own))
    assert 'ephemeral volume "s" has a claim "w-1-s" that was not made for it' in told


def test_ephemeral_volumes_in_several_places_are_not_supported() -> None:
    claims = [bound(f"w-{at}-s", f"pv{at}", owner=f"u{at}") for at in range(2)]
    known = table(*claims, Volume("pv0", terms=IN_B), Volume("pv1"))
    own = {"w": [Mount(each.name, "s", each.owner) for each in claims]}
    assert why(decide(known, group("w", 2, ephemeral("s")), mounts=own)) == (
        "Unsupported: not supported by Muster; w: "
        "generic ephemeral volumes that differ between pods of one group (use a class that waits "
        "for its first consumer)"
    )


def test_claims_of_pods_that_nobody_names_are_never_taken_for_satisfied() -> None:
    asked = gang("g", group("w", 1, ephemeral("s")))
    [decision] = run_cycle([asked], columns(*NODES), volumes=Volumes(table()))
    assert why(decision.verdict).startswith("Unsupported")


# ---- limits


def limited(*counts: int) -> tuple[Limits, ...]:
    names = ("a1", "a2", "b1")
    return tuple(Limits(name, ((DISK, count),)) for name, count in zip(names, counts, strict=False))


def test_disks_of_a_driver_fit_only_as_often_as_the_node_attaches_them() -> None:
    claims = [waiting(f"w-{at}-s", owner=f"u{at}") for at in range(9)]
    known = table(*claims, WAITING, *limited(1, 2, 0))
    own = [Mount(each.name, "s", each.owner) for each in claims]
    pods = ephemeral("s")
    verdict = decide(known, group("w", 3, pods), mounts={"w": own})
    assert isinstance(verdict, Admitted)
    [placed] = verdict.placement.assignments
    assert placed.nodes == (("a1", 1), ("a2", 2))
    assert dict(placed.requests)["attach:disk.example"] == 1
    assert why(decide(known, group("w", 4, pods), mounts={"w": own})) == (
        "InsufficientResources: 3 of 4 w fit: each needs 1 attachable disk.example "
        "(NodeVolumeLimits) on one node, the gang 4 in all; 3 are free, and those that fit leave 0"
    )


def test_a_node_without_a_limit_attaches_any_number() -> None:
    claims = [waiting(f"w-{at}-s", owner=f"u{at}") for at in range(9)]
    own = [Mount(each.name, "s", each.owner) for each in claims]
    known = table(*claims, WAITING, *limited(0, 0))
    assert where(decide(known, group("w", 4, ephemeral("s")), mounts={"w": own})) == {"b1"}


def test_what_is_attached_already_counts_once_however_it_is_told() -> None:
    known = table(
        bound("x", "px"), Volume("px", driver=DISK, handle="1"),
        bound("y", "py"), Volume("py", driver=DISK, handle="2"),
        Volume("pz", driver=DISK, handle="3"), Volume("plain"),
        waiting("later"), WAITING,
        Attachment("1", "a1", DISK, "px"),
        Attachment("3", "a1", DISK, "pz"),
        Attachment("4", "a1", DISK, "unknown"),
        Attachment("5", "a2", DISK, "pz"),
    )  # fmt: skip
    for claim in ("x", "x", "y", "later", "missing"):
        known.use(TEAM, [Mount(claim)], "a1", +1)
    known.use(TEAM, [Mount("", "ebs.csi.aws.com", "vol-1")], "a1", +1)
    known.use("others", [Mount("", "ebs.csi.aws.com", "vol-1")], "a1", +1)
    assert known.attached() == {DISK: {"a1": 4, "a2": 1}, "ebs.csi.aws.com": {"a1": 1}}
    known.use(TEAM, [Mount("x")], "a1", -1)
    assert known.attached()[DISK]["a1"] == 4
    known.use(TEAM, [Mount("y")], "a1", -1)
    assert known.attached()[DISK]["a1"] == 3


def test_disks_of_promised_pods_count_too() -> None:
    known = table(waiting(), WAITING, *limited(1, 1, 1))
    asked = with_members(gang("g", HEAD))
    reserved = {"a1": 1, "b1": 1}
    held = {"attach:": {"attach:disk.example": reserved}}
    volumes = Volumes(known, lambda prefix: held.get(prefix, {}))
    [decision] = run_cycle([asked], columns(*NODES), volumes=volumes)
    assert where(decision.verdict) == {"a2"}


def test_the_disk_of_a_bound_claim_counts_by_its_volume() -> None:
    known = table(bound(), Volume("pv", driver=DISK, handle="1"), *limited(0, 1, 0))
    assert where(decide(known, HEAD)) == {"a2"}
    two = group("head", 1, mounting("data", "more"))
    both = table(bound(), bound("more", "pw"), Volume("pv", driver=DISK, handle="1"),
                 Volume("pw", driver=DISK, handle="2"), *limited(1, 2, 1))  # fmt: skip
    assert where(decide(both, two)) == {"a2"}


def test_a_disk_that_pods_share_counts_for_each_and_is_no_refusal_for_good() -> None:
    known = table(bound(), Volume("pv", driver=DISK, handle="1"), *limited(2, 2, 0))
    assert where(decide(known, group("w", 4, mounting("data")))) == {"a1", "a2"}
    assert why(decide(known, group("w", 5, mounting("data")))) == (
        "Unsupported: not supported by Muster; a disk that several pods mount is counted once "
        "for each of them, and nodes can attach too few by that count (NodeVolumeLimits): "
        'volume claim "data" of disk.example '
        "(let fewer pods mount it, or detach other volumes of the driver)"
    )
    roomy = table(bound(), Volume("pv", driver=DISK, handle="1"), *limited(4, 4, 4))
    assert why(decide(roomy, group("w", 13, mounting("data")))).startswith("NeverFits")
    tall = group("w", 3, mounting("data", cpu=3)), group("x", 1, mounting("data", cpu=2))
    assert why(decide(roomy, *tall)).startswith("InsufficientResources")


def test_a_disk_that_is_on_a_full_node_already_is_no_refusal_for_good() -> None:
    """A node does not attach it again, for one pod or for several."""
    known = table(bound(), Volume("pv", driver=DISK, handle="1"), *limited(1, 0, 0))
    assert where(decide(known, HEAD)) == {"a1"}
    known.put(Attachment("1", "a1", DISK, "pv"))
    assert "attach too few" in why(decide(known, HEAD))
    known.put(Attachment("1", "a1", DISK, "other"))
    known.put(Volume("other", driver=DISK, handle="2"))
    assert why(decide(known, HEAD)).startswith("InsufficientResources")


# ---- volumes made by hand

HOST = "kubernetes.io/hostname"
HOSTS = tuple(replace(each, labels={**each.labels, HOST: each.name}) for each in NODES)


def by_hand(on: str = "a2", **more: object) -> Volume:
    terms = (NodeTerm((require(HOST, "In", on),)),)
    made = Volume("v", "wait", size=10, terms=terms, claim=(TEAM, "data"))
    return replace(made, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("volume", "goes"),
    [
        (by_hand(), True),
        (by_hand(claim_uid="u"), True),
        (by_hand(claim_uid="earlier"), False),
        (by_hand(claim=("others", "data")), False),
        (by_hand(deleted=True), False),
        (by_hand(size=4), False),
        (by_hand(kind="Block"), False),
        (by_hand(storage_class="other"), False),
    ],
)
def test_a_claim_goes_where_a_volume_is_kept_for_it(volume: Volume, goes: bool) -> None:
    """However many pods mount it: which volume it has does not depend on the first of them."""
    known = table(waiting(uid="u", size=5), STATIC, volume)
    for pods in (HEAD, group("w", 2, mounting("data"))):
        verdict = decide(known, pods, nodes=HOSTS)
        if goes:
            assert where(verdict) == {"a2"}
        else:
            assert why(verdict).startswith("NoFeasibleNode")
            assert 'volume claim "data" finds no free volume of storage class "wait"' in why(
                verdict
            )


def test_a_claim_on_volumes_that_no_claim_has_yet_is_named_with_a_remedy() -> None:
    """Whatever is free, from wherever it is reached: kube-scheduler picks when a pod is there."""
    one, several = by_hand("a2", open=True, claim=None), by_hand(open=True, claim=None, terms=None)
    for free in ((one,), (several,), (one, replace(several, name="w"))):
        known = table(waiting(size=5), STATIC, *free)
        assert why(decide(known, HEAD, nodes=HOSTS)) == (
            'Unsupported: not supported by Muster; head: volume claim "data" of storage class '
            '"wait", which has no provisioner (use a class that has one, or bind the claim first)'
        )
    own = waiting("w-0-s", owner="u", size=5)
    mounts = {"w": [Mount(own.name, "s", own.owner)]}
    told = why(decide(table(own, STATIC, one), group("w", 1, ephemeral("s")), mounts=mounts))
    assert told.endswith("which has no provisioner (use a class that has one)")


def test_free_volumes_of_a_class_are_known_while_they_are_there() -> None:
    free = by_hand(open=True, claim=None)
    known = table(waiting(), STATIC, free)
    assert "no provisioner" in why(decide(known, HEAD))
    known.put(replace(free, open=False, claim=("others", "x")))
    assert "finds no free volume" in why(decide(known, HEAD))
    known.put(free)
    known.drop(free)
    assert "finds no free volume" in why(decide(known, HEAD))


def test_a_claim_that_was_given_a_node_finds_nobody_to_make_its_volume() -> None:
    known = table(waiting(selected="a1"), STATIC, by_hand(open=True, claim=None))
    assert "has a selected node, but its class has no provisioner" in why(decide(known, HEAD))


# ---- kinds that drivers took over

PLUGIN = "kubernetes.io/gce-pd"
HERE, THERE = "topology.gke.io/zone", (NodeTerm((require("topology.gke.io/zone", "In", "b"),)),)


def test_a_volume_that_a_driver_took_over_is_where_it_says_on_nodes_that_moved() -> None:
    """On the others the old node affinity counts, as on those of which nothing is known."""
    old = Volume("pv", terms=IN_B, driver=DISK, handle="1", plugin=PLUGIN, moved=THERE)
    nodes = [
        node("both", labels={ZONE: "b", HERE: "b"}),
        node("moved", labels={ZONE: "a", HERE: "b"}),
        node("old", labels={ZONE: "b", HERE: "a"}),
        node("plain", labels={ZONE: "b"}),
    ]
    pods = group("w", 1, mounting("data", cpu=64))

    def found(*facts: Fact) -> set[str]:
        asked = with_members(gang("g", surplus=((pods,),) * 4))
        volumes = Volumes(table(bound(), *facts))
        return where(run_cycle([asked], columns(*nodes), volumes=volumes)[0].verdict)

    on = [Limits(each, migrated=(PLUGIN,)) for each in ("both", "moved", "old")]
    assert found(old, *on) == {"both", "moved", "plain"}
    assert found(old) == {"both", "old", "plain"}
    assert found(replace(old, terms=None, moved=THERE), *on) == {"both", "moved", "plain"}
    assert found(replace(old, handle=""), *on) == {"plain"}
    assert found(replace(old, terms=(NodeTerm(),), moved=(NodeTerm(),)), on[0]) == set()


def test_where_drivers_took_over_changes_with_the_nodes() -> None:
    known, one, other = table(), Limits("n1", migrated=(PLUGIN,)), Limits("n2", migrated=(PLUGIN,))
    found = []
    for change, fact in ((known.put, one), (known.put, other), (known.drop, one)):
        change(fact)
        found.append(known.migrated(PLUGIN))
    assert found == [("n1",), ("n1", "n2"), ("n2",)]


def test_what_a_driver_took_over_counts_as_its_disks() -> None:
    driver = "pd.csi.storage.gke.io"
    limits = [Limits(name, ((driver, at),)) for name, at in (("a1", 0), ("a2", 1), ("b1", 0))]
    old = Volume("pv", driver=driver, handle="1", plugin=PLUGIN)
    made = StorageClass("wait", PLUGIN, waits=True)
    assert where(decide(table(bound(), old, *limits), HEAD)) == {"a2"}
    assert where(decide(table(waiting(), made, *limits), HEAD)) == {"a2"}
    inline = replace(shape(cpu=1), volumes=(f"{driver} 1",))
    disk = {"head": [Mount("", driver, "1")]}
    assert where(decide(table(*limits), group("head", 1, inline), mounts=disk)) == {"a2"}
    known = table(bound(), old, *limits)
    known.use(TEAM, [Mount("", driver, "")], "a2", +1)
    assert "NodeVolumeLimits" in why(decide(known, HEAD))


def test_what_no_plugin_counts_takes_no_place() -> None:
    limits = [Limits(name, (("csi.vsphere.vmware.com", 0),)) for name in ("a1", "a2", "b1")]
    made = StorageClass("wait", "kubernetes.io/vsphere-volume", waits=True)
    known = table(waiting(), made, *limits)
    assert where(decide(known, HEAD))
    known.use(TEAM, [Mount("data")], "a1", +1)
    assert known.attached() == {}


# ---- from cycle to cycle


def test_a_refusal_ends_when_the_claim_appears_and_is_kept_for_want_of_room() -> None:
    asked = with_members(gang("g", HEAD))
    known, room = table(), columns(*NODES)
    [refused], memory = next_cycle(one_queue([asked]), room, None, volumes=Volumes(known))
    assert "does not exist" in why(refused.verdict)
    known.put(bound())
    known.put(Volume("pv"))
    [admitted], _ = next_cycle(one_queue([asked]), room, memory, volumes=Volumes(known))
    assert where(admitted.verdict)

    large = with_members(gang("g", group("w", 13, mounting("data"))))
    _, memory = next_cycle(one_queue([large]), room, None, volumes=Volumes(known))
    _, memory = next_cycle(one_queue([large]), room, memory, volumes=Volumes(known))
    assert memory.kept == 1


def test_a_refusal_for_good_is_not_kept_once_only_a_shared_disk_is_in_the_way() -> None:
    known = table(bound(), Volume("pv", driver=DISK, handle="1"), *limited(1, 1, 1))
    asked = with_members(gang("g", group("w", 4, mounting("data"))))
    full = columns(*NODES, used={each.name: {"cpu": 4000} for each in NODES})
    [refused], memory = next_cycle(one_queue([asked]), full, None, volumes=Volumes(known))
    assert why(refused.verdict).startswith("InsufficientResources")
    [after], _ = next_cycle(one_queue([asked]), columns(*NODES), memory, volumes=Volumes(known))
    assert why(after.verdict).startswith("Unsupported")


def test_who_mounts_nothing_is_decided_as_if_there_were_no_volumes() -> None:
    asked = gang("g", group("w", 3, shape(cpu=1)))
    assert Volumes(table()).mounted(asked) is asked
