"""Messages name the holders of the room that a gang lacks."""

from dataclasses import replace

import pytest

from scheduling.cycle import NodeFacts, next_cycle
from scheduling.diagnosis.holders import with_holders
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import PendingGang, Topology
from scheduling.model.holder import Held, Holder, Share
from scheduling.model.node import Node
from scheduling.model.verdict import MESSAGE_LIMIT, Refusal
from scheduling.queueing.queues import one_queue
from scheduling.state.holder_index import MOST_RESOURCES, HolderIndex, Holders
from scheduling.state.node_table import NodeTable
from tests.builders import GPU, gang, group, node, shape, taint

JOB, WEB, BARE = (
    Holder("Job", "team-a", "train"),
    Holder("Deployment", "team-b", "web"),
    Holder("Namespace", "", "dev"),
)
GPUS = shape(cpu=1, gpu=4)


class World:
    """Nodes, and the holders of what is used on them."""

    def __init__(self, *nodes: Node) -> None:
        self.table, self.holders = NodeTable(), HolderIndex()
        for each in nodes:
            self.table.put_node(each)

    def hold(self, holder: Holder, on: str, *, gpu: int = 0, cpu: int = 0) -> None:
        amounts = shape(gpu=gpu, cpu=cpu).requests
        self.table.use(on, amounts, +1)
        self.holders.use(holder, on, amounts, +1)

    def refusal(self, *gangs: PendingGang) -> Refusal:
        """The last refusal of a cycle."""
        columns, holders = self.table.snapshot(), Holders(self.holders)
        decisions, _ = next_cycle(one_queue(gangs), columns, None, facts=NodeFacts(holders))
        refused = [each.verdict for each in decisions if isinstance(each.verdict, Refusal)]
        return refused[-1]


def test_the_largest_three_are_named_and_the_others_counted() -> None:
    """Equal shares in the order of names; what cannot run the pod does not count."""
    world = World(node("a", gpu=8), node("b", gpu=8), node("c", gpu=8, taints=(taint("x"),)))
    world.hold(WEB, "c", gpu=8)
    world.hold(JOB, "a", gpu=4)
    world.hold(JOB, "b", gpu=1)
    world.hold(WEB, "a", gpu=1)
    for name in ("zeta", "eta", "theta"):
        world.hold(Holder("Pipeline", "team-c", name), "b", gpu=1)
    world.hold(BARE, "b", gpu=3)
    found = world.refusal(gang("g", group("workers", 1, GPUS)))
    assert found.message == (
        "0 of 1 workers fits: it needs 4 nvidia.com/gpu on one node; 4 are free, at most 3 on one "
        "node (left out: 1 has an untolerated taint). 5 of 16 nvidia.com/gpu are held by Job "
        "team-a/train, 3 by Namespace dev, 1 by Deployment team-b/web, 3 by 3 others"
    )
    shares = (Share(JOB, 5), Share(BARE, 3), Share(WEB, 1))
    assert found.pod_sets[0].held == Held(16, shares, rest=3, others=3)


def test_the_same_room_is_explained_in_the_same_words_whoever_came_first() -> None:
    said = set()
    for order in ([JOB, WEB, BARE], [BARE, WEB, JOB]):
        world = World(node("a", gpu=8))
        for holder in order:
            world.hold(holder, "a", gpu=2)
        said.add(world.refusal(gang("g", group("workers", 1, GPUS))).message)
    assert len(said) == 1


def test_a_gang_that_this_cycle_admits_is_a_holder_for_those_behind_it() -> None:
    world = World(node("a", gpu=8))
    first = gang("first", group("workers", 2, GPUS), created=1)
    second = gang("second", group("workers", 1, GPUS), created=2)
    message = world.refusal(first, second).message
    assert message.endswith(". 8 of 8 nvidia.com/gpu are held by RayCluster team/first")


def test_devices_are_told_of_before_other_resources_and_ports_never() -> None:
    world = World(node("a", cpu=2, gpu=4))
    world.hold(JOB, "a", gpu=4)
    world.hold(WEB, "a", cpu=2)
    asked = gang("g", group("head", 1, shape(cpu=1)), group("workers", 1, GPUS))
    message = world.refusal(asked).message
    assert "4 of 4 nvidia.com/gpu are held by Job team-a/train" in message
    assert "2 of 2 cpu" not in message
    port = shape(ports=[("", "TCP", 80)])
    world.table.use("a", port.requests, +1)
    world.holders.use(WEB, "a", port.requests, +1)
    assert "held" not in world.refusal(gang("h", group("w", 1, port))).message


