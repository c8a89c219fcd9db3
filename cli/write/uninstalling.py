"""Removes Muster in the order that leaves nothing waiting for it.

Gates and what is held first, as the kill switch does; then GangQueues, whose finalizer the
coordinator would take off and that this takes off instead, for every coordinator stands still by
then; then the programs, their rights and all else with Muster's label; the definitions; and the
namespace.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Final

from cli.endings import CannotRead, NotServed, Unusable
from cli.read.examining import DEFINITIONS
from cli.read.home import DEPLOYMENTS
from cli.read.reader import Reader
from cli.removal.inventory import (
    LAST,
    UNLABELLED,
    Inventory,
    Item,
    calls_extender,
    is_made_by_program,
    is_own_definition,
)
from cli.removal.objects import AnyObject, ConfigMap
from cli.removal.ours import (
    EXTENDER,
    SCHEDULER,
    is_labelled,
    is_ours,
)
from cli.removal.patches import without_finalizer
from cli.removal.told import Told, counted, named
from cli.write.pacing import do_all, until_none_is_left
from cli.write.releasing import plan, release_all
from cli.write.standstill import give_leases_back
from cli.write.survey import Survey, list_served, read_gated, read_held, read_jobs
from cli.write.writer import NotWritten, Writer
from kube.api import resources
from kube.api.kinds import Found
from kube.api.resources import CONFIG_MAPS, GANG_OFFERS, GANG_QUEUES, NAMESPACES, Resource
from kube.objects.clusters.gang_offer import FINALIZER
from kube.objects.names import KUBE_SYSTEM, PART_OF, PART_OF_MUSTER

LABEL: Final = f"{PART_OF}={PART_OF_MUSTER}"
GONE: Final = 120.0
"""Seconds in which what was deleted should be gone."""

WRAPPERS: Final = {
    f"{each.plural}.{each.group}": each
    for each in (resources.APP_WRAPPERS, resources.MCAD_APP_WRAPPERS)
}
UNLISTED: Final = ("events", "componentstatuses")
WORKLOADS: Final = ("deployments", "statefulsets", "daemonsets", "jobs", "persistentvolumeclaims")
"""Kinds of which a foreign object keeps the namespace from being deleted."""


async def read_inventory(writer: Writer, home: str) -> Inventory:
    """List the objects of all kinds that have Muster's label, and what its programs made."""
    served = await writer.served()
    kinds = _kinds(served)
    answers = await asyncio.gather(*(_labelled(writer.reader, each) for each in kinds))
    found = [item for answer in answers for item in (answer if isinstance(answer, list) else ())]
    unread = [answer for answer in answers if isinstance(answer, str)]
    own = [each for each in found if _is_own(each, home)]
    others = [each for each in found if not _is_own(each, home)]
    made = await _made(writer.reader, kinds, home)
    known = {str(each) for each in own}
    more = [each for each in (*made, *await _definitions(writer.reader)) if str(each) not in known]
    return Inventory((*own, *more), tuple(others), tuple(unread))


def _is_own(item: Item, home: str) -> bool:
    return is_ours(item.group, item.plural, item.meta.metadata, home)


def _kinds(served: Found) -> list[Resource]:
    """Return each kind that can be listed and deleted, in one of its versions."""
    found: dict[tuple[str, str], Resource] = {}
    for each in served.values():
        kind = each.resource
        if {"list", "delete"} <= each.verbs and kind.plural not in UNLISTED:
            found.setdefault((kind.group, kind.plural), kind)
    return list(found.values())


async def _labelled(reader: Reader, kind: Resource) -> list[Item] | str:
    """List what has the label; a sentence where that is not possible."""
    try:
        found = await reader.list(kind, AnyObject, label_selector=LABEL)
    except NotServed:
        return []
    except CannotRead as error:
        return str(error)
    return [_item(kind, each) for each in found]


async def _made(reader: Reader, kinds: Iterable[Resource], home: str) -> list[Item]:
    """List what the programs made in their namespace, which has no label."""
    found: list[Item] = []
    for kind in (each for each in kinds if (each.group, each.plural) in UNLABELLED):
        try:
            all_ = await reader.list(kind, AnyObject, namespace=home)
        except CannotRead:
            continue
        found += [_item(kind, each) for each in all_]
    return [each for each in found if is_made_by_program(each, home)]


async def _definitions(reader: Reader) -> list[Item]:
    """List the definitions of Gang and GangQueue, with or without a label."""
    found = await reader.list(DEFINITIONS, AnyObject)
    items = (_item(DEFINITIONS, each) for each in found)
    return [each for each in items if is_own_definition(each)]


def _item(kind: Resource, found: AnyObject) -> Item:
    meta = found.metadata
    return Item(kind.group, kind.plural, kind.path(meta.namespace or None, meta.name), found)


# --- what must be done by people first ----------------------------------------------------------


