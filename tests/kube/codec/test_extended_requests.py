"""What a pod asks for as extended resources, as kube-scheduler claims it container by container."""

import pytest

from kube.codec.devices.extended_requests import extended_requests
from tests.kube.codec.pods import Json, container, pod

GPU, NIC = "example.com/gpu", "example.com/nic"


def asked(*containers: Json, init: tuple[Json, ...] = ()) -> list[tuple[str, str, int]]:
    found = extended_requests(pod({"containers": [*containers], "initContainers": [*init]}))
    return [(each.resource, each.name, each.number) for each in found]


def asking(restart: str | None = None, **amounts: int) -> Json:
    named = {"gpu": GPU, "nic": NIC}
    return container("c", restart, **{named.get(each, each): n for each, n in amounts.items()})


def test_a_request_is_named_after_its_container_and_its_place_among_all_that_this_asks_for() -> (
    None
):
    found = asked(asking(cpu=1), asking(cpu=1, gpu=2, nic=1, memory=1))
    assert found == [(GPU, "container-1-request-1", 2), (NIC, "container-1-request-2", 1)]


def test_requests_come_in_the_order_of_their_names_as_text() -> None:
    found = asked(*(asking(gpu=n + 1) for n in range(11)))
    assert [n for _, _, n in found] == [1, 2, 11, *range(3, 11)]


@pytest.mark.parametrize(
    ("init", "main", "claimed"),
    [
        ((asking(gpu=3),), (asking(gpu=2),), {"0": 1, "1": 2}),
        ((asking(gpu=2),), (asking(gpu=2),), {"1": 2}),
        ((asking(gpu=1), asking(gpu=4)), (asking(gpu=2),), {"1": 2, "2": 2}),
        ((asking(gpu=4), asking(gpu=4)), (asking(gpu=1),), {"0": 3, "2": 1}),
        # A side-car before an init container that ends is none that this may use.
        ((asking("Always", gpu=1), asking(gpu=2)), (asking(gpu=1),), {"0": 1, "1": 1, "2": 1}),
        ((asking(gpu=2), asking("Always", gpu=1)), (asking(gpu=1),), {"1": 1, "2": 1}),
    ],
)
def test_init_containers_that_end_use_what_later_ones_have(
    init: tuple[Json, ...], main: tuple[Json, ...], claimed: dict[str, int]
) -> None:
    found = asked(*main, init=init)
    assert {name.split("-")[1]: n for _, name, n in found} == claimed


def test_what_is_no_extended_resource_is_left_out_and_a_class_by_its_name_is_one() -> None:
    implicit = "deviceclass.resource.kubernetes.io/gpu"
    asking = dict.fromkeys(("kubernetes.io/batteries", "hugepages-2Mi", implicit), 1)
    found = asked({"name": "c", "resources": {"requests": asking}})
    assert found == [(implicit, "container-0-request-0", 1)]


def test_nothing_is_asked_by_a_pod_whose_amounts_cannot_be_read() -> None:
    assert asked({"name": "c", "resources": {"requests": {GPU: "many"}}}) == []
