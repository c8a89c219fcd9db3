"""Leader election: one leads, and stops before another may begin."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from kube.api.client import Client
from kube.api.leader_election import Election, Term, Timing, suspend_aware
from kube.api.lease import Observation, _Spec, free_at, succeeds_cleanly
from tests.kube.fake_api import FakeApi, eventually, hangs, resets, says

STEADY = Timing(lease_duration=60.0, renew_deadline=40.0, retry_period=0.05)
"""No pause of a busy machine ends a term."""
QUICK = Timing(lease_duration=30.0, renew_deadline=0.5, retry_period=0.05)
"""A term ends soon, but no other may begin for long after it."""


@dataclass(slots=True)
class Replica:
    """An election at work, and the terms that it led in."""

    election: Election
    terms: list[Term] = field(default_factory=list)
    leading: Term | None = None

    async def lead(self, term: Term) -> None:
        self.terms.append(term)
        self.leading = term
        try:
            await asyncio.Event().wait()
        finally:
            self.leading = None


@contextlib.asynccontextmanager
async def contending(client: Client, identity: str, **more: Any) -> AsyncIterator[Replica]:
    replica = Replica(Election(client, "ns", "muster", identity, **{"timing": STEADY} | more))
    task = asyncio.create_task(replica.election.run(replica.lead))
    try:
        yield replica
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def record(fake: FakeApi) -> dict[str, Any]:
    spec: dict[str, Any] = fake.objects["leases", "ns", "muster"]["spec"]
    return spec


# --- one replica ----------------------------------------------------------------------------


async def test_the_first_one_makes_the_lease_and_leads(fake: FakeApi, client: Client) -> None:
    async with contending(client, "one") as one:
        await eventually(lambda: one.leading)
        assert record(fake)["holderIdentity"] == "one"
        assert record(fake)["leaseTransitions"] == one.terms[0].epoch == 1
        assert record(fake)["renewTime"].endswith("Z")
        assert len(record(fake)["renewTime"]) == len("2026-01-01T00:00:00.000000Z")
        assert one.election.term is one.leading
        before = record(fake)["renewTime"]
        await eventually(lambda: record(fake)["renewTime"] != before)
        assert len(one.terms) == 1


async def test_a_clean_exit_lets_the_next_one_in_at_once(fake: FakeApi, client: Client) -> None:
    async with contending(client, "two") as two:
        async with contending(client, "one") as one:
            await eventually(lambda: one.leading or two.leading)
            leader = one if one.leading else two
        if leader is two:
            return
        await eventually(lambda: two.leading)
        assert two.terms[0].epoch == leader.terms[0].epoch + 1
    assert record(fake)["holderIdentity"] == ""
    assert record(fake)["leaseDurationSeconds"] == 1


async def lead_once(client: Client, identity: str, *, answered: bool) -> Term:
    """One term that ends in order."""
    async with contending(client, identity) as one:
        await eventually(lambda: one.leading)
        one.terms[0].answered = answered
    return one.terms[0]


@pytest.mark.parametrize("answered", [True, False])
async def test_a_term_is_clean_after_one_that_said_that_its_requests_are_over(
    client: Client, answered: bool
) -> None:
    """The first of all follows none, so it is clean too."""
    assert (await lead_once(client, "one", answered=answered)).clean
    assert (await lead_once(client, "two", answered=False)).clean is answered
    assert not (await lead_once(client, "three", answered=False)).clean, "the word of one before"


async def test_a_term_after_one_that_died_is_not_clean(fake: FakeApi, client: Client) -> None:
    """Its Lease names its holder, until it may be taken."""
    await lead_once(client, "one", answered=True)
    lease = fake.objects["leases", "ns", "muster"]
    lease["spec"] |= {"holderIdentity": "died", "leaseDurationSeconds": 0}
    assert not (await lead_once(client, "two", answered=False)).clean


@pytest.mark.parametrize(
    ("holder", "transitions", "answered", "epoch", "expected"),
    [
        ("", 4, "4", 5, True),
        (None, 4, "4", 5, True),
        ("", 4, "3", 5, False),
        ("", 4, "", 5, False),
        ("other", 4, "4", 5, False),
        ("", 4, "4", 8, False),
    ],
    ids=["given back", "no holder", "an earlier word", "no word", "held", "a Gang knows of more"],
)
def test_a_term_succeeds_cleanly_only_on_the_word_of_the_last_one(
    holder: str | None, transitions: int, answered: str, epoch: int, expected: bool
) -> None:
    spec = _Spec(holder_identity=holder, lease_transitions=transitions)
    seen = Observation("uid", "1", spec, 0.0, answered)
    assert succeeds_cleanly(seen, epoch) is expected
    assert not succeeds_cleanly(None, epoch)
    assert succeeds_cleanly(seen, 1)


async def test_the_lease_is_released_only_after_the_work_has_ended(
    fake: FakeApi, client: Client
) -> None:
    ended = asyncio.Event()
    still_ours: list[bool] = []

    async def lead(term: Term) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.1)
            still_ours.append(record(fake)["holderIdentity"] == "one" and term.valid())
            ended.set()

    election = Election(client, "ns", "muster", "one", timing=STEADY)
    task = asyncio.create_task(election.run(lead))
    await eventually(lambda: election.term)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
    assert still_ours == [True]
    assert record(fake)["holderIdentity"] == ""


@pytest.mark.parametrize("fault", ["hang", "reset", "500"])
async def test_the_work_stops_before_the_lease_can_be_taken(
    fake: FakeApi, client: Client, fault: str
) -> None:
    """What no client library does: an API server that hangs must not leave a leader behind."""
    never = asyncio.Event()
    bad = {"hang": hangs(never), "reset": resets, "500": says(500)}[fault]
    async with contending(client, "one", timing=QUICK) as one:
        await eventually(lambda: one.leading)
        fake.always.update(get=bad, patch=bad)
        cut = time.monotonic()
        await eventually(lambda: one.leading is None)
        assert time.monotonic() - cut < QUICK.lease_duration
        assert one.election.term is None
        assert not one.terms[0].valid()
        fake.always.clear()
        never.set()
        await eventually(lambda: one.leading)
        assert one.terms[1].epoch > one.terms[0].epoch, "each term has its own epoch"


async def test_a_lost_answer_does_not_end_the_term(fake: FakeApi, client: Client) -> None:
    """The write happened and the connection broke: the record is newer than the holder knows."""
    async with contending(client, "one") as one:
        await eventually(lambda: one.leading)

        async def apply_then_cut(request: Any) -> Any:
            fake._patch("leases", "ns", "muster", json.loads(await request.read()))
            return await resets(request)

        fake.fail("patch", apply_then_cut)
        writes = fake.count("patch")
        await eventually(lambda: fake.count("patch") >= writes + 5)
        assert len(one.terms) == 1
        assert one.leading


async def test_a_stolen_lease_ends_the_term(fake: FakeApi, client: Client) -> None:
    async with contending(client, "one") as one:
        await eventually(lambda: one.leading)
        first = one.terms[0]
        thief = {**record(fake), "holderIdentity": "thief", "leaseTransitions": 7}
        thief["leaseDurationSeconds"] = 1
        fake.put("leases", "muster", spec=thief)
        await eventually(lambda: one.leading is None)
        assert not first.valid()
        assert record(fake)["holderIdentity"] == "thief", "what is not ours is not released"
        await eventually(lambda: one.leading)
        assert one.terms[1].epoch == 8


async def test_a_lease_deleted_by_hand_ends_the_term_and_starts_no_count_anew(
    fake: FakeApi, client: Client
) -> None:
    written = 0
    async with contending(client, "one", floor=lambda: written) as one:
        await eventually(lambda: one.leading)
        written = 41
        fake.remove("leases", "muster")
        await eventually(lambda: len(one.terms) == 2)
        assert one.terms[1].epoch == 42


async def test_a_lease_deleted_by_hand_is_not_taken_from_its_holder(
    fake: FakeApi, client: Client
) -> None:
    held = {"holderIdentity": "other", "leaseDurationSeconds": 1, "leaseTransitions": 3}
    fake.put("leases", "muster", spec=held)
    began = time.monotonic()
    async with contending(client, "one") as one:
        await eventually(lambda: fake.count("get") >= 2)
        fake.remove("leases", "muster")
        await eventually(lambda: one.leading)
        assert time.monotonic() - began >= 1.0
        assert one.terms[0].epoch == 4


async def test_what_leads_may_give_up_its_term(fake: FakeApi, client: Client) -> None:
    epochs: list[int] = []

    async def briefly(term: Term) -> None:
        epochs.append(term.epoch)

    task = asyncio.create_task(Election(client, "ns", "muster", "x", timing=STEADY).run(briefly))
    await eventually(lambda: len(epochs) >= 3)
    task.cancel()
    assert epochs[:3] == [1, 2, 3]


async def test_what_the_work_raises_is_raised_and_the_lease_released(
    fake: FakeApi, client: Client
) -> None:
    async def broken(_: Term) -> None:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        await asyncio.wait_for(Election(client, "ns", "muster", "x", timing=STEADY).run(broken), 60)
    assert record(fake)["holderIdentity"] == ""


async def test_two_contenders_make_one_leader(fake: FakeApi, client: Client) -> None:
    async with contending(client, "one") as one, contending(client, "two") as two:
        await eventually(lambda: one.leading or two.leading)
        for _ in range(50):
            assert not (one.leading and two.leading)
            await asyncio.sleep(0.01)


# --- the clock ------------------------------------------------------------------------------


def test_a_stopped_process_finds_its_term_over() -> None:
    """Nothing in the loop ran meanwhile; the question itself looks at the clock."""
    now = 100.0
    term = Term(1, "one", 110.0, lambda: now)
    assert term.valid()
    assert term.remaining() == 10
    now = 170.0
    assert not term.valid()
    term.prolong(500.0)
    assert not term.valid(), "what lapsed stays over"


def test_the_clock_passes() -> None:
    assert 0 < suspend_aware() <= suspend_aware()


def test_a_record_is_free_when_it_says_so_or_stood_still_for_what_it_promised() -> None:
    from kube.api.lease import _Spec  # noqa: PLC0415

    def seen(**spec: Any) -> Observation:
        return Observation("u", "1", _Spec(**spec), since=100.0)

    assert free_at(None, "me", 15) < 0
    assert free_at(seen(holder_identity=""), "me", 15) < 0
    assert free_at(seen(holder_identity="me", lease_duration_seconds=9), "me", 15) < 0
    assert free_at(seen(holder_identity="it", lease_duration_seconds=9), "me", 15) == 109
    assert free_at(seen(holder_identity="it"), "me", 15) == 115


def test_a_timing_that_can_not_be_safe_is_refused() -> None:
    with pytest.raises(AssertionError):
        Timing(lease_duration=10, renew_deadline=10, retry_period=2)
