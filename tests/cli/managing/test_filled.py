"""Forms begin with what an object has, and a mark says whether it is still as it was shown."""

from typing import Any

import pytest

from cli.managing.cluster import changed
from cli.managing.filled import cluster_form, queue_form
from cli.managing.forms import ClusterForm, GroupForm, QueueForm
from cli.managing.patches import state_of
from cli.managing.queue import changed_queue, new_queue
from tests.cli.managing.clusters import cluster, group, with_changes

FORM = ClusterForm(
    gang=True,
    queue="research",
    priority_class="high",
    topology_required="rack",
    expected_duration="2h",
    create_pods="when-admitted",
    autoscaler=True,
    idle_timeout_seconds=60,
    upscaling_mode="Default",
    ray_version="2.52.0",
    head=GroupForm(cpus="2", memory="8Gi", image="ray:1"),
    groups=(
        GroupForm(name="workers", replicas=2, min=0, max=4, hosts=2, cpus="4", gpus=8, gpu="a/gpu"),
    ),
)
QUEUE = QueueForm(
    parent="company",
    quota={"cpu": "8"},
    borrowing_limit={"cpu": "2"},
    lending_limit={"cpu": "1"},
    namespaces=("a", "b"),
    namespace_labels={"x": "y"},
    node_labels={"pool": "x"},
    ordering="FIFO",
    when_blocked="Backfill",
    stop="Hold",
    within_queue="Never",
    reclaim="Any",
    while_borrowing="Never",
    create_pods="Always",
)


def test_a_form_has_all_that_was_asked_for_and_changes_nothing() -> None:
    made = changed(cluster(), FORM)
    shown = cluster_form(made)
    for field in ClusterForm.__struct_fields__:
        asked = getattr(FORM, field)
        if field not in ("head", "groups") and asked is not None and asked != ():
            assert getattr(shown, field) == asked, field
    (workers,) = shown.groups
    assert (workers.name, workers.max, workers.hosts) == ("workers", 4, 2)
    assert (workers.gpus, workers.gpu, workers.cpus) == (8, "a/gpu", "4")
    assert shown.head is not None
    assert (shown.head.image, shown.head.memory) == ("ray:1", "8Gi")
    assert changed(made, shown) == made


def test_a_form_of_a_queue_has_all_that_was_asked_for_and_changes_nothing() -> None:
    made = new_queue("research", QUEUE)
    assert queue_form(made) == QUEUE
    assert changed_queue(made, queue_form(made)) == made


CHANGED: list[dict[str, Any]] = [
    {"spec__suspend": True},
    {"spec__rayVersion": "2.99.0"},
    {"metadata__labels__a": "b"},
    {"metadata__annotations__a": "b"},
    {"metadata__uid": "another"},
    {"metadata__deletionTimestamp": "now"},
]


@pytest.mark.parametrize("change", CHANGED)
def test_what_people_change_makes_it_another_state(change: dict[str, Any]) -> None:
    assert state_of(with_changes(cluster(), **change)) != state_of(cluster())


def test_a_status_makes_it_none_and_nor_does_rays_autoscaler() -> None:
    told = with_changes(cluster(), status__state="failed", metadata__resourceVersion="8")
    assert state_of(told) == state_of(cluster())
    fewer = group(replicas=1, scaleStrategy={"workersToDelete": ["a"]})
    auto = {"enableInTreeAutoscaling": True}
    assert state_of(cluster("train", fewer, **auto)) == state_of(cluster("train", group(), **auto))
    assert state_of(cluster("train", fewer)) != state_of(cluster("train", group()))
    bounds = cluster("train", group(maxReplicas=9), **auto)
    assert state_of(bounds) != state_of(cluster("train", group(), **auto))
