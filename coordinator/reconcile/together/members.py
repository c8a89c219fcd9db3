"""Lists the gangs of a start-together group, and those that still have to start."""

from operator import attrgetter
from typing import NamedTuple

from coordinator.cluster.together_index import Mate
from coordinator.gang.held_start.phases import Phase
from coordinator.gang.source import opt_in_of
from coordinator.gang.view import GangView
from coordinator.reconcile.look import Look
from coordinator.reconcile.together.ends import has_ended
from kube.gang.source import GangSource
from kube.ray.ray_cluster import Answer
from kube.ray.ray_owner import controller_of


class Member(NamedTuple):
    """A gang that names the group, as what it stands in it."""

    mate: Mate
    view: GangView
    source: GangSource

    @property
    def name(self) -> str:
        """Its kind and name, as its user calls it."""
        owner = controller_of(self.source.metadata)
        return f"{owner.kind} {owner.name}" if owner else f"RayCluster {self.mate.key.name}"


def members(look: Look) -> list[Member]:
    """Return the gangs of the group that are there, in their order, the newest of each owner."""
    found: dict[str, Member] = {}
    for mate in look.scene.cache.together.mates(look.view.key):
        view, source = look.scene.views.get(mate.key), look.scene.cache.sources[mate.key]
        if view is None or opt_in_of(source, look.scene.cache).answer is Answer.NO:
            continue
        found[mate.member] = Member(mate, view, source)
    return sorted(found.values(), key=attrgetter("mate"))


def starters(look: Look) -> list[GangView]:
    """Return the gangs that start with this one, itself among them; none while any is absent."""
    mine = look.scene.cache.together.of(look.view.key)
    if mine is None or _goes_on(look.view) or has_started(look):
        return [look.view]
    there = members(look)
    agreeing = [each for each in there if each.mate.asked == there[0].mate.asked]
    whole = len(agreeing) == mine.asked.size
    views = [each.view for each in agreeing] if whole else []
    return views if look.view in views else []


def held_with(look: Look) -> list[GangView]:
    """Return of those the gangs whose pods are not to be made yet, and this one."""
    return [
        each for each in starters(look) if each is look.view or each.held.phase is Phase.WAITING
    ]


def has_started(look: Look) -> bool:
    """Say whether the group started without this gang, or before it was made anew."""
    mates = look.scene.cache.together.mates(look.view.key)
    return any(_is_under_way(look, each) for each in mates if each.key != look.view.key)


def _is_under_way(look: Look, mate: Mate) -> bool:
    """Say whether another member has started, and is not to be waited for anew."""
    view = look.scene.views.get(mate.key)
    if view is None or not _goes_on(view):
        return False
    return not (mate.asked.ends_at_once and has_ended(look.scene, mate))


def _goes_on(view: GangView) -> bool:
    placed = view.reservation.placement is not None and view.together.begun
    return (placed or view.survey.ran) and view.eviction.whole is None
