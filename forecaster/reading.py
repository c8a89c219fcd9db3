"""Reads the picture of the cluster for a forecast, with the rights of the program's own account."""

from collections.abc import AsyncIterator, Iterable, MutableSequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from coordinator.deployed import Deployment, settings_of, state_of
from coordinator.messages.events import DeviceApiSeen, Event, GangSeen
from coordinator.state_machine import CoordinatorState
from forecast.picture import QUEUES, Listed, device_events, facts, rest, room, wants_devices
from kube.api.bodies import decoded
from kube.api.client import Client
from kube.api.errors import NotFound
from kube.api.resources import GANGS, Resource
from kube.codec.volumes.storage import WATCHES
from kube.device_watches import read_device_api
from kube.devices.device_facts import DEVICE_WATCHES
from kube.objects.core import DeviceObject
from kube.objects.gang import Gang
from kube.objects.names import COORDINATOR
from runtime.controller.moment import Moment

T = TypeVar("T")

DEPLOYMENTS: Final = Resource("apps", "v1", "deployments")
PAGE: Final = 2500
"""Objects in one page: fewer round trips than the client's own number, for one reader alone."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What was read; `faults` are the objects that were left out, and why."""

    events: tuple[Event, ...]
    moment: Moment
    build: partial[CoordinatorState]
    faults: tuple[str, ...]

    @property
    def gangs(self) -> Iterable[Gang]:
        """Return the Gangs."""
        return (each.gang for each in self.events if isinstance(each, GangSeen))


async def read_picture(client: Client, home: str, moment: Moment) -> Picture:
    """Read all that a coordinator would; raises KubeError where any of it cannot be read."""
    settings, unset = settings_of(await _deployment(client, home), home)
    build = partial(state_of, settings)
    trial = build()
    events: list[Event] = []
    faults = [unset] if unset else []
    for each in (QUEUES, *room(trial.known.profiles), *rest()):
        events += each.events([found async for found in _listed(client, each, faults)])
    trial.handle(events, moment)
    if trial.known.cache.is_mounting:
        events += [each async for each in _volumes(client, faults)]
    if wants_devices(trial.known.cache):
        events += [each async for each in _devices(client, faults)]
    return Picture(tuple(events), moment, build, tuple(faults))


async def read_gangs(client: Client) -> tuple[Gang, ...]:
    """Read the Gangs alone."""
    asked = Listed(GANGS, Gang, GangSeen)
    return tuple([each async for each in _listed(client, asked, [])])


async def _deployment(client: Client, home: str) -> Deployment | None:
    try:
        return await client.get(DEPLOYMENTS.path(home, COORDINATOR), as_=Deployment)
    except NotFound:
        return None


async def _volumes(client: Client, faults: MutableSequence[str]) -> AsyncIterator[Event]:
    """Yield what decides on volumes: only gangs whose pods mount claims ask for it."""
    for each in WATCHES:
        asked = Listed(each.resource, each.kind, lambda _: None, may_be_absent=True)
        for event in facts(each, [found async for found in _listed(client, asked, faults)]):
            yield event


async def _devices(client: Client, faults: MutableSequence[str]) -> AsyncIterator[Event]:
    yield DeviceApiSeen(*await read_device_api(client))
    for each in DEVICE_WATCHES:
        asked = Listed(each.resource, DeviceObject, lambda _: None, may_be_absent=True)
        found = [each.read(one) async for one in _listed(client, asked, faults)]
        for event in device_events(each, found):
            yield event


async def _listed(
    client: Client, asked: Listed, faults: MutableSequence[str]
) -> AsyncIterator[Any]:
    pages = client.list(
        asked.resource.path(),
        label_selector=asked.label_selector,
        field_selector=asked.field_selector,
        limit=PAGE,
    )
    try:
        async for page in pages:
            for each in decoded(page, asked.kind, faults):
                yield each
    except NotFound:
        if not asked.may_be_absent:
            raise
