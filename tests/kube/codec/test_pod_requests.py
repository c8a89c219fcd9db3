"""The requests of a pod are counted as kube-scheduler counts them, with side-cars and resizes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.codec.fields import InvalidObject
from kube.codec.pod import pod_shape
from kube.codec.pod_requests import pod_used
from kube.objects.core import Pod
from scheduling.model.pod import PodShape
from scheduling.model.shape.host_ports import WHOLE
from tests.kube.codec.pods import Json, container, pod


def test_head_with_autoscaler_side_car() -> None:
    head = pod(
        {
            "containers": [
                container("ray-head", cpu="1", memory="2Gi"),
                container("autoscaler", cpu="500m", memory="512Mi"),
            ]
        }
    )
    assert pod_shape(head).requests == (("cpu", 1500), ("memory", 2560 * 2**20), ("pods", 1))


def test_worker_whose_init_container_asks_for_more_than_it_does() -> None:
    worker = pod(
        {
            "initContainers": [container("wait-gcs-ready", cpu="200m", memory="256Mi")],
            "containers": [container("ray-worker", cpu="100m", **{"nvidia.com/gpu": "8"})],
        }
    )
    assert dict(pod_shape(worker).requests) == {
        "cpu": 200, "memory": 256 * 2**20, "nvidia.com/gpu": 8, "pods": 1,
    }  # fmt: skip


def test_restartable_init_containers_add_to_what_runs() -> None:
    spec = {
        "initContainers": [container("proxy", "Always", cpu="1"), container("setup", cpu="3")],
        "containers": [container("main", cpu="2")],
        "overhead": {"cpu": "250m"},
    }
    assert dict(pod_shape(pod(spec)).requests) == {"cpu": 4250, "pods": 1}


def test_pod_level_requests_replace_the_sum() -> None:
    spec = {"containers": [container(cpu="2")], "resources": {"requests": {"cpu": "1"}}}
    assert dict(pod_shape(pod(spec)).requests) == {"cpu": 1000, "pods": 1}


def test_numbers_are_quantities_too() -> None:
    spec = {"containers": [container(cpu=2, memory=1.5e3)]}
    assert dict(pod_shape(pod(spec)).requests) == {"cpu": 2000, "memory": 1500, "pods": 1}


def test_a_pod_that_asks_for_nothing_takes_a_slot() -> None:
    assert pod_shape(pod({"containers": [container(cpu="0")]})) == PodShape((("pods", 1),))


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
@pytest.mark.parametrize("text", ["one", "", "-1", "1Ki1", "9.3E", "1e400", 1e300])
def test_bad_quantity_names_field_value_and_what_is_allowed(kind: str, text: Any) -> None:
    spec = {kind: [container(), container(cpu="1", memory=text)]}
    with pytest.raises(InvalidObject) as caught:
        pod_shape(pod(spec))
    assert caught.value.field == f"spec.{kind}[1].resources.requests[memory]"
    assert caught.value.value == text
    assert "500m" in caught.value.allowed
    assert str(caught.value).startswith(f'{caught.value.field}: "{text}" is not valid; allowed: ')


def test_bad_overhead_and_pod_level_requests_are_named() -> None:
    for field, spec in (
        ("spec.overhead[cpu]", {"overhead": {"cpu": "x"}}),
        ("spec.resources.requests[cpu]", {"resources": {"requests": {"cpu": "x"}}}),
    ):
        with pytest.raises(InvalidObject) as caught:
            pod_shape(pod(spec))
        assert caught.value.field == field


def test_a_sum_beyond_64_bits_is_invalid() -> None:
    spec = {"containers": [container(memory="8E"), container(memory="7E")]}
    with pytest.raises(InvalidObject, match="fits 64 bits"):
        pod_shape(pod(spec))


HOST_PORT = {"hostPort": 80, "containerPort": 80, "protocol": "TCP"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [{"ports": [HOST_PORT]}]}, {"hostPort:TCP:80": WHOLE}),
        (
            {"containers": [{"ports": [{**HOST_PORT, "hostIP": "10.0.0.1"}]}]},
            {"hostPort:TCP:80": 1, "hostPort:TCP:80:10.0.0.1": 1},
        ),
        (
            {"initContainers": [{"ports": [HOST_PORT], "restartPolicy": "Always"}]},
            {"hostPort:TCP:80": WHOLE},
        ),
        ({"initContainers": [{"ports": [HOST_PORT]}]}, {}),  # gone before the pod runs
        ({"containers": [{"ports": [{"containerPort": 80}]}]}, {}),
    ],
)
def test_host_ports_are_asked_for_and_held(spec: Json, expected: Json) -> None:
    found = pod(spec)
    assert dict(pod_shape(found).requests) == pod_used(found) == {**expected, "pods": 1}
    assert not pod_shape(found).unsupported


def crowded(ports: int) -> Json:
    return {"containers": [{"ports": [{"hostPort": at + 1} for at in range(ports)]}]}


def test_fifty_host_ports_are_supported() -> None:
    found = pod_shape(pod(crowded(50)))
    assert (found.unsupported, len(found.requests)) == ((), 51)


def test_more_host_ports_are_named_and_read_of_pods_that_stand_only() -> None:
    """Each costs a look at the nodes where it is taken, and a pod may name thousands."""
    found = pod(crowded(51))
    shape = pod_shape(found)
    assert shape.unsupported == ("more than 50 host ports (use fewer)",)
    assert shape.requests == (("pods", 1),)
    assert len(pod_used(found)) == 52


def resizing(asked: str, allocated: str, actuated: str, reason: str = "") -> Pod:
    status: Json = {
        "name": "c",
        "allocatedResources": {"cpu": allocated},
        "resources": {"requests": {"cpu": actuated}},
    }
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return pod(
        {"containers": [container(cpu=asked)]},
        {"containerStatuses": [status], "conditions": conditions if reason else []},
    )


@pytest.mark.parametrize(
    ("found", "cpu"),
    [
        (pod({"containers": [container(cpu="1")]}), 1000),
        (resizing("1", "2", "3"), 3000),
        (resizing("1", "3", "2"), 3000),
        (resizing("3", "1", "2"), 3000),
        (resizing("3", "1", "2", "Deferred"), 3000),
        (resizing("3", "1", "2", "Infeasible"), 2000),
        (resizing("3", "2", "1", "Infeasible"), 2000),
    ],
)
def test_a_pod_being_resized_takes_the_most_of_its_sizes(found: Pod, cpu: int) -> None:
    assert pod_used(found) == {"cpu": cpu, "pods": 1}


def test_without_reported_resources_the_spec_counts() -> None:
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "9"}}]}
    assert pod_used(pod({"containers": [container(cpu="1")]}, status))["cpu"] == 1000


def test_status_of_init_containers_counts_only_for_side_cars() -> None:
    reported = {"resources": {"requests": {"cpu": "8"}}}
    for restart, cpu in (("Always", 8000), (None, 2000)):
        found = pod(
            {"initContainers": [container("i", restart, cpu="2")]},
            {"initContainerStatuses": [{"name": "i", **reported}]},
        )
        assert pod_used(found)["cpu"] == cpu


def test_pod_level_resize() -> None:
    found = pod(
        {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "2"}}},
        {"allocatedResources": {"cpu": "4"}, "resources": {"requests": {"cpu": "3"}}},
    )
    assert pod_used(found)["cpu"] == 4000


quantities = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.integers(0, 99).map(str), max_size=3
)


@given(st.lists(quantities, max_size=3), st.lists(st.tuples(quantities, st.booleans()), max_size=3))
def test_a_pod_uses_what_it_asked_for(mains: list[Json], inits: list[tuple[Json, bool]]) -> None:
    found = pod(
        {
            "containers": [container(**each) for each in mains],
            "initContainers": [container("i", "Always" if on else None, **r) for r, on in inits],
        }
    )
    used = {name: amount for name, amount in pod_used(found).items() if amount}
    assert tuple(sorted(used.items())) == pod_shape(found).requests
