"""Provisioning: which nodes will reach a volume that does not exist yet."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from scheduling.filters.volumes.claim_effect import BINDING
from scheduling.filters.volumes.node_terms import merged
from scheduling.filters.volumes.volume_zone import ZONE_LABELS
from scheduling.model.constraints import NodeTerm, NodeTerms, Requirement, VolumeNodeRestriction
from scheduling.model.volume import IN_TREE_DRIVERS, Capacity, Claim, Driver, StorageClass
from scheduling.state.volume_index import VolumeIndex

NO_PROVISIONER = "kubernetes.io/no-provisioner"
_IN_TREE = "kubernetes.io/"


def may_be_provisioned(provisioner: str) -> bool:
    """Say whether a provisioner may exist: of Kubernetes' own only those that drivers took over."""
    return provisioner in IN_TREE_DRIVERS or not (provisioner or _IN_TREE).startswith(_IN_TREE)


def provisioned(
    table: VolumeIndex, claim: Claim, of_class: StorageClass, called: str
) -> Iterator[VolumeNodeRestriction]:
    """Yield where a volume can be made for the claim."""
    if claim.selected:
        there = Requirement("metadata.name", "In", (claim.selected,))
        yield VolumeNodeRestriction(BINDING, called, (NodeTerm(fields=(there,)),))
    if of_class.topologies is not None:
        yield VolumeNodeRestriction(BINDING, called, of_class.topologies)
    driver = table.find(Driver, of_class.provisioner)
    if driver is not None and driver.tracks and claim.size is not None:
        terms = _with_storage(table, of_class.name, claim.size)
        if terms is not None:
            yield VolumeNodeRestriction(BINDING, f"{called} (storage capacity)", terms)


def domain_keys(table: VolumeIndex, of_class: StorageClass) -> tuple[str, ...] | None:
    """Return the labels whose values say from where a volume to be made will be reached.

    Before one is made kube-scheduler looks for one that is free. One of a plugin that a driver
    took over has the labels of zone and region, too.
    """
    if table.has_free(of_class.name):
        return None
    if of_class.provisioner not in IN_TREE_DRIVERS:
        return table.keys_of(of_class.provisioner)
    keys = table.keys_of(of_class.driver)
    return None if keys is None else (*keys, *ZONE_LABELS[2:]) if keys else ()


def _with_storage(table: VolumeIndex, storage_class: str, size: int) -> tuple[NodeTerm, ...] | None:
    """Return the nodes that reach enough storage for one volume; None where all do."""
    offers = table.from_capacities(storage_class, lambda: _offers(storage_class, table))
    enough = bisect_left(offers, size, key=_size)
    return table.from_capacities((storage_class, enough), lambda: _reached(offers[enough:]))


def _offers(storage_class: str, table: VolumeIndex) -> Sequence[Capacity]:
    """Return what storage of a class there is, the least first."""
    offered = (each for each in table.all(Capacity) if each.storage_class == storage_class)
    return sorted((each for each in offered if each.size is not None), key=_size)


def _size(capacity: Capacity) -> int:
    return capacity.size or 0


def _reached(offers: Iterable[Capacity]) -> NodeTerms | None:
    """Return from where some of the storage is reached; None where from everywhere."""
    found = [each.selector for each in offers if each.selector is not None]
    return None if () in found else merged(found)
