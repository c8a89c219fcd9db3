"""A webhook's certificate and authority are replaced without one call that fails."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from certs import rolling
from certs.chain import (
    LEAF_LIFETIME,
    Pair,
    expires_at,
    issue_leaf,
    needs_renewal,
    new_authority,
    service_names,
)
from certs.held import Held, read_held
from certs.plan import Step
from certs.rolling import MOST_AUTHORITIES, Wanted
from tests.certs.world import START, WANTED, Seen, World, installed, stored

DAY = timedelta(days=1)
ROLL_OVER = [Step.ANNOUNCE, Step.INJECT, Step.TRUST, Step.SWITCH, Step.DROP, Step.INJECT]


def made_by(name: str) -> bytes:
    return new_authority(name, START).certificate


# ---- the way of a roll-over


def test_the_first_certificate_is_made_and_made_known() -> None:
    world = World()
    plan = world.settle()
    assert world.steps == [Step.CREATE, Step.INJECT]
    assert world.held is not None
    assert world.bundles == [world.held.authorities] * 2
    assert plan.until is not None
    assert START + 59 * DAY < plan.until < START + 61 * DAY


def test_a_certificate_is_renewed_at_a_third_of_its_life_left_and_its_authority_with_it() -> None:
    world = installed()
    before = world.held
    world.until(START + 62 * DAY)
    assert world.steps[2:] == ROLL_OVER
    assert before is not None
    assert world.held is not None
    assert before.served is not None
    assert world.held.served != before.served
    assert not {*world.held.authorities} & {*before.authorities}
    assert expires_at(before.served.certificate) - START == LEAF_LIFETIME


def test_no_key_that_can_sign_is_kept() -> None:
    world = installed()
    world.now = START + 61 * DAY
    world.act(world.see())
    held = world.held
    assert held is not None
    assert held.following is not None
    assert held.authority_key is None
    kept = {each.key for each in (held.served, held.following) if each is not None}
    for authority in held.authorities:
        public = x509.load_pem_x509_certificate(authority).public_key()
        for key in kept:
            mine = serialization.load_pem_private_key(key, password=None).public_key()
            assert mine != public


@st.composite
def disorder(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Two processes that look and act in any order, are killed in between, and time that passes."""
    one = st.one_of(
        st.tuples(st.sampled_from(["look", "act"]), st.integers(0, 1)),
        st.tuples(st.just("partly"), st.integers(0, 1)),
        st.tuples(st.just("pass"), st.sampled_from([1, 10, 31, 400, 3700])),
    )
    return draw(st.lists(one, max_size=40))


@given(rounds=st.lists(disorder(), min_size=3, max_size=3))
def test_three_roll_overs_in_any_disorder_fail_no_call(
    rounds: list[list[tuple[str, int]]],
) -> None:
    world = installed()
    for number, round_ in enumerate(rounds, 1):
        world.until(START + 61 * number * DAY)
        _shuffle(world, round_)
        world.until(world.now + 2 * DAY)
        assert world.held is not None
        assert len(world.held.authorities) == 1
        assert world.bundles == [world.held.authorities] * 2
    assert world.steps.count(Step.SWITCH) == 3


def _shuffle(world: World, round_: list[tuple[str, int]]) -> None:
    seen: list[Seen] = [world.see(), world.see()]
    for what, number in round_:
        if what == "look":
            seen[number] = world.see()
        elif what == "act":
            world.act(seen[number])
        elif what == "partly":
            world.act(seen[number], configurations=1)
        else:
            world.now += timedelta(seconds=number)
        world.expect_no_call_fails()


def test_a_process_that_was_held_up_cannot_put_an_old_bundle_back() -> None:
    world = installed()
    world.trust(0, ())
    world.trusted.clear()
    late = world.see()  # is about to fill in the authority of now
    world.now = START + 61 * DAY
    world.settle()
    assert not world.act(late)
    world.until(world.now + timedelta(hours=3))


