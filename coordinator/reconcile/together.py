"""Has a gang that starts together with others wait for them, and be made only with all of them.

Members of a group see what the others were after their last look; `gang_looks` has them looked at
again where that changed.
"""

from collections.abc import Sequence
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

from coordinator.cluster.together_index import Mate
from coordinator.gang.demand import NotReady
from coordinator.gang.held_start.phases import Phase
from coordinator.gang.source import opt_in_of
from coordinator.gang.together import ALONE
from coordinator.gang.view import GangView
from coordinator.reconcile.look import NOTHING_DONE, Done, Look
from coordinator.reconcile.member_ends import has_ended
from kube.foreseen.gang import is_foreseen
from kube.gang.source import GangSource
from kube.objects import names
from kube.ray.gang_terms import Problem
from kube.ray.ray_cluster import Answer
from kube.ray.ray_owner import controller_of
from kube.ray.together import Together
from reservation.slots import is_released
from scheduling.admission.together import disagreement, in_order
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.verdict import Reason

MEMBERS_NAMED = 3

OLD_SCHEMA = (
    "gangs that start together while the API server drops status.together of Gangs (apply "
    "manifests/crds of this release)"
)
ORDERED = (
    "gangs that start together for pods that are bound in an order, by inter-pod affinity or "
    "claims of devices (put all members into one AppWrapper)"
)
COUNTED = (
    "gangs that start together while a ResourceQuota counts pods of this one that wait for others "
    "(put all members into one AppWrapper)"
)


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


class Stage(Enum):
    """How far all gangs are that were placed at once."""

    PLACED = "placed"
    RECORDED = "recorded"
    """The records of all say so: those that are held may be resumed."""
    MADE = "made"
    """All pods exist, too: they may be released."""
    BEGUN = "begun"


class ShownPlaced(NamedTuple):
    """What others see of a gang that has a placement; `ends` says that it does not go on."""

    stamp: str
    ends: bool
    stage: Stage


# --- who is there -----------------------------------------------------------------------------


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
    if mine is None or _goes_on(look.view) or _has_started(look):
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


def _has_started(look: Look) -> bool:
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


# --- what it asks for -------------------------------------------------------------------------


def wait_for_members(look: Look) -> Done:
    """Have a gang wait that asks for its start while not all members of its group do."""
    view, member = look.view, look.view.together
    member.asks, member.joins = None, False
    asked, mine = view.queueing.asked, look.scene.cache.together.of(view.key)
    if mine is None or not isinstance(asked, PendingGang) or not _is_to_start(view, asked):
        return NOTHING_DONE
    waits = _excess(look, mine) if _has_started(look) else _hindrance(look, mine, asked)
    if waits is not None:
        view.queueing.asked = waits
        view.queueing.refusal = view.queueing.left_out = view.queueing.planned = None
        view.queueing.position = 0
    return NOTHING_DONE


def _is_to_start(view: GangView, asked: PendingGang) -> bool:
    started = view.released_any or view.survey.ran or view.reservation.placement is not None
    return bool(asked.minimum) and not asked.is_repair and not started


def _excess(look: Look, mine: Mate) -> NotReady | None:
    """Refuse a gang that comes to a group that started whole without it."""
    return _too_many(members(look), mine)


def _hindrance(look: Look, mine: Mate, asked: PendingGang) -> NotReady | None:
    """Say why the group cannot be asked for; note what this gang asks for if it is not to blame."""
    there, member = members(look), look.view.together
    problem = _problem(look, there, mine)
    if problem is not None:
        return problem
    member.asks = asked
    agreeing = [each for each in there if each.mate.asked == mine.asked]
    waits = _absent(there, agreeing, mine) or _unready(agreeing, mine)
    if waits is not None:
        return waits
    gangs = [each.view.together.asks for each in agreeing if each.view.together.asks is not None]
    differ = disagreement(gangs)
    if differ is not None:
        return NotReady(differ.reason, differ.message)
    if member.ordered and member.ordered == in_order(gangs):
        return not_supported(ORDERED)
    member.joins = True
    return None


