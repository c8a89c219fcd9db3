"""With any rule of the protocol left out a gang runs on two members; with all of them it does not.

Each story is the shortest that was found, some of them by random histories.
"""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dispatcher.protocol import dispatching, offering
from dispatcher.protocol.dispatching import Leader, ObservedMember
from dispatcher.protocol.objects import Lease, Offer, Phase, Record
from dispatcher.protocol.steps import Accept, Ask, CopyStamp, Retry
from tests.dispatcher.model import LOST_AFTER, Coming, Replica, TwoRunError, World

Story = Callable[[World], None]


# ---- what happens in a story


def act(world: World, *names: str) -> Coming | None:
    """Have the leader read the record and some members, and send what is next; that is late."""
    world.read_record(world.newest)
    return finish(world, world.newest, *names)


def finish(world: World, replica: Replica, *names: str) -> Coming | None:
    before = len(world.coming)
    for name in names:
        world.read_member(replica, name)
    world.decide(replica)
    return next(iter(world.coming[before:][-1:]), None)


def arrive(world: World, message: Coming | None) -> None:
    if message is not None:
        world.arrive(message)
        world.check()


def look(world: World, name: str, times: int = 1) -> None:
    """Have a coordinator look at all of its offers, and write what it decides."""
    member = world.members[name]
    world.read_lease(member)
    for _ in range(times):
        for attempt in list(member.offers):
            world.look(member, attempt)
            if member.starting is not None:
                world.start(member)
            world.check()


def until(world: World, kind: type, name: str) -> Coming:
    """Go on with one member, up to the first write of a kind; that one did not arrive."""
    for _ in range(20):
        message = act(world, name)
        if message is not None and isinstance(message.content, kind):
            return message
        arrive(world, message)
        look(world, name)
    raise AssertionError(f"no {kind.__name__} to {name}: {world.record}")


def run(world: World, name: str) -> None:
    """Have the attempt of now run on a member, if it may."""
    renew(world, name)
    for _ in range(8):
        arrive(world, act(world, name))
        look(world, name)


def renew(world: World, name: str) -> None:
    """Have a member say that it is there, if it may, and that be written back."""
    world.read_lease(world.members[name])
    world.stamp(world.members[name])
    world.read_record(world.newest)
    world.read_member(world.newest, name)
    for each in list(world.coming):
        if isinstance(each.content, CopyStamp):
            arrive(world, each)


def lose(world: World) -> None:
    """Let the time pass after which a member counts as lost."""
    world.leap()
    world.leap()


def asked_again(world: World, name: str) -> None:
    """Have a late copy of the first request make an offer of the first attempt anew."""
    arrive(world, Coming(Ask(name, 1, world.lost_after)))
    look(world, name)


def forget(world: World, name: str) -> None:
    """Have somebody delete an offer, and its member let it go."""
    world.delete_by_hand(world.members[name])
    look(world, name, times=2)


# ---- stories


def both_offer(world: World) -> None:
    """Both members have offered before one of them is on record."""
    for name in ("a", "b"):
        arrive(world, Coming(Ask(name, 1)))
        look(world, name)
    for _ in range(8):
        arrive(world, act(world, "a", "b"))
        look(world, "a")
        look(world, "b")


def slow_start(world: World) -> None:
    """A coordinator has decided to start what is accepted, and is not that far yet."""
    arrive(world, until(world, Accept, "a"))
    member = world.members["a"]
    world.look(member, 1)
    run(world, "b")
    arrive(world, act(world, "a"))
    run(world, "b")
    world.start(member)
    world.check()


def late_acceptance(world: World) -> None:
    """The offer is gone when its acceptance comes, and there is another one of its name."""
    late = until(world, Accept, "a")
    forget(world, "a")
    arrive(world, act(world, "a"))
    run(world, "b")
    asked_again(world, "a")
    arrive(world, late)
    look(world, "a")


def earlier_leader(world: World) -> None:
    """A leader of before has read the record, and goes on when another one leads."""
    until(world, Accept, "a")
    former = world.newest
    world.elect()
    arrive(world, act(world))
    forget(world, "a")
    world.read_record(former)
    for _ in range(2):
        arrive(world, act(world, "a"))
    run(world, "b")
    asked_again(world, "a")
    arrive(world, finish(world, former, "a"))
    look(world, "a")


def late_retry_of_another(world: World) -> None:
    """What a leader of before gave up runs, and then its next attempt is written."""
    until(world, Accept, "a")
    forget(world, "a")
    lose(world)
    late = act(world)
    assert late is not None
    assert isinstance(late.content, Retry)
    world.elect()
    _runs_after_all(world)
    arrive(world, late)
    run(world, "b")


def late_retry_of_its_own(world: World) -> None:
    """A leader goes on with what it gave up, as its next attempt is not written yet."""
    until(world, Accept, "a")
    forget(world, "a")
    lose(world)
    late = act(world)
    _runs_after_all(world)
    arrive(world, late)
    run(world, "b")


