"""Steps are taken in the cluster, in order, whatever others do meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from certs.chain import belong_together, new_authority, serves
from certs.cluster import MUTATING as MUTATING_KIND
from certs.cluster import VALIDATING as VALIDATING_KIND
from certs.cluster import Cluster, Place
from certs.keeper import CertsError, Keeper, OfWebhook
from certs.plan import Step
from certs.rolling import READ
from kube.api.client import Client
from kube.api.errors import Forbidden, ServerError
from kube.objects.names import CONFIGURATION_HEARD as HEARD
from tests.certs.api import LEASES, MUTATING, SECRET, SECRETS, VALIDATING, Api, calling, refused
from tests.certs.world import WANTED

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
NAME = "muster-webhook"
PLACE = Place("muster-system", SECRET, NAME, ((MUTATING_KIND, NAME), (VALIDATING_KIND, NAME)))


@dataclass
class Clock:
    """A time that moves when it is told to."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock(api: Api) -> Clock:
    clock = Clock()
    api.clock = clock
    return clock


@pytest.fixture
def cluster(client: Client) -> Cluster:
    return Cluster(client, PLACE)


@pytest.fixture
def keeper(cluster: Cluster, clock: Clock) -> Keeper:
    return Keeper(cluster, OfWebhook(WANTED), now=clock)


async def test_the_first_look_makes_a_pair_that_serves(api: Api, keeper: Keeper) -> None:
    look = await keeper.look()
    held = api.held
    assert held.served is not None
    assert belong_together(held.served)
    assert serves(held.served.certificate, WANTED.names)
    assert api.objects[f"{SECRETS}/{SECRET}"]["type"] == "kubernetes.io/tls"
    assert set(api.objects[f"{SECRETS}/{SECRET}"]["data"]) == {"ca.crt", "tls.crt", "tls.key"}
    assert look.said == (
        "Secret muster-system/muster-webhook-tls created",
        "caBundle of webhook pods.muster.dev set",
        "caBundle of webhook v.muster.dev set",
    )
    assert not any("PRIVATE" in line for line in look.said)


async def test_only_webhooks_that_call_the_service_get_the_authority(
    api: Api, keeper: Keeper
) -> None:
    await keeper.look()
    assert api.bundle(MUTATING, 0) == ()
    assert api.bundles == [api.held.authorities] * 2


async def test_a_second_look_writes_nothing(api: Api, keeper: Keeper, clock: Clock) -> None:
    await keeper.look()
    writes = list(api.writes)
    clock.now += DAY
    look = await keeper.look()
    assert api.writes == writes
    assert look.said == ("Secret muster-system/muster-webhook-tls kept",)


async def test_a_roll_over_from_its_begin_to_its_end(
    api: Api, keeper: Keeper, clock: Clock
) -> None:
    await keeper.look()
    before = api.held
    clock.now += 61 * DAY
    await keeper.look()
    assert api.held.served == before.served
    assert api.bundles == [api.held.authorities] * 2
    assert len(api.held.authorities) == 2
    clock.now += HEARD
    await keeper.look()
    assert api.held.served != before.served
    clock.now += READ
    await keeper.look()
    assert api.bundles == [api.held.authorities] * 2
    assert len(api.held.authorities) == 1
    assert set(api.objects[f"{SECRETS}/{SECRET}"]["data"]) == {"ca.crt", "tls.crt", "tls.key"}


async def test_many_at_once_agree(api: Api, cluster: Cluster, clock: Clock) -> None:
    """The election keeps most of them from writing; without it they agree all the same."""
    for after in (timedelta(), 61 * DAY, HEARD, READ):
        clock.now += after
        keepers = [Keeper(cluster, OfWebhook(WANTED), now=clock) for _ in range(5)]
        await asyncio.gather(*(each.look() for each in keepers))
    assert len(api.held.authorities) == 1
    assert api.bundles == [api.held.authorities] * 2
    assert (
        api.writes.count("secrets") == 5 == len(("create", "announce", "trust", "switch", "drop"))
    )