def test_a_bundle_that_is_emptied_on_the_way_has_the_wait_begin_anew() -> None:
    world = installed()
    world.now = START + 61 * DAY
    assert world.settle().step is Step.WAIT
    world.now += timedelta(seconds=29)
    world.trust(1, ())
    world.settle()
    assert world.steps[-3:] == [Step.DOUBT, Step.INJECT, Step.TRUST]
    world.now += timedelta(seconds=29)
    assert world.settle().step is Step.WAIT
    world.now += timedelta(seconds=1)
    world.settle()
    assert world.steps[-1] is Step.SWITCH


@pytest.mark.parametrize("when", [Step.TRUST, Step.SWITCH])
def test_a_time_in_the_future_is_not_waited_for(when: Step) -> None:
    """The clock was put back: what it once noted would be waited for for ever."""
    world = installed()
    world.now = START + 61 * DAY
    while world.steps[-1] is not when:
        if not world.act(world.see()):
            world.now += timedelta(seconds=31)
    assert world.held is not None
    future = world.now + 9 * DAY
    noted = replace(world.held, served_since=future)
    if when is Step.TRUST:
        noted = replace(noted, trusted_since=future)
    world.put(noted)
    world.until(world.now + timedelta(hours=3))
    assert len(world.held.authorities) == 1


# ---- what is broken


def _broken(name: str) -> Held:
    """A Secret that is of no use, or of little."""
    world = installed()
    held = world.held
    assert held is not None
    assert held.served is not None
    other = issue_leaf(new_authority("x", START), WANTED.names, START)
    return {
        "empty": Held(),
        "no key": replace(held, served=None),
        "another's key": replace(held, served=Pair(held.served.certificate, other.key)),
        "another's pair": replace(held, served=other),
        "rubbish": replace(held, served=Pair(b"rubbish", b"rubbish")),
        "no authority": replace(held, authorities=()),
        "rubbish for an authority": replace(held, authorities=(b"rubbish",)),
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        "empty",
        "no key",
        "another's key",
        "another's pair",
        "rubbish",
        "no authority",
        "rubbish for an authority",
    ],
)
def test_a_secret_that_is_of_no_use_is_replaced_at_once(name: str) -> None:
    world = World(held=stored(_broken(name)), now=START + DAY)
    world.settle()
    assert world.steps == [Step.REPLACE, Step.INJECT]
    world.forget()
    world.until(world.now + 3 * DAY)
    assert world.held is not None
    assert world.held.ours
    assert rolling.served_fault(world.held, world.now) == ""


def test_replicas_that_run_are_trusted_while_a_damaged_secret_is_replaced() -> None:
    """They serve the pair that they read before; all that is left of its authority is caBundle."""
    world = installed()
    before = world.held
    assert before is not None
    world.put(stored(Held()))
    world.settle()
    assert world.steps[2:] == [Step.REPLACE, Step.INJECT]
    assert all({*before.authorities} < {*bundle} for bundle in world.bundles)
    world.forget()
    world.until(world.now + DAY)
    assert not any({*before.authorities} & {*bundle} for bundle in world.bundles)


def test_what_ran_out_while_all_was_down_is_replaced_at_once() -> None:
    world = installed()
    world.now = START + 400 * DAY
    world.settle()
    assert world.steps[-2:] == [Step.REPLACE, Step.INJECT]
    world.forget()
    world.until(world.now + DAY)


def test_what_was_to_follow_and_ran_out_is_made_anew() -> None:
    world = installed()
    world.now = START + 61 * DAY
    world.settle()
    before = world.held
    assert before is not None
    assert before.served is not None
    assert before.following is not None
    world.now = START + 130 * DAY
    assert needs_renewal(before.following.certificate, world.now)
    # What is served would last: another one was put there by hand.
    authority = new_authority(WANTED.authority, START)
    served = issue_leaf(authority, WANTED.names, START, 900 * DAY)
    world.put(replace(before, served=served, authorities=(authority.certificate,)))
    for at in (0, 1):
        world.trust(at, (authority.certificate,))
    world.forget()
    world.settle()
    assert Step.ANNOUNCE in world.steps[-3:]
    world.until(world.now + DAY)
    assert world.steps.count(Step.SWITCH) == 1


