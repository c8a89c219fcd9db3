"""`muster fit` for those who may not read all."""

import pytest

from cli.endings import NOT_READ
from kube.objects import names
from tests.cli.fitting.asked import TENANT, gpu_queue, queue, room
from tests.cli.fitting.reader import answer, answers, fit, reader_of
from tests.coordinator.builders import (
    Json,
    foreign_pod,
    gang_of,
    group,
    node,
    ray_cluster,
)
from tests.coordinator.world import World


def test_without_nodes_the_quota_is_judged_and_the_rest_is_said() -> None:
    world = World(node("a", cpu=32), queue("q", quota={"cpu": 9}))
    world.create(gang_of("first", 4))
    world.settle(seconds=60)
    rights = {"forbidden": TENANT, "nowhere": ("deployments",)}
    result = fit(reader_of(world, **rights), gang_of("train", 4))
    (found,) = answers(result)
    assert (found["fits"], found["reason"]) == ("No", "QuotaExceeded")
    assert found["message"] == (
        "queue q uses 5 of its quota of 9 cpu and may take 4 more, and the gang needs 5"
    )
    assert found["largestThatFit"][0]["fit"] == 3
    result = fit(reader_of(world, **rights), gang_of("train", 3))
    assert answers(result)[0]["fits"] == "Unknown"
    assert result.exit_code == NOT_READ
    assert "not allowed to list nodes" in result.stderr


@pytest.mark.parametrize(
    ("asked", "fits", "said"),
    [
        ((1, 8), "Unknown", "1 pod of 8 nvidia.com/gpu fit on its nodes, and the gang needs 1;"),
        ((2, 8), "No", "at most 1 pod of 8 nvidia.com/gpu fit on the nodes of queue q, and the"),
        ((4, 4), "No", "at most 3 pods of 4 nvidia.com/gpu fit on the nodes of queue q, and the"),
        ((3, 3), "Unknown", "6 pods of 2 nvidia.com/gpu fit on its nodes, and the gang needs 3;"),
        ((15, 1), "No", "at most 14 pods of 1 nvidia.com/gpu fit on the nodes of queue q, and"),
        ((14, 1), "Unknown", "14 pods of 1 nvidia.com/gpu fit on its nodes, and the gang needs 14"),
        ((5, 0), "Unknown", "whether there is room on the nodes is not judged"),
    ],
)
def test_a_tenant_is_answered_by_the_holes_of_the_queue(
    asked: tuple[int, int], fits: str, said: str
) -> None:
    """Where the answer is no, the coordinator says no; where it is yes there, it is not no here."""
    world, (count, gpus) = room(), asked
    cluster = ray_cluster("train", group("w", count, cpu=1, gpu=gpus))
    found = answer(world, cluster, forbidden=TENANT)
    assert (found["fits"], said in found["message"]) == (fits, True), found["message"]
    assert found["reason"] == ("InsufficientResources" if fits == "No" else "")
    with_all_rights = answer(world, cluster)["fits"]
    assert with_all_rights == ("No" if fits == "No" else "Yes")


def test_a_pod_of_eight_takes_two_holes_of_four() -> None:
    asked = ray_cluster("train", group("large", 1, gpu=8), group("small", 2, gpu=4))
    found = answer(room(), asked, forbidden=TENANT)
    assert found["fits"] == answer(room(), asked)["fits"] == "No"
    assert "at most 3 pods of 4 nvidia.com/gpu" in found["message"]
    assert "and the gang needs 4 at once" in found["message"]


def test_a_tenant_is_told_the_largest_count_that_the_holes_allow() -> None:
    found = answer(room(), ray_cluster("t", group("w", 9, gpu=4)), forbidden=TENANT)
    assert found["largestThatFit"][0]["fit"] == 3


def test_pods_that_go_to_cordoned_nodes_too_are_not_refused_by_holes() -> None:
    world = World(node("a", gpu=8, cordoned=True), node("head"), gpu_queue())
    world.settle(seconds=10)
    anywhere = [{"operator": "Exists"}]
    for tolerations, fits in (([], "No"), (anywhere, "Unknown")):
        asked = ray_cluster("train", group("w", 1, gpu=4, tolerations=tolerations))
        assert answer(world, asked, forbidden=TENANT)["fits"] == fits
    asked = ray_cluster("train", group("w", 1, gpu=4, tolerations=anywhere))
    assert answer(world, asked)["fits"] == "Yes"


def test_where_processors_are_short_a_tenant_is_told_so() -> None:
    """Pods take 8 CPUs beside a GPU: with 9 left one more such pod fits, and two frugal ones do."""
    world = World(node("a", cpu=17, gpu=8), foreign_pod("other", "a", gpu=1, cpu=8), gpu_queue())
    world.settle(seconds=10)
    found = answer(world, ray_cluster("t", group("w", 2, gpu=1, cpu=2)), forbidden=TENANT)
    assert found["fits"] == "Unknown"
    assert (
        "1 pod of 1 nvidia.com/gpu fit on its nodes with the CPU and memory that is typical"
        in (found["message"])
    )


