"""PodDisruptionBudgets and evictions that are refused."""

import pytest

from coordinator.gang.eviction.endings import FIRST_KEEP
from coordinator.messages.actions import (
    DeletePod,
    EvictPod,
    ReadBudgets,
)
from kube.codec.observed_pod import ObservedPod
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    TEAM,
    Json,
    gang_of,
    node,
)
from tests.coordinator.journeys.preemption.worlds import (
    IN_TEAM,
    LOWER,
    PDB,
    elastic,
    evicted,
    head_of,
    refused_halfway,
    stay,
    two_gangs,
    urgent,
    workers_of,
)
from tests.coordinator.journeys.queues.worlds import gang_in, phases, queue
from tests.coordinator.stopping import (
    act_until,
    choose,
    choose_whole,
    condition,
    ending,
    go_until,
    names_of,
    parts,
    terminating,
)
from tests.coordinator.world import World, key


def budget(name: str, least: int, **labels: str) -> Json:
    """A budget by which so many of the pods with these labels must stay."""
    selector = {"matchLabels": {f"ray.io/{key}": value for key, value in labels.items()}}
    spec = {"minAvailable": least, "selector": selector}
    meta = {"name": name, "namespace": TEAM}
    return {"kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}


# ---- what may not be evicted


def test_a_gang_that_a_budget_protects_is_not_stopped_and_chosen_again_later() -> None:
    world = two_gangs()
    world.api.budgets[workers_of(world, "v")[1]] = PDB
    choose_whole(world, "p", "v")
    world.settle(seconds=5)
    assert evicted(world) == []
    assert world.status("v")["phase"] == "Running"
    assert ending(world, "v") == []
    assert parts(world, "v")[0].kept_because == str(PDB)
    before = world.leader.state.known.agenda.cycle_wanted
    world.settle(seconds=FIRST_KEEP)
    assert parts(world, "v")[0].kept_because == ""
    choose_whole(world, "p", "v")
    world.settle(seconds=5)
    world.settle(seconds=FIRST_KEEP)
    assert parts(world, "v")[0].kept_because == str(PDB)  # for twice as long
    assert not before


def test_of_several_victims_none_is_stopped_where_one_is_protected() -> None:
    world = World(node("n1", cpu=4))
    world.create(gang_of("v", 1), gang_of("w", 1))
    world.settle(seconds=10)
    world.create(urgent("p", 3))
    world.settle(seconds=10)
    world.api.budgets[head_of(world, "w")] = PDB
    choose_whole(world, "p", "v", "w")
    world.settle(seconds=5)
    assert evicted(world) == []
    assert world.bound("v") == world.bound("w") == {"n1": 2}
    assert (parts(world, "v")[0].kept_because, parts(world, "w")[0].kept_because) == ("", str(PDB))


def test_a_replica_that_is_protected_keeps_no_other_one() -> None:
    world = World(node("n1", cpu=5))
    world.create(elastic(4, 1))
    world.settle(seconds=10)
    world.create(urgent("p", 1))
    world.settle(seconds=10)
    _, first, second, _ = parts(world, "v")
    world.api.budgets[second.replica.partition("/")[2]] = PDB
    choose(world, "p", first, second)
    world.settle(seconds=5)
    assert evicted(world) == []
    kept = {part.replica: part.kept_because for part in parts(world, "v")}
    assert {name for name, because in kept.items() if because} == {second.replica}


def test_pods_that_do_not_end_are_not_waited_for_and_another_victim_is_chosen() -> None:
    world = World(
        node("n1", cpu=4),
        node("n2", cpu=4),
        queue("team", preemption=LOWER),
    )
    world.create(gang_in("team", "other", 3))
    world.settle(seconds=5)
    world.create(gang_in("team", "v", 1))
    world.settle(seconds=5)
    stay(world, "v-")
    world.create(urgent("p", 3, labels=IN_TEAM))
    world.settle(seconds=40)
    assert terminating(world, "v") == ["headgroup", "workers"]
    assert (world.status("p")["reason"], world.bound("other")) == ("Preempting", {"n1": 4})
    world.settle(seconds=60)
    assert (world.status("p")["phase"], world.gated("other")) == ("Running", 4)
    assert "60 s after their grace" in parts(world, "v")[-1].kept_because
    assert sum(pod.holds != "" for pod in members(world, "v")) == 2, "their room is not given out"


def members(world: World, name: str) -> list[ObservedPod]:
    return list(world.leader.state.known.cache.pods_of(key(name)))


def test_a_gang_whose_eviction_is_refused_halfway_goes_on_being_stopped() -> None:
    world = two_gangs()
    protected = refused_halfway(world)
    world.settle(seconds=300)
    assert names_of(world.pods("v") if world.gated("v") == 2 else []).count(protected) == 1
    assert head_of(world, "v") not in evicted(world)
    assert world.status("v")["phase"] == "Preempting"
    assert "placement" not in world.status("v")  # no room is kept for what is gone
    assert str(PDB) in world.status("v")["message"]
    assert 5 < evicted(world).count(protected) < 12  # the pause doubles up to a minute
    assert not any(isinstance(each, DeletePod) for each in world.leader.log)
    world.api.budgets.clear()
    world.settle(seconds=61)
    assert (world.gated("v"), world.gated("p")) == (4, 0)


def test_a_gang_of_which_no_eviction_is_accepted_goes_on_and_is_kept_for_a_time() -> None:
    """What protects it came after the dry runs."""
    world = two_gangs()
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: any(isinstance(each, EvictPod) for each in leader.todo))
    world.api.budgets.update(dict.fromkeys(names_of(world.pods("v")), PDB))
    world.settle(seconds=20)
    assert world.bound("v") == {"n1": 4}
    assert world.status("v")["phase"] == "Running"
    assert ending(world, "v") == []
    assert condition(world, "v", "Evicted") == {}
    assert parts(world, "v")[0].kept_because == str(PDB)