def _runs_after_all(world: World) -> None:
    """The lost member is back, with a new offer of the first attempt."""
    renew(world, "a")
    asked_again(world, "a")
    for _ in range(6):
        message = act(world, "a")
        if message is not None and not isinstance(message.content, Retry):
            arrive(world, message)
        look(world, "a")


def cut_off(world: World) -> None:
    """A gang runs, and its member cannot be read."""
    run(world, "a")
    lose(world)
    arrive(world, act(world))
    run(world, "b")


def cut_off_shortly(world: World) -> None:
    run(world, "a")
    arrive(world, act(world))
    run(world, "b")


def cut_off_under_the_rule_of_before(world: World) -> None:
    """A gang that was to wait for its member runs there, and its queue has another rule by now."""
    run(world, "a")
    world.lost_after = LOST_AFTER
    lose(world)
    arrive(world, act(world))
    run(world, "b")


def of_an_older_release(world: World) -> None:
    """A member whose Muster knows no fence offers."""
    world.members["a"].is_old = True
    run(world, "a")
    lose(world)
    arrive(world, act(world))
    run(world, "b")


def back_with_an_accepted_one(world: World) -> None:
    """A member is back that did not come to start what is accepted."""
    arrive(world, until(world, Accept, "a"))
    lose(world)
    arrive(world, act(world))
    run(world, "b")
    look(world, "a")


def back_with_an_open_one(world: World) -> None:
    """A member is back, and says so, before an acceptance of long ago comes."""
    late = until(world, Accept, "a")
    lose(world)
    arrive(world, act(world))
    run(world, "b")
    renew(world, "a")
    arrive(world, late)
    look(world, "a")


# ---- each with its rule


def any_offer(leader: Leader, cluster: str, offer: Offer) -> Accept:
    return Accept(cluster, offer.attempt, leader.term, "", 0)


def over_once_accepted(seen: ObservedMember) -> bool:
    return seen.offer is None or seen.offer.phase is Phase.CLOSED or bool(seen.offer.accepted_by)


def of_any_leader(offer: Offer, _lease: Lease) -> bool:
    return bool(offer.accepted_by)


def too_long(lease: Lease, lost_after: float) -> float:
    return (lease.copied or 0.0) + lost_after


def that_of_the_queue(_record: Record) -> float:
    return LOST_AFTER


def always(*_: object) -> bool:
    return True


def never(*_: object) -> bool:
    return False


RULES: list[tuple[Story, ModuleType, str, Callable[..., Any], bool]] = [
    (both_offer, dispatching, "may_accept", always, False),
    (slow_start, dispatching, "is_over", over_once_accepted, False),
    (late_acceptance, dispatching, "acceptance", any_offer, False),
    (earlier_leader, dispatching, "has_member", always, False),
    (earlier_leader, offering, "may_start", of_any_leader, False),
    (late_retry_of_another, dispatching, "has_record", always, True),
    (late_retry_of_its_own, dispatching, "has_retried", never, True),
    (cut_off_shortly, dispatching, "fence_is_over", always, True),
    (of_an_older_release, dispatching, "is_bound", always, True),
    (cut_off_under_the_rule_of_before, dispatching, "fence_of", that_of_the_queue, False),
    (cut_off, offering, "may_run_until", too_long, True),
    (back_with_an_accepted_one, offering, "has_run_out", never, True),
    (back_with_an_open_one, offering, "is_stale", never, True),
    (back_with_an_open_one, offering, "may_stamp", always, True),
]
IDS = [f"{story.__name__}-{rule}" for story, _, rule, _, _ in RULES]


@pytest.mark.parametrize(("story", "where", "rule", "without", "requeues"), RULES, ids=IDS)
def test_without_the_rule_two_run(
    story: Story,
    where: ModuleType,
    rule: str,
    without: Callable[..., Any],
    requeues: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story(World(requeues=requeues))
    monkeypatch.setattr(where, rule, without)
    with pytest.raises(TwoRunError):
        story(World(requeues=requeues))


def test_an_offer_that_is_created_accepted_runs_beside_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both_offer(World(requeues=False))
    create = World._create

    def create_accepted(world: World, member: Any, content: Ask) -> None:
        create(world, member, content)
        offer = member.offers[content.attempt]
        world.put(member, Offer(offer.attempt, offer.uid, accepted_by=1))

    monkeypatch.setattr(World, "_create", create_accepted)
    with pytest.raises(TwoRunError):
        both_offer(World(requeues=False))


def test_every_rule_has_its_story() -> None:
    """What the two modules have between "the rules" and the next part."""
    told = {rule for _, _, rule, _, _ in RULES}
    for module in (dispatching, offering):
        assert module.__file__ is not None
        text = Path(module.__file__).read_text().partition("# ---- the rules")[2]
        part = text.partition("\n# ---- ")[0]
        assert {line.split("(")[0][4:] for line in part.splitlines() if line[:4] == "def "} <= told


def test_a_member_counts_as_lost_after_its_gangs_have_ended() -> None:
    assert offering.may_run_until(Lease(copied=0.0), LOST_AFTER) == LOST_AFTER - 120
