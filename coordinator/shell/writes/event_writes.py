"""Writes Events on the source object of a gang, and on its other objects."""

import structlog

from coordinator.messages.actions import EmitEvent, Regarding
from coordinator.messages.events import Event
from coordinator.metrics import EVENTS_DROPPED
from coordinator.shell.writes.write_outcomes import Outcomes
from kube.api.client import Client
from kube.api.errors import KubeError, is_of_what_goes
from kube.api.event_recorder import EventRecorder, ObjectEvent
from kube.objects import names
from kube.ray.wrapped_by import wrapper_of_gang
from scheduling.model.gang import GangKey
from scheduling.model.holder import gang_holder, is_offer_gang

log = structlog.get_logger()

REPORTER = "muster.dev/coordinator"


class EventWrites:
    """Carries out what is to be told."""

    def __init__(self, client: Client, outcomes: Outcomes, identity: str) -> None:
        self._recorder = EventRecorder(client, REPORTER, identity)
        self._outcomes = outcomes

    async def carry_out(self, action: EmitEvent) -> list[Event]:
        """Write one Event; no decision depends on its outcome."""
        try:
            await self._recorder.write(object_event(action))
        except KubeError as error:
            self._outcomes.failed("event", error)
            EVENTS_DROPPED.inc()
            if not is_of_what_goes(error):
                log.info("event not written", gang=str(action.key), error=str(error))
        else:
            self._outcomes.done("event")
        return []


def object_event(action: EmitEvent) -> ObjectEvent:
    """Return what is told, and of which object."""
    about = action.regarding or _source(action)
    return ObjectEvent(
        namespace=action.key.namespace,
        api_version=about.api_version,
        kind=about.kind,
        name=about.name,
        uid=about.uid,
        reason=str(action.reason),
        message=action.message,
        warning=action.warning,
    )


def _source(action: EmitEvent) -> Regarding:
    holder = gang_holder(action.key)
    return Regarding(_api_version(action.key), holder.kind, holder.name, action.cluster_uid)


def _api_version(gang: GangKey) -> str:
    """Return the API version of the object that a gang is named after."""
    if is_offer_gang(gang):
        return names.API_VERSION
    wrapper = wrapper_of_gang(gang.name)
    if wrapper is None:
        return names.RAY_API_VERSION
    return names.MCAD_V1BETA1 if wrapper.group == names.MCAD_GROUP else names.CODEFLARE_V1BETA2
