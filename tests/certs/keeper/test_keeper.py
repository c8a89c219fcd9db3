"""Steps are taken in the cluster, in order, whatever others do meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta

import pytest
from aiohttp import web

from certs.chain import belong_together, serves
from certs.cluster import Cluster
from certs.keeper import CertsError, Keeper, OfWebhook
from certs.refusals import LONGEST
from certs.rolling import READ
from kube.api.errors import Forbidden, ServerError
from kube.objects.names import CONFIGURATION_HEARD as HEARD
from tests.certs.api import LEASES, MUTATING, SECRET, SECRETS, VALIDATING, Api, refused
from tests.certs.keeper.kept import DAY, Clock
from tests.certs.world import WANTED


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
            with contextlib.suppress(ServerError, CertsError):
                await keeper.look()
            clock.now += LONGEST
    assert len(api.held.authorities) == 1
    assert api.bundles == [api.held.authorities] * 2


async def test_what_is_always_refused_ends(api: Api, keeper: Keeper) -> None:
    api.fault = lambda _: refused(409, "Conflict")
    with pytest.raises(CertsError, match="cannot be written: 409 Conflict"):
        await keeper.look()


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


async def test_a_bundle_that_is_no_certificate_is_replaced(api: Api, keeper: Keeper) -> None:
    await keeper.look()
    for rubbish in ("%%%", "cnViYmlzaA==", ""):
        found = api.objects[VALIDATING]
        found["webhooks"][0]["clientConfig"]["caBundle"] = rubbish
        await keeper.look()
        assert api.bundle(VALIDATING) == api.held.authorities


async def test_the_lease_is_not_its_business(api: Api, keeper: Keeper) -> None:
    await keeper.look()
    assert not [path for path in api.objects if path.startswith(LEASES)]
