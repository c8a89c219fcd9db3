"""Joins gangs that start together into one question, and splits the answer between them.

The first gang asks for all of them, under its own key: what is kept by key (its age, a preemption
in its name, its place in the line) is then kept for the group. Pod sets are named `member/pod set`
while they are joined; no name of a gang has a slash.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from scheduling.model.gang import SUBMITTER, GangKey, Group, Member, PendingGang, Topology
from scheduling.model.placement import Assignment, Placement
from scheduling.model.verdict import (
    MESSAGE_LIMIT,
    Admitted,
    PodSetRefusal,
    Reason,
    Refusal,
    Verdict,
)


def join(gangs: Sequence[PendingGang]) -> PendingGang | Refusal:
    """Return one gang that asks for all that these ask for, or why none can.

    They are of one namespace, and none holds a placement. The group comes when the last of them
    does, has the lowest of their priorities, and runs as long as the longest of them.
    """
    ordered = in_order(gangs)
    differ = disagreement(ordered)
    if differ is not None:
        return differ
    return replace(
        ordered[0],
        priority=min(each.priority for each in ordered),
        created=came(ordered),
        minimum=tuple(chain.from_iterable(_joined(each, each.minimum) for each in ordered)),
        surplus=tuple(_joined(each, unit) for each in ordered for unit in each.surplus),
        members=tuple(_member(each, pod) for each in ordered for pod in each.members),
        pod_priority=min(each.pod_priority for each in ordered),
        topology=_topology(ordered),
        setbacks=max(each.setbacks for each in ordered),
        duration=max(each.duration for each in ordered),
    )


def disagreement(gangs: Sequence[PendingGang]) -> Refusal | None:
    """Say why gangs cannot be joined: they name two queues, or ask for two topologies."""
    ordered = in_order(gangs)
    asked = [(each.key.name, each.topology) for each in ordered if each.topology is not None]
    queues = {each.key.name: each.queue for each in ordered}
    replicas = {name: each.replica for name, each in asked if each.replica}
    if any(each.is_own for _, each in asked):
        return _differ("queue", queues) or _differ("topology of replicas", replicas)
    topologies = {name: _topology_in_words(each) for name, each in asked}
    return _differ("queue", queues) or _differ("topology", topologies)


def came(gangs: Sequence[PendingGang]) -> float:
    """Return when gangs that are joined came: with the last of them."""
    return max(each.created for each in gangs)


def split(verdict: Verdict, gangs: Sequence[PendingGang]) -> Mapping[GangKey, Verdict]:
    """Return what the verdict for gangs that were joined means for each of them."""
    ordered = in_order(gangs)
    if isinstance(verdict, Refusal):
        return {each.key: _own_refusal(verdict, each.key) for each in ordered}
    return dict(_own_admissions(verdict, ordered))


def split_placement(
    placement: Placement, gangs: Sequence[PendingGang]
) -> Mapping[GangKey, Placement]:
    """Return the part of a placement of gangs that were joined that is each of theirs."""
    found: dict[GangKey, Placement] = {}
    for gang in gangs:
        mine = (each for each in placement.assignments if _owner(each) == gang.key.name)
        found[gang.key] = Placement.of(map(_parted, mine))
    return found


def in_order(gangs: Sequence[PendingGang]) -> tuple[PendingGang, ...]:
    """Return gangs with the one first that asks for all: the oldest, by name where two are."""
    return tuple(sorted(gangs, key=lambda each: (each.created, each.key.name)))


def _own_admissions(
    admitted: Admitted, ordered: Sequence[PendingGang]
) -> Iterator[tuple[GangKey, Admitted]]:
    """Yield the part of a placement that is each gang's, and which of its own units are in it."""
    first, placements = 0, split_placement(admitted.placement, ordered)
    for gang in ordered:
        after, placement = first + len(gang.surplus), placements[gang.key]
        units = tuple(unit - first for unit in admitted.units if first <= unit < after)
        left_out = admitted.left_out if len(units) < len(gang.surplus) else None
        own = _own_refusal(left_out, gang.key) if left_out is not None else None
        yield gang.key, Admitted(placement, units, own)
        first = after


