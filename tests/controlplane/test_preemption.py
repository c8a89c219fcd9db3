"""Gangs that are stopped for others, on the real control plane: evictions, budgets."""

import pytest

from kube.objects import names
from tests.controlplane.plot import Plot, condition, is_held
from tests.controlplane.rayclusters import GANG, Json, gang, group, head


def with_queue(plot: Plot, cpus: int | str, **rules: object) -> dict[str, str]:
    """A node, and a queue whose gangs may stop those of lower priority; returns a gang's labels."""
    plot.add_node(cpus)
    plot.add_queue("team", preemption={"withinQueue": "LowerPriority", **rules})
    return {**GANG, names.QUEUE: plot.queue("team")}


def urgent(
    plot: Plot, name: str, workers: int, labels: dict[str, str], kind: str = "urgent"
) -> Json:
    """A gang of higher priority than the others."""
    urgent_class = f"{plot.name}-{kind}"
    return gang(
        name,
        group(replicas=workers, priorityClassName=urgent_class),
        head_group=head(priorityClassName=urgent_class),
        labels=labels,
    )


def budget(cluster: str, least: int) -> Json:
    """A budget by which so many pods of a Ray cluster must stay."""
    selector = {"matchLabels": {names.RAY_CLUSTER: cluster}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": cluster},
        "spec": {"minAvailable": least, "selector": selector},
    }


def wait_budget(plot: Plot, name: str, allowed: int) -> None:
    """Wait until the budget's controller says how many pods may go."""

    def counted() -> bool:
        status = plot.get("PodDisruptionBudget", name).get("status", {})
        found = status.get("disruptionsAllowed"), status.get("currentHealthy", 0) > 0
        return found == (allowed, True)

    plot.wait(counted, f"budget {name} to allow {allowed} disruptions")


def uids(plot: Plot, cluster: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in plot.pods(cluster)}


def test_a_gang_gives_its_surplus_then_all_its_room_and_comes_back(plot: Plot) -> None:
    plot.add_priority_class("urgent", 1000)
    labels = with_queue(plot, 5)
    low = gang("low", group(replicas=4), labels=labels)
    low["metadata"]["annotations"] = {names.MIN_REPLICAS: "workers=1"}
    plot.create(low)
    plot.wait_running("low", 5)
    first = uids(plot, "low")

    plot.create(urgent(plot, "one", 1, labels))
    plot.wait_running("one", 2)
    plot.wait(lambda: sum(map(is_held, plot.pods("low"))) == 2, "2 workers of low to wait")
    assert len(uids(plot, "low") & first) == 3  # those that stay are the same
    assert plot.status("low")["phase"] == "Running"
    assert plot.get("RayCluster", "low")["spec"]["workerGroupSpecs"][0]["replicas"] == 4
    plot.wait_event("low", "Preempted", "2 surplus replicas", "one")

    plot.create(urgent(plot, "two", 2, labels))
    plot.wait_running("two", 3)
    status = plot.wait_phase("low", "Queued")
    told = condition(status, "Evicted")
    assert (told["status"], told["reason"]) == ("True", "Preempted")
    assert f"RayCluster {plot.name}/two" in told["message"]
    assert "placement" not in status
    assert all(is_held(pod) for pod in plot.wait_pods("low", 5))

    plot.delete_whole("two")
    plot.wait_phase("low", "Running")
    assert condition(plot.status("low"), "Evicted")["status"] == "False"


def test_a_budget_keeps_a_gang_and_another_one_goes(plot: Plot) -> None:
    plot.add_priority_class("urgent", 1000)
    labels = with_queue(plot, 6)
    for name in ("one", "two"):
        plot.create(gang(name, group(replicas=2), labels=labels))
        plot.wait_running(name, 3)
    # Of equal gangs the one that was admitted last goes first. Each of its pods could go, alone.
    plot.create(budget("two", 2))
    wait_budget(plot, "two", 1)
    before = uids(plot, "two")
    plot.create(urgent(plot, "urgent", 2, labels))
    plot.wait_running("urgent", 3)
    plot.wait_phase("one", "Queued")
    assert plot.status("two")["phase"] == "Running"
    assert uids(plot, "two") == before

    plot.create(urgent(plot, "later", 2, labels))
    told = "PodDisruptionBudget two lets 1 of its pods go now, and 3 ready pods would have to"
    plot.wait_message("later", f"{plot.name}/two cannot be stopped for it: {told}")
    assert uids(plot, "two") == before
    plot.delete("PodDisruptionBudget", "two")


