"""Reads all objects of Kueue: quotas by flavor, and the resources in several flavors."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from cli.imports.kueue_objects import (
    ClusterQueue,
    Cohort,
    LocalQueue,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
)
from cli.imports.naming import Names
from cli.imports.objects import called, decoded
from cli.imports.outcome import Fault, Source
from cli.imports.quantities import exact
from cli.imports.systems import KUEUE


@dataclass(frozen=True, slots=True)
class Share:
    """The quota of one resource in one flavor."""

    flavor: str
    said: ResourceQuota
    place: str


@dataclass(slots=True)
class World:
    """All objects of the input, and the names of their queues."""

    cluster_queues: list[ClusterQueue]
    cohorts: dict[str, Cohort]
    local_queues: list[LocalQueue]
    flavors: dict[str, ResourceFlavor]
    queue_names: dict[str, str] = field(default_factory=dict)
    flavor_names: dict[tuple[str, str], str] = field(default_factory=dict)
    cohort_names: dict[str, str] = field(default_factory=dict)
    shares: dict[str, list[Share]] = field(default_factory=dict)
    cohort_shares: dict[str, list[Share]] = field(default_factory=dict)
    mixed: dict[str, frozenset[str]] = field(default_factory=dict)


def world_of(sources: Sequence[Source]) -> World:
    """Read the objects; raises Fault where a value cannot be used."""
    world = World(
        decoded(sources, KUEUE.group, "ClusterQueue", ClusterQueue),
        {each.metadata.name: each for each in decoded(sources, KUEUE.group, "Cohort", Cohort)},
        decoded(sources, KUEUE.group, "LocalQueue", LocalQueue),
        {
            each.metadata.name: each
            for each in decoded(sources, KUEUE.group, "ResourceFlavor", ResourceFlavor)
        },
    )
    for queue in world.cluster_queues:
        subject = called("ClusterQueue", queue.metadata)
        shares = _shares(queue.spec.resource_groups, subject)
        world.shares[queue.metadata.name] = [_within_own(each, subject) for each in shares]
    above = {each.cohort for each in world.cluster_queues}
    above |= {each.parent for each in world.cohorts.values()}
    for name, cohort in world.cohorts.items():
        subject = called("Cohort", cohort.metadata)
        found = list(_shares(cohort.spec.resource_groups, subject))
        alone = [_within_own(each, subject) for each in found] if name not in above else found
        world.cohort_shares[name] = alone
    _name(world)
    _find_mixed(world)
    return world


def _shares(groups: Iterable[ResourceGroup], subject: str) -> Iterator[Share]:
    """Yield the quotas; each resource of a flavor may be there once."""
    seen = set[tuple[str, str]]()
    for at, group in enumerate(groups):
        for number, flavor in enumerate(group.flavors):
            for index, said in enumerate(flavor.resources):
                place = f"spec.resourceGroups[{at}].flavors[{number}].resources[{index}]"
                if not flavor.name or not said.name or (flavor.name, said.name) in seen:
                    fault = "is there twice" if said.name and flavor.name else "has no name"
                    raise Fault(f"{subject}: {place}: {flavor.name}/{said.name} {fault}")
                seen.add((flavor.name, said.name))
                yield Share(flavor.name, said, place)


def _within_own(share: Share, subject: str) -> Share:
    """Leave out a limit above its quota of what is above no other queue: it lends all there is."""
    said, at = share.said, f"{subject}: {share.place}"
    if said.lending_limit is None:
        return share
    own = exact(said.nominal_quota, f"{at}.nominalQuota")
    if exact(said.lending_limit, f"{at}.lendingLimit") <= own:
        return share
    return replace(share, said=msgspec.structs.replace(said, lending_limit=None))


def _name(world: World) -> None:
    """ClusterQueues keep their names, for gangs name them; cohorts give way."""
    names = Names()
    for queue in world.cluster_queues:
        world.queue_names[queue.metadata.name] = names.give(queue.metadata.name)
    for queue in world.cluster_queues:
        for flavor in split_flavors(world.shares[queue.metadata.name]):
            key = queue.metadata.name, flavor
            world.flavor_names[key] = names.give("-".join(key))
    for cohort in sorted(_cohorts(world)):
        world.cohort_names[cohort] = names.give(cohort, f"cohort-{cohort}")


def _cohorts(world: World) -> set[str]:
    """A cohort that is named has members, also where there is no such object."""
    named = {each.cohort for each in world.cluster_queues}
    above = {each.parent for each in world.cohorts.values()}
    return (named | above | set(world.cohorts)) - {""}


def _find_mixed(world: World) -> None:
    """Find, for each tree of cohorts, the resources that are in several flavors there."""
    flavors: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for queue in world.cluster_queues:
        root = _root(queue.cohort, world) if queue.cohort else ""
        for share in world.shares[queue.metadata.name] if root else ():
            flavors[root][share.said.name].add(share.flavor)
    for name, shares in world.cohort_shares.items():
        for share in shares:
            flavors[_root(name, world)][share.said.name].add(share.flavor)
    for root, found in flavors.items():
        world.mixed[root] = frozenset(name for name, several in found.items() if len(several) > 1)


def _root(cohort: str, world: World) -> str:
    way = [cohort]
    while (at := world.cohorts.get(way[-1])) is not None and at.parent:
        if at.parent in way:
            raise Fault(
                f"Cohort {cohort}: the parents form a circle: {' -> '.join([*way, at.parent])}"
            )
        way.append(at.parent)
    return way[-1]


def mixed_in(cohort: str, world: World) -> frozenset[str]:
    """Return the resources that are in several flavors in the tree of a cohort."""
    return world.mixed.get(_root(cohort, world), frozenset()) if cohort else frozenset()


def split_flavors(shares: Sequence[Share]) -> list[str]:
    """Return the flavors that need a queue of their own, in the order of the ClusterQueue."""
    flavors: defaultdict[str, set[str]] = defaultdict(set)
    for share in shares:
        flavors[share.said.name].add(share.flavor)
    split = {name for name, several in flavors.items() if len(several) > 1}
    return list(dict.fromkeys(each.flavor for each in shares if each.said.name in split))