def _once(status: int, reason: str) -> Callable[[web.Request], web.Response | None]:
    """Refuse the first write to each object."""
    met: set[str] = set()

    def fault(request: web.Request) -> web.Response | None:
        if request.path in met:
            return None
        met.add(request.path)
        return refused(status, reason)

    return fault


@pytest.mark.parametrize(("status", "reason"), [(409, "Conflict"), (422, "Invalid")])
async def test_a_lost_race_is_looked_at_anew(
    api: Api, keeper: Keeper, status: int, reason: str
) -> None:
    api.fault = _once(status, reason)
    await keeper.look()
    assert api.bundles == [api.held.authorities] * 2


async def test_a_refused_write_is_an_error_and_the_next_look_goes_on(
    api: Api, keeper: Keeper, clock: Clock
) -> None:
    await keeper.look()
    clock.now += 61 * DAY
    for after in (timedelta(), HEARD, READ):
        clock.now += after
        api.fault = _once(500, "InternalError")
        for _ in range(5):
            try:
                await keeper.look()
            except ServerError:
                continue
            break
        else:
            pytest.fail("not done")
    assert len(api.held.authorities) == 1
    assert api.bundles == [api.held.authorities] * 2


async def test_what_is_always_refused_ends(api: Api, keeper: Keeper) -> None:
    api.fault = lambda _: refused(409, "Conflict")
    with pytest.raises(CertsError, match="not done after"):
        await keeper.look()


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


# ---- who may write, and when


async def test_without_the_lease_nothing_is_written(
    api: Api, cluster: Cluster, clock: Clock
) -> None:
    keeper = Keeper(cluster, OfWebhook(WANTED), now=clock, may_write=lambda: False)
    with pytest.raises(CertsError, match="another replica leads"):
        await keeper.look()
    assert api.writes == []


@pytest.mark.parametrize("wrong", [timedelta(days=400), timedelta(days=-400), timedelta(minutes=6)])
async def test_with_a_wrong_clock_nothing_is_written(
    api: Api, keeper: Keeper, clock: Clock, wrong: timedelta
) -> None:
    """A certificate of a year ahead is refused by every server with the right time."""
    await keeper.look()
    writes = list(api.writes)
    clock.now += 61 * DAY
    real = clock.now
    api.clock = lambda: real
    clock.now += wrong
    with pytest.raises(CertsError, match="the clock here says"):
        await keeper.look()
    assert api.writes == writes
    clock.now = real + timedelta(minutes=4)
    await keeper.look()
    assert len(api.held.authorities) == 2


async def test_missing_rights_are_an_error(api: Api, keeper: Keeper) -> None:
    api.fault = lambda _: refused(403, "Forbidden")
    with pytest.raises(Forbidden):
        await keeper.look()
    assert api.writes == []


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


async def test_a_bundle_that_is_no_certificate_is_replaced(api: Api, keeper: Keeper) -> None:
    await keeper.look()
    for rubbish in ("%%%", "cnViYmlzaA==", ""):
        found = api.objects[VALIDATING]
        found["webhooks"][0]["clientConfig"]["caBundle"] = rubbish
        await keeper.look()
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
        "Secret muster-system/muster-webhook-tls kept, which muster-certs did not make",
    )
    assert api.writes == writes
    api.hold(replace(api.held, served=None))
    assert "not made by muster-certs, and of no use" in (await keeper.look()).fault
    assert api.writes == writes


async def test_a_bundle_with_an_authority_of_others_keeps_it(api: Api, keeper: Keeper) -> None:
    await keeper.look()
    theirs = new_authority("their-ca", START)
    cluster_seen = await keeper._cluster.see()
    bundle = (theirs.certificate, *api.held.authorities)
    await keeper._cluster.inject(cluster_seen.calling, lambda _: bundle)
    assert (await keeper.look()).plan.step is Step.WAIT
    assert api.bundles == [bundle] * 2


async def test_the_lease_is_not_its_business(api: Api, keeper: Keeper) -> None:
    await keeper.look()
    assert not [path for path in api.objects if path.startswith(LEASES)]
