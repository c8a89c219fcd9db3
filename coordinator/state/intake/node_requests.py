"""Takes in the outcome of requests for nodes."""

from coordinator.messages.events import NodeRequestGone, NodeRequestSeen, NodeRequestsListed
from coordinator.messages.write_ends import NodeRequestWriteEnded
from coordinator.state.known import Known
from kube.codec.provisioning import Answer
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey


def request_seen(event: NodeRequestSeen, known: Known, moment: Moment) -> None:
    """Take a request in; its gang is decided anew, at once, where nodes were provisioned."""
    seen = event.request
    before = known.cache.node_requests.put(seen)
    key = GangKey(seen.namespace, seen.gang_name)
    known.agenda.dirty.add(key)
    given = seen.answer is Answer.PROVISIONED
    if given and (before is None or before.answer is not Answer.PROVISIONED):
        memory = known.cycles.memory
        known.cycles.memory = memory.without({key}) if memory is not None else None
        known.agenda.cycle_wanted = True


def request_gone(event: NodeRequestGone, known: Known, moment: Moment) -> None:
    """Forget a request."""
    known.cache.node_requests.drop(event.request)
    known.agenda.dirty.add(GangKey(event.request.namespace, event.request.gang_name))


def requests_listed(event: NodeRequestsListed, known: Known, moment: Moment) -> None:
    """Begin to ask: from now on it is known what was asked before."""
    if not known.cache.node_requests.listed:
        known.cache.node_requests.listed = True
        known.agenda.dirty |= set(known.views)


def write_ended(event: NodeRequestWriteEnded, known: Known, moment: Moment) -> None:
    """Note how a write ended; after a failed one the next waits, ever longer."""
    view = known.views.get(event.gang)
    if view is None:
        return
    calls = view.node_request
    calls.writing.discard(event.name)
    if event.error is None:
        calls.attempts.failures, calls.attempts.refusal = 0, ""
    else:
        calls.attempts.failed(moment.now, event.error)
    known.agenda.dirty.add(event.gang)
