"""What of its nodes an aged gang leaves to others."""

from dataclasses import replace

import pytest

from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.queue import Ordering, Queue, WhenBlocked
from scheduling.model.verdict import Admitted
from scheduling.queueing.queues import Holding
from tests.builders import GPU, gang, group, node, shape
from tests.scheduling.backfill.cycles import asks, decide, holds, said, team


def test_a_gang_that_takes_none_of_the_short_quota_passes_an_aged_one() -> None:
    """The aged gang waits for GPUs of its quota; the other asks for CPU alone."""
    both = Queue("a", quota={GPU: 8, "cpu": 100_000})
    big, light = asks("big", 8), gang("light", group("head", 1, shape(cpu=1)), created=1)
    verdicts, _ = decide(
        [both],
        big,
        replace(light, queue="a"),
        running=[holds("old", {"n1": 1})],
        nodes=(node("n1", gpu=8, cpu=8), node("n2", gpu=8, cpu=8)),
        aged=[big],
    )
    assert isinstance(verdicts["light"], Admitted)


HOLDS_GPUS = holds("old", {"n1": 8})


def with_head(name: str, gpus: int) -> PendingGang:
    """A gang with a head of 3 CPU, and workers of a GPU each."""
    return replace(
        gang(name, group("head", 1, shape(cpu=3)), group("workers", gpus, shape(gpu=1))), queue="a"
    )


def on_cpu(name: str, cpu: int) -> PendingGang:
    return replace(gang(name, group("head", 1, shape(cpu=cpu)), created=1), queue="a")


def test_an_aged_gang_that_waits_for_gpus_does_not_hold_nodes_that_have_none() -> None:
    big = asks("big", 8)
    nodes = (node("n1", gpu=8, cpu=0), node("c1", cpu=4))
    verdicts, _ = decide(
        [team()], big, on_cpu("light", 4), running=[HOLDS_GPUS], aged=[big], nodes=nodes
    )
    assert said(verdicts["big"]).startswith("InsufficientResources")
    assert isinstance(verdicts["light"], Admitted)


@pytest.mark.parametrize(("cpu", "passes"), [(1, True), (2, False)])
def test_an_aged_gang_keeps_the_room_of_its_pods_that_fit(cpu: int, *, passes: bool) -> None:
    """Its head fits c1 alone, beside one more CPU; its workers wait for GPUs."""
    big = with_head("big", 8)
    nodes = (node("n1", gpu=8, cpu=0), node("c1", cpu=4))
    verdicts, _ = decide(
        [team()], big, on_cpu("other", cpu), running=[HOLDS_GPUS], aged=[big], nodes=nodes
    )
    assert isinstance(verdicts["other"], Admitted) == passes
    if not passes:
        assert said(verdicts["other"]) == (
            "QueueBlocked: there is room, but team/big has waited so long for it that nothing "
            "passes it"
        )


@pytest.mark.parametrize(
    ("workers", "gpus", "cpu", "passes"),
    [
        (9, 0, 3, True),  # 12 CPU are kept: n1 could run four workers if it were empty
        (9, 0, 4, False),
        (2, 0, 9, True),  # 6 CPU are kept: there are no more than two workers
        (2, 0, 10, False),
        (9, 1, 1, False),  # a GPU that is free, of nine that four workers need eight of
    ],
)
def test_what_a_node_has_beyond_all_pods_of_an_aged_gang_that_it_could_run_passes(
    workers: int, gpus: int, cpu: int, *, passes: bool
) -> None:
    """n1 has 15 of 16 CPU free and one GPU, n2 none; the workers need 2 GPUs and 3 CPU each."""
    nodes = (node("n1", gpu=9, cpu=16, labels={"name": "n1"}), node("n2", gpu=16, cpu=30))
    busy = (("n1", (("cpu", 1000), (GPU, 8))), ("n2", ((GPU, 16),)))
    big = replace(gang("big", group("workers", workers, shape(gpu=2, cpu=3))), queue="a")
    on_n1 = shape(gpu=gpus, cpu=cpu, selector={"name": "n1"})
    other = replace(gang("other", group("workers", 1, on_n1), created=1), queue="a")
    running = [Holding(GangKey("team", "old"), "a", busy)]
    verdicts, _ = decide([team()], big, other, running=running, aged=[big], nodes=nodes)
    assert said(verdicts["big"]).startswith("InsufficientResources")
    assert isinstance(verdicts["other"], Admitted) == passes


