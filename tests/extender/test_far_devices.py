"""A pod of others leaves the devices of several nodes that a gang is to get on any of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.filter import DEVICES, filter_nodes
from extender.ledger import Ledger
from extender.memory.in_flight import InFlightPods
from extender.memory.in_flight_room import NONE_IN_FLIGHT, InFlight
from extender.unscheduled_pods import UnscheduledPods
from extender.wire.node_lists import NodeList
from kube.devices.device_classes import device_class
from kube.devices.resource_claims import resource_claim
from kube.devices.resource_slices import ReadSlice, resource_slice
from tests.extender.claimed import ONE, claiming, put_claim, put_slice, see_all, worker
from tests.extender.worlds import TEAM, Json, as_gang, as_node, as_watched_pod, gang, node, pod
from tests.kube.devices.objects import GPU, claim_spec, decoded, request

NIC = "nic.example.com"
ONE_NIC, TWO_NICS = (claim_spec(request(deviceClassName=NIC, count=count)) for count in (1, 2))
ABC = ["a", "b", "c"]
ALL = {"allNodes": True}
FIRST_TWO = {
    "nodeSelector": {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
            for name in ("a", "b")
        ]
    }
}


def put_fabric(known: Ledger, devices: int, reached: Json, generation: int = 1) -> None:
    """Devices that nodes reach together."""
    pool = {"name": "fabric", "generation": generation, "resourceSliceCount": 1}
    found = [{"name": f"{n}"} for n in range(devices)]
    spec = {"driver": NIC, "pool": pool, "devices": found, **reached}
    known.devices.put(resource_slice(decoded("fabric", spec)))


def of_driver(name: str) -> Json:
    return {"selectors": [{"cel": {"expression": f'device.driver == "{name}"'}}]}


def a_gang_on_the_fabric(devices: int = 1, reached: Json = FIRST_TWO, slots: int = 1) -> Ledger:
    """Nodes a, b and c; a gang is to get devices of the fabric on a."""
    known = Ledger()
    for each in ABC:
        known.put_node(as_node(node(each)))
        put_slice(known, each, "0")
    for name in (GPU, NIC):
        known.devices.put(device_class(decoded(name, of_driver(name))))
    put_fabric(known, devices, reached)
    known.put_gang(as_gang(gang(slots={"a": slots}, gpu=0)))
    for at in range(slots):
        known.put_pod(as_watched_pod(worker(f"w{at}")))
        put_claim(known, f"w{at}", ONE_NIC)
    see_all(known)
    return known


def kept(
    known: Ledger, spec: Json = ONE_NIC, in_flight: InFlight = NONE_IN_FLIGHT, name: str = "new"
) -> set[str]:
    """The nodes that a stranger with such a claim is kept off."""
    put_claim(known, name, spec)
    asked = as_watched_pod(claiming(name))
    answer = filter_nodes(asked, NodeList(ABC), known.snapshot(), in_flight)
    assert set(answer.unresolvable.values()) <= {DEVICES}
    assert not answer.failed
    return set(answer.unresolvable)


def test_no_pod_takes_them_from_another_node() -> None:
    known = a_gang_on_the_fabric(devices=1)
    assert kept(known) == {"a", "b"}, "c does not reach them"
    assert kept(known, ONE) == set(), "the GPUs of the nodes are no one's"


def test_it_passes_where_enough_are_left() -> None:
    known = a_gang_on_the_fabric(devices=3, slots=2)
    assert kept(known) == set()
    assert kept(known, TWO_NICS) == {"a", "b"}


def test_what_is_decided_on_several_nodes_counts_together() -> None:
    known = a_gang_on_the_fabric(devices=3, reached=ALL)
    known.put_gang(as_gang(gang(slots={"a": 1, "b": 2}, gpu=0)))
    assert kept(known) == {"a", "b", "c"}
    put_fabric(known, 4, ALL, generation=2)
    assert kept(known) == set()


def test_pods_in_flight_count_wherever_they_are() -> None:
    known = a_gang_on_the_fabric(devices=2)
    in_flight = InFlightPods(settle=0.0, keep=60.0, limit=100)
    put_claim(known, "first", ONE_NIC)
    first = as_watched_pod(claiming("first"))
    passed = filter_nodes(first, NodeList(["b"]), known.snapshot(), NONE_IN_FLIGHT)
    assert passed.passed == ["b"]
    in_flight.answered("uid-first", passed.remember, 0.0)
    assert kept(known, in_flight=in_flight.view_for("uid-new", 0.0)) == {"a", "b"}
    in_flight.settled("uid-first")
    assert kept(known, in_flight=in_flight.view_for("uid-new", 0.0)) == set()
    known.put_pod(as_watched_pod(claiming("first", on="b")))
    assert kept(known) == {"a", "b"}, "it is bound, and its claim does not show it yet"


def test_a_member_in_flight_counts_once() -> None:
    known = a_gang_on_the_fabric(devices=2)
    released = as_watched_pod(worker("w0", to="a"))
    known.put_pod(released)
    in_flight = InFlightPods(settle=0.0, keep=60.0, limit=100)
    passed = filter_nodes(released, NodeList(ABC), known.snapshot(), NONE_IN_FLIGHT)
    in_flight.answered("uid-w0", passed.remember, 0.0)
    assert kept(known, in_flight=in_flight.view_for("uid-new", 0.0)) == set()


def given(known: Ledger, name: str, device: str) -> None:
    """The claim of a member shows what it was allocated."""
    owner = {"kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True}
    result = {"request": "gpu", "driver": NIC, "pool": "fabric", "device": device}
    status = {"allocation": {"devices": {"results": [result]}}}
    meta = {"namespace": TEAM, "ownerReferences": [owner]}
    known.devices.put(resource_claim(decoded(f"of-{name}", ONE_NIC, status, **meta)))


def test_what_members_have_counts_once_and_the_rest_is_free() -> None:
    known = a_gang_on_the_fabric(devices=3, slots=2)
    known.put_pod(as_watched_pod(worker("w0", on="a")))
    assert kept(known, TWO_NICS) == {"a", "b"}
    assert kept(known) == set()
    given(known, "w0", "0")
    assert kept(known, TWO_NICS) == {"a", "b"}
    assert kept(known) == set()
    known.put_pod(as_watched_pod(worker("w1", on="a")))
    given(known, "w1", "1")
    assert kept(known, TWO_NICS) == set(), "no one is to get any"


def lose_a_list(known: Ledger) -> None:
    known.devices.lose_sight(ReadSlice)


def lose_a_claim(known: Ledger) -> None:
    known.devices.drop(resource_claim(decoded("of-w0", ONE_NIC, {}, namespace=TEAM)))


@pytest.mark.parametrize(("lost", "off"), [(lose_a_list, {*ABC}), (lose_a_claim, {"a", "b"})])
def test_what_is_not_known_keeps_it_off(lost: Callable[[Ledger], None], off: set[str]) -> None:
    known = a_gang_on_the_fabric(devices=5)
    assert kept(known) == set()
    lost(known)
    assert kept(known) == off


def test_where_counting_does_not_say_it_the_pod_is_kept_off() -> None:
    known = a_gang_on_the_fabric(devices=5)
    every = claim_spec(request(deviceClassName=NIC, allocationMode="All"))
    assert kept(known, every) == {"a", "b"}


def test_a_refused_pod_is_woken_on_the_nodes_that_reach_them() -> None:
    known, unscheduled = a_gang_on_the_fabric(devices=1), UnscheduledPods()
    assert kept(known) == {"a", "b"}
    unscheduled.woken()
    unscheduled.note(as_watched_pod(claiming("new")))
    known.devices.take_news()
    put_fabric(known, 2, FIRST_TWO, generation=2)
    nodes = known.devices.take_news()
    assert "b" in nodes
    assert unscheduled.any_fits({"b"}, known.snapshot(), NONE_IN_FLIGHT)


def test_a_gang_on_devices_of_its_own_node_keeps_none_on_others() -> None:
    """Nor is any other node looked at."""
    known = a_gang_on_the_fabric(devices=1)
    put_claim(known, "w0", ONE)
    assert kept(known, ONE) == {"a"}
    assert kept(known) == set()
    plain = as_watched_pod(pod("plain"))
    assert filter_nodes(plain, NodeList(ABC), known.snapshot()).passed == ABC
