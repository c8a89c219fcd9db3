"""Decides whether a member of a start-together group has ended, and how.

A RayJob is one member in all of its tries, and a RayService in all of its versions. Between two of
them the member may have no gang.
"""

from coordinator.cluster.together_index import Mate
from coordinator.gang.eviction.stop_method import is_over
from coordinator.gang.source import asks_no_more
from coordinator.gang.together import PlacedSet
from coordinator.reconcile.look import Look, Scene
from kube.objects.ray import RayJob
from scheduling.model.gang import GangKey

GONE, SUSPENDED, STOPPED, OPTED_OUT = "is gone", "is suspended", "was stopped", "is opted out"


def first_end(look: Look) -> str:
    """Name the first other member that has ended of those placed with a gang, and how."""
    placed, mine = look.view.reservation.together, look.scene.cache.together.of(look.view.key)
    others = (
        (name, _end_of_member(look, placed, name, uid))
        for name, uid in zip(placed.members, placed.uids, strict=False)
        if mine is not None and uid != mine.member
    )
    return next((f"member {name} {how}" for name, how in others if how), "")


def has_ended(scene: Scene, mate: Mate) -> bool:
    """Say whether a gang that may run on has ended as a member of its group."""
    return bool(_end_of_owner(scene, mate.member) or _end_of_source(scene, mate.key))


def _end_of_member(look: Look, placed: PlacedSet, name: str, uid: str) -> str:
    scene, owner_end = look.scene, _end_of_owner(look.scene, uid)
    gangs = [each for each in scene.cache.together.mates(look.view.key) if each.member == uid]
    if owner_end or not gangs:
        return owner_end or ("" if uid in scene.cache.owners else GONE)
    ends = [_end_of_gang(scene, placed, name, each) for each in gangs]
    return ends[-1] if all(ends) else ""


def _end_of_gang(scene: Scene, placed: PlacedSet, name: str, mate: Mate) -> str:
    """Say how one of its gangs ended; a later try that has no room yet has not."""
    view, by_source = scene.views.get(mate.key), _end_of_source(scene, mate.key)
    if view is None or by_source:
        return by_source
    has_room = view.reservation.placement is not None
    is_placed_with = has_room and view.reservation.together.stamp == placed.stamp
    was_placed = mate.key.name == name or view.eviction.last is not None
    is_stopped = view.eviction.whole is not None or (was_placed and not is_placed_with)
    return STOPPED if is_stopped else ""


def _end_of_owner(scene: Scene, uid: str) -> str:
    owner = scene.cache.owners.get(uid)
    if not isinstance(owner, RayJob) or not is_over(owner):
        return ""
    return SUSPENDED if owner.spec.suspend else f"has ended ({owner.status.job_deployment_status})"


def _end_of_source(scene: Scene, key: GangKey) -> str:
    view, source = scene.views.get(key), scene.cache.sources.get(key)
    held = view is not None and view.held.holds
    if view is not None and view.out_since is not None and view.reservation.placement is None:
        return OPTED_OUT
    return SUSPENDED if source is None or asks_no_more(source, held=held) else ""
