"""Reads what a coordinator decides on, as its watches would deliver it at their start."""

import asyncio
import dataclasses
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from cli.endings import CannotRead, NotAllowed, NotServed
from cli.fitting.unseen_parents import with_unseen_parents
from cli.read.devices import device_facts
from cli.read.own_queues import get_queues, only
from cli.read.reader import Reader
from coordinator.messages.events import (
    DeviceApiSeen,
    Event,
    NamespaceSeen,
    QueueSeen,
)
from forecast.picture import QUEUES, RULES, Listed, device_events, facts, namespaced, rest, room
from kube.api import resources
from kube.api.kinds import Kind
from kube.codec.profiles.scheduler_profiles import Profiles
from kube.codec.volumes.storage import WATCHES, StorageWatch
from kube.devices.device_facts import DEVICE_WATCHES, GROUP
from kube.objects.core import Namespace


@dataclass(frozen=True, slots=True)
class Picture:
    """What was read. `unread` says what could not be, and what is not judged therefore."""

    events: tuple[Event, ...]
    unread: tuple[str, ...] = ()
    missing: frozenset[str] = frozenset()
    """The kinds that may not be read, by plural name."""
    roomless: bool = False
    absent: frozenset[str] = frozenset()
    """The namespaces that are asked about and do not exist."""
    unlabelled: frozenset[str] = frozenset()
    """The namespaces that are asked about of which the caller may not read the labels."""

    def beside(self, other: "Picture") -> "Picture":
        """Return both together."""
        return Picture(
            (*self.events, *other.events),
            (*self.unread, *other.unread),
            self.missing | other.missing,
            self.roomless or other.roomless,
            self.absent | other.absent,
            self.unlabelled | other.unlabelled,
        )


async def read_picture(
    reader: Reader, profiles: Profiles, namespaces: Sequence[str], queues: Collection[str]
) -> Picture:
    """Read all but volumes; raises CannotRead where not even these queues can be read."""
    kinds = (*room(profiles), *rest())
    found = await asyncio.gather(_queues(reader, queues), *(_read(reader, each) for each in kinds))
    picture = _with_absent(_joined(found), namespaces)
    narrowed = [each for each in namespaced() if each.resource.plural in picture.missing]
    return picture.beside(await _narrowed(reader, narrowed, namespaces))


def _with_absent(picture: Picture, namespaces: Sequence[str]) -> Picture:
    """Note which namespaces are not among those that were listed."""
    if resources.NAMESPACES.plural in picture.missing:
        return picture
    seen = {e.namespace.metadata.name for e in picture.events if isinstance(e, NamespaceSeen)}
    return dataclasses.replace(picture, absent=frozenset(namespaces) - seen)


async def read_volumes(reader: Reader) -> Picture:
    """Read what decides on volumes: only gangs whose pods mount claims ask for it."""
    return _joined(await asyncio.gather(*(_facts(reader, each) for each in WATCHES)))


async def _facts(reader: Reader, watch: StorageWatch) -> Picture:
    """Read facts of one kind; one that cannot be read counts as if none could."""
    try:
        return Picture(tuple(facts(watch, await reader.list(watch.resource, watch.kind))))
    except NotServed:
        return Picture(tuple(facts(watch, ())))
    except (NotAllowed, ValueError) as fault:
        return Picture((), (f"{fault}: gangs whose pods mount claims are refused",))


async def read_devices(reader: Reader) -> Picture:
    """Read all that decides on claims of devices, as the watches of a coordinator tell of it.

    Where one kind may not be read nothing is told: what claims devices is not judged.
    """
    try:
        version = await reader.version()
        found = await asyncio.gather(*(device_facts(reader, each) for each in DEVICE_WATCHES))
    except NotAllowed as refusal:
        return Picture((), (f"{refusal}: gangs whose pods claim devices are not judged",))
    served = any(found) or await _is_served(reader)
    told = (device_events(*each) for each in zip(DEVICE_WATCHES, found, strict=True))
    return Picture((DeviceApiSeen(version, served), *chain.from_iterable(told)))


async def _is_served(reader: Reader) -> bool:
    return await reader.served(Kind(f"{GROUP}/v1", "ResourceClaim")) is not None


# ---- reading


async def _queues(reader: Reader, names: Collection[str]) -> Picture:
    """Read all queues, or where that is not allowed those of these names alone.

    Of the others even the names are not known, so that only quota of these can be judged.
    """
    try:
        return await _list(reader, QUEUES)
    except NotAllowed as refusal:
        found = await get_queues(reader, names)
        if {each.metadata.name for each in found} != {*names}:
            raise
        events = tuple(map(QueueSeen, with_unseen_parents(found)))
        return Picture(events, (f"{refusal}: {only(found)}",), roomless=True)


async def _read(reader: Reader, listed: Listed) -> Picture:
    """Read one list; where it is not allowed, say what is not judged therefore."""
    try:
        return await _list(reader, listed)
    except NotAllowed as refusal:
        return _not_allowed(listed, refusal)


async def _list(reader: Reader, listed: Listed, namespace: str = "") -> Picture:
    try:
        found = await reader.list(
            listed.resource,
            listed.kind,
            namespace=namespace,
            label_selector=listed.label_selector,
            field_selector=listed.field_selector,
        )
    except NotServed:
        if not listed.may_be_absent:
            raise
        found = ()
    return Picture(tuple(listed.events(found)))


def _not_allowed(listed: Listed, refusal: NotAllowed) -> Picture:
    said = f"{refusal}: {listed.without}" if listed.without else str(refusal)
    missing = frozenset({listed.resource.plural})
    # It is read in single namespaces instead.
    unread = () if missing <= _NARROWED else (said,)
    return Picture(listed.always, unread, missing, listed.is_room)


_NARROWED = frozenset({"namespaces", *(each.plural for each in RULES.values())})


async def _narrowed(reader: Reader, kinds: Iterable[Listed], namespaces: Sequence[str]) -> Picture:
    """Read in the namespaces that are asked about what may not be read in all."""
    return _joined(
        await asyncio.gather(
            *(_read_in(reader, each, name) for each in kinds for name in namespaces)
        )
    )


async def _read_in(reader: Reader, listed: Listed, namespace: str) -> Picture:
    try:
        if listed.resource == resources.NAMESPACES:
            found = await reader.get(listed.resource, Namespace, namespace)
            if found is None:
                return Picture((), absent=frozenset({namespace}))
            return Picture((NamespaceSeen(found),))
        return await _list(reader, listed, namespace)
    except CannotRead as refusal:
        of_labels = listed.resource == resources.NAMESPACES
        unlabelled = frozenset({namespace} if of_labels else ())
        return Picture((), (str(refusal),), unlabelled=unlabelled)


def _joined(pictures: Iterable[Picture]) -> Picture:
    every = list(pictures)
    return Picture(
        tuple(chain.from_iterable(each.events for each in every)),
        tuple(dict.fromkeys(chain.from_iterable(each.unread for each in every))),
        frozenset().union(*(each.missing for each in every)),
        any(each.roomless for each in every),
        frozenset().union(*(each.absent for each in every)),
        frozenset().union(*(each.unlabelled for each in every)),
    )
