"""Disks that count against what a node attaches."""

from dataclasses import replace

from scheduling.cycle import next_cycle, run_cycle
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.pod import Mount
from scheduling.model.verdict import Admitted
from scheduling.model.volume import (
    Attachment,
    Limits,
    Volume,
)
from scheduling.queueing.queues import one_queue
from tests.builders import columns, gang, group, shape
from tests.scheduling.filters.volumes.claims import (
    DISK,
    HEAD,
    NODES,
    TEAM,
    WAITING,
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


def test_a_disk_that_pods_name_themselves_is_shared_like_one_of_a_claim() -> None:
    """An inline azureDisk, say: kube-scheduler counts it once on a node, whoever mounts it."""
    disk = Mount("", DISK, "d1")
    one = group("head", 1, replace(shape(cpu=1), volumes=(f"{DISK} d1",)))
    known = table(*limited(1, 0, 0))
    assert where(decide(known, one, mounts={"head": [disk]})) == {"a1"}
    known.use(TEAM, [disk], "a1", +1)
    assert f'disk "d1" of {DISK} (let fewer' in why(decide(known, one, mounts={"head": [disk]}))
    known.use(TEAM, [disk], "a1", -1)
    known.use(TEAM, [Mount("", DISK, "d2")], "a1", +1)
    said = why(decide(known, one, mounts={"head": [disk]}))
    assert said.startswith("InsufficientResources")


def test_a_refusal_for_good_is_not_kept_once_only_a_shared_disk_is_in_the_way() -> None:
    known = table(bound(), Volume("pv", driver=DISK, handle="1"), *limited(1, 1, 1))
    asked = with_members(gang("g", group("w", 4, mounting("data"))))
    full = columns(*NODES, used={each.name: {"cpu": 4000} for each in NODES})
    [refused], memory = next_cycle(one_queue([asked]), full, None, volumes=Volumes(known))
    assert why(refused.verdict).startswith("InsufficientResources")
    [after], _ = next_cycle(one_queue([asked]), columns(*NODES), memory, volumes=Volumes(known))
    assert why(after.verdict).startswith("Unsupported")