def test_an_authority_that_only_a_configuration_still_has_is_taken_from_there() -> None:
    world = installed()
    held = world.held
    assert held is not None
    world.put(replace(held, authorities=()))
    world.settle()
    assert world.steps[2:] == [Step.RECOVER]
    assert world.held is not None
    assert world.held.authorities == held.authorities


def test_a_certificate_for_other_names_is_rolled_over() -> None:
    world = installed()
    wanted = Wanted(WANTED.authority, service_names("another", "muster-system"))
    plan = rolling.next_step(world.held, world.see().bundles, wanted, world.now)
    assert plan.step is Step.ANNOUNCE
    assert "not for" in plan.why


def test_a_secret_that_is_deleted_is_made_anew_and_the_authority_before_stays_trusted() -> None:
    """Replicas serve what they read before, until the kubelet brings the new one."""
    world = installed()
    before = world.held
    assert before is not None
    world.held, world.version = None, world.version + 1
    world.settle()
    assert world.held is not None
    assert {*before.authorities} < {*world.held.authorities}
    world.forget()
    world.until(world.now + DAY)
    assert len(world.held.authorities) == 1


def test_roll_overs_that_are_begun_again_and_again_do_not_fill_the_bundle() -> None:
    world = installed()
    held = world.held
    assert held is not None
    for _ in range(9):
        held = rolling.changed(Step.ANNOUNCE, held, (), WANTED, START + 61 * DAY)
    assert len(held.authorities) == MOST_AUTHORITIES
    assert held.anchor is not None


# ---- what others did


def test_an_authority_that_others_put_into_a_bundle_stays_and_one_of_ours_of_before_goes() -> None:
    world = installed()
    theirs, stale = made_by("their-ca"), made_by(WANTED.authority)
    world.trust(0, (theirs, stale, *world.bundles[0]))
    world.until(START + 70 * DAY)
    assert world.held is not None
    assert world.bundles == [(theirs, *world.held.authorities), world.held.authorities]
    assert rolling.foreign(world.bundles[0], world.held, WANTED.authority) == 1


def test_a_secret_that_others_made_is_never_written() -> None:
    authority = new_authority("their-ca", START)
    held = Held(
        authorities=(authority.certificate,),
        served=issue_leaf(authority, WANTED.names, START),
        ours=False,
    )
    world = World(held=held, now=START + 80 * DAY)
    plan = world.settle()
    assert world.steps == [Step.INJECT]
    assert world.held is held
    assert world.bundles == [held.authorities] * 2
    assert plan.until is not None


@pytest.mark.parametrize("authorities", [(), (made_by("x"),)])
def test_a_secret_that_others_made_and_that_is_of_no_use_is_told(
    authorities: tuple[bytes, ...],
) -> None:
    leaf = issue_leaf(new_authority("their-ca", START), WANTED.names, START)
    world = World(held=Held(authorities=authorities, served=leaf, ours=False))
    plan = world.settle()
    assert plan.step is Step.BLOCKED
    assert "not made by muster-certs" in plan.why
    assert world.steps == []


def test_what_is_no_base64_or_no_time_counts_as_missing() -> None:
    notes = {
        "certs.muster.dev/trusted-since": "soon",
        "certs.muster.dev/served-since": "2026-01-01",
    }
    held = read_held({"ca.crt": "%%%", "tls.crt": "eA=="}, {}, notes)
    assert held.faults == ("ca.crt is not base64", "tls.key is missing")
    assert (held.trusted_since, held.served_since) == (None, None)
    assert not held.ours
