"""Claims that are to be bound to free volumes: which are enough, whoever comes first."""

from dataclasses import replace
from typing import Any

import pytest

from scheduling.cycle import run_cycle
from scheduling.filters.volumes.static_volumes import is_enough
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.constraints import NodeTerm
from scheduling.model.gang import Group
from scheduling.model.pod import Mount
from scheduling.model.verdict import Admitted, Verdict
from scheduling.model.volume import Claim, Fact, Limits, StorageClass, Volume
from tests.builders import columns, gang, group, require
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

IN_A = (NodeTerm((require(ZONE, "In", "a"),)),)
HOST = "kubernetes.io/hostname"
HOSTS = tuple(replace(each, labels={**each.labels, HOST: each.name}) for each in NODES)
FEW = "for which there may be too few free volumes beside other claims"


def free(name: str, on: str = "", **more: object) -> Volume:
    """A free volume of one node, or of all."""
    terms = (NodeTerm((require(HOST, "In", on),)),) if on else None
    made = Volume(name, "wait", size=10, terms=terms, open=True)
    return replace(made, **more)  # type: ignore[arg-type]


def placed(verdict: Verdict) -> list[tuple[int, str, int]]:
    """Return wave, node and number of pods."""
    assert isinstance(verdict, Admitted), verdict
    found = verdict.placement.assignments
    return sorted((each.wave, name, count) for each in found for name, count in each.nodes)


# ---- one claim


def test_a_claim_goes_where_any_volume_is_that_suits_it() -> None:
    known = table(
        waiting(size=5), STATIC, free("v", "a2"), free("w", "b1"), free("x", "a1", size=4)
    )
    large = group("head", 1, mounting("data", cpu=4))
    for each in HOSTS:
        verdict = decide(known, large, nodes=[each])
        assert isinstance(verdict, Admitted) is (each.name != "a1")
    assert len(where(decide(table(waiting(), STATIC, free("v")), HEAD, nodes=HOSTS[:1]))) == 1


@pytest.mark.parametrize(
    ("asked", "offered", "suits"),
    [
        ({}, {}, True),
        ({"size": 10}, {}, True),
        ({"size": 11}, {}, False),
        ({"kind": "Block"}, {}, False),
        ({"kind": "Block"}, {"kind": "Block"}, True),
        ({"attributes": "fast"}, {}, False),
        ({"modes": ("ReadWriteOnce",)}, {"modes": ("ReadOnlyMany",)}, False),
        ({"modes": ("ReadWriteOnce",)}, {"modes": ("ReadOnlyMany", "ReadWriteOnce")}, True),
        ({"selector": (require("disk", "In", "ssd"),)}, {}, False),
        ({"selector": (require("disk", "In", "ssd"),)}, {"labels": (("disk", "ssd"),)}, True),
        ({}, {"storage_class": "other"}, False),
        ({}, {"open": False}, False),
    ],
)
def test_a_volume_suits_by_size_modes_class_and_labels(
    asked: dict[str, Any], offered: dict[str, Any], suits: bool
) -> None:
    """As FindMatchingVolume of k8s.io/component-helpers has it."""
    known = table(waiting(**asked), STATIC, free("v", **offered))
    verdict = decide(known, HEAD)
    assert isinstance(verdict, Admitted) is suits
    if not suits:
        assert 'volume claim "data" finds no free volume of storage class "wait"' in why(verdict)


def test_a_volume_that_some_claim_names_is_not_free() -> None:
    """The controller of volumes is about to bind the two; the volume does not say so yet."""
    other = Claim(TEAM, "other", storage_class="wait", volume="v")
    known = table(waiting(), STATIC, free("v"), other)
    assert "finds no free volume" in why(decide(known, HEAD))
    known.drop(other)
    assert where(decide(known, HEAD))
    known.put(other)
    known.put(free("v", size=20))
    assert "finds no free volume" in why(decide(known, HEAD))
    known.put(free("w"))
    assert where(decide(known, HEAD))


def test_a_long_selector_is_not_supported() -> None:
    """It would be asked of each of thousands of volumes."""
    many = tuple(require("disk", "NotIn", f"d{at}") for at in range(40))
    told = why(decide(table(waiting(selector=many), STATIC, free("v")), HEAD))
    assert "whose selector is long (bind the claim first" in told


def test_free_volumes_that_are_reached_from_other_nodes_once_bound_are_not_supported() -> None:
    taken_over = free("v", plugin="kubernetes.io/gce-pd", driver=DISK, handle="1", moved=IN_B)
    told = why(decide(table(waiting(), STATIC, taken_over), HEAD))
    assert told.startswith("Unsupported")
    assert "of a kind that a CSI driver took over" in told


SMALL, LARGE = waiting("small", size=1), waiting("large", size=5)
BOUND = (bound("bound"), Volume("pv"))
HERE = (free("v", "a1", size=5), free("w", "a1", size=10))
ELSEWHERE = free("x", "a2", size=1)


