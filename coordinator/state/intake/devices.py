"""Takes in what is known of devices by claim."""

from coordinator.messages.events import (
    DeviceApiSeen,
    DeviceFactGone,
    DeviceFactSeen,
    DeviceFactsLost,
    DeviceFactsSeen,
)
from coordinator.state.known import Known
from kube.devices.device_facts import DeviceFact
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey


def api_seen(event: DeviceApiSeen, known: Known, moment: Moment) -> None:
    """Take in whether the API server serves such devices."""
    if known.cache.devices.put_api(event):
        _look_at_all(known)


def fact_seen(event: DeviceFactSeen, known: Known, moment: Moment) -> None:
    """Take in a slice, class, claim, template or rule."""
    index = known.cache.devices.index
    before = index.edition, index.offered
    index.put(event.fact)
    _changed(known, event.fact, *before)


def fact_gone(event: DeviceFactGone, known: Known, moment: Moment) -> None:
    """Forget one."""
    index = known.cache.devices.index
    before = index.edition, index.offered
    index.drop(event.fact)
    _changed(known, event.fact, *before)


def facts_seen(event: DeviceFactsSeen, known: Known, moment: Moment) -> None:
    """Begin to decide by the facts of a kind."""
    known.cache.devices.index.see(event.kind)
    _look_at_all(known)


def facts_lost(event: DeviceFactsLost, known: Known, moment: Moment) -> None:
    """Decide nothing by facts that may be out of date."""
    known.cache.devices.index.lose_sight(event.kind)
    _look_at_all(known)


def _changed(known: Known, fact: DeviceFact, edition: int, offered: int) -> None:
    """Look at the gangs that a fact concerns: all of them only where the edition is another now.

    Those whose pods ask for what classes give concerns also which nodes have devices at all.
    """
    devices = known.cache.devices
    known.agenda.dirty |= devices.gangs_of(fact)
    if devices.index.edition == edition:
        return
    if devices.index.offered != offered and not devices.unseen:
        known.agenda.dirty |= devices.gangs_by_class
    gangs = devices.gangs
    known.agenda.dirty |= {key for key in gangs if _awaits_devices(known, key)}
    known.agenda.cycle_wanted |= bool(gangs)


def _look_at_all(known: Known) -> None:
    gangs = known.cache.devices.gangs
    known.agenda.dirty |= gangs
    known.agenda.cycle_wanted |= bool(gangs)


def _awaits_devices(known: Known, key: GangKey) -> bool:
    """Say whether the next wave of a gang waits for what the claims of others will show."""
    view = known.views.get(key)
    return view is not None and bool(view.repairs.devices.pods)