@pytest.mark.parametrize("rule", [WhenBlocked.BEST_EFFORT, WhenBlocked.BACKFILL])
@pytest.mark.parametrize(("pods", "passes"), [(8, True), (9, False)])
def test_a_gang_goes_where_nothing_is_kept_though_another_node_is_better(
    rule: WhenBlocked, pods: int, *, passes: bool
) -> None:
    """The aged gang needs n1, which is the fuller node and preferred; n2 has room for eight."""
    names = ("n1", "n2")
    nodes = tuple(node(name, gpu=8, labels={"name": name}) for name in names)
    on_n1 = group("workers", 8, shape(gpu=1, selector={"name": "n1"}))
    big, old = replace(gang("big", on_n1), queue="a"), holds("old", {"n1": 4}, ends=100)
    verdicts, passed = decide(
        [team(rule)], big, asks("other", pods, created=1), running=[old], aged=[big], nodes=nodes
    )
    other = verdicts["other"]
    assert isinstance(other, Admitted) == passes
    assert passed == (["big"] if passes else [])
    if isinstance(other, Admitted):
        assert [at for each in other.placement.assignments for at, _ in each.nodes] == ["n2"]


def test_a_gang_with_a_host_port_does_not_pass_on_what_an_aged_one_leaves() -> None:
    """Amounts alone are looked at, and a port may be what the aged gang needs too."""
    big = replace(gang("big", group("workers", 4, shape(gpu=2, cpu=3))), queue="a")
    nodes = (node("n1", gpu=8, cpu=64),)
    for ports in ((), (("", "TCP", 80),)):
        light = gang("light", group("head", 1, shape(cpu=1, ports=ports)), created=1)
        verdicts, _ = decide(
            [team()],
            big,
            replace(light, queue="a"),
            running=[holds("old", {"n1": 8})],
            aged=[big],
            nodes=nodes,
        )
        assert isinstance(verdicts["light"], Admitted) != bool(ports)


@pytest.mark.parametrize(
    ("ordering", "priority", "since", "passes"),
    [
        (Ordering.PRIORITY, 1, 2, True),
        (Ordering.PRIORITY, 0, 2, False),
        (Ordering.FIFO, 1, 2, False),
        (Ordering.PRIORITY, 0, 0, True),
        (Ordering.FIFO, 0, 0, True),
    ],
)
def test_an_aged_gang_keeps_no_nodes_while_those_before_it_have_the_quota_of_its_queue(
    ordering: Ordering, priority: int, since: float, *, passes: bool
) -> None:
    """Four of eight GPUs of its queue are held: by a higher priority, or from before it came."""
    queues = [replace(team(gpus=8), ordering=ordering), Queue("b", quota={GPU: 16})]
    big, other = asks("big", 8, created=1), asks("other", 8, queue="b", created=3)
    old = holds("old", {"n1": 4})._replace(priority=priority, since=since)
    verdicts, _ = decide(queues, big, other, running=[old], aged=[big])
    assert said(verdicts["big"]).startswith("QuotaExceeded")
    assert isinstance(verdicts["other"], Admitted) == passes


@pytest.mark.parametrize(("pods", "passes"), [(4, False), (5, True)])
def test_an_aged_gang_keeps_nodes_if_its_quota_lasts_for_it_beside_those_before_it(
    pods: int, *, passes: bool
) -> None:
    """Four GPUs are held by a higher priority, two more by a gang that came later."""
    queues = [team(gpus=8), Queue("b", quota={GPU: 16})]
    big, other = asks("big", pods, created=1), asks("other", 8, queue="b", created=3)
    old = holds("old", {"n1": 4})._replace(priority=1, since=2)
    verdicts, _ = decide(queues, big, other, running=[old, holds("new", {"n1": 2})], aged=[big])
    assert said(verdicts["big"]).startswith("QuotaExceeded")
    assert isinstance(verdicts["other"], Admitted) == passes


@pytest.mark.parametrize(("pods", "passes"), [(4, True), (5, False)])
def test_what_an_aged_gang_needs_of_the_quota_of_its_queue_those_behind_it_leave(
    pods: int, *, passes: bool
) -> None:
    """It could borrow from b, but those come first that do not; it waits for n2."""
    parts = (Queue("all"), replace(team(gpus=12), parent="all"), Queue("b", "all", {GPU: 12}))
    on_n2 = group("workers", 8, shape(gpu=1, selector={"name": "n2"}))
    big, behind = replace(gang("big", on_n2), queue="a"), asks("behind", pods, created=1)
    nodes = tuple(node(name, gpu=8, labels={"name": name}) for name in ("n1", "n2"))
    running = [holds("old", {"n2": 1}, queue="b")]
    verdicts, _ = decide(parts, big, behind, running=running, aged=[big], nodes=nodes)
    assert said(verdicts["big"]).startswith("InsufficientResources")
    assert isinstance(verdicts["behind"], Admitted) == passes
    other = replace(behind, queue="b")
    verdicts, _ = decide(parts, big, other, running=running, aged=[big], nodes=nodes)
    assert isinstance(verdicts["behind"], Admitted)
