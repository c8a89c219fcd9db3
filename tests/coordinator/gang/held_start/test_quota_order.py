"""Whose turn it is among gangs that share a ResourceQuota."""

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from coordinator.gang.held_start.quota_order import Stake, Tier, Turn, in_order, turn_of
from kube.foreseen.namespace_quota import Amounts
from scheduling.model.gang import GangKey

CPU, PODS = ("compute", "requests.cpu"), ("few", "pods")


def key(name: str) -> GangKey:
    return GangKey("team", name)


def gated(name: str, arrived: float, *, has: int, lacks: int = 0) -> Stake:
    uses = {CPU: has}
    needs = {CPU: lacks} if lacks else {}
    return Stake(key(name), Tier.WAITS, 0, arrived, uses, needs, may_make_way=True)


def held(name: str, arrived: float, *, lacks: int) -> Stake:
    return Stake(key(name), Tier.WAITS, 0, arrived, needs={CPU: lacks}, is_held=True)


def turn(free: int, *stakes: Stake) -> Turn:
    return turn_of(stakes, {CPU: free})


def names(turn: Turn) -> dict[str, str]:
    return {each.name: other.name for each, other in turn.makes_way.items()}


def test_the_later_of_two_makes_way() -> None:
    a, b = gated("a", 1, has=4, lacks=1), gated("b", 2, has=4, lacks=1)
    assert names(turn(0, a, b)) == names(turn(0, b, a)) == {"b": "a"}


def test_running_gangs_come_first_then_those_that_stay_then_priority_age_and_name() -> None:
    stakes = [
        Stake(key("never"), Tier.NEVER_FITS, 9, 0),
        Stake(key("b"), Tier.WAITS, 0, 2),
        Stake(key("a"), Tier.WAITS, 0, 2),
        Stake(key("old"), Tier.WAITS, 0, 1),
        Stake(key("urgent"), Tier.WAITS, 5, 3),
        Stake(key("service"), Tier.STAYS, 0, 9),
        Stake(key("runs"), Tier.STARTED, 0, 9),
    ]
    found = [each.key.name for each in in_order(stakes)]
    assert found == ["runs", "service", "urgent", "old", "a", "b", "never"]


def test_no_more_make_way_than_needed_the_last_first() -> None:
    a = gated("a", 1, has=4, lacks=2)
    small, large = gated("b", 2, has=1), gated("c", 3, has=3)
    assert names(turn(0, a, small, large)) == {"c": "a"}
    assert names(turn(0, a, replace(small, arrived=4), large)) == {"c": "a"}
    assert names(turn(1, a, replace(small, arrived=4), large)) == {"b": "a"}


def test_none_makes_way_where_that_would_not_do() -> None:
    assert names(turn(0, gated("a", 1, has=4, lacks=3), gated("b", 2, has=2))) == {}


def test_none_makes_way_for_what_comes_free_anyway() -> None:
    gone = Stake(key("x"), Tier.STARTED, uses={CPU: 4}, leaves={CPU: 4})
    a, b = gated("a", 1, has=4, lacks=4), gated("b", 2, has=4)
    assert names(turn(0, gone, a, b)) == {}
    assert names(turn(0, gone, replace(a, needs={CPU: 5}), b)) == {"b": "a"}


def test_what_is_free_is_for_the_first() -> None:
    a, b, c = gated("a", 1, has=4, lacks=2), held("b", 2, lacks=4), held("c", 3, lacks=1)
    found = turn(5, a, b, c)
    assert found.fits == {key("a")}
    assert found.before[key("b")] == {CPU: 2}
    assert found.before[key("c")] == {CPU: 6}
    assert turn(6, a, b, c).fits == {key("a"), key("b"), key("c")}


def test_one_that_never_fits_makes_way_at_once_and_claims_nothing() -> None:
    never = replace(gated("never", 1, has=4), tier=Tier.NEVER_FITS)
    assert names(turn(8, never)) == {"never": "never"}
    assert names(turn(0, never, gated("a", 2, has=4, lacks=1))) == {"never": "never"}


# --- the first always gets to start ---------------------------------------------------------------


@dataclass
class Gang:
    """A gang of pods that each take one of the quota of pods, and some CPUs."""

    stake: Stake
    size: int
    cpus: int
    exist: int = 0
    refused: bool = False
    suspended: bool = False
    over: bool = False

    def amounts(self, pods: int) -> Amounts:
        return {CPU: pods * self.cpus, PODS: pods} if pods else {}

    def now(self) -> Stake:
        runs, exist = self.exist == self.size, self.amounts(self.exist)
        lacks = self.amounts(self.size - self.exist)
        asks = self.suspended or self.refused
        stays = self.stake.tier is Tier.STAYS
        return replace(
            self.stake,
            tier=Tier.STARTED if runs else self.stake.tier,
            uses=exist,
            needs=lacks if asks else {},
            may_make_way=not (stays or runs or self.suspended),
            is_held=self.suspended,
        )


