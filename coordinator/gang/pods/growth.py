"""Works out what a started gang requests when it grows: surplus, which stops no running gang.

Added replicas (by a person or by Ray's autoscaler), new or resumed groups and a raised minimum are
all placed beside the running pods: replica by replica as they fit, or all at once where the
RayCluster says so. The raised minimum counts from the gang's next start on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from coordinator.gang.pods.pod_sets import PodSetStanding, Standing
from kube.objects.gang import GangPodSet
from kube.ray.gang_terms import HEAD, GangTerms, PodSetTerms
from scheduling.model.gang import PendingGang


class Growth(NamedTuple):
    """How many pods are added to a gang, and how many of them exist."""

    wanted: int
    exist: int

    @property
    def is_complete(self) -> bool:
        """Whether all that is added exists."""
        return self.exist >= self.wanted


def minimums_of(pod_sets: Iterable[PodSetTerms | GangPodSet]) -> dict[str, int]:
    """Return how many pods of each pod set must start at once."""
    return {each.name: each.minimum for each in pod_sets}


def without_growth(terms: GangTerms, minimums: Mapping[str, int]) -> GangTerms:
    """Return the terms of a gang that began with these minimums, none of which is raised.

    A gang that was suspended as a whole starts anew.
    """
    if not minimums.get(HEAD):
        return terms
    return replace(terms, pod_sets=tuple(_as_started(each, minimums) for each in terms.pod_sets))


def _as_started(asked: PodSetTerms, minimums: Mapping[str, int]) -> PodSetTerms:
    before = minimums.get(asked.name, 0)
    return asked if asked.minimum <= before else replace(asked, minimum=before)


def growth_of(standing: Standing) -> Growth:
    """Count the pods above the minimum that have no place yet."""
    wanted = sum(max(0, each.terms.count - each.placed - each.missing) for each in standing)
    return Growth(wanted, sum(map(_spare, standing)))


def _spare(each: PodSetStanding) -> int:
    return max(0, len(each.waiting) - each.missing)


def in_one_piece(asked: PendingGang, standing: Standing) -> PendingGang:
    """Return what is asked for with its surplus as one unit; without it while pods are missing."""
    if not growth_of(standing).is_complete:
        return replace(asked, surplus=())
    groups = tuple(group for unit in asked.surplus for group in unit)
    return replace(asked, surplus=(groups,) if groups else ())


def missing_in_words(growth: Growth) -> str:
    """Say that what is added waits for the rest of it."""
    return f"all pods that are added start at once, and {growth.exist} of {growth.wanted} exist"
