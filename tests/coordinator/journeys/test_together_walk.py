"""Whatever happens, gangs together never start in part.

Groups of two and three gangs come in any order beside others, in room that changes, while leaders
end between any two writes. A pod of a member is released only where every member of its group had
its placement in its record, under one stamp, at that moment.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.messages.actions import ReleasePod, ResumeRayCluster
from kube.objects import names
from tests.coordinator.api import Json, Key
from tests.coordinator.builders import foreign_pod, gang_of, node
from tests.coordinator.held import held
from tests.coordinator.replica import Replica
from tests.coordinator.world import World
from tests.examples import examples

GROUPS = {"p1": "pair", "p2": "pair", "t1": "trio", "t2": "trio", "t3": "trio"}
SIZES = {"pair": "2", "trio": "3"}
ALONE = ("x", "y")

deeds = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.sampled_from([*GROUPS, *ALONE])),
        st.tuples(st.just("delete"), st.sampled_from([*GROUPS, *ALONE])),
        st.tuples(st.just("act"), st.integers(1, 6)),
        st.tuples(st.just("lead"), st.sampled_from([0, 1])),
        st.tuples(st.just("pass"), st.sampled_from([1, 8, 60, 600])),
        st.tuples(st.just("crowd"), st.sampled_from(["n1", "n2"])),
        st.tuples(st.just("clear"), st.sampled_from(["n1", "n2"])),
    ),
    min_size=8,
    max_size=40,
)


class Walk:
    """A world, and what was asked for of which nothing was judged yet."""

    def __init__(self, end: str, *, is_held: bool) -> None:
        self.world = World(node("n1", cpu=5), node("n2", cpu=4), replicas=2)
        self.is_held, self.end = is_held, end
        self.begun: set[str] = set()
        """The uids of members whose group was whole when a pod of it was released."""
        self.judged = dict.fromkeys(range(2), 0)

    def take(self, deed: str, of: Any) -> None:
        getattr(self, f"_{deed}")(of)
        self.judge()

    def _create(self, name: str) -> None:
        if Key("rayclusters", "team", name) not in self.world.api.objects:
            self.world.create(self._cluster(name))

    def _cluster(self, name: str) -> Json:
        group = GROUPS.get(name)
        said = {names.TOGETHER: group, names.TOGETHER_SIZE: SIZES[group]} if group else {}
        end = {names.TOGETHER_END: self.end} if group else {}
        cluster = gang_of(name, 1, annotations=said | end)
        return held(cluster) if self.is_held and group else cluster

    def _delete(self, name: str) -> None:
        if Key("rayclusters", "team", name) in self.world.api.objects:
            self.world.delete("rayclusters", name)

    def _act(self, times: int) -> None:
        """Have everybody go on a little, the leader write by write."""
        for _ in range(times):
            self.world.controllers()
            leader = self._leader()
            leader.hear_all()
            leader.tick()
            leader.cycle()
            self.judge()
            if leader.todo:
                leader.act()

    def _leader(self) -> Replica:
        return next(each for each in self.world.replicas if each.leading)

    def _lead(self, index: int) -> None:
        """The leader crashes, or ends its term, and another one leads."""
        leader = self._leader()
        leader.leading, leader.todo = False, []
        leader.restart()
        self.world.elect(index)

    def _pass(self, seconds: int) -> None:
        self.world.settle(seconds=seconds)

    def _crowd(self, on: str) -> None:
        if Key("pods", "others", on) not in self.world.api.objects:
            self.world.create(foreign_pod(on, on, cpu=3))

    def _clear(self, on: str) -> None:
        if Key("pods", "others", on) in self.world.api.objects:
            self.world.api.remove(Key("pods", "others", on))

    # ---- judging

    def judge(self) -> None:
        """Require of each release that was asked for that the set of its gang was whole."""
        for at, replica in enumerate(self.world.replicas):
            news = replica.log[self.judged[at] :]
            self.judged[at] = len(replica.log)
            for each in news:
                if isinstance(each, ReleasePod | ResumeRayCluster):
                    members = self._judge(each.gang.name)
                    if isinstance(each, ReleasePod):
                        self.begun |= members

    def _judge(self, name: str) -> set[str]:
        """Require that a gang may begin; return the uids of those that may with it."""
        group = GROUPS.get(name)
        gang = self.world.api.objects.get(Key("gangs", "team", name))
        if group is None or gang is None:
            return set()
        uid = gang["metadata"]["uid"]
        said = gang["status"].get("together", {})
        members = said.get("members", [])
        if uid in self.begun or (not members and self._goes_on_beside(name, group)):
            return {uid}
        assert len(members) == int(SIZES[group]), (name, gang["status"])
        uids = set()
        for other in members:
            found = self.world.api.objects.get(Key("gangs", "team", other))
            assert found is not None
            assert found["status"].get("together", {}).get("stamp") == said["stamp"]
            assert found["status"].get("placement")
            uids.add(found["metadata"]["uid"])
        return uids

    def _goes_on_beside(self, name: str, group: str) -> bool:
        """A member that is made anew starts beside those that began."""
        mates = (self.world.api.objects.get(Key("gangs", "team", each)) for each in GROUPS)
        found = [each for each in mates if each is not None and each["metadata"]["name"] != name]
        mine = [each for each in found if GROUPS[each["metadata"]["name"]] == group]
        return any(each["metadata"]["uid"] in self.begun for each in mine)


@pytest.mark.parametrize("end", ["Keep", "All"])
@pytest.mark.parametrize("is_held", [True, False])
@examples(10)
@given(taken=deeds)
def test_gangs_together_never_start_in_part(
    is_held: bool, end: str, taken: list[tuple[str, Any]]
) -> None:
    walk = Walk(end, is_held=is_held)
    for deed, of in taken:
        walk.take(deed, of)
    for on in ("n1", "n2"):
        walk.take("clear", on)
    for name in (*GROUPS, *ALONE):
        walk.take("delete", name)
    walk.take("pass", 600)
    for name in GROUPS:
        walk.take("create", name)
    walk.take("pass", 600)
    phases = {name: walk.world.status(name)["phase"] for name in GROUPS}
    assert phases["p1"] == phases["p2"], phases
    assert phases["t1"] == phases["t2"] == phases["t3"], phases
    assert "Running" in phases.values()
    walk.take("delete", "p1")
    walk.take("pass", 600)
    goes_on = phases["p2"] == "Running" and end == "Keep"
    assert (walk.world.status("p2")["phase"] == "Running") == goes_on
