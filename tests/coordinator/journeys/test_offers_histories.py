"""Histories of a member drawn at random: what was not accepted never runs, and Closed is final."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.coordinator.api import Change, Key
from tests.coordinator.builders import TEAM, Json, gang_of, node
from tests.coordinator.offers import accept, answer, created_for, lease, offer
from tests.coordinator.world import World, is_gated

NAME = "a-1"
SECONDS = (0.2, 5.0, 30.0, 70.0)


class History:
    """One member with two replicas of the coordinator, an offer, and others that want the room."""

    def __init__(self) -> None:
        self.world = World(node("n1", cpu=4), replicas=2)
        self.copy: Json = {}
        self._term = 0
        self._asked()

    def _asked(self) -> None:
        if not self._has("gangoffers", NAME):
            self.world.create(offer(NAME, gang_of("a", 3)))
            self.copy = created_for(self.world, gang_of("a", 3))

    def _has(self, plural: str, name: str) -> bool:
        return Key(plural, TEAM, name) in self.world.api.objects

    def accept(self) -> None:
        """By the leader of now, which has not read the newest term of its successor."""
        if self._has("gangoffers", NAME) and answer(self.world).get("phase") == "Offered":
            accept(self.world, term=max(1, self._term - 1))

    def accept_anew(self) -> None:
        if self._has("gangoffers", NAME) and answer(self.world).get("phase") == "Offered":
            accept(self.world, term=max(1, self._term))

    def succeed(self) -> None:
        """A new leader of the manager writes its term."""
        self._term += 1
        found = Key("leases", "muster-system", lease(1)["metadata"]["name"])
        self.world.api.objects.pop(found, None)
        self.world.create(lease(self._term))

    def create(self) -> None:
        """The RayCluster comes, when it is due, too early, or for an offer that is gone."""
        if not self._has("rayclusters", "a"):
            self.world.create(self.copy)

    def toggle_other(self) -> None:
        """Others come and go."""
        if self._has("rayclusters", "b"):
            self.world.delete("rayclusters", "b")
        else:
            self.world.create(gang_of("b", 1))

    def delete_copy(self) -> None:
        if self._has("rayclusters", "a"):
            self.world.delete("rayclusters", "a")

    def withdraw(self) -> None:
        if self._has("gangoffers", NAME):
            self.world.delete("gangoffers", NAME)

    def end_of_term(self) -> None:
        """The other replica leads, before all that was decided is written."""
        self.world.leader.hear_all()
        self.world.replicas.reverse()
        self.world.replicas[1].resign()
        self.world.elect(0)

    def ask_again(self) -> None:
        self._asked()


STEPS: tuple[Callable[[History], None], ...] = (
    History.accept,
    History.accept_anew,
    History.succeed,
    History.create,
    History.toggle_other,
    History.delete_copy,
    History.withdraw,
    History.end_of_term,
    History.ask_again,
)


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(SECONDS)), max_size=12))
def test_what_runs_was_started_and_what_is_closed_stays_so(
    steps: list[tuple[Callable[[History], None], float]],
) -> None:
    history = History()
    for step, seconds in steps:
        step(history)
        history.world.settle(seconds=seconds)
    judge(history.world.api.history)


def judge(changes: list[Change]) -> None:
    """Follow all changes in their order: phases by offer, and the pods of what each one owns."""
    phases: dict[str, str] = {}
    owned: dict[str, str] = {}
    pods: dict[str, str] = {}
    for change in changes:
        obj = change.new or change.old or {}
        uid = obj["metadata"]["uid"]
        if change.key.plural == "gangoffers" and change.new is not None:
            phase = str(obj["status"].get("phase", ""))
            before, phases[uid] = phases.get(uid), phase
            assert before != "Closed" or phase == "Closed", "Closed is final"
            if phase == "Closed" != before:
                mine = {each for each, offer_uid in owned.items() if offer_uid == uid}
                left = [pod for pod, cluster in pods.items() if cluster in mine]
                assert not left, "a pod is left of what is Closed"
        elif change.key == Key("rayclusters", TEAM, "a") and change.old is None:
            owned[uid] = obj["metadata"]["ownerReferences"][0]["uid"]
        elif change.key.plural == "pods":
            _follow_pod(change, obj, phases, owned, pods)


def _follow_pod(
    change: Change, obj: Json, phases: dict[str, str], owned: dict[str, str], pods: dict[str, str]
) -> None:
    uid, cluster = obj["metadata"]["uid"], obj["metadata"]["ownerReferences"][0]["uid"]
    if change.new is None:
        pods.pop(uid, None)
    elif cluster in owned:
        pods[uid] = cluster
        if not is_gated(obj):
            assert phases.get(owned[cluster]) == "Started", "a pod runs of what is not Started"


def test_a_history_that_breaks_a_rule_is_seen() -> None:
    """The judge itself: a pod that is let go although nothing was accepted."""
    history = History()
    history.world.settle(seconds=1)
    history.create()
    history.world.settle(seconds=1)
    pod = next(iter(history.world.pods("a")))
    history.world.api.change(pod, lambda obj: obj["spec"].update(schedulingGates=[]))
    with pytest.raises(AssertionError, match="not Started"):
        judge(history.world.api.history)
