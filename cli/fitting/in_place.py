"""Finds the waiting gang of an object, so that the object is judged in the place of that gang."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from cli.fitting.asked import Asked
from coordinator.cluster.cache import ClusterCache
from coordinator.gang.view import GangView
from coordinator.messages.events import ClusterGone, Event, GangGone, PodGone, RayOwnerGone, Teller
from coordinator.state_machine import CoordinatorState
from kube.foreseen.gang import Foreseen
from kube.foreseen.namespace_quota import Charges, charges_of
from kube.gang.source import GangSource
from kube.ray.ray_owner import controller_of
from scheduling.model.gang import GangKey

OWNERS = ("RayJob", "RayService")
"""Kinds that make RayClusters under names of their own."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A gang that waits: since when it exists, and what takes it back.

    `made` are its pods by pod set: quota of the namespace that they hold is its own.
    """

    reason: str
    created: str
    made: Mapping[str, int]
    gone: tuple[Event, ...]


def find_waiting(state: CoordinatorState, asked: Asked) -> Waiting | None:
    """Return the gang that an object is, where it waits and no other is stopped for it."""
    sources = state.known.cache.sources
    mine = (key for key in sources if key.namespace == asked.namespace)
    for key in sorted((key for key in mine if _is_of(asked, key, sources[key])), key=str):
        view = state.known.views.get(key)
        if view is not None and view.waits_for_room and view.queueing.planned is None:
            return _waiting(state.known.cache, view, sources[key])
    return None


def _is_of(asked: Asked, key: GangKey, source: GangSource) -> bool:
    if asked.kind not in OWNERS:
        return key.name == asked.cluster.metadata.name
    made_by = controller_of(source.metadata)
    return made_by is not None and (made_by.kind, made_by.name) == (asked.kind, asked.name)


def _waiting(cache: ClusterCache, view: GangView, source: GangSource) -> Waiting:
    pods = cache.members(view.key, view.cluster_uid)
    owner = cache.owners.maker_of(source)
    meta = owner.metadata if owner is not None else source.metadata
    made = Counter(pod.member.pod_set for pod in pods if pod.alive and pod.member is not None)
    gone: Iterator[Event] = (
        PodGone(view.key.namespace, pod.name, pod.uid, Teller.RAY_POD_WATCH) for pod in pods
    )
    owners = (RayOwnerGone(owner.metadata.uid),) if owner is not None else ()
    return Waiting(
        str(view.record.written.get("reason", "")),
        meta.creation_timestamp or "",
        made,
        (*gone, GangGone(view.key), ClusterGone(view.key, view.cluster_uid), *owners),
    )


def without(
    claimed: Charges,
    found: Foreseen,
    made: Mapping[str, int],
    charged: Callable[[Foreseen], Foreseen],
) -> Charges:
    """Return claims on quota less what so many pods of a gang, by pod set, hold of it already.

    `charged` adds what quotas count of the claims of such pods.
    """
    own = (replace(each, count=min(each.count, made.get(each.name, 0))) for each in found.pod_sets)
    held = charges_of(charged(replace(found, pod_sets=tuple(own), objects=())))
    left = {of: Counter(amounts) for of, amounts in claimed.items()}
    for of, amounts in held.items():
        left.setdefault(of, Counter()).subtract(amounts)
    return left
