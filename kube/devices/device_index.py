"""Indexes slices, classes, claims and templates of devices, within bounds for each namespace.

Of a claim beyond the bound the index keeps only its identity and its allocation: every taken device
must be known. A pod that asks for this claim gets a refusal that says so.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from kube.codec.devices.extended_requests import ExtendedRequest
from kube.devices.device_classes import ReadClass, classes_of_resources
from kube.devices.device_facts import DEVICE_WATCHES, DeviceFact
from kube.devices.resource_slices import ReadSlice
from kube.devices.taint_rules import DeviceTaintRule, tainted
from scheduling.devices.pools import PoolKey, Taken
from scheduling.model.devices.features import DEFAULT_FEATURES, features_of, version_of
from scheduling.model.devices.in_use import TakenDevice, taken_of
from scheduling.model.devices.resource_claim import (
    Allocation,
    ClaimSpec,
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
)
from scheduling.model.devices.resource_slice import ResourceSlice
from scheduling.state.bounded_cache import MIB, Interned

MOST_CLAIMS: Final = 2_000
"""Claims of a namespace whose specs are kept."""

MOST_TEMPLATES: Final = 500
"""Templates of a namespace that are kept."""

Key = tuple[str, str]

_TOO_MANY: Final = ClaimSpec(
    (), (), (f"more than {MOST_CLAIMS} ResourceClaims in the namespace (delete those not in use)",)
)


_OF_TENANTS: Final = (ResourceClaim, ResourceClaimTemplate)


class DeviceIndex:
    """All facts.

    `edition` grows with each change that may change what a node has left. Claims that were given
    nothing, and templates, concern the pods that name them alone: tenants may write any number.
    `gates_off` are the feature gates that kube-scheduler runs without.
    """

    def __init__(self, gates_off: Collection[str] = ()) -> None:
        self._gates_off = gates_off
        self.features = DEFAULT_FEATURES
        self.edition = 0
        self.offered = 0
        """Grows with each change of classes, and of the nodes that slices name."""
        self.template_edition = 0
        """Grows with each change of a template."""
        self.claims: dict[Key, ResourceClaim] = {}
        self.templates: dict[Key, ResourceClaimTemplate] = {}
        self.taken: dict[TakenDevice, Key] = {}
        """Devices, and shares of devices, that a claim takes from others, and that claim."""
        self._also: defaultdict[TakenDevice, dict[Key, None]] = defaultdict(dict)
        """Other claims that have the same: of shares whose amount is not read each takes all."""
        self._by_pool: defaultdict[PoolKey, set[TakenDevice]] = defaultdict(set)
        self._told: dict[PoolKey, frozenset[TakenDevice]] = {}
        self._untold: set[PoolKey] = set()
        self.unallocated: set[Key] = set()
        """Claims that were given nothing yet."""
        self.unseen: set[type[DeviceFact]] = {watch.fact for watch in DEVICE_WATCHES}
        """Kinds of which not all is known: never listed, or the watch is down."""
        self._slices: dict[str, ResourceSlice] = {}
        self._laid: dict[str, ResourceSlice] = {}
        self._classes: dict[str, ReadClass] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self._whole: Counter[str] = Counter()
        self._templates_of: Counter[str] = Counter()
        self._resources: tuple[int, Mapping[str, str]] | None = None
        self._on_nodes: Counter[str] = Counter()
        self._specs: Interned[ClaimSpec] = Interned(8 * MIB)

    # ---- what is told

    def follow(self, version: str) -> None:
        """Take in which version of Kubernetes it is, such as 1.37."""
        features = features_of(version_of(version), self._gates_off)
        changed = features != self.features
        self._laid.clear()
        self.features = features
        self.edition += changed
        self.offered += changed

    def put(self, fact: DeviceFact) -> None:
        """Take in what is new or has changed."""
        self._count(fact)
        match fact:
            case ResourceClaim():
                self.edition += _allocation(self.claims.get(fact.key)) != fact.allocation
                self._put_claim(fact)
            case ResourceClaimTemplate():
                self._put_template(fact)
            case ReadSlice(resource_slice=found):
                self._drop_slice(found.name)
                self._slices[found.name] = found
                self.offered += _node_of(found) not in self._on_nodes
                self._on_nodes[_node_of(found)] += 1
            case ReadClass():
                self._classes[fact.device_class.name] = fact
            case DeviceTaintRule():
                self._rules[fact.name] = fact
                self._laid.clear()

    def drop(self, fact: DeviceFact) -> None:
        """Forget what is gone."""
        self._count(fact)
        match fact:
            case ResourceClaim():
                self.edition += _allocation(self.claims.get(fact.key)) is not None
                self._drop_claim(fact.key)
            case ResourceClaimTemplate():
                self.template_edition += 1
                if self.templates.pop(fact.key, None) is not None:
                    _count_down(self._templates_of, fact.namespace)
            case ReadSlice(resource_slice=found):
                self._drop_slice(found.name)
            case ReadClass():
                self._classes.pop(fact.device_class.name, None)
            case DeviceTaintRule():
                self._rules.pop(fact.name, None)
                self._laid.clear()

    def _count(self, fact: DeviceFact) -> None:
        self.edition += not isinstance(fact, _OF_TENANTS)
        self.offered += isinstance(fact, ReadClass)

    def see(self, kind: type[DeviceFact]) -> None:
        """Begin to answer by the facts of a kind: all were told."""
        self.edition += kind in self.unseen
        self.unseen.discard(kind)

    def lose_sight(self, kind: type[DeviceFact]) -> None:
        """Answer no more by facts that may be out of date."""
        self.unseen.add(kind)

    # ---- what is asked

    @property
    def slices(self) -> Mapping[str, ResourceSlice]:
        """Return all slices by name, with the taints of the rules."""
        if len(self._laid) != len(self._slices):
            rules = list(self._rules.values()) if self.features.device_taint_rules else []
            for name in self._slices.keys() - self._laid.keys():
                self._laid[name] = tainted(self._slices[name], rules)
        return self._laid

    @property
    def classes(self) -> Mapping[str, DeviceClass]:
        """Return all classes by name."""
        return {name: each.device_class for name, each in self._classes.items()}

    @property
    def classes_of_resources(self) -> Mapping[str, str]:
        """Return the class of each resource that pods may ask for in place of a claim."""
        if self._resources is None or self._resources[0] != self.offered:
            classes = self._classes.values() if self.features.extended_resources else ()
            self._resources = self.offered, classes_of_resources(classes)
        return self._resources[1]

    def gives_any(self, asked: Iterable[ExtendedRequest]) -> bool:
        """Say whether a class gives anything of what a pod asks for as extended resources."""
        return any(each.resource in self.classes_of_resources for each in asked)

    @property
    def nodes_with_slices(self) -> Collection[str]:
        """Return the nodes that slices name; "" stands for those of slices that name none."""
        return self._on_nodes.keys()

    def _drop_slice(self, name: str) -> None:
        known = self._slices.pop(name, None)
        self._laid.pop(name, None)
        if known is not None:
            _count_down(self._on_nodes, _node_of(known))
            self.offered += _node_of(known) not in self._on_nodes

    # ---- claims

    def _put_claim(self, claim: ResourceClaim) -> None:
        self._drop_claim(claim.key)
        if self._whole[claim.namespace] < MOST_CLAIMS:
            self._whole[claim.namespace] += 1
            claim = replace(claim, spec=self._specs(claim.spec))
        else:
            claim = replace(claim, spec=_TOO_MANY)
        self.claims[claim.key] = claim
        if claim.allocation is None:
            self.unallocated.add(claim.key)
        for device in taken_of(claim):
            holder = self.taken.setdefault(device, claim.key)
            if holder != claim.key:
                self._also[device][claim.key] = None
            self._pool_of(device).add(device)

    def _drop_claim(self, key: Key) -> None:
        known = self.claims.pop(key, None)
        if known is None:
            return
        self.unallocated.discard(key)
        if known.spec is not _TOO_MANY:
            _count_down(self._whole, known.namespace)
        for device in taken_of(known):
            self._give_back(device, key)

    def _give_back(self, device: TakenDevice, key: Key) -> None:
        """Take in that a claim has a device no more; another claim may have it still."""
        others = self._also.get(device, {})
        if self.taken.get(device) != key:
            others.pop(key, None)
        elif others:
            self.taken[device] = next(iter(others))
            del others[self.taken[device]]
        else:
            del self.taken[device]
            self._pool_of(device).discard(device)
        if not others:
            self._also.pop(device, None)

    def taken_alone(self, claim: ResourceClaim) -> Iterator[TakenDevice]:
        """Yield what a claim takes that no other one has: it is free once the claim is gone."""
        return (each for each in taken_of(claim) if not self._also.get(each))

    def _pool_of(self, device: TakenDevice) -> set[TakenDevice]:
        """Return what is taken of the pool of a device, to be changed."""
        key = PoolKey(device.driver, device.pool)
        self._untold.add(key)
        return self._by_pool[key]

    @property
    def taken_by_pool(self) -> Taken:
        """Return the devices in `taken` by pool; of a pool that did not change the same set."""
        for key in self._untold:
            self._told[key] = frozenset(self._by_pool[key])
            if not self._told[key]:
                del self._told[key], self._by_pool[key]
        self._untold.clear()
        return dict(self._told)

    def _put_template(self, template: ResourceClaimTemplate) -> None:
        self.template_edition += 1
        if template.key not in self.templates:
            if self._templates_of[template.namespace] >= MOST_TEMPLATES:
                return
            self._templates_of[template.namespace] += 1
        self.templates[template.key] = replace(template, spec=self._specs(template.spec))

    def has_all_templates(self, namespace: str) -> bool:
        """Say whether none of a namespace was left out."""
        return self._templates_of[namespace] < MOST_TEMPLATES


def _count_down(counts: Counter[str], name: str) -> None:
    """Take one away, and the name of what has none left."""
    counts[name] -= 1
    if not counts[name]:
        del counts[name]


def _node_of(found: ResourceSlice) -> str:
    return found.access.node_name if found.access is not None else ""


def _allocation(claim: ResourceClaim | None) -> Allocation | None:
    return None if claim is None else claim.allocation
