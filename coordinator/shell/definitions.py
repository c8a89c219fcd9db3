"""Lets the coordinator lead only while the installed CRDs have every field that it writes.

The API server silently drops fields that a CRD of an older release does not know. Without `wave` or
`decided` in its record a gang would wait without a reason, and the next leader would know less than
this one wrote. So a replica that finds such a CRD is not ready and does not lead; in a rolling
update the replicas of the older release go on. A replica that may not read the CRDs takes them for
right: a ClusterRole of an older release must not stop a cluster. For the spec of a GangQueue the
log alone names the dropped fields, because users write it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

import structlog

from coordinator.metrics import MISSING_FIELDS
from kube.api.client import Client
from kube.api.errors import Forbidden, KubeError, NotFound
from kube.api.resources import Resource
from kube.objects.crds.definition import Definition, lacks, some
from kube.objects.crds.muster import written
from kube.objects.schema import Json

log = structlog.get_logger()

DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
)
EVERY = 60.0
"""Seconds between two looks at definitions that are right: two small reads."""

AGAIN = 5.0
"""Seconds between two looks at definitions that are to be brought up to date."""

MISSING = "lacks"
REMEDY = "kubectl apply -k manifests/crds, of the release of this coordinator"


class Definitions:
    """What is known of the definitions; `fault` says why this replica must not lead."""

    def __init__(self, client: Client, *, every: float = EVERY, again: float = AGAIN) -> None:
        self._client = client
        self._every = every
        self._again = again
        self._told: set[str] = set()
        self.fault = ""

    async def run_while_whole(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `work` for as long as nothing is missing, and again once that is so again."""
        while True:
            await self._whole()
            running = asyncio.ensure_future(work())
            watching = asyncio.ensure_future(self._until_broken())
            try:
                await asyncio.wait({running, watching}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await _stop(watching)
                await _stop(running)
            if not running.cancelled():
                running.result()  # a bug ends the program

    async def _whole(self) -> None:
        """Wait until nothing is missing."""
        while True:
            if await self.look() and not self.fault:
                return
            await asyncio.sleep(self._again)

    async def _until_broken(self) -> None:
        """Wait until something is missing."""
        while not self.fault:
            await asyncio.sleep(self._every)
            await self.look()

    async def look(self) -> bool:
        """Compare; False where the API server gives no answer, and what was known still counts."""
        try:
            found = {
                wanted["metadata"]["name"]: await self._missing(wanted, parts)
                for wanted, parts in written()
            }
        except KubeError as error:
            log.info("definitions not read", error=str(error))
            return False
        self._note(found)
        return True

    async def _missing(self, wanted: Json, parts: tuple[str, ...]) -> tuple[str, ...]:
        name = wanted["metadata"]["name"]
        try:
            found = await self._client.get(DEFINITIONS.path(name=name), as_=Definition)
        except Forbidden as error:
            self._tell_once(f"{name} may not be read, and is taken for right: {error}")
            return ()
        except NotFound:
            return ()  # its watch says so
        self._tell_unheard(name, lacks(found, wanted, *_only_read(parts)))
        return lacks(found, wanted, *parts)

    def _tell_unheard(self, name: str, missing: tuple[str, ...]) -> None:
        """Say what users cannot write: it stops nothing, but what they wish is not heard."""
        if missing:
            self._tell_once(f"{name} does not take {some(missing)}, which is not heard: {REMEDY}")

    def _note(self, found: Mapping[str, tuple[str, ...]]) -> None:
        for name, missing in found.items():
            MISSING_FIELDS.labels(name).set(len(missing))
        faults = [f"{name} {MISSING} {some(missing)}" for name, missing in found.items() if missing]
        said = "; ".join(faults)
        self.fault = f"definition {said}: {REMEDY}" if faults else ""
        if self.fault:
            self._tell_once(self.fault)
        elif any(MISSING in each for each in self._told):
            self._told.clear()  # what comes again is told again
            log.info("definitions are of this release")

    def _tell_once(self, said: str) -> None:
        if said not in self._told:
            self._told.add(said)
            log.warning("definitions of another release", said=said)


def _only_read(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part for part in ("spec",) if part not in parts)


async def _stop(task: "asyncio.Future[Any]") -> None:
    task.cancel()
    await asyncio.wait({task})
