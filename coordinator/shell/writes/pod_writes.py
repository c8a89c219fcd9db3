"""Patches, nominates, evicts and deletes pods.

After a patch that failed, or whose outcome is unknown, the pod is read again, so that the state
machine decides on what is really there.
"""

import time
from collections.abc import Callable
from typing import Any, TypeAlias

import structlog

from coordinator.messages.actions import (
    DeletePod,
    EvictPod,
    FencePod,
    NominatePod,
    ReleasePod,
)
from coordinator.messages.events import Event, PodGone, PodSeen, Teller
from coordinator.messages.write_ends import NominationEnded, PodPatchEnded
from coordinator.metrics import EVICTIONS, GATE_REMOVAL, NOMINATIONS_FORBIDDEN
from coordinator.shell.suspicion import Suspicion
from coordinator.shell.writes.write_outcomes import Outcomes, is_refusal
from kube.api.client import Client
from kube.api.errors import ApiError, KubeError, NotFound, is_of_role, is_of_what_goes
from kube.api.resources import PODS
from kube.codec.observed_pod import ObservedPod
from kube.codec.pod_patches import (
    Operation,
    fence_patch,
    nomination_patch,
    release_patch,
    unpinned_release_patch,
)
from kube.objects.core import BarePod, Pod
from kube.objects.names import RAY_NODE_TYPE, RAY_NODE_TYPES

log = structlog.get_logger()

PodWrite: TypeAlias = ReleasePod | FencePod | NominatePod | DeletePod | EvictPod

_NO_RIGHT_TO_NOMINATE = (
    "grant patch on pods/status to the coordinator (manifests/base/coordinator-rbac.yaml), "
    "or set MUSTER_COORDINATOR_GUARD to Extender or None"
)
_JOB_SELECTOR = ("batch.kubernetes.io/controller-uid", "controller-uid")
"""The labels by which a Job finds its pods, the present one and the earlier one."""