class Namespace:
    """What KubeRay, a controller of strangers and Muster do to gangs under two quotas."""

    def __init__(self, hard: Amounts, gangs: list[Gang]) -> None:
        self.hard, self.gangs, self.strange = hard, gangs, 0

    def free(self) -> dict[tuple[str, str], int]:
        taken = [each.amounts(each.exist) for each in self.gangs]
        taken.append({CPU: self.strange, PODS: self.strange})
        return {each: n - sum(of.get(each, 0) for of in taken) for each, n in self.hard.items()}

    def admits(self, amounts: Amounts) -> bool:
        free = self.free()
        return all(amount <= free[each] for each, amount in amounts.items())

    def room(self) -> list[int]:
        return [n + self.strange for n in self.free().values()]

    def make_pods(self, gang: Gang) -> None:
        """KubeRay's work: one pod after the other, until one is refused."""
        while not (gang.suspended or gang.over) and gang.exist < gang.size:
            gang.refused = not self.admits(gang.amounts(1))
            if gang.refused:
                return
            gang.exist += 1

    def waiting(self) -> list[Gang]:
        return [each for each in self.gangs if not each.over and each.exist < each.size]

    def decide(self) -> None:
        """Muster's: suspend who makes way, wake and resume whose turn it is."""
        of = {each.stake.key: each for each in self.gangs}
        stakes = [each.now() for each in self.gangs if not each.over]
        found, ordered = turn_of(stakes, self.free()), [each.key for each in in_order(stakes)]
        for each, wanted_by in found.makes_way.items():
            assert ordered.index(wanted_by) < ordered.index(each)
            of[each].exist, of[each].suspended, of[each].refused = 0, True, False
        for each in (each for each in ordered if each in found.fits):
            if not of[each].suspended or self.admits(of[each].amounts(of[each].size)):
                of[each].suspended = False
                self.make_pods(of[each])

    def end(self, gang: Gang) -> None:
        if gang.exist == gang.size:
            gang.over, gang.exist = True, 0


@st.composite
def namespaces(draw: st.DrawFn) -> Namespace:
    cpus, pods = draw(st.integers(4, 20)), draw(st.integers(2, 12))
    gangs = []
    for at in range(draw(st.integers(2, 6))):
        each = draw(st.integers(1, 3))
        size = draw(st.integers(1, min(pods, cpus // each)))
        tier = Tier.STAYS if at == 0 and draw(st.booleans()) else Tier.WAITS
        stake = Stake(key(f"g{at}"), tier, draw(st.integers(0, 2)), draw(st.integers(0, 3)))
        gangs.append(Gang(stake, size, each))
    return Namespace({CPU: cpus, PODS: pods}, gangs)


@given(namespaces(), st.data())
def test_every_gang_starts_in_the_end_whatever_kuberay_and_strangers_do(
    world: Namespace, data: st.DataObject
) -> None:
    """The first of those that wait is never suspended, and once nothing else runs it starts."""
    chosen = st.sampled_from(world.gangs)
    for _ in range(data.draw(st.integers(0, 25))):
        match data.draw(st.sampled_from(["kuberay", "muster", "stranger", "end"])):
            case "kuberay":
                world.make_pods(data.draw(chosen))
            case "muster":
                world.decide()
            case "stranger":
                world.strange = max(0, min(data.draw(st.integers(0, 6)), *world.room()))
            case "end":
                world.end(data.draw(chosen))
    world.strange = 0
    for _ in range(len(world.gangs)):
        for each in data.draw(st.permutations(world.gangs)):
            world.make_pods(each)
        for _ in range(len(world.gangs)):
            world.decide()
        for each in world.gangs:
            world.end(each)
    assert not world.waiting()


def test_a_later_gang_makes_way_for_what_was_promised_and_nobody_waits_for_it_twice() -> None:
    """`free` is what is left beside the promise: here it is overdrawn."""
    promised = Stake(key("p"), Tier.STARTED, 0, 1, {CPU: 3}, {CPU: 2}, is_promised=True)
    later = gated("b", 2, has=4, lacks=1)
    found = turn(-2, promised, later)
    assert names(found) == {"b": "p"}
    assert found.before[key("b")] == {}
    kept = turn(1, promised, later)
    assert names(kept) == {}
    assert kept.fits == {key("p"), key("b")}