def test_a_queue_may_have_pods_deleted_whose_eviction_is_refused() -> None:
    rules = {**LOWER, "deleteAfterSeconds": 120}
    world = World(node("n1", cpu=4), queue("team", preemption=rules))
    world.create(gang_in("team", "v", 3))
    world.settle(seconds=10)
    protected = workers_of(world, "v")[1]
    world.create(urgent("p", 3, labels=IN_TEAM))
    leader = world.leader
    go_until(world, lambda: any(isinstance(each, EvictPod) for each in leader.todo))
    world.api.budgets[protected] = PDB
    world.settle(seconds=100)
    assert protected in names_of(world.pods("v"))
    world.settle(seconds=60)
    assert [a.name for a in world.leader.log if isinstance(a, DeletePod)] == [protected]
    assert (world.gated("v"), world.gated("p")) == (4, 0)


@pytest.mark.parametrize("least", [3, 4])
def test_a_budget_keeps_no_gang_whose_queue_deletes_pods_in_the_end(least: int) -> None:
    """Whether it lets one pod go, or none: a dry run that it refuses is overruled as well."""
    rules = {**LOWER, "deleteAfterSeconds": 120}
    world = World(node("n1", cpu=4), queue("team", preemption=rules))
    world.create(gang_in("team", "v", 3), budget("v", least, cluster="v"))
    world.settle(seconds=10)
    before = names_of(world.pods("v"))
    world.create(urgent("p", 3, labels=IN_TEAM))
    world.settle(seconds=100)
    assert world.status("v")["phase"] == "Preempting"
    assert len(set(before) & set(names_of(world.pods("v")))) == least
    world.settle(seconds=90)
    deleted = [a.name for a in world.leader.log if isinstance(a, DeletePod)]
    assert (len(deleted), set(deleted) <= set(before)) == (least, True)
    assert (world.gated("v"), world.status("p")["phase"]) == (4, "Running")


# ---- what budgets say of all evictions together