class PodWrites:
    """Carries out what is to be done to pods."""

    def __init__(
        self,
        client: Client,
        outcomes: Outcomes,
        suspicion: Suspicion,
        reduce: Callable[[Pod], ObservedPod],
    ) -> None:
        self._client = client
        self._outcomes = outcomes
        self._suspicion = suspicion
        self._reduce = reduce
        self._forbidden = False
        self._asked_at: dict[str, float] = {}
        """When the release of a pod was asked for, by its uid."""

    def asked(self, release: ReleasePod, now: float) -> None:
        """Note when a release was asked for."""
        self._asked_at[release.pod.metadata.uid] = now

    def close(self) -> None:
        """Forget what is only of use in the term."""
        self._asked_at.clear()
        NOMINATIONS_FORBIDDEN.set(0)

    async def carry_out(self, action: PodWrite) -> list[Event]:
        """Send one write, and say what became of it."""
        match action:
            case ReleasePod():
                return await self._release(action)
            case FencePod():
                return await self._patch(action, "fence", fence_patch(action.pod, action.token))
            case NominatePod():
                return await self._nominate(action)
            case DeletePod():
                return await self._delete(action)
            case EvictPod():
                return await self._evict(action)

    async def _release(self, action: ReleasePod) -> list[Event]:
        operations = (
            release_patch(action.pod, action.node, action.queue)
            if action.node
            else unpinned_release_patch(action.pod)
        )
        asked_at = self._asked_at.pop(action.pod.metadata.uid, None)
        events = await self._patch(action, "release", operations)
        if asked_at is not None and _was_patched(events):
            GATE_REMOVAL.observe(time.monotonic() - asked_at)
        return events

    async def _patch(
        self, action: ReleasePod | FencePod, what: str, operations: list[Operation]
    ) -> list[Event]:
        meta, sent = action.pod.metadata, time.monotonic()
        path = PODS.path(meta.namespace, meta.name)
        try:
            patched = await self._client.json_patch(path, operations, as_=Pod)
        except KubeError as error:
            self._outcomes.failed(f"pod_{what}", error)
            return await self._after_failed_patch(action, what, error)
        of_ray = patched.metadata.labels.get(RAY_NODE_TYPE) in RAY_NODE_TYPES
        self._suspicion.wrote("raypods" if of_ray else "wrappedpods", sent)
        self._outcomes.done(f"pod_{what}")
        log.debug("pod patched", gang=str(action.gang), pod=meta.name, what=what)
        seen = PodSeen(self._reduce(patched), Teller.ANSWER)
        return [seen, PodPatchEnded(action.gang, meta.uid, None)]

    async def _after_failed_patch(
        self, action: ReleasePod | FencePod, what: str, error: KubeError
    ) -> list[Event]:
        gang, meta = action.gang, action.pod.metadata
        if not is_of_what_goes(error):
            log.info("pod patch failed", gang=str(gang), pod=meta.name, what=what, error=str(error))
        unknown = error.outcome_unknown
        try:
            now = await self._client.get(PODS.path(meta.namespace, meta.name), as_=Pod)
        except NotFound:
            gone = PodGone(meta.namespace, meta.name, meta.uid, Teller.ANSWER)
            return [gone, PodPatchEnded(gang, meta.uid, str(error), unknown=unknown)]
        except KubeError:
            return [PodPatchEnded(gang, meta.uid, str(error), unknown=unknown)]
        # The very object that we tested is still there: it was the change that was refused.
        unchanged = now.metadata.resource_version == meta.resource_version
        ended = PodPatchEnded(gang, meta.uid, str(error), is_refusal(error) and unchanged, unknown)
        return [PodSeen(self._reduce(now), Teller.ANSWER), ended]

    # --- nominating ---------------------------------------------------------------------------

    async def _nominate(self, action: NominatePod) -> list[Event]:
        meta = action.pod.metadata
        path = PODS.path(meta.namespace, meta.name, "status")
        operations = nomination_patch(action.pod, action.node, action.scheduler)
        try:
            patched = await self._client.json_patch(path, operations, as_=Pod)
        except KubeError as error:
            self._outcomes.failed("pod_nomination", error)
            self._not_nominated(action, error)
            return [NominationEnded(action.gang, meta.uid, forbidden=is_of_role(error))]
        self._outcomes.done("pod_nomination")
        self._note_right(error=None)
        seen = PodSeen(self._reduce(patched), Teller.ANSWER)
        return [seen, NominationEnded(action.gang, meta.uid)]

    def _not_nominated(self, action: NominatePod, error: KubeError) -> None:
        name = action.pod.metadata.name
        if is_of_role(error):
            self._note_right(error)
        elif not is_of_what_goes(error):
            log.info("pod not nominated", gang=str(action.gang), pod=name, error=str(error))

    def _note_right(self, error: KubeError | None) -> None:
        """Say once that no pod can be nominated, and what helps; note when that is over."""
        if error is not None and not self._forbidden:
            log.warning(
                "nominations may not be written", error=str(error), remedy=_NO_RIGHT_TO_NOMINATE
            )
        self._forbidden = error is not None
        NOMINATIONS_FORBIDDEN.set(self._forbidden)

    # --- deleting and evicting ----------------------------------------------------------------

    async def _delete(self, action: DeletePod) -> list[Event]:
        path, version = PODS.path(action.namespace, action.name), action.resource_version
        try:
            if action.of_job:
                version = await self._take_from_job(action)
            await self._client.delete(path, uid=action.uid, resource_version=version)
        except NotFound as error:
            self._outcomes.failed("pod_delete", error)
            return _gone(action)
        except KubeError as error:
            self._outcomes.failed("pod_delete", error)
            return [PodPatchEnded(action.gang, action.uid, str(error))]
        self._outcomes.done("pod_delete")
        return [PodPatchEnded(action.gang, action.uid, None)]

    async def _take_from_job(self, action: DeletePod) -> str:
        """Take a pod off the selector of its Job, which gives it up; return its new version."""
        gone = dict.fromkeys(_JOB_SELECTOR)
        meta = {"uid": action.uid, "resourceVersion": action.resource_version, "labels": gone}
        path = PODS.path(action.namespace, action.name)
        found = await self._client.merge_patch(path, {"metadata": meta}, as_=BarePod)
        return found.metadata.resource_version

    async def _evict(self, action: EvictPod) -> list[Event]:
        try:
            await self._client.create(*eviction(action.namespace, action.name, action.uid))
        except NotFound:
            EVICTIONS.labels("gone").inc()
            return _gone(action)
        except KubeError as error:
            refused, unknown = isinstance(error, ApiError), error.outcome_unknown
            EVICTIONS.labels("refused" if refused else "error").inc()
            self._outcomes.doubt(error)
            return [PodPatchEnded(action.gang, action.uid, str(error), refused, unknown)]
        EVICTIONS.labels("accepted").inc()
        return [PodPatchEnded(action.gang, action.uid, None)]


def eviction(namespace: str, name: str, uid: str) -> tuple[str, dict[str, Any]]:
    """Return the path and the body by which this very pod is evicted."""
    return PODS.path(namespace, name, "eviction"), {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }


def _gone(action: DeletePod | EvictPod) -> list[Event]:
    gone = PodGone(action.namespace, action.name, action.uid, Teller.ANSWER)
    return [gone, PodPatchEnded(action.gang, action.uid, None)]


def _was_patched(events: list[Event]) -> bool:
    """Whether the patch of a pod, which ended in these events, was accepted."""
    return any(isinstance(each, PodPatchEnded) and each.error is None for each in events)
