"""Configurations that are refused, missing, or of others hold up nothing else."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from aiohttp import web

from certs.chain import expires_at, issue_leaf, new_authority
from certs.held import anchor_of
from certs.keeper import CertsError, Keeper
from certs.plan import Step
from certs.refusals import LONGEST
from certs.rolling import LAST, served_fault
from kube.api.errors import Forbidden
from kube.objects.names import CONFIGURATION_HEARD as HEARD
from tests.certs.api import MUTATING, SECRET, SECRETS, VALIDATING, Api, calling, refused
from tests.certs.keeper.kept import DAY, START, Clock
from tests.certs.world import WANTED


async def test_webhooks_that_change_places_are_not_mixed_up(api: Api, keeper: Keeper) -> None:
    def reorder(request: web.Request) -> None:
        if request.path == MUTATING:
            api.fault = lambda _: None
            found = api.objects[MUTATING]
            api.put(MUTATING, {**found, "webhooks": found["webhooks"][::-1]})

    api.fault = reorder
    await keeper.look()
    assert api.bundle(MUTATING, 0) == api.held.authorities
    assert api.bundle(MUTATING, 1) == ()


# ---- one that is refused, and the others


def _refuses(path: str, status: int, reason: str) -> Callable[[web.Request], web.Response | None]:
    return lambda request: refused(status, reason) if request.path == path else None


def _changes_back(api: Api, path: str) -> Callable[[str], None]:
    """What another controller does that holds the configuration as it once was."""
    before = copy.deepcopy(api.objects[path])

    def undo(written: str) -> None:
        if written == path:
            api.put(path, copy.deepcopy(before))

    return undo


def _has(api: Api, path: str) -> bool:
    """Whether a webhook accepts what is served."""
    index = 1 if path == MUTATING else 0
    held = api.held
    return held.served is not None and anchor_of(held.served, api.bundle(path, index)) is not None


def _withhold(api: Api, way: str, path: str) -> None:
    match way:
        case "no right":
            api.fault = _refuses(path, 403, "Forbidden")
        case "a policy":
            api.fault = _refuses(path, 422, "Invalid")
        case "another controller":
            api.after = _changes_back(api, path)
        case "not read":
            api.unreadable = path


@pytest.mark.parametrize(
    ("way", "path", "other"),
    [
        ("no right", MUTATING, VALIDATING),
        pytest.param("a policy", VALIDATING, MUTATING, marks=pytest.mark.long),
        pytest.param("another controller", MUTATING, VALIDATING, marks=pytest.mark.long),
        ("not read", VALIDATING, MUTATING),
    ],
)
async def test_one_that_is_refused_for_a_life_lets_no_other_lapse(
    api: Api, keeper: Keeper, clock: Clock, way: str, path: str, other: str
) -> None:
    await keeper.look()
    await _pass(keeper, clock, timedelta(hours=2))
    first = api.held.served
    _withhold(api, way, path)
    lost: datetime | None = None
    while clock.now < START + 100 * DAY:
        is_old = clock.now > START + 58 * DAY
        await _pass(keeper, clock, timedelta(hours=12) if is_old else 5 * DAY)
        assert served_fault(api.held, clock.now) == ""
        assert _has(api, other)
        if not _has(api, path):
            lost = lost or clock.now
            assert any(each.startswith(path) for each in keeper.refused)
    assert first is not None
    assert lost is not None
    assert timedelta() < expires_at(first.certificate) - lost <= LAST  # as late as it can be
    api.fault, api.after, api.unreadable = lambda _: None, lambda _: None, ""
    await _pass(keeper, clock, 2 * LONGEST)
    assert keeper.refused == ()
    assert api.bundles == [api.held.authorities] * 2


async def _pass(keeper: Keeper, clock: Clock, passed: timedelta) -> None:
    """Let time pass, and have looks as often as a fault has them come, for a minute or two."""
    clock.now += passed
    for _ in range(3):
        await keeper.look()
        clock.now += HEARD


async def test_one_that_is_given_back_in_time_is_waited_for(
    api: Api, keeper: Keeper, clock: Clock
) -> None:
    await keeper.look()
    first = api.held.served
    clock.now += 61 * DAY
    _withhold(api, "no right", MUTATING)
    for _ in range(27):
        await _pass(keeper, clock, DAY)
        assert api.held.served == first
        assert api.held.trusted_since is None
    api.fault = lambda _: None
    clock.now += LONGEST
    await keeper.look()
    assert keeper.refused == ()
    assert api.held.trusted_since == clock.now  # the wait of all begins only now
    await _pass(keeper, clock, HEARD)
    assert api.held.served != first
    assert _has(api, MUTATING)


async def test_one_that_is_refused_is_tried_ever_more_rarely(
    api: Api, keeper: Keeper, clock: Clock
) -> None:
    tried: list[datetime] = []

    def fault(request: web.Request) -> web.Response | None:
        if request.path != MUTATING:
            return None
        tried.append(clock.now)
        return refused(403, "Forbidden")

    api.fault = fault
    while clock.now < START + timedelta(minutes=5):
        await keeper.look()
        clock.now += timedelta(seconds=5)
    pauses = [(b - a).total_seconds() for a, b in itertools.pairwise(tried)]
    assert pauses == [5, 10, 20, 40, 60, 60, 60]


async def test_a_secret_that_is_refused_keeps_no_configuration_from_what_is_served(
    api: Api, keeper: Keeper, clock: Clock
) -> None:
    await keeper.look()
    clock.now += 61 * DAY
    api.fault = _refuses(f"{SECRETS}/{SECRET}", 403, "Forbidden")
    api.objects[MUTATING]["webhooks"][1]["clientConfig"]["caBundle"] = ""
    with pytest.raises(Forbidden):
        await keeper.look()
    assert _has(api, MUTATING)
    with pytest.raises(CertsError, match="cannot be written: 403"):
        await keeper.look()
    api.fault = lambda _: None
    clock.now += LONGEST
    await keeper.look()
    assert len(api.held.authorities) == 2


# ---- what others did


async def test_a_missing_configuration_is_told_and_keeps_nothing_else_back(
    api: Api, keeper: Keeper
) -> None:
    del api.objects[MUTATING]
    look = await keeper.look()
    assert "mutatingwebhookconfigurations/muster-webhook: there is no such" in look.fault
    assert api.bundle(VALIDATING) == api.held.authorities


async def test_a_configuration_without_our_webhook_is_told(api: Api, keeper: Keeper) -> None:
    api.put(MUTATING, {"webhooks": [calling("other", "other")]})
    assert "no webhook calls Service" in (await keeper.look()).fault


async def test_a_configuration_that_cert_manager_fills_is_left_to_it(
    api: Api, keeper: Keeper
) -> None:
    found = api.objects[MUTATING]
    notes = {"cert-manager.io/inject-ca-from": "muster-system/muster-webhook"}
    api.put(MUTATING, {**found, "metadata": {"annotations": notes}})
    look = await keeper.look()
    assert "has cert-manager fill caBundle" in look.fault
    assert api.bundle(MUTATING, 1) == ()
    assert api.bundle(VALIDATING) == api.held.authorities


async def test_a_secret_of_others_is_told_of_and_not_written(
    api: Api, keeper: Keeper, clock: Clock
) -> None:
    await keeper.look()
    api.hold(replace(api.held, ours=False))
    writes = list(api.writes)
    clock.now += 80 * DAY
    look = await keeper.look()
    assert look.said == (
        "Secret muster-system/muster-webhook-tls left alone: not made by muster-certs",
    )
    assert api.writes == writes
    api.hold(replace(api.held, served=None))
    assert "not made by muster-certs, and of no use" in (await keeper.look()).fault
    assert api.writes == writes


async def test_a_secret_that_cert_manager_took_over_is_never_written(
    api: Api, keeper: Keeper, clock: Clock
) -> None:
    """It leaves our label in place, and what it wrote is of an authority that is not ours."""
    await keeper.look()
    authority = new_authority("their-ca", START)
    theirs = issue_leaf(authority, WANTED.names, START)
    api.hold(replace(api.held, authorities=(authority.certificate,), served=theirs))
    meta = api.objects[f"{SECRETS}/{SECRET}"]["metadata"]
    meta["annotations"] = {"cert-manager.io/certificate-name": "muster-webhook"}
    before = api.held
    for days in (0, 61, 100):
        clock.now = START + days * DAY
        look = await keeper.look()
        assert "written by cert-manager (Certificate muster-webhook)" in look.plan.why
        assert api.held == before
    (said,) = look.said
    assert said.startswith("Secret muster-system/muster-webhook-tls left alone: ")
    assert said.endswith("written by cert-manager (Certificate muster-webhook)")
    assert all(authority.certificate in each for each in api.bundles)


async def test_a_bundle_with_an_authority_of_others_keeps_it(api: Api, keeper: Keeper) -> None:
    await keeper.look()
    theirs = new_authority("their-ca", START)
    bundle = (theirs.certificate, *api.held.authorities)
    for each in (await keeper._cluster.see()).calling:
        await keeper._cluster.inject([each], lambda _: bundle)
    assert (await keeper.look()).plan.step is Step.WAIT
    assert api.bundles == [bundle] * 2
