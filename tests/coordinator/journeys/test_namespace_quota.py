"""Gangs of a namespace whose ResourceQuota does not hold all of them."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects import names
from tests.coordinator.api import key_of
from tests.coordinator.app_wrappers import app_wrapper, job, nodes_of, pods_of
from tests.coordinator.builders import TEAM, Json, foreign_pod, gang_of, node
from tests.coordinator.namespace_quota import CPUS, QuotaWorld, cpus_used
from tests.coordinator.ray_jobs import owned_by, ray_job, ray_service
from tests.coordinator.stopping import go_until
from tests.examples import examples

HOUR = 3600.0


def two_that_met() -> QuotaWorld:
    """Two gangs of 5 CPUs wait for the 8 of the quota; KubeRay tries the later one sooner."""
    world = QuotaWorld(8, node("n1", cpu=100), gang_of("x", 3))
    world.settle(seconds=10)
    world.create(gang_of("qa", 4))
    world.settle(seconds=1400)
    world.create(gang_of("qb", 4))
    world.settle(seconds=100)
    return world


def test_a_quota_refuses_the_pods_of_a_gang_that_are_beyond_it() -> None:
    world = two_that_met()
    assert (world.gated("qa"), world.gated("qb"), cpus_used(world.api)) == (4, 0, 8)
    assert world.status("qa")["reason"] == "PodsRefused"
    assert "exceeded quota: compute" in world.status("qa")["message"]


def test_a_gang_alone_starts_once_the_quota_has_room() -> None:
    world = two_that_met()
    world.delete("rayclusters", "qb")
    world.delete("rayclusters", "x")
    world.settle(seconds=HOUR)
    assert world.bound("qa") == {"n1": 5}


def test_of_two_gangs_that_share_a_quota_the_first_starts_and_then_the_second() -> None:
    world = two_that_met()
    world.delete("rayclusters", "x")
    world.settle(seconds=HOUR)
    assert world.bound("qa") == {"n1": 5}
    world.delete("rayclusters", "qa")
    world.settle(seconds=HOUR)
    assert world.bound("qb") == {"n1": 5}


def test_a_quota_that_is_deleted_wakes_kuberay_for_all_that_it_refused() -> None:
    world = two_that_met()
    world.delete("resourcequotas", "compute")
    world.settle(seconds=10)
    assert (world.bound("qa"), world.bound("qb")) == ({"n1": 5}, {"n1": 5})


def run_one_after_another(world: QuotaWorld, names: list[str]) -> list[str]:
    """Delete each gang once it runs; return in which order they ran."""
    ran: list[str] = []
    for _ in names:
        world.settle(seconds=HOUR)
        now = [name for name in names if name not in ran and world.bound(name).total() == 5]
        for name in now:
            world.delete("rayclusters", name)
        ran += now
    return ran


def urgent(cluster: Json, value: int) -> Json:
    for each in (cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]):
        each["template"]["spec"]["priority"] = value
    return cluster


@pytest.mark.parametrize("count", [3, 10])
def test_many_gangs_that_came_at_once_run_in_their_order(count: int) -> None:
    """Each takes some of the quota as it can, and none has all that it needs."""
    names = [f"g{at}" for at in range(count)]
    world = QuotaWorld(8, node("n1", cpu=100), gang_of("x", 7))
    world.settle(seconds=10)
    world.create(*(gang_of(name, 4) for name in names))
    world.settle(seconds=10)
    world.delete("rayclusters", "x")
    assert run_one_after_another(world, names) == names


def early_and_late() -> QuotaWorld:
    """A gang has 4 of 5 CPUs, and a more urgent one has none."""
    world = QuotaWorld(8, node("n1", cpu=100), gang_of("x", 3))
    world.settle(seconds=10)
    world.create(gang_of("early", 4))
    world.settle(seconds=10)
    world.create(urgent(gang_of("late", 4), 100))
    world.settle(seconds=100)
    return world


def test_a_gang_of_higher_priority_comes_first_and_the_other_says_that_it_made_way() -> None:
    world = early_and_late()
    assert world.gated("early") == 4  # it holds too little to be of help
    world.delete("rayclusters", "x")
    world.settle(seconds=HOUR)
    assert world.bound("late") == {"n1": 5}
    status = world.status("early")
    assert (status["reason"], status["held"]["phase"]) == ("PodsRefused", "Waiting")
    assert "the gang needs 5000m of requests.cpu; 3000m of 8000m are left" in status["message"]
    assert "of requests.cpu in it late has 5000m" in status["message"]
    assert "made way for late, which comes before it in a ResourceQuota" in status["message"]
    world.delete("rayclusters", "late")
    world.settle(seconds=HOUR)
    assert world.bound("early") == {"n1": 5}


def test_a_gang_that_no_limit_holds_is_suspended_and_told_so_at_once() -> None:
    world = QuotaWorld(4, node("n1", cpu=100), gang_of("large", 4))
    world.settle(seconds=10)
    status = world.status("large")
    assert (status["reason"], world.pods("large")) == ("PodsRefused", [])
    assert "a ResourceQuota never admits all of it" in status["message"]
    world.create(gang_of("small", 3))
    world.settle(seconds=60)
    assert world.bound("small") == {"n1": 4}
    world.delete("rayclusters", "small")
    raise_quota(world, 5)
    world.settle(seconds=HOUR)
    assert world.bound("large") == {"n1": 5}


def raise_quota(world: QuotaWorld, cpus: int) -> None:
    """Also lowers it."""
    found = next(world.api.all("resourcequotas"))
    hard = {"hard": {CPUS: str(cpus)}}
    world.api.change(found, lambda obj: obj.update(spec=hard, status={**obj["status"], **hard}))


def test_a_quota_that_is_lowered_and_raised_again_starts_each_gang_once() -> None:
    world = two_that_met()
    raise_quota(world, 4)
    world.settle(seconds=100)
    raise_quota(world, 14)
    world.settle(seconds=HOUR)
    assert (world.bound("qa"), world.bound("qb")) == ({"n1": 5}, {"n1": 5})


def test_a_gang_that_others_resume_does_not_make_way_again() -> None:
    """It comes before those that can be suspended, though they are more urgent."""
    world = early_and_late()
    world.delete("rayclusters", "x")
    world.settle(seconds=60)
    assert world.status("early")["held"]["phase"] == "Waiting"
    for _ in range(3):
        world.edit("early", suspend=False)
        world.settle(seconds=60)
    world.create(urgent(gang_of("third", 2), 200))
    world.settle(seconds=60)
    assert (world.gated("early"), world.status("early").get("held")) == (3, None)
    world.delete("rayclusters", "late")
    world.settle(seconds=HOUR)
    assert (world.bound("early"), world.bound("third")) == ({"n1": 5}, {"n1": 3})


def service(world: QuotaWorld, name: str) -> Json:
    """A Ray cluster that cannot be suspended."""
    world.create(ray_service(f"{name}-service"))
    owner = next(e for e in world.api.all("rayservices") if name in e["metadata"]["name"])
    return owned_by(owner, gang_of(name, 4))


def test_a_ray_service_comes_before_gangs_that_can_be_suspended() -> None:
    world = two_that_met()
    world.create(service(world, "served"))
    world.delete("rayclusters", "x")
    assert run_one_after_another(world, ["qa", "qb", "served"]) == ["served", "qa", "qb"]


def test_two_gangs_that_cannot_be_suspended_name_each_other() -> None:
    world = QuotaWorld(8, node("n1", cpu=100), gang_of("x", 3))
    world.settle(seconds=10)
    world.create(service(world, "one"))
    world.settle(seconds=1400)
    world.delete("rayclusters", "x")
    world.create(service(world, "two"))
    world.settle(seconds=100)
    assert (world.gated("one"), world.gated("two")) == (4, 4)
    for name, other in (("one", "two"), ("two", "one")):
        said = "of requests.cpu in it one has 4000m, two has 4000m"
        stuck = f"{other} lacks it too and cannot be suspended: delete one of them"
        assert f"{said}; {stuck}" in world.status(name)["message"]
    world.delete("rayclusters", "two")
    world.settle(seconds=HOUR)
    assert world.bound("one") == {"n1": 5}


def test_the_gang_of_a_ray_job_with_a_deadline_makes_way_too() -> None:
    world = QuotaWorld(8, node("n1", cpu=100), gang_of("x", 7))
    world.settle(seconds=10)
    world.create(gang_of("qa", 4), ray_job("timed", gang_of("", 4), activeDeadlineSeconds=90_000))
    world.settle(seconds=10)
    world.delete("rayclusters", "x")
    world.settle(seconds=HOUR)
    assert world.bound("qa") == {"n1": 5}
    world.delete("rayclusters", "qa")
    world.settle(seconds=HOUR)
    job = next(world.api.all("rayjobs"))
    assert world.bound(job["status"]["rayClusterName"]) == {"n1": 5}


def test_an_app_wrapper_waits_in_the_same_order() -> None:
    """It waits without pods, and what is left is for it, though a later gang is smaller."""
    world = QuotaWorld(8, node("n1", cpu=100), gang_of("x", 3))
    world.settle(seconds=10)
    world.create(app_wrapper("w", job("work", 6)))
    world.settle(seconds=10)
    world.create(gang_of("late", 4))
    world.settle(seconds=100)
    world.delete("rayclusters", "x")
    world.settle(seconds=60)
    assert (len(pods_of(world.api, "w")), world.pods("late")) == (6, [])
    assert world.status("late")["held"]["phase"] == "Waiting"


def test_a_leader_that_takes_over_suspends_none_twice() -> None:
    world = two_that_met()
    world.delete("rayclusters", "x")
    for _ in range(6):
        world.settle(seconds=1)
        world.leader.restart()
        world.elect(0)
    assert run_one_after_another(world, ["qa", "qb"]) == ["qa", "qb"]


def held_ahead(cluster: Json) -> Json:
    """What the webhook makes of a Ray cluster for which the quota has no room."""
    cluster["spec"]["suspend"] = True
    cluster["metadata"]["annotations"] |= {names.HELD: "true"}
    return cluster


def test_gangs_that_were_held_ahead_take_no_quota_and_start_in_their_order() -> None:
    world = QuotaWorld(8, node("n1", cpu=100), gang_of("x", 3))
    world.settle(seconds=10)
    world.create(held_ahead(gang_of("qa", 4)), held_ahead(urgent(gang_of("qb", 4), 100)))
    world.settle(seconds=60)
    assert (world.pods("qa"), world.pods("qb"), cpus_used(world.api)) == ([], [], 4)
    assert world.status("qb")["held"]["phase"] == "Waiting"
    said = "ResourceQuota compute: the gang needs 5000m of requests.cpu; 4000m of 8000m are left"
    assert said in world.status("qb")["message"]
    world.delete("rayclusters", "x")
    assert run_one_after_another(world, ["qa", "qb"]) == ["qb", "qa"]
    assert all(obj["spec"]["suspend"] is False for obj in world.api.all("rayclusters"))


def test_a_later_gang_with_a_part_of_its_pods_makes_way_for_one_that_was_held_ahead() -> None:
    world = QuotaWorld(8, node("n1", cpu=100), gang_of("x", 3))
    world.settle(seconds=10)
    world.create(gang_of("early", 4))
    world.settle(seconds=10)
    world.create(held_ahead(urgent(gang_of("late", 4), 100)))
    world.settle(seconds=100)
    assert (world.gated("early"), world.pods("late")) == (4, [])
    world.delete("rayclusters", "x")
    assert run_one_after_another(world, ["early", "late"]) == ["late", "early"]


def test_a_gang_that_was_held_ahead_starts_though_smaller_ones_keep_coming() -> None:
    """They find room as they are created; what comes free is for the one that was first."""
    world = QuotaWorld(8, node("n1", cpu=100), gang_of("x", 3))
    world.settle(seconds=10)
    world.create(held_ahead(gang_of("large", 7)))
    world.settle(seconds=10)
    world.create(gang_of("small", 1))
    world.settle(seconds=60)
    assert world.bound("small") == {"n1": 2}
    world.delete("rayclusters", "x")
    world.create(held_ahead(gang_of("late", 6)))
    world.settle(seconds=60)
    assert (world.pods("large"), world.pods("late")) == ([], [])
    world.delete("rayclusters", "small")
    world.settle(seconds=60)
    assert world.bound("large") == {"n1": 8}


def test_what_was_promised_to_a_gang_is_given_back_by_one_that_took_it_meanwhile() -> None:
    """Its pods come a moment after the promise; what others took by then, none of them can use."""
    world = QuotaWorld(8, node("n1", cpu=100))
    world.create(held_ahead(gang_of("promised", 4)))
    (cluster,) = world.api.all("rayclusters")
    go_until(world, lambda: not world.api.get(key_of(cluster))["spec"]["suspend"])
    assert world.pods("promised") == []
    world.create(foreign_pod("stranger", "n1", cpu=1), gang_of("a", 7))
    world.settle(seconds=0.5)
    assert (world.gated("a"), world.pods("promised")) == (7, [])
    world.settle(seconds=30)
    assert world.bound("promised") == {"n1": 5}
    assert world.status("a")["held"]["phase"] == "Waiting"
    assert "made way for promised" in world.status("a")["message"]


# --- whatever comes, in whatever order ------------------------------------------------------------


@st.composite
def events(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Gangs that come, strangers that take quota, gangs that are resumed by hand, and time."""
    kinds = ["gang", "gang", "job", "wrapped", "strangers", "resume", "end", "time"]
    return draw(st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 6)), min_size=3))


