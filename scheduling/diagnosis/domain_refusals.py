"""Writes refusals of gangs whose workers, or replicas, must be inside one domain of a label."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from scheduling.diagnosis.amount_texts import bounded
from scheduling.diagnosis.causes import Domain, NoDomain, ReplicasShort
from scheduling.diagnosis.shortfall import listed, numbers_alone, wanted_pods
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.volumes.claim_effect import BIND_IT
from scheduling.model.gang import Group
from scheduling.model.verdict import Reason, Refusal

_DOMAINS_NAMED = 3

WORKERS = "the workers"
"""The pods that a gang's topology holds to a domain, in messages."""


def in_domain(domain: Domain, refusal: Refusal) -> Refusal:
    """Name the domain that a refusal is about."""
    where = f"{_joined(domain.keys)} {_joined(domain.name)}"
    return _introduced(f"{domain.pods} must be in {where}", refusal)


def no_domain(cause: NoDomain, refusal: Refusal) -> Refusal:
    """Name the domain that a refusal is about, unless it is about other pods or all nodes."""
    short = {each.pod_set for each in refusal.pod_sets if each.fit < each.wanted}
    if refusal.reason is Reason.NEVER_FITS or (short and not short & {*cause.pod_sets}):
        return refusal
    if cause.is_given or refusal.reason is Reason.UNDECIDED:
        return in_domain(cause.domain, refusal)
    keys, name = _joined(cause.domain.keys), _joined(cause.domain.name)
    return _introduced(f"no single {keys} holds {cause.domain.pods}; {name} comes closest", refusal)


def no_label(keys: Sequence[str], pods: str) -> Refusal:
    """Explain that no node is in any domain."""
    said = f"no node has the label {_joined(keys)}, of which {pods} must share one value"
    return Refusal(Reason.NO_FEASIBLE_NODE, said)


def reach_unknown(pods: str) -> Refusal:
    """Explain that no node takes all pods that share a volume whose reach is not known."""
    said = f"no single node holds {pods}, and it is not known which others reach the volume"
    return Refusal(Reason.UNSUPPORTED, f"not supported by Muster; {said} ({BIND_IT})")


def scattered(keys: Sequence[str], names: Sequence[Sequence[str]]) -> Refusal:
    """Explain that pods of the gang are in several domains already, or in none."""
    named = ", ".join(_joined(name) for name in names[:_DOMAINS_NAMED]) or "none"
    said = f"the workers must be in one {_joined(keys)}, but those placed already are in {named}"
    more = len(names) - _DOMAINS_NAMED
    said += f" and {more} more" if more > 0 else ""
    return Refusal(Reason.NO_FEASIBLE_NODE, said)


def replicas_short(short: ReplicasShort) -> Refusal:
    """Explain that there is room for all pods, but not for whole replicas inside domains."""
    noun, verb = ("replica", "fits") if short.wanted == 1 else ("replicas", "fit")
    beside = f" beside {listed(short.beside)}" if short.beside else ""
    said = (
        f"{short.fit} of {short.wanted} {noun} of {', '.join(short.pod_sets)} {verb}{beside}: "
        f"each needs {short.pods} pods inside one {_joined(short.keys)}; the next finds room for "
        f"{short.some} in {_joined(short.name)}"
    )
    numbers = numbers_alone(wanted_pods(short.groups), short.room)
    if len(short.pod_sets) == 1:
        most = short.fit * short.pods
        mine = (each.pod_set in short.pod_sets for each in numbers)
        numbers = tuple(
            replace(each, fit=min(each.fit, most)) if is_mine else each
            for each, is_mine in zip(numbers, mine, strict=True)
        )
    return Refusal(Reason.INSUFFICIENT_RESOURCES, bounded([said], ""), numbers)


def replicas_crowded(groups: Iterable[Group], keys: Sequence[str], room: FreeCapacity) -> Refusal:
    """Explain that replicas find their domains, but not beside the other pods of the gang."""
    wanted = wanted_pods(groups)
    names = ", ".join(dict.fromkeys(pod_set for pod_set, _, _ in wanted))
    said = f"{names} fit separately, but not together with each replica inside one {_joined(keys)}"
    return Refusal(Reason.INSUFFICIENT_RESOURCES, bounded([said], ""), numbers_alone(wanted, room))


def no_domain_left(keys: Sequence[str], replicas: int, pod_sets: Sequence[str]) -> Refusal:
    """Explain that no domain has room for all pods of another replica of the surplus."""
    more = "1 more replica" if replicas == 1 else f"any of {replicas} more replicas"
    said = f"no single {_joined(keys)} has room for {more} of {', '.join(pod_sets)}"
    return Refusal(Reason.INSUFFICIENT_RESOURCES, bounded([said], ""))


def _introduced(words: str, refusal: Refusal) -> Refusal:
    return replace(refusal, message=bounded([f"{words}: {refusal.message}"], ""))


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(parts)
