"""Which nodes claims leave, and what is said of those that leave none."""

from dataclasses import replace

import pytest

from scheduling.cycle import next_cycle, run_cycle
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.constraints import NodeTerm
from scheduling.model.pod import Mount
from scheduling.model.verdict import Admitted
from scheduling.model.volume import (
    Capacity,
    Claim,
    Driver,
    Fact,
    Limits,
    StorageClass,
    Volume,
)
from scheduling.queueing.queues import one_queue
from tests.builders import columns, gang, group, node, require, shape
from tests.scheduling.filters.volumes.claims import (
    DISK,
    HEAD,
    IN_B,
    NODES,
    STATIC,
    TEAM,
    WAITING,
    ZONE,
    bound,
    decide,
    ephemeral,
    mounting,
    table,
    waiting,
    where,
    why,
    with_members,
)

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


# ---- claims that kube-scheduler refuses


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
def test_a_claim_that_no_pod_can_use_is_named_with_the_reason(
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


# ---- claims that wait for their first consumer


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


def test_of_ephemeral_volumes_it_is_not_asked_whether_they_are_for_one_pod() -> None:
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
    stranger = replace(claims[1], owner="another")
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


def test_claims_of_pods_that_no_member_names_are_never_taken_for_satisfied() -> None:
    asked = gang("g", group("w", 1, ephemeral("s")))
    [decision] = run_cycle([asked], columns(*NODES), volumes=Volumes(table()))
    assert why(decision.verdict).startswith("Unsupported")


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


def test_free_volumes_of_a_class_are_known_while_they_are_there() -> None:
    free = by_hand(open=True, claim=None)
    known = table(waiting(), STATIC, free)
    assert where(decide(known, HEAD, nodes=HOSTS)) == {"a2"}
    known.put(replace(free, open=False, claim=("others", "x")))
    assert "finds no free volume" in why(decide(known, HEAD))
    known.put(free)
    known.drop(free)
    assert "finds no free volume" in why(decide(known, HEAD))


def test_a_claim_with_a_selected_node_waits_where_its_class_has_no_provisioner() -> None:
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


def test_a_gang_without_claims_is_decided_as_if_there_were_no_volumes() -> None:
    asked = gang("g", group("w", 3, shape(cpu=1)))
    assert Volumes(table()).mounted(asked) is asked