@given(st.integers(4, 9), events())
@examples(30, otherwise=3)
def test_every_gang_of_a_namespace_starts_once_strangers_and_running_gangs_end(
    cpus: int, course: list[tuple[str, int]]
) -> None:
    """Nothing but the first may be suspended for ever, so each has its turn."""
    play = Play(QuotaWorld(cpus, node("n1", cpu=100)), cpus)
    for kind, number in course[:8]:
        play.do(kind, number)
    play.end_strangers()
    for _ in play.left.copy():
        play.world.settle(seconds=4000)
        play.end_all_that_run()
    assert play.left == []


@dataclass
class Play:
    """What happens in a namespace."""

    world: QuotaWorld
    cpus: int
    left: list[str] = field(default_factory=list)
    """Gangs that did not run yet."""
    made: int = 0
    resumed: bool = False
    """Whether one gang cannot be suspended any more; two of them may block each other."""

    def do(self, kind: str, number: int) -> None:
        name = f"{kind}-{self.made}"
        self.made += 1
        workers = min(number, self.cpus - 1)
        match kind:
            case "gang":
                self._come(name, urgent(gang_of(name, workers), number % 2))
            case "job":
                self._come(name, ray_job(name, gang_of("", workers), activeDeadlineSeconds=10**6))
            case "wrapped":
                self._come(name, app_wrapper(name, job(f"work-{name}", workers + 1)))
            case "strangers":
                free = self.cpus - cpus_used(self.world.api)
                found = (foreign_pod(f"{name}-{at}", "n1") for at in range(min(number, free)))
                self.world.create(*found)
            case "resume":
                self._resume(number)
            case "end":
                self.end_all_that_run()
            case _:
                self.world.settle(seconds=10.0**number / 100)

    def _come(self, name: str, made: Json) -> None:
        self.world.create(made)
        self.left.append(name)

    def _resume(self, number: int) -> None:
        """A person sets `suspend: false` on one that is suspended."""
        held = [e for e in self.world.api.all("rayclusters") if e["spec"].get("suspend")]
        if held and not self.resumed:
            self.resumed = True
            self.world.edit(held[number % len(held)]["metadata"]["name"], suspend=False)

    def end_strangers(self) -> None:
        api = self.world.api
        for each in [pod for pod in api.all("pods") if pod["metadata"]["namespace"] != TEAM]:
            api.remove(key_of(each))

    def end_all_that_run(self) -> None:
        for name in self.left.copy():
            plural, is_running = self._found(name)
            if is_running:
                self.world.delete(plural, name)
                self.left.remove(name)

    def _found(self, name: str) -> tuple[str, bool]:
        """Of which kind a gang is, and whether all of it runs."""
        api, kind = self.world.api, name.partition("-")[0]
        if kind == "wrapped":
            return "appwrappers", bool(nodes_of(api, name))
        if kind == "job":
            found = next(each for each in api.all("rayjobs") if each["metadata"]["name"] == name)
            cluster = (found.get("status") or {}).get("rayClusterName", "")
            return "rayjobs", bool(cluster and self.world.bound(cluster))
        return "rayclusters", bool(self.world.bound(name))