@pytest.mark.parametrize(
    ("claims", "facts", "taken"),
    [
        (("small",), (SMALL, ELSEWHERE, *HERE), True),
        (("small",), (SMALL, ELSEWHERE), False),
        (("small", "large"), (SMALL, LARGE, *HERE), True),
        (("large", "small"), (SMALL, LARGE, *HERE), True),
        (("small", "large"), (SMALL, LARGE, HERE[0]), False),
        (("small", "bound"), (SMALL, *BOUND, HERE[0]), True),
        (("small", "bound"), (SMALL, *BOUND, ELSEWHERE), False),
        (("small", "named"), (SMALL, waiting("named", volume="w"), *HERE), False),
        (("small",), (replace(SMALL, uid="u"), free("k", "a1", open=False, claim=SMALL.key)), True),
        (("small",), (SMALL, free("k", "a2", open=False, claim=SMALL.key)), False),
        (("small",), (replace(SMALL, selected="a1"), *HERE), False),
        (("none",), (SMALL, *HERE), False),
    ],
)
def test_a_pod_gets_its_volumes_on_a_node_where_kube_scheduler_finds_them(
    claims: tuple[str, ...], facts: tuple[Fact, ...], taken: bool
) -> None:
    """The situations of its own table of FindPodVolumes without a provisioner, on one node."""
    verdict = decide(table(STATIC, *facts), group("head", 1, mounting(*claims)), nodes=HOSTS[:1])
    assert isinstance(verdict, Admitted) is taken


# ---- as many volumes as claims


@pytest.mark.parametrize(
    ("offered", "asked", "enough"),
    [
        ({10: 1}, {10: 1}, True),
        ({10: 1}, {10: 2}, False),
        ({10: 1, 100: 1}, {10: 1, 100: 1}, True),
        ({100: 2}, {10: 1, 100: 1}, True),
        ({10: 2, 100: 1}, {10: 1, 100: 2}, False),
        ({10: 5}, {}, True),
    ],
)
def test_the_largest_volumes_must_be_enough_for_the_largest_claims(
    offered: dict[int, int], asked: dict[int, int], enough: bool
) -> None:
    assert is_enough(offered, asked) is enough


def two_sets() -> tuple[Group, Group]:
    return group("head", 1, mounting("small")), group("w", 1, mounting("large"))


def test_two_claims_of_a_gang_do_not_take_the_same_volume() -> None:
    small, large = waiting("small", size=10), waiting("large", size=100)
    one = table(small, large, STATIC, free("v", size=100))
    assert FEW in why(decide(one, *two_sets()))
    both = table(small, large, STATIC, free("v", "a2", size=10), free("w", "a2", size=100))
    assert where(decide(both, *two_sets(), nodes=HOSTS)) == {"a2"}


def test_where_it_matters_which_volume_is_taken_the_gang_is_not_supported() -> None:
    """Each pod would find one on its own node; that both are on one node is not ruled out."""
    known = table(waiting("small"), waiting("large"), STATIC, free("v", "a1"), free("w", "a2"))
    assert why(decide(known, *two_sets(), nodes=HOSTS)) == (
        f'Unsupported: not supported by Muster; head: volume claim "small", {FEW} (bind the claim '
        "first with a pod of its own, or use a class that binds immediately); w: volume claim "
        f'"large", {FEW} (bind the claim first with a pod of its own, or use a class that binds '
        "immediately)"
    )


def test_each_pod_has_an_ephemeral_volume_of_its_own() -> None:
    claims = [waiting(f"w-{at}-s", owner=f"u{at}", size=5) for at in range(4)]
    own = {"w": [Mount(each.name, "s", each.owner) for each in claims]}
    disks = [free(f"v{at}", "a2") for at in range(3)]
    known = table(*claims, STATIC, *disks, free("x", "a1"))
    assert placed(decide(known, group("w", 3, ephemeral("s")), nodes=HOSTS, mounts=own)) == [
        (0, "a2", 3)
    ]
    told = why(decide(known, group("w", 4, ephemeral("s")), nodes=HOSTS, mounts=own))
    assert f'ephemeral volume "s", {FEW} (use a class that has a provisioner)' in told


def test_a_no_is_not_for_good_where_other_volumes_might_do() -> None:
    """The disks of a1 would do, and it is full; those of a2 and b1 depend on who comes first."""
    claims = (waiting("small"), waiting("large"))
    disks = (free("v", "a1"), free("w", "a1"), free("x", "a2"), free("y", "b1"))
    full = replace(HOSTS[0], allocatable={**HOSTS[0].allocatable, "cpu": 1000})
    told = why(decide(table(*claims, STATIC, *disks), *two_sets(), nodes=(full, *HOSTS[1:])))
    assert told == (
        "Unsupported: not supported by Muster; where free volumes are enough in any case, the gang "
        'does not fit: volume claim "large", volume claim "small" (bind the claim first with a pod '
        "of its own, or use a class that binds immediately)"
    )


# ---- shared claims


def test_pods_that_share_a_claim_go_where_all_its_volumes_are() -> None:
    """They need not wait for each other: whichever volume it gets, it is reached from there."""
    known = table(waiting(), STATIC, free("v", terms=IN_A), free("w", terms=IN_A))
    pods = group("w", 6, mounting("data"))
    assert placed(decide(known, HEAD, pods)) == [(0, "a1", 1), (0, "a1", 3), (0, "a2", 3)]


