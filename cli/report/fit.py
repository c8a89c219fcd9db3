"""Reports what `muster fit` answers about one Ray object."""

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from msgspec.structs import replace

from cli.report.order import natural
from kube.objects.base import Slim
from kube.ray.gang_terms import HEAD
from scheduling.model.placement import Placement
from scheduling.model.verdict import Reason


class Fits(StrEnum):
    """Whether it fits now. UNKNOWN: nothing that could be read is against it."""

    YES = "Yes"
    NO = "No"
    UNKNOWN = "Unknown"


class PlacedPodSet(Slim, frozen=True):
    """The pods of one pod set that have their place, by node."""

    pod_set: str
    pods: int
    nodes: Mapping[str, int]


class Verdict(Slim, frozen=True):
    """The answer for a gang, in the words of its status.

    `count_matters` says that fewer replicas could change it.
    """

    fits: Fits
    reason: str
    message: str
    queue: str = ""
    position: int = 0
    placement: tuple[PlacedPodSet, ...] = ()
    count_matters: bool = False


class Most(Slim, frozen=True):
    """How many of the `asked` replicas of a group fit, all else as asked; None: not even none.

    `searched` is False where there were too many groups to search for all.
    """

    group: str
    asked: int
    fit: int | None
    searched: bool = True


class FitOfObject(Slim, frozen=True):
    """The whole answer about one object; `notes` say how it was judged."""

    kind: str
    namespace: str
    name: str
    fits: Fits
    reason: str
    message: str
    queue: str
    position: int
    placement: tuple[PlacedPodSet, ...]
    largest_that_fit: tuple[Most, ...]
    notes: tuple[str, ...]


class FitReport(Slim, frozen=True):
    """The answers in the order of the input; `not_judged` is what the caller may not read."""

    objects: tuple[FitOfObject, ...]
    not_judged: tuple[str, ...] = ()


def by_pod_set(placement: Placement) -> tuple[PlacedPodSet, ...]:
    """Return how many pods of each pod set go to each node, the head first."""
    found: dict[str, Counter[str]] = {}
    for each in placement.assignments:
        found.setdefault(each.pod_set, Counter()).update(dict(each.nodes))
    return tuple(
        PlacedPodSet(
            name, nodes.total(), {node: nodes[node] for node in sorted(nodes, key=natural)}
        )
        for name, nodes in sorted(found.items(), key=lambda each: _place(each[0]))
    )


def _place(pod_set: str) -> tuple[object, ...]:
    return pod_set != HEAD, natural(pod_set)


def unforeseeable(message: str) -> Verdict:
    """Say that the pods can only be known once they exist."""
    return Verdict(Fits.UNKNOWN, "", f"its pods can only be known once they exist: {message}")


def devices_unread() -> Verdict:
    """Say that nothing is known of the devices that pods claim."""
    return Verdict(Fits.UNKNOWN, "", "its pods have resourceClaims, and devices could not be read")


def unlabelled_namespace(namespace: str, message: str) -> Verdict:
    """Say that a fault may be none: queues select namespaces by labels that were not read."""
    return Verdict(
        Fits.UNKNOWN, "", f"the labels of namespace {namespace} may not be read; without: {message}"
    )


def not_created(message: str) -> Verdict:
    """Say that the API server would not create the pods."""
    return Verdict(Fits.NO, Reason.PODS_REFUSED, message)


def over_resource_quota(message: str) -> Verdict:
    """Say which ResourceQuota does not suffice for all pods of the gang."""
    return replace(not_created(message), count_matters=True)


def exit_code(report: FitReport, *, fine: int, no: int, not_read: int) -> int:
    """Return the worst of the answers: one that does not fit, then one that is not known."""
    said = {each.fits for each in report.objects}
    if Fits.NO in said:
        return no
    return not_read if Fits.UNKNOWN in said else fine
