"""Claims that wait for volumes made by hand: what suits them, and what is taken already."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from scheduling.cycle import run_cycle
from scheduling.model import Mount, NodeTerm
from scheduling.resources import LARGEST_SIZE
from scheduling.static import Pool, Want, own_size
from scheduling.stock import MOST_OF_GANG, MOST_ROWS
from scheduling.storage import Claim, Fact, Volume
from scheduling.verdict import Admitted
from scheduling.volumes import Volumes
from tests.builders import columns, gang, group, node, require
from tests.scheduling.test_volumes import (
    HEAD,
    NODES,
    STATIC,
    TEAM,
    decide,
    ephemeral,
    mounting,
    table,
    waiting,
    where,
    why,
    with_members,
)

HOST = "kubernetes.io/hostname"
HOSTS = tuple(replace(each, labels={**each.labels, HOST: each.name}) for each in NODES)
HERE = ("ReadWriteOnce",)


def disk(name: str, on: str, size: int = 10, **more: object) -> Volume:
    terms = (NodeTerm((require(HOST, "In", on),)),)
    made = Volume(name, "wait", open=True, size=size, modes=HERE, terms=terms)
    return replace(made, **more)  # type: ignore[arg-type]


def shared(name: str, size: int = 10, **more: object) -> Volume:
    return replace(disk(name, ""), size=size, terms=None, **more)  # type: ignore[arg-type]


def asking(name: str = "data", size: int = 5, **more: object) -> Claim:
    return replace(waiting(name, size=size, modes=HERE), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("volume", "suits"),
    [
        (disk("v", "a2"), True),
        (disk("v", "a2", modes=("ReadOnlyMany", "ReadWriteOnce")), True),
        (disk("v", "a2", modes=("ReadWriteMany",)), False),
        (disk("v", "a2", size=4), False),
        (disk("v", "a2", kind="Block"), False),
        (disk("v", "a2", attributes="gold"), False),
        (disk("v", "a2", storage_class="other"), False),
        (disk("v", "a2", open=False), False),
        (disk("v", "nowhere"), False),
        (disk("v", "a2", terms=()), False),
        (disk("v", "a2", terms=(NodeTerm((require(HOST, "Is", "a2"),)),)), False),
        (disk("v", "a2", terms=(NodeTerm((require(HOST, "NotIn", "a1", "b1"),)),)), True),
    ],
)
def test_a_volume_suits_or_not(volume: Volume, suits: bool) -> None:
    verdict = decide(table(asking(), STATIC, volume), HEAD, nodes=HOSTS)
    assert isinstance(verdict, Admitted) is suits
    assert not suits or where(verdict) == {"a2"}


def test_a_selector_picks_volumes_by_their_labels() -> None:
    claim = asking(selector=(require("disk", "In", "ssd"),))
    plain, fast = disk("v", "a1"), disk("w", "b1", labels=(("disk", "ssd"),))
    assert where(decide(table(claim, STATIC, plain, fast), HEAD, nodes=HOSTS)) == {"b1"}
    assert Want("c", selector=(require("a", "Exists"),)).suits(Pool("c", labels=(("a", ""),)))


def test_a_want_suits_its_own_class_only() -> None:
    assert Want("c", HERE).suits(Pool("c", HERE))
    assert not Want("c", HERE).suits(Pool("d", HERE))


def test_a_refusal_says_how_many_volumes_there_are() -> None:
    claims = [waiting(f"w-{at}-s", owner=f"u{at}", size=5, modes=HERE) for at in range(4)]
    own = {"w": [Mount(each.name, "s", each.owner) for each in claims]}
    known = table(*claims, STATIC, disk("v", "a1"), disk("w", "a1"), disk("x", "b1"))
    assert why(decide(known, group("w", 4, ephemeral("s")), nodes=HOSTS, mounts=own)) == (
        'InsufficientResources: 3 of 4 w fit: each needs 1 free volume of storage class "wait" '
        "(VolumeBinding) on one node, the gang 4 in all; 3 are free, and those that fit leave 0"
    )
    few = decide(known, group("w", 3, ephemeral("s")), nodes=HOSTS, mounts=own)
    assert where(few) == {"a1", "b1"}


@pytest.mark.parametrize(
    ("kept", "goes"),
    [
        (disk("v", "a2", claim=(TEAM, "data")), True),
        (disk("v", "a2", claim=(TEAM, "data"), claim_uid="u"), True),
        (disk("v", "a2", claim=(TEAM, "data"), claim_uid="earlier"), False),
        (disk("v", "a2", claim=("others", "data")), False),
        (disk("v", "a2", claim=(TEAM, "data"), deleted=True), False),
        (disk("v", "a2", claim=(TEAM, "data"), size=4), False),
        (disk("v", "a2", claim=(TEAM, "data"), modes=("ReadOnlyMany",)), True),
        (disk("v", "a2", claim=(TEAM, "data"), kind="Block"), False),
    ],
)
def test_a_volume_that_is_kept_for_a_claim_is_the_only_one(kept: Volume, goes: bool) -> None:
    """Where it will not do, any other that is free; access modes and labels are not asked."""
    known = table(asking(uid="u"), STATIC, replace(kept, open=False), disk("w", "b1"))
    assert where(decide(known, HEAD, nodes=HOSTS)) == ({"a2"} if goes else {"b1"})
    two = group("w", 2, mounting("data"))
    assert isinstance(decide(known, two, nodes=HOSTS), Admitted) is goes


@pytest.mark.parametrize(
    "row", ["volume:", "volume:wait:x:5", "volume:wait:x:=", "volume:wait:x:=z", f"v:={'9' * 5000}"]
)
def test_a_row_that_somebody_wrote_by_hand_is_of_no_size(row: str) -> None:
    """It may come from a status that was edited, and must not end the loop."""
    assert own_size(row) is None
    assert own_size(Want("wait").own_row(2**63 - 1)) == 2**63 - 1


def test_what_is_on_its_way_is_not_promised_again() -> None:
    """Pods that are there, with claims not seen to be bound, and pods that have room."""
    known = table(asking(), asking("more"), STATIC, disk("v", "a1"), disk("w", "b1"))
    known.use(TEAM, [Mount("more")], "a1", +1)
    assert where(decide(known, HEAD, nodes=HOSTS)) == {"b1"}
    known.use(TEAM, [Mount("more")], "a1", -1)
    known.use(TEAM, [Mount("missing")], "a1", +1)
    assert where(decide(known, HEAD, nodes=[HOSTS[0]])) == {"a1"}


def placed_beside(known: tuple[Fact, ...], held: Mapping[str, Mapping[str, int]]) -> set[str]:
    """Return where the head may go if this is promised."""
    volumes = Volumes(table(*known), lambda _: held)
    asked = with_members(gang("g", surplus=((HEAD,),)))
    return where(run_cycle([asked], columns(*HOSTS), volumes=volumes)[0].verdict)


def test_promises_count_by_the_sizes_of_their_claims() -> None:
    claim = asking(size=5)
    known = claim, STATIC, disk("v", "a1", size=7), disk("w", "a1", size=5)
    stem = claim.want.stem
    assert placed_beside(known, {claim.want.own_row(6): {"a1": 1}}) == {"a1"}
    assert placed_beside(known, {claim.want.own_row(6): {"a1": 2}}) == set()
    assert placed_beside(known, {claim.want.own_row(4): {"a1": 1}}) == {"a1"}
    assert placed_beside(known, {claim.want.own_row(4): {"a1": 2}}) == set()
    assert placed_beside(known, {f"{stem}4": {"a1": 2}, f"{stem}6": {"a1": 2}}) == {"a1"}
    another = replace(claim.want, kind="Block").own_row(1)
    assert placed_beside(known, {another: {"a1": 1}}) == set()
    elsewhere = replace(claim.want, storage_class="other").own_row(1)
    assert placed_beside(known, {elsewhere: {"a1": 9}}) == {"a1"}


def test_a_promise_of_a_size_that_is_not_counted_is_taken_for_the_next_above() -> None:
    """More sizes are promised than have rows; the claim of nine can only have the volume of ten."""
    claim, sizes = asking(size=10), range(1, MOST_OF_GANG + 2)
    disks = [disk(f"v{size}", "a1", size=size) for size in (*sizes[:-1], 10)]
    held = {claim.want.own_row(size): {"a1": 1} for size in sizes}
    spare = disk("spare", "a1", size=MOST_OF_GANG)
    assert placed_beside((claim, STATIC, spare, *disks), held) == set()
    assert placed_beside((claim, STATIC, spare, *disks, disk("w", "a1", size=10)), held) == {"a1"}


def test_volumes_of_several_nodes_go_to_those_that_are_counted() -> None:
    claim = asking(size=5)
    known = claim, STATIC, shared("v", 5), shared("w", 9)
    assert placed_beside(known, {}) != set()
    assert placed_beside(known, {claim.want.own_row(5): {"b1": 1}}) != set()
    assert placed_beside(known, {claim.want.own_row(5): {"b1": 2}}) == set()
    assert placed_beside(known, {claim.want.own_row(4): {"b1": 1}}) != set()
    busy = table(*known, asking("more"))
    busy.use(TEAM, [Mount("more")], "a1", +1)
    assert where(decide(busy, HEAD, nodes=HOSTS))
    busy.put(asking("other"))
    busy.use(TEAM, [Mount("other")], "a1", +1)
    assert why(decide(busy, HEAD, nodes=HOSTS)).startswith("Unsupported")


def test_claims_that_could_take_each_others_volumes_are_named() -> None:
    other = asking("more", modes=("ReadOnlyMany",))
    both = disk("v", "a1", modes=("ReadOnlyMany", "ReadWriteOnce"))
    two = group("head", 1, mounting("data", "more"))
    told = why(decide(table(asking(), other, STATIC, both), two, nodes=HOSTS))
    assert "beside one that asks differently for the volumes" in told
    apart = disk("w", "a1", modes=("ReadOnlyMany",)), disk("v", "a1")
    assert where(decide(table(asking(), other, STATIC, *apart), two, nodes=HOSTS)) == {"a1"}


def test_two_gangs_that_ask_differently_wait_for_each_other() -> None:
    other = asking("more", modes=("ReadOnlyMany",))
    both = ("ReadOnlyMany", "ReadWriteOnce")
    volumes = [disk(name, "a1", modes=both) for name in "vw"]
    known = Volumes(table(asking(), other, STATIC, *volumes))
    gangs = [
        with_members(gang("g", HEAD)),
        with_members(gang("h", group("x", 1, mounting("more")))),
    ]
    first, second = run_cycle(gangs, columns(*HOSTS), volumes=known)
    assert where(first.verdict) == {"a1"}
    assert "must wait for a gang that takes volumes" in why(second.verdict)


@pytest.mark.parametrize(
    ("claims", "volumes", "said"),
    [
        (("data", "data"), [disk("v", "a1")], "mounted 2 times by a pod"),
        (("data",), [disk("v", "a1", plugin="kubernetes.io/gce-pd", moved=())], "took over"),
        (("data", "more"), [shared("v"), disk("w", "a1", terms=(
            NodeTerm((require("topology.kubernetes.io/zone", "In", "a"),)),))],
         "each of several nodes, of storage class"),
    ],
)  # fmt: skip
def test_what_cannot_be_promised_is_named(
    claims: tuple[str, ...], volumes: list[Volume], said: str
) -> None:
    shape = mounting(*dict.fromkeys(claims))
    asked = with_members(gang("g", group("head", 1, shape)))
    [member] = asked.members
    mounts = tuple(Mount(each) for each in claims)
    asked = replace(asked, members=(member._replace(mounts=mounts),))
    known = Volumes(table(asking(), asking("more"), STATIC, *volumes))
    told = why(run_cycle([asked], columns(*HOSTS), volumes=known)[0].verdict)
    assert told.startswith("Unsupported")
    assert said in told


def test_a_claim_that_was_given_a_node_finds_nobody_to_make_its_volume() -> None:
    known = table(asking(selected="a1"), STATIC, disk("v", "a1"))
    assert "was given a node, and nobody makes volumes" in why(decide(known, HEAD, nodes=HOSTS))


def test_the_table_forgets_volumes_that_are_taken_or_gone() -> None:
    known = table(asking(), STATIC, disk("v", "a1"))
    assert where(decide(known, HEAD, nodes=HOSTS))
    known.put(disk("v", "a1", open=False, claim=("others", "x")))
    assert "finds no free volume" in why(decide(known, HEAD, nodes=HOSTS))
    known.put(disk("v", "a2"))
    assert where(decide(known, HEAD, nodes=HOSTS)) == {"a2"}
    known.drop(disk("v", "a2"))
    assert "finds no free volume" in why(decide(known, HEAD, nodes=HOSTS))


def test_a_node_that_comes_brings_its_volumes() -> None:
    known = table(asking(), STATIC, disk("v", "late"))
    assert "finds no free volume" in why(decide(known, HEAD, nodes=HOSTS))
    late = node("late", labels={HOST: "late"})
    assert where(decide(known, HEAD, nodes=[*HOSTS, late])) == {"late"}


def test_gangs_that_ask_in_too_many_ways_are_named_and_no_matter_to_others() -> None:
    """Each kind of claim costs a look at all nodes."""
    sizes = [asking(f"c{size}", size=size) for size in range(1, MOST_OF_GANG + 2)]
    known = table(*sizes, asking(size=2), STATIC, disk("v", "a1"))
    many = group("w", 1, mounting(*(each.name for each in sizes)))
    told = why(decide(known, many, nodes=HOSTS))
    assert "among too many kinds of claims, one for volumes of storage class" in told
    assert where(decide(known, HEAD, nodes=HOSTS)) == {"a1"}


def test_the_kinds_of_claims_of_all_gangs_are_bounded() -> None:
    claims = [asking(f"c{at}", kind=f"kind-{at}") for at in range(MOST_ROWS + 1)]
    known = Volumes(table(*claims, STATIC, disk("v", "a1", kind="kind-0")))
    gangs = [
        with_members(gang(f"g{at:02}", group("w", 1, mounting(each.name))))
        for at, each in enumerate(claims)
    ]
    decisions = run_cycle(gangs, columns(*HOSTS), volumes=known)
    assert where(decisions[0].verdict) == {"a1"}
    said = ["too many kinds" in why(each.verdict) for each in decisions[1:]]
    assert said == [False] * (MOST_ROWS - 1) + [True]


HUGE = 10**19  # more than 64 bits hold


@pytest.mark.parametrize(
    ("there", "asked", "fits"),
    [
        (HUGE, 5, True),
        (HUGE, 2**63 - 1, True),
        (5, HUGE, False),
        (5, LARGEST_SIZE, False),
        (HUGE, HUGE + 1, False),
    ],
)
@pytest.mark.parametrize(
    "make", [lambda size: disk("v", "a2", size), lambda size: shared("v", size)]
)
def test_sizes_beyond_64_bits_are_compared(
    make: Callable[[int], Volume], there: int, asked: int, fits: bool
) -> None:
    verdict = decide(table(asking(size=asked), STATIC, make(there)), HEAD, nodes=HOSTS)
    assert isinstance(verdict, Admitted) == fits


def test_a_claim_beyond_64_bits_that_is_promised_a_volume_is_counted() -> None:
    want = Want("wait", HERE)
    assert own_size(want.own_row(HUGE)) == HUGE
    assert own_size(want.own_row(LARGEST_SIZE)) == LARGEST_SIZE
