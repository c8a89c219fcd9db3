"""Stops everything that gates pods, and waits until every coordinator stands still.

The Lease is taken from whoever holds it: a leader that is alive notices when it renews next, and is
over at its deadline in any case, wherever it runs. The Deployments are scaled to 0 so that it stays
so. While a coordinator still led, it would take pods without a gate for pods that Muster did not
release, and delete those that find no room.
"""

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from cli.endings import StandsInTheWay
from cli.read.home import DEPLOYMENTS
from cli.read.reader import Reader, called
from cli.removal.objects import AnyObject, Lease
from cli.removal.ours import STOPPED_PROGRAMS
from cli.removal.told import Told, counted
from cli.write.survey import Survey, gating_counted, read_bindings, read_gating
from cli.write.writer import NotWritten, Writer
from kube.api.resources import LEASES, PODS, Resource
from kube.objects.names import CONFIGURATION_HEARD, STOPPED

PROMISED: Final = 15
"""Seconds for which a Lease holds that does not say so."""

KEPT: Final = 10 * 365 * 24 * 3600
"""Seconds for which the Lease is kept where a coordinator may still run: until it is deleted."""

TRIES: Final = 30
"""Tries to take the Lease: its leader writes it too, every two seconds."""

GRACE: Final = 45.0
"""Seconds in which the pods of a Deployment that was scaled to 0 should be gone."""

HEARD: Final = CONFIGURATION_HEARD.total_seconds()
"""Seconds after which every API server has heard that a rule is gone."""


async def take_rules_away(writer: Writer, told: Told) -> None:
    """Delete what gates pods, then the bindings of the policies that only refuse.

    Raises StandsInTheWay where anything still gates pods: gates would come back as they go.
    """
    gating = await read_gating(writer.reader)
    refused = [why for each in gating if (why := await _refusal(writer, *each))]
    again = await read_gating(writer.reader)
    if again:
        there = [f"{_place(*each)} is still there, or there again" for each in again]
        raise StandsInTheWay(
            f"no gate was taken off, for new pods would get one: {'; '.join(refused or there)}; "
            "pause what applies Muster's manifests by itself, and call this again"
        )
    told.say(f"{gating_counted(gating)} deleted")
    refusing = await read_bindings(writer.reader)
    refused = [why for each in refusing if (why := await _refusal(writer, *each))]
    for why in refused:
        told.leave(why)
    told.say(f"{counted(len(refusing) - len(refused), 'policy binding')} deleted")


async def _refusal(writer: Writer, kind: Resource, found: AnyObject) -> str:
    """Delete a rule; says why not where that fails."""
    meta = found.metadata
    failed = await writer.delete(kind.path(None, meta.name), meta.uid)
    return f"{_place(kind, found)}: {failed.why}" if failed is not None else ""


def _place(kind: Resource, found: AnyObject) -> str:
    return f"{called(kind)} {found.metadata.name}"


async def stop_programs(writer: Writer, survey: Survey, told: Told) -> frozenset[str]:
    """Scale the programs that decide to 0, take their Leases, and wait until none leads.

    Returns those that may run on: outside of their Deployments, by the holders of their Leases, or
    in one that was not scaled. Raises StandsInTheWay where a Lease cannot be taken.
    """
    scaled = [each for each in survey.programs if await _scaled(writer, told, each)]
    if scaled:
        told.say(f"{counted(len(scaled), 'Deployment')} scaled to 0: {_names(scaled)}")
    held = {name: await _hold(writer, survey, name) for name in STOPPED_PROGRAMS}
    seconds = max(each.seconds for each in held.values())
    if seconds:
        told.say(f"the Lease is taken; waiting {seconds} s until no coordinator leads")
        await asyncio.sleep(seconds)
    elsewhere = {name for name, each in held.items() if each.is_elsewhere(name)}
    unscaled = {each.metadata.name for each in survey.programs if each not in scaled}
    return frozenset(elsewhere | unscaled)


async def give_leases_back(
    writer: Writer, survey: Survey, elsewhere: Collection[str], told: Told
) -> None:
    """Give the Leases back where the programs are seen to be gone; else they keep them still."""
    for name in STOPPED_PROGRAMS:
        deployed = any(each.metadata.name == name for each in survey.programs)
        lease = await writer.reader.get(LEASES, Lease, name, survey.home)
        if lease is None or lease.spec.holder_identity != STOPPED:
            continue
        known = deployed and name not in elsewhere
        if known and await _are_gone(writer.reader, survey.home, name):
            await _write(writer, survey.home, lease, holder="", seconds=1)
        else:
            told.say(
                f"Lease {name} stays with {STOPPED}: what may still run of {name} stands still "
                f"until it ends; to start it again: "
                f"kubectl -n {survey.home} delete lease {name}, then start it anew"
            )


