"""Claims that several pods mount, before they are bound and for one pod only."""

from dataclasses import replace

from scheduling.cycle import run_cycle
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.pod import Mount
from scheduling.model.verdict import Admitted, Verdict
from scheduling.model.volume import (
    Limits,
    StorageClass,
    Volume,
)
from tests.builders import columns, gang, group, node, shape
from tests.scheduling.filters.volumes.claims import (
    DISK,
    HEAD,
    IN_B,
    NODES,
    TEAM,
    WAITING,
    ZONE,
    bound,
    decide,
    mounting,
    table,
    waiting,
    where,
    why,
    with_members,
)


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
    told = why(decide(known, HEAD, assumed=[(TEAM, "data")]))
    assert 'VolumeBinding: volume claim "data" is reserved for another pod' in told
    assert where(decide(known, HEAD, assumed=[("others", "data")]))


def test_surplus_that_shares_such_a_claim_waits_until_it_is_bound() -> None:
    known = table(waiting(), WAITING)
    more = ((group("w", 1, mounting("data")),), (group("v", 1, shape(cpu=1)),))
    verdict = decide(known, HEAD, surplus=more)
    assert isinstance(verdict, Admitted)
    assert verdict.units == (1,)


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
    assert "is reserved for another pod" in why(decide(known, HEAD, assumed=[(TEAM, "data")]))
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