def racks(*gpus: int) -> World:
    """A rack of so many GPUs for each number, on nodes of four, all in one zone."""
    made = (
        node(f"{rack}-{at}", gpu=4, labels={"rack": rack, "zone": "z"})
        for rack, count in zip("abc", gpus, strict=False)
        for at in range(count // 4)
    )
    return World(*made)


IN_ONE_RACK = Topology(("workers",), required="rack")
IN_RACKS = Topology(("workers",), replica="rack")


def test_of_a_domain_that_is_short_only_its_own_holders_are_named() -> None:
    """In the domain that comes closest; what is held elsewhere could be freed in vain."""
    world = racks(12, 12)
    world.hold(WEB, "a-0", gpu=4)
    world.hold(JOB, "a-1", gpu=4)
    world.hold(BARE, "b-0", gpu=4)
    found = world.refusal(replace(gang("g", group("workers", 3, GPUS)), topology=IN_ONE_RACK))
    assert found.message.startswith("no single rack holds the workers; b comes closest: 2 of 3 ")
    assert found.message.endswith(". 4 of 12 nvidia.com/gpu are held by Namespace dev")
    assert found.pod_sets[0].held == Held(12, (Share(BARE, 4),))


@pytest.mark.parametrize("required", ["", "zone"])
def test_of_replicas_the_holders_are_named_where_the_next_comes_closest_to_room(
    required: str,
) -> None:
    """Rack a is too small for one; rack c is taken by the first."""
    world = racks(4, 8, 8)
    world.hold(WEB, "b-1", gpu=1)
    world.hold(JOB, "a-0", cpu=1)
    groups = [group("workers", 2, GPUS, replica=name) for name in ("r0", "r1")]
    topology = replace(IN_RACKS, required=required)
    found = world.refusal(replace(gang("g", *groups), topology=topology))
    assert found.message.removeprefix("no single zone holds the workers; z comes closest: ") == (
        "1 of 2 replicas of workers fit: each needs 2 pods inside one rack; the next finds room "
        "for 1 in b. 1 of 8 nvidia.com/gpu is held by Deployment team-b/web"
    )
    assert found.pod_sets[0].held == Held(8, (Share(WEB, 1),))


def test_of_a_head_that_is_short_the_holders_are_named_wherever_they_are() -> None:
    world = World(node("a", cpu=1, gpu=4, labels={"rack": "a"}), node("b", cpu=8))
    world.hold(WEB, "b", cpu=6)
    asked = gang("g", group("headgroup", 1, shape(cpu=4)), group("workers", 1, GPUS))
    found = world.refusal(replace(asked, topology=IN_ONE_RACK))
    assert found.message.endswith(". 6 of 9 cpu are held by Deployment team-b/web")


def test_no_holder_is_named_where_nothing_is_held() -> None:
    world = World(node("a", gpu=4))
    world.table.use("a", [(GPU, 2)], +1)
    found = world.refusal(gang("g", group("workers", 1, GPUS)))
    assert found.message.endswith("2 are free, at most 2 on one node")
    assert found.pod_sets[0].held == Held(4)


def test_of_what_no_node_could_ever_hold_no_holder_is_blamed() -> None:
    """It would not help to free what they have."""
    world = World(node("a", gpu=2), node("b", gpu=3))
    world.hold(JOB, "a", gpu=2)
    found = world.refusal(gang("g", group("workers", 1, GPUS)))
    assert found.message == (
        "workers needs 4 nvidia.com/gpu on one node; the largest node that could run it, b, has 3 "
        "in all: the gang waits until a node is added or changed"
    )
    assert found.pod_sets[0].held is None


def test_names_that_are_too_long_are_left_out_of_the_message_only() -> None:
    world = World(node("a", gpu=4))
    long = Holder("Job", "n" * 600, "j" * 600)
    world.hold(long, "a", gpu=4)
    found = world.refusal(gang("g", group("workers", 1, GPUS)))
    assert len(found.message) <= MESSAGE_LIMIT
    assert "held" not in found.message
    assert found.pod_sets[0].held == Held(4, (Share(long, 4),))


def test_invented_resources_take_no_more_than_so_much_memory() -> None:
    table = HolderIndex()
    table.use(JOB, "a", [(GPU, 1)], +1)
    names = [f"example.com/{at}" for at in range(2 * MOST_RESOURCES)]
    for sign in (+1, -1):
        table.use(WEB, "a", [(name, 1) for name in names], sign)
    assert table.held(GPU, ["a"]).largest(3) == (Share(JOB, 1),)
    assert table.held(names[-1], ["a"]).largest(3) == ()


def test_invented_resources_take_no_rows_for_good() -> None:
    """Once the pods that named them are gone, others are summed up; until then what began without
    a row goes without, whoever else has gone."""
    table = HolderIndex()
    names = [f"example.com/{at}" for at in range(2 * MOST_RESOURCES)]
    table.use(WEB, "a", [(name, 1) for name in names], +1)
    table.use(JOB, "a", [(GPU, 1)], +1)
    table.use(WEB, "a", [(name, 1) for name in names], -1)
    table.use(JOB, "a", [(GPU, 1)], +1)
    assert table.held(GPU, ["a"]).largest(3) == ()
    table.use(JOB, "a", [(GPU, 1)], -2)
    table.use(JOB, "a", [(GPU, 3)], +1)
    assert table.held(GPU, ["a"]).largest(3) == (Share(JOB, 3),)


def test_what_is_judged_with_its_volumes_is_told_of_all_the_same() -> None:
    """The refusal then has more requests than the pod; what is made up for them is nobody's."""
    world = World(node("a", gpu=4))
    world.hold(JOB, "a", gpu=4)
    asked = gang("g", group("workers", 1, GPUS))
    plain = world.refusal(asked)
    room = FreeCapacity.of(world.table.snapshot())
    for resource, held in ((GPU, plain.pod_sets[0].held), ("made-up", None)):
        [numbers] = plain.pod_sets
        more = replace(
            numbers, requests=(*numbers.requests, ("made-up", 1)), resource=resource, held=None
        )
        judged = replace(plain, message="why", pod_sets=(more,))
        found = with_holders(judged, asked.minimum, room, Holders(world.holders))
        assert found.pod_sets[0].held == held
        assert ("held by Job" in found.message) == (held is not None)


def test_host_ports_take_no_row_from_what_is_told() -> None:
    """Anybody can name thousands of them."""
    table, owner = HolderIndex(), Holder("Job", "team", "a")
    table.use(owner, "n", [(f"hostPort:TCP:{port}", 1) for port in range(100)], 1)
    table.use(owner, "n", [("nvidia.com/gpu", 8)], 1)
    assert table.held("nvidia.com/gpu", ["n"]).total() == 8