async def check_extender(reader: Reader, home: str, *, is_out: bool) -> None:
    """Refuse where kube-scheduler may call the extender; raises Unusable.

    With `ignorable: false` no pod that asks for GPUs is scheduled once it does not answer.
    """
    found = await reader.list(DEPLOYMENTS, AnyObject, namespace=home)
    if not any(each.metadata.name == EXTENDER for each in found):
        return
    place = calls_extender(await reader.list(CONFIG_MAPS, ConfigMap, namespace=KUBE_SYSTEM))
    how = "take it out of the configuration and restart kube-scheduler"
    if place:
        raise Unusable(f"kube-scheduler calls the extender by ConfigMap {place}: {how} first")
    if not is_out:
        raise Unusable(
            "the extender is installed, and kube-scheduler may call it: no pod that asks for GPUs "
            f"would be scheduled without it (ignorable: false); {how}, then add --extender-is-out"
        )


async def uses_second_scheduler(reader: Reader) -> int:
    """Count pods that wait for Muster's second scheduler, which goes too."""
    chosen = f"spec.schedulerName={SCHEDULER},spec.nodeName="
    return len(await reader.list(resources.PODS, AnyObject, field_selector=chosen))


# --- the plan -----------------------------------------------------------------------------------


def steps(survey: Survey, found: Inventory, *, keep_crds: bool) -> list[str]:
    """Say what would be done, in its order."""
    first = plan(survey)
    if found.releases:
        helm = "; ".join(str(each) for each in found.releases)
        return [*first, "let go of all GangQueues", f"leave the rest to Helm: {helm}"]
    removable = (*found.removable, *found.signposts)
    definitions = "" if keep_crds else f"delete {named(str(each) for each in found.definitions)}"
    return [
        *first,
        "let go of all GangQueues" if keep_crds else "delete all GangQueues and Gangs",
        f"delete {counted(len(removable), 'object')}: {_by_kind(removable)}",
        *([definitions] if definitions else []),
        f"delete the namespace {survey.home}",
    ]


