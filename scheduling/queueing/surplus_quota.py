"""Counts, unit by unit, how much of a gang's surplus the quota covers."""

from itertools import groupby

from scheduling.model.amounts import Amounts
from scheduling.model.gang import PendingGang
from scheduling.queueing.line import requests_of
from scheduling.queueing.line_progress import NO_END
from scheduling.queueing.quota_tree import QuotaTree


def units_covered(gang: PendingGang, tree: QuotaTree, allowance: Amounts) -> list[int]:
    """Return the positions of the units of a surplus that are covered beside the minimum."""
    left = allowance - tree.requests(requests_of(gang.minimum))
    covered: list[int] = []
    at = 0
    for unit, equal in groupby(gang.surplus):
        count = sum(1 for _ in equal)
        demand = tree.requests(requests_of(unit))
        fit = min(count, _times(demand, left))
        covered += range(at, at + fit)
        left, at = left - fit * demand, at + count
    return covered


def _times(demand: Amounts, left: Amounts) -> int:
    """Return how often a demand is covered by what is left."""
    asked = demand > 0
    return int((left[asked].clip(0) // demand[asked]).min(initial=NO_END))
