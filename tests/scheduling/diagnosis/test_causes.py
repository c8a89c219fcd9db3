"""Every cause is put in words, and is known to be undecided or unsupported without them."""

from typing import get_args

import pytest

from scheduling.devices.outcome import Doubt, NotAllocated
from scheduling.devices.outcome import Refusal as Refused
from scheduling.diagnosis.causes import (
    AwaitsBinding,
    Cause,
    DevicesUndecided,
    DevicesUnforeseen,
    DoesNotFit,
    Domain,
    EqualPodsDiffer,
    FitsUnpinned,
    InDomain,
    NoDevices,
    NoDomain,
    NoDomainLeft,
    NoLabel,
    NotModelled,
    NoWay,
    ReachUnknown,
    ReplicasCrowded,
    ReplicasShort,
    Scattered,
    SearchEnded,
    SharedDisksCounted,
    TooManyKinds,
    TooManyPorts,
    VolumesUnforeseen,
    groups_of,
    is_open,
    is_unsupported,
)
from scheduling.diagnosis.explain import explain
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.pod_topology_spread import Lack
from scheduling.filters.volumes.node_volume_limits import SharedDisk
from scheduling.model.pod import Mount
from scheduling.model.verdict import MESSAGE_LIMIT, Reason
from tests.builders import GPU, columns, group, node, shape
from tests.scheduling.diagnosis.test_refusals import with_claims
from tests.scheduling.filters.test_pod_topology_spread import spread, spreading

GROUPS = (group("w", 3, shape(gpu=1)),)
HELD = (group("w", 2, shape(gpu=1)),)
ROOM = FreeCapacity.of(columns(node("n", gpu=2)))
OFFERED = FreeCapacity.of(with_claims(columns(node("n")), GPU))
"""Nodes that may give the device by a class."""

RACK = Domain(("rack",), ("r1",), "the workers")
NO_FIT, ENDED = DoesNotFit(GROUPS, ROOM), SearchEnded(GROUPS, ROOM)
CAUSES: tuple[Cause, ...] = (
    NotModelled((group("w", 1, shape(unsupported=("hostUsers (leave it out)",))),)),
    TooManyKinds(300, are_constrained=False),
    TooManyPorts(200),
    EqualPodsDiffer("w: a selector matches some"),
    AwaitsBinding(),
    NO_FIT,
    DoesNotFit(GROUPS, OFFERED),
    DoesNotFit(GROUPS, ROOM, unit=HELD),
    ENDED,
    NoWay(HELD, {("w", HELD[0].shape): Lack(1)}, ROOM),
    FitsUnpinned((group("w", 2, spreading(spread(least=2))),)),
    InDomain(RACK, NO_FIT),
    InDomain(RACK, ENDED),
    NoDomain(RACK, NO_FIT, ("w",), is_given=False, about=HELD),
    NoDomain(RACK, ENDED, ("w",), is_given=False, about=HELD),
    NoDomain(RACK, DoesNotFit(GROUPS, OFFERED), ("w",), is_given=True, about=HELD),
    NoLabel(("rack",), "the workers"),
    Scattered(("rack",), (("r1",), ("r2",))),
    ReachUnknown("the pods that share a claim"),
    ReplicasShort(HELD, ("rack",), ROOM, ("w",), 2, 1, 2, 1, ("r1",), about=HELD),
    ReplicasCrowded(HELD, ("rack",), ROOM),
    NoDomainLeft(("rack",), 1, ("w",)),
    SharedDisksCounted((SharedDisk("disk.example", Mount("data")),)),
    VolumesUnforeseen(("data",)),
    NoDevices(GROUPS, ROOM, (GROUPS[0].shape,), (1,), ((NotAllocated(Refused.NO_DEVICES),),)),
    NoDevices(GROUPS, ROOM, (GROUPS[0].shape,), (3,), ((),)),
    *(
        NoDevices(GROUPS, ROOM, (GROUPS[0].shape,), (0,), ((NotAllocated(each, "gpu"),),))
        for each in Refused
    ),
    DevicesUnforeseen("counters of partitionable devices"),
    *(DevicesUndecided(GROUPS, ROOM, each) for each in Doubt),
)


def test_no_cause_is_left_out() -> None:
    assert {type(cause) for cause in CAUSES} == {*get_args(Cause)}


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: type(cause).__name__)
def test_what_a_search_goes_by_agrees_with_the_reason(cause: Cause) -> None:
    refusal = explain(cause)
    assert is_open(cause) is (refusal.reason is Reason.UNDECIDED)
    assert is_unsupported(cause) is (refusal.reason is Reason.UNSUPPORTED)
    assert 0 < len(refusal.message) <= MESSAGE_LIMIT


def test_the_groups_are_those_of_the_domain_that_a_cause_names() -> None:
    tried = NoDomain(RACK, NO_FIT, ("w",), is_given=False, about=HELD)
    assert groups_of(tried) == groups_of(InDomain(RACK, tried)) == HELD
    assert groups_of(NO_FIT) == groups_of(InDomain(RACK, NO_FIT)) == ()