@pytest.mark.variant
def test_a_gang_that_is_half_gone_ends_whole_though_the_other_was_deleted(plot: Plot) -> None:
    """A budget lets one pod go, and the queue deletes the others much later."""
    plot.add_priority_class("urgent", 1000)
    labels = with_queue(plot, 3, deleteAfterSeconds=3600)
    plot.create(gang("low", group(replicas=2), labels=labels))
    plot.wait_running("low", 3)
    before = uids(plot, "low")
    plot.create(budget("low", 2))
    wait_budget(plot, "low", 1)
    plot.create(urgent(plot, "urgent", 2, labels))
    plot.wait_phase("low", "Preempting", "Preempted", "an eviction is refused")
    plot.delete_whole("urgent")
    plot.wait_no_gang("urgent")
    assert plot.status("low")["phase"] == "Preempting"
    plot.delete("PodDisruptionBudget", "low")
    plot.wait(lambda: not uids(plot, "low") & before, "all pods of low to be made again")
    plot.wait_running("low", 3)
    assert condition(plot.status("low"), "Evicted")["status"] == "False"


@pytest.mark.variant
def test_pods_that_a_budget_keeps_are_deleted_where_the_queue_says_so(plot: Plot) -> None:
    plot.add_priority_class("urgent", 1000)
    labels = with_queue(plot, 3, deleteAfterSeconds=1)
    plot.create(gang("low", group(replicas=2), labels=labels))
    plot.wait_running("low", 3)
    before = uids(plot, "low")
    plot.create(budget("low", 3))
    wait_budget(plot, "low", 0)
    plot.create(urgent(plot, "urgent", 2, labels))
    plot.wait_running("urgent", 3)
    plot.wait_phase("low", "Queued")
    assert not uids(plot, "low") & before
    assert plot.get("PodDisruptionBudget", "low")["spec"]["minAvailable"] == 3


@pytest.mark.variant
def test_a_gang_for_which_others_end_is_stopped_itself_for_a_higher_one(plot: Plot) -> None:
    """The victim's pods linger, so that the higher gang comes while they end.

    What is held for a gang is not taken from it: it starts first, and is stopped then.
    """
    plot.add_priority_class("urgent", 1000)
    plot.add_priority_class("higher", 2000)
    labels = with_queue(plot, 3)
    plot.create(gang("low", group(replicas=2), labels=labels))
    plot.wait_running("low", 3)
    before = uids(plot, "low")
    pods = [pod["metadata"]["name"] for pod in plot.pods("low")]
    linger(plot, pods, ["example.com/lingers"])
    plot.create(urgent(plot, "urgent", 2, labels))
    plot.wait_phase("urgent", "Queued", "Preempting", "low")
    plot.create(urgent(plot, "highest", 2, labels, kind="higher"))
    plot.wait_phase("highest", "Queued", "InsufficientResources", "room is held for")
    assert all(is_held(pod) for name in ("urgent", "highest") for pod in plot.pods(name))
    linger(plot, pods, None)
    plot.wait_running("highest", 3)
    plot.wait_phase("urgent", "Queued", "InsufficientResources")
    assert not uids(plot, "low") & before
    plot.delete_whole("highest")
    plot.wait_running("urgent", 3)
    plot.delete_whole("urgent")
    plot.wait_running("low", 3)


def linger(plot: Plot, pods: list[str], finalizers: list[str] | None) -> None:
    """Keep pods that are deleted, or let them go."""
    for pod in pods:
        plot.patch("Pod", pod, {"metadata": {"finalizers": finalizers}})
