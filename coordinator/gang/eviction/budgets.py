"""Says whether disruption budgets let all pods of a choice be evicted, not each of them alone.

A dry run takes nothing from a budget. Of a budget that lets one pod go each of a gang's pods is
accepted alone, and the second eviction is refused. So all of them are counted at once, as the
eviction subresource counts: a ready pod uses one of `disruptionsAllowed` up, in the one budget
that selects it. A pod that is not ready is let go without that, or its own dry run is refused.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kube.codec.budget import Budget
from kube.codec.observed_pod import ObservedPod
from scheduling.model.gang import GangKey

BY_BUDGET = "a PodDisruptionBudget forbids it"
REFUSED = "the API server refuses it"


@dataclass(frozen=True, slots=True)
class Objection:
    """What is said against an eviction, and the uid of the (first) pod that may not go.

    `in_short` is what gangs of other namespaces are told. Without a uid all may not.
    """

    because: str
    uid: str = ""
    in_short: str = REFUSED


def objections(
    budgets: Iterable[Budget],
    chosen: Mapping[GangKey, Sequence[ObservedPod]],
    others: Iterable[ObservedPod],
) -> dict[GangKey, Objection]:
    """Return the gangs for whose pods the budgets do not last, of those that are `chosen`.

    `others` are pods that are evicted whatever is decided: they count first.
    """
    already, found = list(others), dict[GangKey, Objection]()
    for budget in budgets:
        for key, objection in _beyond(budget, chosen, already):
            found.setdefault(key, objection)
    return found


def _beyond(
    budget: Budget, chosen: Mapping[GangKey, Sequence[ObservedPod]], others: Iterable[ObservedPod]
) -> Iterator[tuple[GangKey, Objection]]:
    """Yield the gangs that are beyond a budget; those before them stay within it."""
    left = budget.allowed - sum(map(budget.counts, others))
    for key, pods in chosen.items():
        mine = [pod for pod in pods if budget.counts(pod)]
        if len(mine) > max(0, left):
            uid = mine[max(0, left)].uid
            yield key, Objection(_said(budget, len(mine), left), uid, BY_BUDGET)
        else:
            left -= len(mine)


def _said(budget: Budget, count: int, left: int) -> str:
    now = f"{budget.allowed} of its pods go now"
    taken = budget.allowed - left
    more = f", {taken} of them for other gangs" if taken else ""
    return (
        f"PodDisruptionBudget {budget.name} lets {now}{more}, and {count} ready "
        f"pod{'' if count == 1 else 's'} would have to"
    )
