"""Reads Volcano's Queues, and lists the labels that Ray objects need in place of PodGroups.

`deserved` becomes the quota, `guarantee` the part that is not lent, `capability` the most that the
queue may hold, borrowed or not. Volcano counts `deserved` inside that of the parent, Muster on top
of it: a parent gets what those below leave. If no queue deserves a resource, capabilities of it are
bounds alone: the topmost becomes a quota which is neither lent nor exceeded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from cli.imports import volcano_remarks as remarks
from cli.imports.naming import Names
from cli.imports.objects import called, decoded
from cli.imports.outcome import Fault, Outcome, Source
from cli.imports.quantities import (
    MOST_RESOURCES,
    checked,
    resources_of,
    spelled,
    value,
)
from cli.imports.systems import VOLCANO
from cli.imports.volcano_objects import PodGroup, Queue
from kube.objects.base import Labels, Quantity
from kube.objects.queues.queue import GangQueueSpec, QueueSelector

ROOT = "root"
NODE_GROUP = "volcano.sh/nodegroup-name"
WHEN_BLOCKED = {"": "BestEffort", "traverse": "BestEffort", "fifo": "Strict"}
NO_LABELS: Labels = {}

Amounts = dict[str, Quantity]
Held = Mapping[str, Mapping[str, Fraction]]
"""By resource and queue: what the queue and those below it may hold."""


@dataclass(slots=True)
class Place:
    """A queue in the tree, its amounts checked."""

    name: str
    queue: Queue | None
    parent: str
    deserved: Amounts
    guarantee: Amounts
    capability: Amounts
    below: list[str] = field(default_factory=list)

    @property
    def subject(self) -> str:
        """Name the object in remarks."""
        return f"Queue {self.name}"

    def promised(self, resource: str) -> Fraction:
        """What it may always hold: what it deserves, at least its guarantee.

        The root has all that it may hold: what the queues below do not deserve it can lend them.
        """
        lists = (self.deserved, self.guarantee) if self.parent else (self.deserved, self.capability)
        return max(value(each, resource) for each in lists)

    def names(self, resource: str) -> bool:
        """Say whether something is promised to the queue itself."""
        return resource in self.deserved or resource in (
            self.guarantee if self.parent else self.capability
        )

    def like(self, resource: str) -> Quantity:
        """An amount in whose unit others of the resource are written."""
        lists = (self.deserved, self.guarantee, self.capability)
        return next((each[resource] for each in lists if resource in each), 0)


def read(sources: Sequence[Source]) -> Outcome:
    """Return the queues; raises Fault where a value cannot be used."""
    outcome = Outcome()
    places = _places(decoded(sources, VOLCANO.group, "Queue", Queue))
    names = _names(places)
    promised = resources_of([*_all(places, "deserved"), *_all(places, "guarantee")])
    held = {resource: _held(places, resource) for resource in promised}
    for place in places.values():
        limits = _limits(place, places, held, outcome)
        outcome.add(names[place.name], _spec(place, names, limits, outcome))
        remarks.of_name(place.subject, place.name, names[place.name], outcome)
    if places:
        remarks.of_all(outcome)
    for group in decoded(sources, VOLCANO.group, "PodGroup", PodGroup):
        remarks.of_pod_group(group, names, outcome)
    return outcome


def _all(places: Mapping[str, Place], name: str) -> list[Amounts]:
    return [getattr(each, name) for each in places.values()]


def _places(queues: Sequence[Queue]) -> dict[str, Place]:
    """Return all queues, with the root that Volcano puts above those without parent."""
    places = {each.metadata.name: _place(each) for each in queues}
    if places and ROOT not in places:
        places[ROOT] = Place(ROOT, None, "", {}, {}, {})
    for place in places.values():
        if place.parent and place.parent not in places:
            why = "is not in the input; allowed: a Queue that is"
            raise Fault(f"{place.subject}: spec.parent: {place.parent!r} {why}")
        if place.parent:
            places[place.parent].below.append(place.name)
    _refuse_circles(places)
    return places


def _place(queue: Queue) -> Place:
    name, spec = queue.metadata.name, queue.spec
    guarantee = spec.guarantee.resource if spec.guarantee else {}
    at = called("Queue", queue.metadata)
    return Place(
        name,
        queue,
        "" if name == ROOT else spec.parent or ROOT,
        checked(spec.deserved, f"{at}: spec.deserved"),
        checked(guarantee, f"{at}: spec.guarantee.resource"),
        checked(spec.capability, f"{at}: spec.capability"),
    )


def _refuse_circles(places: Mapping[str, Place]) -> None:
    for name in places:
        way = _above(name, places)
        if way and way[-1] == name:
            circle = " -> ".join([name, *way])
            raise Fault(f"Queue {name}: spec.parent: the parents form a circle: {circle}")


def _above(name: str, places: Mapping[str, Place]) -> list[str]:
    """Return the queues above one, upwards, each once; ends with itself in a circle."""
    way: list[str] = []
    at = places[name].parent
    while at and at not in way:
        way.append(at)
        if at == name:
            break
        at = places[at].parent
    return way


def _names(places: Mapping[str, Place]) -> dict[str, str]:
    names = Names()
    return {name: names.give(name) for name in sorted(places)}


# ---- amounts ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Limits:
    """The amounts of one GangQueue."""

    quota: Amounts = field(default_factory=dict)
    borrowing: Amounts = field(default_factory=dict)
    lending: Amounts = field(default_factory=dict)


def _held(places: Mapping[str, Place], resource: str) -> dict[str, Fraction]:
    """Return what each queue and those below it may hold: its own part, or theirs if more."""
    found: dict[str, Fraction] = {}
    for name in sorted(places, key=lambda each: len(_above(each, places)), reverse=True):
        below = sum((found[each] for each in places[name].below), Fraction(0))
        found[name] = max(places[name].promised(resource), below)
    return found


def _limits(place: Place, places: Mapping[str, Place], held: Held, outcome: Outcome) -> Limits:
    limits = Limits()
    below = [places[each] for each in place.below]
    above = [places[each] for each in _above(place.name, places)]
    resources = resources_of(
        each_list
        for each in (place, *below)
        for each_list in (each.deserved, each.guarantee, each.capability)
    )
    for resource in resources:
        if resource in held:
            lent = sum((held[resource][each] for each in place.below), Fraction(0))
            _promise(place, below, resource, lent, limits, outcome)
        elif resource in place.capability:
            is_bounded = any(resource in each.capability for each in above)
            _bound(place, resource, limits, above=is_bounded)
    if len(limits.quota) > MOST_RESOURCES:
        fault = f"{len(limits.quota)} resources; allowed: at most {MOST_RESOURCES}"
        raise Fault(f"{place.subject}: {fault}")
    return limits


def _bound(place: Place, resource: str, limits: Limits, *, above: bool) -> None:
    """A capability of a resource that no queue deserves: it comes out of that of a queue above."""
    capability = place.capability[resource]
    if above:
        limits.quota[resource] = 0
        limits.borrowing[resource] = capability
    else:
        limits.quota[resource] = capability
        if place.parent:
            limits.borrowing[resource] = limits.lending[resource] = 0


def _promise(
    place: Place,
    below: Sequence[Place],
    resource: str,
    lent: Fraction,
    limits: Limits,
    outcome: Outcome,
) -> None:
    """A resource that some queue deserves; `lent` is what those below have of it."""
    promised, is_named = place.promised(resource), place.names(resource)
    like = next((each.like(resource) for each in (place, *below) if each.like(resource)), 0)
    own = max(Fraction(0), promised - lent)
    if is_named or (place.parent and resource in place.capability):
        limits.quota[resource] = spelled(own, like)
    if is_named and lent > promised:
        remarks.of_exceeded(place.subject, resource, spelled(promised, like), lent, outcome)
    if place.parent and resource in place.capability:
        most = max(Fraction(0), value(place.capability, resource) - max(promised, lent))
        limits.borrowing[resource] = spelled(most, place.capability[resource])
        if not is_named:
            remarks.of_unpromised(place.subject, resource, place.capability[resource], outcome)
    if place.parent and resource in place.guarantee:
        lent_above = promised - value(place.guarantee, resource)
        limits.lending[resource] = spelled(lent_above, place.guarantee[resource])


# ---- the rest -----------------------------------------------------------------------------------


def _spec(
    place: Place, names: Mapping[str, str], limits: Limits, outcome: Outcome
) -> GangQueueSpec:
    takes_gangs, labels, when_blocked = False, NO_LABELS, "BestEffort"
    if place.queue is not None:
        remarks.of_queue(place.subject, place.queue.spec, outcome)
        takes_gangs = not place.below and _is_open(place, outcome)
        labels = _nodes(place, outcome)
        when_blocked = _when_blocked(place)
    return GangQueueSpec(
        parent=names[place.parent] if place.parent else "",
        quota=limits.quota or None,
        borrowing_limit=limits.borrowing or None,
        lending_limit=limits.lending or None,
        namespace_selector=QueueSelector() if takes_gangs else None,
        node_selector=labels,
        node_selector_scope="All" if labels else "Devices",
        when_blocked=when_blocked,
    )


def _is_open(place: Place, outcome: Outcome) -> bool:
    status = place.queue.status if place.queue else None
    state = status.state if status else ""
    if state in ("Closed", "Closing"):
        remarks.of_closed(place.subject, state, outcome)
        return False
    return True


def _when_blocked(place: Place) -> str:
    strategy = place.queue.spec.dequeue_strategy if place.queue else ""
    if strategy not in WHEN_BLOCKED:
        allowed = "fifo, traverse"
        raise Fault(
            f"{place.subject}: spec.dequeueStrategy: {strategy!r} is not known; allowed: {allowed}"
        )
    return WHEN_BLOCKED[strategy]


def _nodes(place: Place, outcome: Outcome) -> Labels:
    """Return the label of the one group of nodes that the queue requires."""
    affinity = place.queue.spec.affinity if place.queue else None
    wanted = affinity.node_group_affinity if affinity else None
    required = wanted.required_during_scheduling_ignored_during_execution if wanted else ()
    if affinity is not None:
        remarks.of_affinity(place.subject, affinity, outcome)
    return {NODE_GROUP: required[0]} if len(required) == 1 else {}