def _names(found: list[AnyObject]) -> str:
    return ", ".join(each.metadata.name for each in found)


async def _scaled(writer: Writer, told: Told, found: AnyObject) -> bool:
    meta = found.metadata
    path = DEPLOYMENTS.path(meta.namespace, meta.name)
    failed = await writer.merge_patch(path, {"spec": {"replicas": 0}})
    if failed is not None:
        told.leave(f"Deployment {meta.namespace}/{meta.name} is not scaled to 0: {failed.why}")
    return failed is None


@dataclass(frozen=True, slots=True)
class _Held:
    """What a Lease was taken from, and the seconds until that is certainly over."""

    holder: str = ""
    seconds: int = 0

    def is_elsewhere(self, name: str) -> bool:
        """Say whether the holder is no pod of the Deployment of this name."""
        return bool(self.holder) and not self.holder.startswith(f"{name}-")


async def _hold(writer: Writer, survey: Survey, name: str) -> _Held:
    """Take a Lease from whatever holds it.

    A write of which nothing was heard may have taken it: what held it before is still to be over.
    """
    failed: NotWritten | None = None
    before: Lease | None = None
    deployed = any(each.metadata.name == name for each in survey.programs)
    for _ in range(TRIES):
        lease = await writer.reader.get(LEASES, Lease, name, survey.home)
        if lease is None and not deployed:
            return _Held()
        if lease is not None and lease.spec.holder_identity == STOPPED:
            return _held_of(before) if failed else _Held(STOPPED, _left_of_before(lease))
        failed = await _take(writer, survey.home, name, lease)
        if failed is None:
            return _held_of(lease)
        before = lease
        if not failed.outdated:
            break
    raise StandsInTheWay(
        "no gate was taken off, for what leads would delete pods without one: Lease "
        f"{survey.home}/{name} is not taken: {failed.why if failed else ''}; new pods get none any "
        "more: call this again"
    )


def _held_of(lease: Lease | None) -> _Held:
    """Say what a Lease was taken from."""
    return _Held((lease.spec.holder_identity if lease else "") or "", _promised(lease))


async def _take(writer: Writer, home: str, name: str, lease: Lease | None) -> NotWritten | None:
    if lease is not None:
        return await _write(writer, home, lease, holder=STOPPED, seconds=KEPT)
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": _spec(STOPPED, KEPT, 1),
    }
    return await writer.create(LEASES.path(home), body)


async def _write(
    writer: Writer, home: str, lease: Lease, *, holder: str, seconds: int
) -> NotWritten | None:
    """Write the version that was read, or fail: its leader may have renewed it."""
    meta = lease.metadata
    epoch = (lease.spec.lease_transitions or 0) + 1
    changes = {
        "metadata": {"resourceVersion": meta.resource_version},
        "spec": _spec(holder, seconds, epoch),
    }
    return await writer.merge_patch(LEASES.path(home, meta.name), changes)


def _spec(holder: str, seconds: int, epoch: int) -> dict[str, object]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "holderIdentity": holder,
        "leaseDurationSeconds": seconds,
        "leaseTransitions": epoch,
        "acquireTime": now,
        "renewTime": now,
    }


def _promised(lease: Lease | None) -> int:
    if lease is None or not lease.spec.holder_identity:
        return 0
    return lease.spec.lease_duration_seconds or PROMISED


def _left_of_before(lease: Lease) -> int:
    """Return the rest of the wait that an earlier call may not have lasted out."""
    try:
        taken = datetime.fromisoformat(lease.spec.acquire_time or "")
    except ValueError:
        return PROMISED
    return max(0, min(PROMISED, round(PROMISED - (datetime.now(UTC) - taken).total_seconds())))


async def _are_gone(reader: Reader, home: str, name: str) -> bool:
    """Wait for the pods of a program to end."""
    selector, until = f"app.kubernetes.io/name={name}", time.monotonic() + GRACE
    while await reader.list(PODS, AnyObject, namespace=home, label_selector=selector):
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(1)
    return True
