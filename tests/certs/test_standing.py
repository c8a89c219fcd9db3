"""A kube-scheduler that runs does not lose the extender; that one must be restarted is told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest

from certs import standing
from certs.chain import (
    CA_LIFETIME,
    LEAF_LIFETIME,
    Pair,
    ServerNames,
    anchor,
    belong_together,
    expires_at,
    is_named,
    issue_client,
    issue_leaf,
    new_authority,
    serves,
    starts_at,
)
from certs.held import Held, anchor_of
from certs.plan import Plan, Step
from certs.standing import LAST, LOADED, OVERLAP, Wanted, restart_by
from tests.certs.world import stored

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
WANTED = Wanted(
    "muster-extender-tls-ca",
    ServerNames(("muster-extender",), (ip_address("127.0.0.1"),)),
    "system:kube-scheduler",
)


@dataclass
class Scheduler:
    """A kube-scheduler, with the files that it was started with; it reads the client's anew."""

    authorities: tuple[bytes, ...]
    client: Pair
    started: datetime


@dataclass
class World:
    """The Secret, and the kube-schedulers."""

    held: Held | None = None
    now: datetime = START
    steps: list[tuple[datetime, Step]] = field(default_factory=list)
    schedulers: list[Scheduler] = field(default_factory=list)

    def settle(self) -> Plan:
        for _ in range(20):
            plan = standing.next_step(self.held, WANTED, self.now)
            if plan.step in (Step.WAIT, Step.BLOCKED):
                return plan
            self.held = stored(standing.changed(plan.step, self.held, WANTED, self.now))
            self.steps.append((self.now, plan.step))
            self.expect_service()
        raise AssertionError(self.steps)

    def until(self, moment: datetime) -> None:
        while True:
            plan = self.settle()
            assert plan.until is not None
            assert plan.until > self.now
            if plan.until > moment:
                break
            self.now = plan.until
        self.now = moment

    def start_scheduler(self) -> None:
        assert self.held is not None
        assert self.held.client is not None
        self.schedulers.append(Scheduler(self.held.authorities, self.held.client, self.now))

    def expect_service(self) -> None:
        """Each kube-scheduler trusts what is served, and is trusted."""
        assert self.held is not None
        assert self.held.served is not None
        for each in self.schedulers:
            for pair, trusted in (
                (self.held.served, each.authorities),
                (each.client, self.held.authorities),
            ):
                assert anchor(pair.certificate, trusted) is not None, each.started
                assert starts_at(pair.certificate) <= self.now < expires_at(pair.certificate)

    def taken(self, step: Step) -> list[datetime]:
        return [when for when, each in self.steps if each is step]


def installed() -> World:
    world = World()
    world.settle()
    world.now += timedelta(hours=2)
    return world


def test_what_is_made_first_fits() -> None:
    held = installed().held
    assert held is not None
    assert held.served is not None
    assert held.client is not None
    assert belong_together(held.served)
    assert serves(held.served.certificate, WANTED.names)
    assert is_named(held.client.certificate, WANTED.client)
    assert held.anchor == anchor_of(held.client, held.authorities) == held.authorities[0]
    assert expires_at(held.served.certificate) - START == LEAF_LIFETIME
    assert expires_at(held.client.certificate) - START == CA_LIFETIME


def test_the_servers_certificate_is_renewed_and_no_scheduler_notices() -> None:
    world = installed()
    world.start_scheduler()
    world.until(START + 190 * DAY)
    assert [when - START > DAY for when in world.taken(Step.RENEW)] == [True] * 3
    assert world.held is not None
    assert len(world.held.authorities) == 1
    assert restart_by(world.held) is None


def test_in_thirty_years_no_scheduler_that_is_restarted_every_two_years_is_refused() -> None:
    world = installed()
    two_years = OVERLAP - LAST - 2 * LOADED
    for _ in range(15):
        world.start_scheduler()
        world.schedulers = [
            each for each in world.schedulers if world.now - each.started < two_years
        ]
        world.until(world.now + two_years / 2)
        world.start_scheduler()
        world.until(world.now + two_years / 2)
    assert len(world.taken(Step.SUCCEED)) == 3


def test_of_a_succession_an_operator_is_told_two_years_before() -> None:
    world = installed()
    world.until(START + CA_LIFETIME - OVERLAP - DAY)
    assert world.held is not None
    assert restart_by(world.held) is None
    world.until(world.now + 2 * DAY)
    due = restart_by(world.held)
    assert due == START + CA_LIFETIME - LAST
    before = world.held
    world.until(due - timedelta(seconds=1))
    assert world.held.served == before.served
    world.until(due)
    world.settle()
    assert world.held.served != before.served
    assert restart_by(world.held) is None


