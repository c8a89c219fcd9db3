"""Asks a cycle about gangs that start together as one gang, and splits its decision among them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from coordinator.cluster.together_index import Mate
from coordinator.gang.pods.submitter import parted
from coordinator.gang.together import ALONE, PlacedSet
from coordinator.gang.view import GangView
from coordinator.state.known import Known
from scheduling.admission.together import came, in_order, split, split_placement
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.verdict import Decision


def take_apart(known: Known, keys: Iterable[GangKey]) -> set[GangKey]:
    """Ask no more for gangs as one of which one was looked at; return all that may be joined."""
    found: set[GangKey] = set()
    for key in keys:
        found.update(each.key for each in known.cycles.joined.drop(key))
        view = known.views.get(key)
        if view is not None and view.joins:
            found.update(each.key for each in _joining(known, view))
    return found


def join_up(known: Known, view: GangView) -> PendingGang | None:
    """Have a gang ask with all that start with it; return that, None where another one asks."""
    gangs = _questions(known, view)
    joined = known.cycles.joined.put(gangs) if _asks_for(gangs, view) else None
    if not isinstance(joined, PendingGang):
        return None
    moved = known.waiting_limit.note(view.key, joined.created)
    known.cycles.looked_at |= moved
    known.agenda.cycle_wanted |= bool(moved)
    return joined


def joined_since(known: Known, view: GangView) -> float | None:
    """Return when a gang came with all that start with it; None where another one asks."""
    gangs = _questions(known, view)
    return came(gangs) if _asks_for(gangs, view) else None


def _asks_for(gangs: Sequence[PendingGang], view: GangView) -> bool:
    group = view.together.group
    whole = group is not None and len(gangs) == group.size
    return whole and in_order(gangs)[0].key == view.key


def _questions(known: Known, view: GangView) -> list[PendingGang]:
    found = (each.question for each in _joining(known, view))
    return [each for each in found if each is not None]


def _joining(known: Known, view: GangView) -> list[GangView]:
    """Return the gangs of its group that are asked for as one."""
    mates = known.cache.together.mates(view.key)
    views = (known.views.get(each.key) for each in mates)
    return [each for each in views if each is not None and each.joins]


# --- answers ----------------------------------------------------------------------------------


def parted_decisions(known: Known, decisions: Iterable[Decision]) -> Iterator[Decision]:
    """Yield the decision on each gang, also of those that were asked for as one."""
    for each in decisions:
        gangs = known.cycles.joined.of(each.key)
        if not gangs:
            yield each
        else:
            yield from (Decision(k, verdict) for k, verdict in split(each.verdict, gangs).items())


def asked_for(known: Known, key: GangKey) -> PendingGang | None:
    """Return what a gang that waits asks for of its own."""
    own = (each for each in known.cycles.joined.of(key) if each.key == key)
    return next(own, None) or known.cycles.waiting.gang(key)


def placed_with(known: Known, key: GangKey) -> PlacedSet:
    """Return with which others a gang is placed in this cycle, under one stamp."""
    gangs = known.cycles.joined.of(key)
    if not gangs:
        return _placed_beside(known, key)
    stamp = f"{known.term.epoch}.{known.cycles.joined.serial}.{gangs[0].key.name}"
    mates = sorted(filter(None, (known.cache.together.of(each.key) for each in gangs)), key=_name)
    return PlacedSet(stamp, tuple(map(_name, mates)), tuple(each.member for each in mates))


def _placed_beside(known: Known, key: GangKey) -> PlacedSet:
    """Return the set that a later try of a member belongs to, where all of that end with one."""
    mine = known.cache.together.of(key)
    if mine is None or not mine.asked.ends_at_once:
        return ALONE
    views = (known.views.get(each.key) for each in known.cache.together.mates(key))
    placed = (each.reservation for each in views if each is not None and each.key != key)
    sets = (each.together for each in placed if each.placement is not None)
    found = next((each for each in sets if mine.member in each.uids), None)
    if found is None:
        return ALONE
    names = zip(found.members, found.uids, strict=False)
    return found._replace(members=tuple(key.name if u == mine.member else n for n, u in names))


def _name(mate: Mate) -> str:
    return mate.key.name


def plans_of(known: Known, preemptor: GangKey, plan: Placement) -> Mapping[GangKey, Placement]:
    """Return where each gang will be that a preemption is for."""
    gangs = known.cycles.joined.of(preemptor)
    placements = split_placement(plan, gangs) if gangs else {preemptor: plan}
    return {key: parted(each)[0] for key, each in placements.items()}