def _problem(look: Look, there: Sequence[Member], mine: Mate) -> NotReady | None:
    """Say what keeps this gang from being a member of its group."""
    if there and mine.asked != there[0].mate.asked:
        return _disagrees(there[0], mine)
    too_many = _too_many(there, mine)
    if too_many is not None:
        return too_many
    newest = next((each for each in there if each.mate.member == mine.member), None)
    if newest is not None and newest.mate.key != mine.key:
        said = f"{newest.name} starts with its group by RayCluster {newest.mate.key.name}"
        return NotReady(Reason.WAITS_FOR_MEMBERS, said)
    if look.view.record.drops_together:
        return not_supported(OLD_SCHEMA)
    if look.view.held.phase is Phase.NONE and is_kept_back(look) and _has_pods(look):
        return not_supported(COUNTED)
    return None


def _disagrees(first: Member, mine: Mate) -> NotReady:
    key, value, theirs = _differences(mine.asked, first.mate.asked)[0]
    allowed = f"{theirs}, as {first.name} of group {mine.asked.name} says"
    return NotReady(Reason.MISCONFIGURED, Problem(key, value, allowed).message)


def _differences(mine: Together, theirs: Together) -> list[tuple[str, str, str]]:
    """Return the keys in which two members of a group disagree, with the values of both."""
    said = (
        (names.TOGETHER_SIZE, str(mine.size), str(theirs.size)),
        (names.TOGETHER_END, mine.end, theirs.end),
    )
    return [each for each in said if each[1] != each[2]]


def _has_pods(look: Look) -> bool:
    return any(not is_foreseen(pod) for pod in look.pods)


def not_supported(what: str) -> NotReady:
    """Say that Muster does not start gangs together so, and what to do instead."""
    return NotReady(Reason.UNSUPPORTED, f"not supported by Muster; {what}")


def _too_many(there: Sequence[Member], mine: Mate) -> NotReady | None:
    agreeing = [each for each in there if each.mate.asked.size == mine.asked.size]
    is_heard = any(each.mate.member == mine.member for each in agreeing)
    if len(agreeing) <= mine.asked.size and is_heard:
        return None
    count = f"{len(agreeing)}" if is_heard else f"{len(agreeing)} or more"
    allowed = (
        f"a group of {mine.asked.size} members ({names.TOGETHER_SIZE}), and {count} name it: "
        f"{_named(agreeing)}; delete one, or name another group"
    )
    said = Problem(names.TOGETHER, mine.asked.name, allowed).message
    return NotReady(Reason.MISCONFIGURED, said)


def _absent(there: Sequence[Member], agreeing: Sequence[Member], mine: Mate) -> NotReady | None:
    """Say for how many members the group waits."""
    group, absent = mine.asked, mine.asked.size - len(agreeing)
    if absent <= 0:
        return None
    verb = "is" if len(agreeing) == 1 else "are"
    said = (
        f"{len(agreeing)} of {group.size} members of {group.name} {verb} there: "
        f"{_named(agreeing)}; waits for {absent} more"
    )
    other = next((each for each in there if each.mate.asked != group), None)
    if other is not None:
        key, value, _ = _differences(other.mate.asked, group)[0]
        said += f"; {other.name} says {key} {value}"
    return NotReady(Reason.WAITS_FOR_MEMBERS, said)


def _unready(agreeing: Sequence[Member], mine: Mate) -> NotReady | None:
    """Say which member is there and does not ask for room yet, and why, the first of them."""
    others = [each for each in agreeing if each.view.together.asks is None]
    if not others:
        return None
    group, first = mine.asked, others[0]
    asked = first.view.queueing.asked
    why = f" ({asked.reason})" if isinstance(asked, NotReady) else ""
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    said = (
        f"{group.size} of {group.size} members of {group.name} are there; waits for "
        f"{first.name}{why}{more}"
    )
    return NotReady(Reason.WAITS_FOR_MEMBERS, said)


def _named(found: Sequence[Member]) -> str:
    some = ", ".join(each.name for each in found[:MEMBERS_NAMED])
    more = len(found) - MEMBERS_NAMED
    return some + (f" and {more} more" if more > 0 else "")


# --- when it may start ------------------------------------------------------------------------


def is_recorded(look: Look) -> bool:
    """Say whether the records of all gangs hold their placements that were placed at once."""
    placed = look.view.reservation.together
    if placed is ALONE or look.view.together.begun:
        return True
    found = _mates_placed(look)
    return len(found) == len(placed.members) and all(each.survey.durable for each in found)