def _own_refusal(refusal: Refusal, key: GangKey) -> Refusal:
    """Return the common message with the numbers of one gang's own pod sets."""
    mine = tuple(_own_pod_sets(refusal.pod_sets, key.name))
    return replace(refusal, pod_sets=mine)


def _own_pod_sets(refused: Sequence[PodSetRefusal], name: str) -> Iterator[PodSetRefusal]:
    for each in refused:
        owner, _, pod_set = each.pod_set.partition("/")
        if owner == name and pod_set:
            yield replace(each, pod_set=pod_set)


def _joined(gang: PendingGang, groups: Sequence[Group]) -> tuple[Group, ...]:
    return tuple(_named(gang.key.name, each) for each in groups)


def _named(owner: str, group: Group) -> Group:
    """Name the gang in a group; the submitter keeps its name, for no quota counts that one."""
    if group.pod_set == SUBMITTER:
        return replace(group, replica=owner)
    return replace(group, pod_set=_pod_set(owner, group.pod_set))


def _member(gang: PendingGang, pod: Member) -> Member:
    if pod.pod_set == SUBMITTER:
        return pod._replace(replica=gang.key.name)
    return pod._replace(pod_set=_pod_set(gang.key.name, pod.pod_set))


def _pod_set(owner: str, pod_set: str) -> str:
    return f"{owner}/{pod_set}"


def _owner(each: Assignment) -> str:
    return each.replica if each.pod_set == SUBMITTER else owner_of(each.pod_set)


def owner_of(pod_set: str) -> str:
    """Return the name of the gang whose pod set it is, as that is named where gangs are joined."""
    return pod_set.partition("/")[0]


def _parted(each: Assignment) -> Assignment:
    if each.pod_set == SUBMITTER:
        return replace(each, replica="")
    return replace(each, pod_set=each.pod_set.partition("/")[2])


def _topology(ordered: Sequence[PendingGang]) -> Topology | None:
    """Return the domain that is asked for: one for the pod sets of all gangs that ask for any.

    Or each its own; the label of replicas is one for all in any case.
    """
    asked = [_of_member(each.key.name, each.topology) for each in ordered if each.topology]
    if not asked or not asked[0].is_own:
        return _as_one(asked)
    found = _as_one([each for each in asked if each.replica]) or Topology(())
    apart = tuple(each for each in asked if each.required or each.preferred)
    return replace(found, required="", preferred="", apart=apart)


def _of_member(name: str, topology: Topology) -> Topology:
    sets = tuple(_pod_set(name, each) for each in topology.pod_sets)
    there = (each._replace(pod_set=_pod_set(name, each.pod_set)) for each in topology.occupied)
    return replace(topology, pod_sets=sets, occupied=tuple(there))


def _as_one(asked: Sequence[Topology]) -> Topology | None:
    if not asked:
        return None
    sets = tuple(name for each in asked for name in each.pod_sets)
    there = sorted(one for each in asked for one in each.occupied)
    return replace(asked[0], pod_sets=sets, occupied=tuple(there))


def _differ(what: str, values: Mapping[str, str]) -> Refusal | None:
    """Refuse gangs that differ in what must be the same; name the first two of them."""
    if len({*values.values()}) < 2:
        return None
    [(first, value), *others] = values.items()
    other, theirs = next(each for each in others if each[1] != value)
    told = f"gangs that start together must have one {what}: {first} has {value}, {other} has "
    return Refusal(Reason.MISCONFIGURED, f"{told}{theirs}"[:MESSAGE_LIMIT])


def _topology_in_words(asked: Topology) -> str:
    named = {"required": asked.required, "preferred": asked.preferred, "replica": asked.replica}
    return ", ".join(f"{key} {label}" for key, label in named.items() if label) or "none"