def test_a_gang_is_chosen_only_where_its_budget_lets_all_of_its_pods_go() -> None:
    world = World(node("n1", cpu=8), queue("team", preemption=LOWER))
    world.create(gang_in("team", "w", 3))
    world.settle(seconds=10)
    world.create(gang_in("team", "v", 3), budget("one-by-one", 3, cluster="v"))
    world.settle(seconds=10)
    before = names_of(world.pods("v"))
    world.create(urgent("p", 3, labels=IN_TEAM))  # of equals the one that came last would go
    world.settle(seconds=30)
    assert phases(world, "v", "w", "p") == ["Running", "Queued", "Running"]
    world.create(urgent("q", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    assert world.status("q")["message"].endswith(
        "team/v cannot be stopped for it: PodDisruptionBudget one-by-one lets 1 of its pods go "
        "now, and 4 ready pods would have to"
    )
    assert names_of(world.pods("v")) == before
    world.delete("poddisruptionbudgets", "one-by-one")
    world.settle(seconds=700)
    assert world.status("q")["phase"] == "Running"


def test_the_pods_of_all_gangs_that_end_together_count_against_one_budget() -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create(gang_in("team", "v", 1), gang_in("team", "w", 1))
    world.create(budget("workers", 1, group="workers"))
    world.settle(seconds=10)
    world.create(urgent("p", 3, labels=IN_TEAM))  # needs both, each of which could go alone
    world.settle(seconds=30)
    assert evicted(world) == []
    assert "PodDisruptionBudget workers lets 1 of its pods go now" in world.status("p")["message"]
    world.create(urgent("q", 1, labels=IN_TEAM))
    world.settle(seconds=130)
    assert world.status("q")["phase"] == "Running"


def test_pods_whose_end_is_decided_count_against_a_budget_before_they_are_evicted() -> None:
    world = World(node("n1", cpu=4))
    world.create(gang_of("v", 1), gang_of("w", 1), budget("workers", 1, group="workers"))
    world.settle(seconds=10)
    world.create(urgent("p", 1), urgent("q", 1))
    world.settle(seconds=10)
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: any(isinstance(each, EvictPod) for each in leader.todo))
    choose_whole(world, "q", "w")
    while others := [at for at, a in enumerate(leader.todo) if not isinstance(a, EvictPod)]:
        leader.act(others[0])
    assert "1 of them for other gangs" in parts(world, "w")[0].kept_because
    world.settle(seconds=20)
    assert (world.gated("v"), world.bound("w").total()) == (2, 2)


def test_a_replica_of_several_hosts_ends_only_where_a_budget_lets_all_of_them_go() -> None:
    world = World(node("n1", cpu=5))
    world.create(elastic(2, 1, hosts=2), budget("workers", 3, group="workers"))
    world.settle(seconds=10)
    world.create(urgent("p", 1))
    world.settle(seconds=10)
    chosen = parts(world, "v")[1]
    choose(world, "p", chosen)
    world.settle(seconds=10)
    assert evicted(world) == []
    assert "lets 1 of its pods go now" in parts(world, "v")[1].kept_because


def test_no_gang_is_stopped_whose_budgets_cannot_be_read() -> None:
    world = two_gangs()
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: any(isinstance(each, ReadBudgets) for each in leader.todo))
    leader.act(reads_fail=True)
    assert "PodDisruptionBudgets cannot be read" in parts(world, "v")[0].kept_because
    world.settle(seconds=10)
    assert evicted(world) == []


def test_budgets_are_read_once_for_all_gangs_of_a_namespace() -> None:
    world = World(node("n1", cpu=4))
    world.create(gang_of("v", 1), gang_of("w", 1))
    world.settle(seconds=10)
    world.create(urgent("p", 3))
    world.settle(seconds=10)
    choose_whole(world, "p", "v", "w")
    world.settle(seconds=10)
    assert world.status("p")["phase"] == "Running"
    assert sum(isinstance(each, ReadBudgets) for each in world.leader.log) == 1


def test_of_another_namespace_neither_gangs_nor_budgets_are_named_where_nothing_is_stopped() -> (
    None
):
    """Two equal gangs, of which one is in the namespace of what cannot be stopped."""
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create({"kind": "Namespace", "metadata": {"name": "secret"}})
    world.create(gang_of("merger", 3, labels=IN_TEAM, namespace="secret"))
    world.settle(seconds=10)
    world.api.budgets.update(dict.fromkeys(names_of(world.pods("merger")), PDB))
    world.create(urgent("p", 3, labels=IN_TEAM))
    world.create(urgent("q", 3, labels=IN_TEAM, namespace="secret"))
    world.settle(seconds=20)
    told = [world.status("p"), world.api.get(Key("gangs", "secret", "q"))["status"]]
    assert [each["message"].partition("secret/merger; ")[2] for each in told] == [
        "1 gang of another namespace cannot be stopped for it: a PodDisruptionBudget forbids it",
        f"secret/merger cannot be stopped for it: {PDB}",
    ]


def test_a_cycle_chooses_others_where_a_budget_forbids() -> None:
    world = World(node("n1", cpu=8), queue("team", preemption=LOWER))
    world.create(gang_of("v", 3, labels=IN_TEAM), gang_of("w", 3, labels=IN_TEAM))
    world.settle(seconds=10)
    world.api.budgets[workers_of(world, "w")[0]] = PDB
    world.api.budgets[head_of(world, "w")] = PDB
    world.create(urgent("p", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    assert phases(world, "v", "w", "p") == ["Queued", "Running", "Running"]
    world.create(urgent("q", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    assert world.status("q")["phase"] == "Queued"
    assert "team/w" in world.status("q")["message"]
    assert "would violate the budget" in world.status("q")["message"]
    world.api.budgets.clear()
    world.settle(seconds=700)
    assert world.status("q")["phase"] == "Running"
