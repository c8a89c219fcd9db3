"""Yields every way to place a gang; the one entrance to the exhaustive search.

Without spread constraints the order of pods within a group does not matter: anti-affinity is
mutual, and a pod with affinity goes where the terms hold already, so it opens no new place for the
next. With them it does, and where the affinity of groups depends on each other the order of groups
does: then everything is tried pod by pod.
"""

from collections.abc import Iterator, Sequence

from scheduling.placement.interdependent.exhaustive.group_by_group import ways_by_group
from scheduling.placement.interdependent.exhaustive.pod_by_pod import ways_by_pod
from scheduling.placement.interdependent.partial_placement import PartialPlacement


def all_ways(partial: PartialPlacement, order: Sequence[int]) -> Iterator[bool]:
    """Place pods and take them back, until all ways are tried; yield whether all are placed.

    Groups are placed in the `order` given where the order does not matter.
    """
    has_spread = bool(partial.internal_constraints.spread)
    if not has_spread:
        yield from ways_by_group(partial, order)
    if has_spread or _order_matters(partial):
        yield from ways_by_pod(partial)


def _order_matters(partial: PartialPlacement) -> bool:
    """Say whether another order of groups might succeed.

    So it is where a group has affinity to one that has affinity itself, or where a group to which
    the first-pod rule applies has other partners too.
    """
    affinity = partial.affinity
    return any(
        each.partners & (affinity.keys() - {each.group})
        or (each.allows_first_pod and each.partners != {each.group})
        for each in affinity.values()
    )