def _by_kind(found: Sequence[Item]) -> str:
    kinds: dict[str, int] = {}
    for each in found:
        kinds[each.plural] = kinds.get(each.plural, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"


# --- doing it -----------------------------------------------------------------------------------


async def uninstall(
    writer: Writer, survey: Survey, found: Inventory, told: Told, *, keep_crds: bool
) -> None:
    """Do all steps; what fails is told, and nothing that would leave pods waiting follows it.

    Raises StandsInTheWay, with nothing removed, where `release_all` does.
    """
    elsewhere = await release_all(writer, survey, told)
    if await _something_waits(writer.reader, told):
        return
    await _let_queues_go(writer, told, delete=not keep_crds and not found.releases)
    await _let_offers_go(writer, told)
    if found.releases:
        await give_leases_back(writer, survey, elsewhere, told)
        for each in found.releases:
            told.say(f"now: {each}; then call this again for what Helm leaves")
        return
    # Read anew: the Lease, for one, may have been made by the first step.
    now = await read_inventory(writer, survey.home)
    await _delete(writer, told, "objects", now.removable)
    if keep_crds:
        await _delete_all(writer, told, resources.GANGS)
    else:
        await _delete_definitions(writer, told, now)
    await _delete_namespace(writer, told, survey.home)
    await _delete(writer, told, "bindings", now.signposts)
    await _look_again(writer, told, survey.home, keep_crds=keep_crds)


async def _something_waits(reader: Reader, told: Told) -> bool:
    """Stop here while anything waits for a coordinator, which will never come again.

    What Muster suspended is known by its Gang alone where the note on it was lost.
    """
    found = (
        ("pod", "gated", await read_gated(reader)),
        ("RayCluster", "suspended", await read_held(reader)),
        ("RayJob", "suspended", await read_jobs(reader)),
    )
    for kind, how, objects in found:
        which = named(f"{each.metadata.namespace}/{each.metadata.name}" for each in objects)
        if objects:
            count = counted(len(objects), kind)
            told.leave(f"{count} still {how} by Muster: {which}: nothing more is removed before")
    return any(objects for _, _, objects in found)


async def _let_queues_go(writer: Writer, told: Told, *, delete: bool) -> None:
    """Take Muster's finalizer off all GangQueues, after their deletion where they are to go."""
    reader = writer.reader
    if delete:
        await _delete_all(writer, told, GANG_QUEUES, wait=False)

    async def held() -> list[AnyObject]:
        found = await list_served(reader, GANG_QUEUES, AnyObject)
        return [each for each in found if without_finalizer(each)]

    async def let_go(queue: AnyObject) -> NotWritten | None:
        path = GANG_QUEUES.path(None, queue.metadata.name)
        return await writer.json_patch(path, without_finalizer(queue))

    done = await until_none_is_left("GangQueues", held, let_go, told)
    told.say(f"{counted(done, 'GangQueue')} let go")


async def _let_offers_go(writer: Writer, told: Told) -> None:
    """Take Muster's finalizer off all GangOffers; they stay, for what runs for one goes with it."""

    async def held() -> list[AnyObject]:
        found = await list_served(writer.reader, GANG_OFFERS, AnyObject)
        return [each for each in found if without_finalizer(each, FINALIZER)]

    async def let_go(offer: AnyObject) -> NotWritten | None:
        path = GANG_OFFERS.path(offer.metadata.namespace, offer.metadata.name)
        return await writer.json_patch(path, without_finalizer(offer, FINALIZER))

    done = await until_none_is_left("GangOffers", held, let_go, told)
    if done:
        told.say(f"{counted(done, 'GangOffer')} let go; their definition is kept")


async def _delete_all(writer: Writer, told: Told, kind: Resource, *, wait: bool = True) -> None:
    found = await list_served(writer.reader, kind, AnyObject)
    await _delete(writer, told, kind.plural, [_item(kind, each) for each in found], wait=wait)


async def _delete(
    writer: Writer, told: Told, what: str, found: Sequence[Item], *, wait: bool = True
) -> None:
    """Delete objects, and wait until they are gone."""
    failed = await do_all(found, lambda item: writer.delete(item.path, item.meta.metadata.uid))
    for item, fault in failed:
        told.leave(f"{item}: {fault.why}")
    refused = {item.path for item, _ in failed}
    deleted = [each for each in found if each.path not in refused]
    if wait:
        await _wait_gone(writer, told, deleted)
    if deleted:
        told.say(f"{len(deleted)} {what} deleted")


async def _wait_gone(writer: Writer, told: Told, found: Sequence[Item]) -> None:
    until = time.monotonic() + GONE
    left = list(found)
    while left:
        there = await asyncio.gather(
            *(writer.is_at(each.path, each.meta.metadata.uid) for each in left)
        )
        left = list(compress(left, there))
        if left and time.monotonic() >= until:
            for each in left:
                told.leave(f"{each} is deleted and not gone: see its finalizers")
            return
        if left:
            await asyncio.sleep(1)


async def _delete_definitions(writer: Writer, told: Told, found: Inventory) -> None:
    """Delete the definitions, those of AppWrapper only where there is none: it would go with it."""
    await _delete(writer, told, "definitions", found.definitions)
    for each in found.wrapper_definitions:
        name = each.meta.metadata.name
        wrappers = await list_served(writer.reader, WRAPPERS[name], AnyObject)
        if wrappers:
            count = counted(len(wrappers), "AppWrapper")
            told.say(
                f"{name} is kept: {count} and all that they wrap would be deleted with it; "
                f"kubectl delete crd {name} does that"
            )
        else:
            await _delete(writer, told, "definitions", [each])


async def _delete_namespace(writer: Writer, told: Told, home: str) -> None:
    """Delete the namespace where it is Muster's and nothing of others is in it."""
    namespace = await writer.reader.get(NAMESPACES, AnyObject, home)
    if namespace is None:
        return
    foreign = await _foreign(writer, home)
    if not is_labelled(namespace.metadata):
        told.say(f"namespace {home} is kept: it was not made by Muster's manifests")
    elif foreign:
        told.say(f"namespace {home} is kept: {named(foreign)} in it is not of Muster")
    else:
        await _delete(writer, told, "namespaces", [_item(NAMESPACES, namespace)])


async def _foreign(writer: Writer, home: str) -> list[str]:
    kinds = [each for each in _kinds(await writer.served()) if each.plural in WORKLOADS]
    found: list[str] = []
    for kind in kinds:
        all_ = await writer.reader.list(kind, AnyObject, namespace=home)
        found += [str(_item(kind, each)) for each in all_ if not is_labelled(each.metadata)]
    return found


async def _look_again(writer: Writer, told: Told, home: str, *, keep_crds: bool) -> None:
    """List all kinds once more: nothing of Muster may be left but what is kept on purpose."""
    until = time.monotonic() + GONE
    while True:
        found = await read_inventory(writer, home)
        left = _left(found, keep_crds=keep_crds)
        if not left or time.monotonic() >= until:
            break
        await asyncio.sleep(1)
    for each in left:
        told.leave(f"{each} is still there")
    for said in found.unread:
        told.leave(f"not looked at: {said}")
    for each in found.others:
        told.say(f"{each} has the label {LABEL} and is not taken for Muster's: it is kept")


def _left(found: Inventory, *, keep_crds: bool) -> list[Item]:
    """Return what should be gone: controllers need a moment for what goes with another object."""
    kept = {str(each) for each in found.wrapper_definitions}
    kept |= {str(each) for each in found.definitions} if keep_crds else set()
    return [each for each in found.items if str(each) not in kept and each.plural != LAST[1]]