def may_begin(look: Look) -> bool:
    """Say whether pods may be released: all placements are recorded, and all pods are there.

    Where a pod of any of them was released it was so.
    """
    member = look.view.together
    if not member.begun:
        whole = is_recorded(look) and all(map(_has_its_pods, _mates_placed(look)))
        member.begun = whole or has_begun(look)
    return member.begun


def has_begun(look: Look) -> bool:
    """Say whether a pod was released of any gang that was placed at once with this one."""
    member = look.view.together
    if not member.begun:
        member.begun = any(_has_released(look, each) for each in _mates_placed(look))
    return member.begun


def is_broken(look: Look) -> bool:
    """Say whether another gang of those that were placed at once has no such placement."""
    found = _mates_placed(look)
    drops = any(each.record.drops_together for each in found)
    return drops or len(found) < len(look.view.reservation.together.members)


def _mates_placed(look: Look) -> list[GangView]:
    """Return the gangs with the stamp of this one, itself among them."""
    placed, namespace = look.view.reservation.together, look.view.key.namespace
    views = (look.scene.views.get(GangKey(namespace, name)) for name in placed.members)
    return [
        each
        for each in views
        if each is not None
        and each.reservation.placement is not None
        and each.reservation.together.stamp == placed.stamp
    ]


def _has_its_pods(view: GangView) -> bool:
    return view.together.begun or (view.is_gathered and not view.held.holds)


def _has_released(look: Look, view: GangView) -> bool:
    if view.together.begun or view.survey.ran:
        return True
    pods = look.scene.cache.members(view.key, view.cluster_uid)
    return any(is_released(pod) and pod.alive for pod in pods)


def shown(look: Look) -> tuple[object, ...]:
    """Return what other members depend on of a gang."""
    view, member, placed = look.view, look.view.together, look.view.reservation
    if placed.placement is not None:
        mate = look.scene.cache.together.of(view.key)
        follow = mate is not None and mate.asked.ends_at_once
        ended = follow and mate is not None and has_ended(look.scene, mate)
        ends = ended or view.eviction.whole is not None or view.record.drops_together
        return ShownPlaced(placed.together.stamp, bool(ends), _stage(look))
    asked = view.queueing.asked
    reason = asked.reason if isinstance(asked, NotReady) and member.asks is None else ""
    return (member.asks, reason, view.survey.ran, view.record.drops_together)


def to_tell(look: Look) -> set[GangKey]:
    """Return the gangs for which it is news what others see of a gang now."""
    view = look.view
    others = {each.key for each in look.scene.cache.together.mates(view.key)}
    names = view.reservation.together.members
    others |= {GangKey(view.key.namespace, name) for name in names}
    return {key for key in others - {view.key} if _is_news(view, look.scene.views.get(key))}


def _is_news(view: GangView, other: GangView | None) -> bool:
    """Say whether another member may go on by what is seen of a gang.

    Those that were placed with it go on together, once the last of them has come so far.
    """
    seen = view.together.shown
    if other is None or not isinstance(seen, ShownPlaced) or not seen.stamp:
        return True
    placed = other.reservation
    is_mate = placed.placement is not None and placed.together.stamp == seen.stamp
    waits = other.together.shown == seen or seen.stage is Stage.PLACED
    return seen.ends or not (is_mate and waits)


def goes_by_others(view: GangView) -> bool:
    """Say whether it matters to a gang what becomes of the others."""
    group = view.together.group
    follows = group is not None and group.ends_at_once
    return follows or view.reservation.placement is None or not view.together.begun


def _stage(look: Look) -> Stage:
    if look.view.together.begun:
        return Stage.BEGUN
    if not is_recorded(look):
        return Stage.PLACED
    return Stage.MADE if all(map(_has_its_pods, _mates_placed(look))) else Stage.RECORDED


def is_kept_back(look: Look) -> bool:
    """Say whether pods of a member would be counted by a ResourceQuota while it waits."""
    cache, key = look.scene.cache, look.view.key
    return cache.together.of(key) is not None and bool(cache.admission.quotas(key.namespace))
