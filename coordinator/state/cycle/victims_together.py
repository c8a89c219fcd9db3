"""Presents gangs that were placed together to preemption as one: all of them end, or none does.

Their minimums form one part under the name of the first gang. A gang that already ends is left out.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from coordinator.gang.view import GangView
from coordinator.state.known import Known
from kube.ray.ray_cluster import is_terminating
from scheduling.model.gang import GangKey
from scheduling.model.preemption import GangPart

Sets = Mapping[GangKey, Sequence[GangKey]]
"""Of each gang that is taken with others all that are, the first of them first."""


def sets_of(known: Known, gangs: Iterable[GangKey]) -> Sets:
    """Return, for each of the gangs that ends only with others, all gangs of its set."""
    stamped: defaultdict[tuple[str, str], list[GangKey]] = defaultdict(list)
    for key in gangs:
        view = known.views.get(key)
        if view is not None and view.reservation.together.stamp and _stays(known, view):
            stamped[key.namespace, view.reservation.together.stamp].append(key)
    lines = (sorted(each, key=str) for each in stamped.values() if len(each) > 1)
    return {key: line for line in lines for key in line}


def _stays(known: Known, view: GangView) -> bool:
    source = known.cache.sources.get(view.key)
    ends = source is None or is_terminating(source.metadata) or view.eviction.whole is not None
    return view.reservation.placement is not None and not ends


def taken_together(known: Known, parts: Iterable[GangPart]) -> Iterator[GangPart]:
    """Yield parts, those of gangs that are taken with others under the first of them."""
    if not known.cache.together:
        yield from parts
        return
    every = list(parts)
    sets = sets_of(known, {part.gang for part in every})
    minimums: defaultdict[GangKey, list[GangPart]] = defaultdict(list)
    for part in every:
        if part.gang not in sets or part.is_ending:
            yield part
        elif part.is_minimum:
            minimums[sets[part.gang][0]].append(part)
        else:
            first = sets[part.gang][0]
            yield replace(part, gang=first, replica=f"{part.gang.name}/{part.replica}")
    for first, found in minimums.items():
        yield _as_one(first, found)


def _as_one(first: GangKey, minimums: Sequence[GangPart]) -> GangPart:
    """Return one part of several; it is kept where one of them is, and has the highest priority."""
    kept = next((each for each in minimums if each.kept_because), minimums[0])
    return replace(
        kept,
        gang=first,
        priority=max(each.priority for each in minimums),
        admitted=max(each.admitted for each in minimums),
        room=tuple(chain.from_iterable(each.room for each in minimums)),
        outlived=all(each.outlived for each in minimums),
        devices=frozenset(chain.from_iterable(each.devices for each in minimums)),
    )


def victims(known: Known, parts: Iterable[GangPart]) -> Iterator[tuple[GangKey, str]]:
    """Yield the gangs of parts that are to end, each with a replica, or with none for all of it."""
    chosen = [part for part in parts if not part.is_ending]
    sets = sets_of(known, known.quota.gangs) if known.cache.together else {}
    for part in chosen:
        if part.gang not in sets:
            yield part.gang, part.replica
        elif part.is_minimum:
            yield from ((key, "") for key in sets[part.gang])
        else:
            name, _, replica = part.replica.partition("/")
            yield GangKey(part.gang.namespace, name), replica