def test_where_volumes_differ_the_pods_that_share_a_claim_go_to_one_node() -> None:
    known = table(waiting(), STATIC, free("v", terms=IN_A), free("w", terms=IN_B))
    assert placed(decide(known, group("w", 4, mounting("data"))))[0][0] == 0
    assert len(where(decide(known, group("w", 4, mounting("data"))))) == 1
    assert "no single node holds" in why(decide(known, group("w", 5, mounting("data"))))


def test_a_shared_claim_is_one_claim() -> None:
    known = table(waiting(), waiting("more"), STATIC, free("v"), free("w"))
    sets = (HEAD, group("w", 3, mounting("data", "more")), group("x", 2, mounting("more")))
    assert isinstance(decide(known, *sets), Admitted)


# ---- beside others


def test_a_later_gang_takes_no_volume_on_which_an_earlier_one_counts() -> None:
    """The earlier gang counts on the disk of a1; the later one, on a1, might be bound to it."""
    early, late = waiting("early"), waiting("late")
    wide = free("w", terms=(NodeTerm((require(HOST, "In", "a1", "b1"),)),))
    known = table(early, late, STATIC, free("v", "a1"), wide, replace(wide, name="x"))
    pods = group("head", 1, mounting("late"))
    assert where(decide(known, pods, nodes=HOSTS))
    assert FEW in why(decide(known, pods, nodes=HOSTS, assumed=[(TEAM, "early")]))
    known.put(free("y", "a1"))
    assert where(decide(known, pods, nodes=HOSTS, assumed=[(TEAM, "early")]))


def test_of_two_gangs_of_a_cycle_one_gets_the_only_volume() -> None:
    known = table(waiting("small"), waiting("large"), STATIC, free("v"))
    gangs = [with_members(gang(name, pods)) for name, pods in zip("gh", two_sets(), strict=True)]
    first, second = run_cycle(gangs, columns(*NODES), volumes=Volumes(known))
    assert where(first.verdict)
    assert FEW in why(second.verdict)


def test_the_claim_of_a_pod_on_a_node_counts_until_it_is_seen_bound() -> None:
    known = table(waiting(), waiting("other"), STATIC, free("v"))
    known.use(TEAM, [Mount("other")], "a1", +1)
    assert FEW in why(decide(known, HEAD))
    known.put(waiting("other", volume="w", bound=True))
    assert where(decide(known, HEAD))


def test_surplus_leaves_the_minimum_its_volumes() -> None:
    claims = [waiting(f"w-{at}-s", owner=f"u{at}") for at in range(3)]
    own = {"w": [Mount(each.name, "s", each.owner) for each in claims]}
    units = tuple((group("w", 1, ephemeral("s")),) for _ in range(2))
    known = table(*claims, STATIC, free("v"), free("w"))
    verdict = decide(known, group("w", 1, ephemeral("s")), surplus=units, mounts=own)
    assert isinstance(verdict, Admitted)
    assert verdict.units == (0,)


# ---- classes with a provisioner, and volumes that are kept


def test_a_volume_that_is_kept_for_a_claim_counts_before_its_class_makes_one() -> None:
    """The controller of volumes binds the two without a pod."""
    kept = free("v", open=False, claim=(TEAM, "data"), terms=IN_B)
    assert where(decide(table(waiting(), WAITING, kept), group("w", 3, mounting("data")))) == {"b1"}
    selected = waiting(selected="a2")
    assert where(decide(table(selected, WAITING, kept), HEAD)) == {"a2"}


def test_a_free_volume_may_be_where_its_class_makes_none() -> None:
    """Then it is not certain that the gang does not fit."""
    only_b = StorageClass("wait", DISK, waits=True, topologies=IN_B)
    known = table(waiting(), only_b, free("v", "a1"))
    assert where(decide(known, HEAD, nodes=HOSTS)) == {"b1"}
    assert "where free volumes are enough" in why(decide(known, HEAD, nodes=HOSTS[:2]))


def test_disks_made_by_hand_count_against_the_limit_of_their_driver() -> None:
    """A pod that comes after the first finds the claim bound, and its disk counted."""
    limits = [Limits(name, ((DISK, at),)) for name, at in (("a1", 0), ("a2", 1), ("b1", 0))]
    disk = free("v", driver=DISK, handle="1")
    assert where(decide(table(waiting(), STATIC, disk, *limits), HEAD)) == {"a2"}
    kept = replace(disk, open=False, claim=(TEAM, "data"))
    assert where(decide(table(waiting(), STATIC, kept, *limits), HEAD)) == {"a2"}


def test_a_claim_bound_by_hand_stands_beside_one_that_waits() -> None:
    """A volume without a class on one side, one that is to be made or is free on the other."""
    pods = group("w", 4, mounting("data", "scratch"))
    facts = (bound(), Volume("pv", terms=IN_B), waiting("scratch"))
    known = table(*facts, STATIC, free("v"))
    assert where(decide(known, pods)) == {"b1"}
    assert where(decide(table(*facts, WAITING), pods)) == {"b1"}