def test_a_class_that_cannot_be_read_is_not_called_missing() -> None:
    asked = ray_cluster("train", group("w", 1, priorityClassName="high", runtimeClassName="x"))
    rights = ("priorityclasses", "runtimeclasses")
    assert answer(World(node("a")), asked)["fits"] == "No"
    assert answer(World(node("a")), asked, forbidden=rights)["fits"] == "Yes"


OWN_QUEUE = {"forbidden": (*TENANT, "gangqueues"), "nowhere": ("deployments",)}


@pytest.mark.parametrize(
    ("parent", "spec", "workers", "fits", "said"),
    [
        ("", {}, 3, "Unknown", "queue q has quota for it; whether there is room"),
        ("", {}, 4, "No", "queue q uses 5 of its quota of 9 cpu and may take 4 more"),
        ("lab", {}, 3, "Unknown", "queue q has quota of its own for it; queue lab above it"),
        ("lab", {}, 4, "Unknown", "queue q has too little quota of its own; queue lab above it"),
        ("lab", {}, 12, "Unknown", "queue q has too little quota of its own; queue lab above it"),
        ("lab", {"borrowingLimit": {"cpu": 2}}, 6, "No", "queue q uses 5 of its quota of 9 cpu"),
        ("lab", {"quota": {}}, 6, "Unknown", "queue q has no quota of its own; queue lab above it"),
    ],
)
def test_a_tenant_that_may_get_its_own_queue_alone_is_answered_by_it(
    parent: str, spec: Json, workers: int, fits: str, said: str
) -> None:
    above = [queue("lab", quota={"cpu": 0})] if parent else []
    mine = queue("q", **{"quota": {"cpu": 9}, "parent": parent, **spec})
    world = World(node("a", cpu=32), *above, mine)
    world.create(gang_of("first", 4, annotations={names.QUEUE: "q"}))
    world.settle(seconds=60)
    asked = gang_of("train", workers, annotations={names.QUEUE: "q"})
    result = fit(reader_of(world, **OWN_QUEUE), asked)
    (found,) = answers(result)
    assert (found["fits"], found["message"][: len(said)]) == (fits, said)
    assert "not allowed to list gangqueues: only queue q is known" in result.stderr


def test_without_the_other_queues_the_answer_is_never_yes() -> None:
    """Gangs of other queues may come first, and those queues are not known."""
    asked = gang_of("train", 1, annotations={names.QUEUE: "q"})
    world = World(node("a", cpu=32), queue("q", quota={"cpu": 9}))
    assert answer(world, asked)["fits"] == "Yes"
    assert answer(world, asked, forbidden=("gangqueues",))["fits"] == "Unknown"


def test_of_a_queue_that_may_not_be_read_nothing_is_answered() -> None:
    asked = gang_of("train", 1, annotations={names.QUEUE: "q"})
    reader = reader_of(World(node("a"), queue("q")), nowhere=("gangqueues",))
    assert fit(reader, asked).exit_code == NOT_READ


def test_without_the_queues_nothing_is_answered() -> None:
    result = fit(reader_of(World(node("a")), forbidden=("gangqueues",)), gang_of("train", 1))
    assert (result.exit_code, result.stdout) == (NOT_READ, "")
    assert result.stderr == "Error: not allowed to list gangqueues\n"


# ---- what could not be created, and what is asked for many


@pytest.mark.parametrize("rights", [{}, {"forbidden": ("namespaces",)}])
def test_nothing_fits_in_a_namespace_that_is_not_there(rights: dict[str, tuple[str, ...]]) -> None:
    asked, other = gang_of("train", 2), gang_of("here", 2)
    asked["metadata"]["namespace"] = "typo"
    found = answers(fit(reader_of(World(node("a", cpu=4)), **rights), asked, other))
    assert [each["fits"] for each in found] == ["No", "Yes"], "what is not created takes no room"
    assert found[0]["message"] == "namespace typo does not exist"


def test_a_namespace_that_may_not_be_read_is_taken_to_be_there() -> None:
    reader = reader_of(World(node("a", cpu=4)), nowhere=("namespaces",))
    (found,) = answers(fit(reader, gang_of("train", 2)))
    assert found["fits"] == "Yes"


def test_whether_a_queue_selects_a_namespace_that_may_not_be_read_is_not_known() -> None:
    selects = {"matchLabels": {"team": "a"}}
    world = World(node("a", cpu=4), queue("q", namespaceSelector=selects))
    asked = gang_of("train", 2, annotations={names.QUEUE: "q"})
    (found,) = answers(fit(reader_of(world), asked))
    assert (found["fits"], found["reason"]) == ("No", "Misconfigured")
    (found,) = answers(fit(reader_of(world, nowhere=("namespaces",)), asked))
    assert (found["fits"], found["reason"]) == ("Unknown", "")
    assert found["message"].startswith("the labels of namespace team may not be read; without: ")