def test_the_schedulers_new_certificate_is_handed_out_once_extenders_accept_it() -> None:
    world = installed()
    world.until(START + CA_LIFETIME - OVERLAP + timedelta(minutes=1))
    (succeeded,) = world.taken(Step.SUCCEED)
    assert world.taken(Step.HAND_OUT) == []
    world.until(world.now + DAY)
    assert world.taken(Step.HAND_OUT) == [succeeded + LOADED]


def test_a_secret_of_an_earlier_release_serves_on_and_gets_a_successor() -> None:
    """Its authority has no key: what it signed lasts for a year at most."""
    authority = new_authority(WANTED.authority, START)
    earlier = Held(
        authorities=(authority.certificate,),
        served=issue_leaf(authority, WANTED.names, START, 365 * DAY),
        client=issue_client(authority, WANTED.client, START, 365 * DAY),
    )
    world = World(held=stored(earlier), now=START + 100 * DAY)
    world.start_scheduler()
    world.until(START + 363 * DAY)
    assert world.held is not None
    assert world.held.served == earlier.served
    assert restart_by(world.held) == START + 364 * DAY
    world.schedulers.clear()
    world.start_scheduler()
    world.until(START + 500 * DAY)
    assert restart_by(world.held) is None


@pytest.mark.parametrize("what", ["served", "client"])
def test_a_pair_that_is_of_no_use_is_made_anew_below_the_same_authority(what: str) -> None:
    world = installed()
    held = world.held
    assert held is not None
    strange = issue_leaf(new_authority("x", START), WANTED.names, START)
    for damaged in (None, strange, Pair(b"rubbish", b"rubbish")):
        changes = {what: damaged}
        world.held = stored(replace(held, **changes))  # type: ignore[arg-type]
        world.settle()
        assert world.held is not None
        assert world.held.authorities == held.authorities
        assert anchor_of(getattr(world.held, what), held.authorities) is not None


def test_a_lost_key_of_the_authority_is_followed_by_a_successor_and_what_is_served_stays() -> None:
    world = installed()
    held = world.held
    assert held is not None
    world.start_scheduler()
    for lost in (None, b"rubbish"):
        world.held = stored(replace(held, authority_key=lost))
        world.settle()
        assert world.held.served == held.served
        assert len(world.held.authorities) == 2
        assert restart_by(world.held) is not None


def test_after_ten_years_of_standstill_all_is_made_anew_at_once() -> None:
    world = installed()
    world.now = START + 2 * CA_LIFETIME
    world.settle()
    world.start_scheduler()
    world.until(world.now + 100 * DAY)
    assert world.held is not None
    assert len(world.held.authorities) == 1


def test_another_name_of_the_caller_gets_a_certificate() -> None:
    world = installed()
    other = replace(WANTED, client="another")
    assert standing.next_step(world.held, other, world.now).step is Step.HAND_OUT


def test_another_address_of_the_server_gets_a_certificate() -> None:
    world = installed()
    other = replace(WANTED, names=ServerNames(("another",)))
    plan = standing.next_step(world.held, other, world.now)
    assert (plan.step, "not for" in plan.why) == (Step.RENEW, True)


def test_another_address_while_a_successor_waits_is_a_fault_that_an_operator_can_end() -> None:
    """The authority of what is served has no key: another certificate would be of the next one."""
    world = installed()
    world.until(START + CA_LIFETIME - OVERLAP + DAY)
    before = world.held
    assert before is not None
    other = replace(WANTED, names=ServerNames(("muster-extender",), (ip_address("10.0.0.9"),)))
    plan = standing.next_step(before, other, world.now)
    assert plan.step is Step.BLOCKED
    assert "tls.crt is not for muster-extender, 10.0.0.9, " in plan.why
    assert "signs no more until 2035-12-29" in plan.why
    assert plan.until is not None
    assert standing.next_step(before, WANTED, world.now).step is Step.WAIT
    due = restart_by(before)
    assert due is not None
    assert standing.next_step(before, other, due).step is Step.RENEW

    world.start_scheduler()
    emptied = replace(before, served=None)
    assert standing.next_step(emptied, other, world.now).step is Step.REPLACE
    world.held = stored(standing.changed(Step.REPLACE, emptied, other, world.now))
    assert world.held.served is not None
    assert serves(world.held.served.certificate, other.names)
    assert standing.next_step(world.held, other, world.now).step is Step.WAIT
    world.expect_service()


def test_a_secret_that_others_made_is_left_alone() -> None:
    held = installed().held
    assert held is not None
    theirs = replace(held, ours=False)
    assert standing.next_step(theirs, WANTED, START + DAY).step is Step.WAIT
    assert standing.next_step(theirs, WANTED, START + 99 * DAY).step is Step.BLOCKED
    nothing = replace(theirs, served=None)
    assert standing.next_step(nothing, WANTED, START + DAY).step is Step.BLOCKED
