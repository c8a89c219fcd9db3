"""Decides the next write of the dispatcher for one gang, so that it never runs on two members.

Several members are asked at once. Only one offer is accepted, and the manager records that member
first. Another attempt begins only when the recorded attempt is known to be over.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dispatcher.protocol import steps
from dispatcher.protocol.objects import Lease, Offer, Phase, Record

AT_ONCE = 3
"""Members that are asked at one time."""


@dataclass(frozen=True, slots=True)
class ObservedMember:
    """A member as it was read after the record."""

    lease: Lease
    offer: Offer | None = None
    """That of the recorded attempt."""
    earlier: tuple[Offer, ...] = ()
    """Those of attempts before it."""


@dataclass(slots=True)
class Leader:
    """What a leader knows of its own term. Times are seconds of its own monotonic clock."""

    term: int
    began: float
    copied_at: dict[str, float] = field(default_factory=dict)
    """By cluster when it may last have read a stamp that it wrote back."""
    retried: int = 0
    """The last attempt that it has written, or tried to write."""
    fenced: int = 0
    """The last attempt whose fence it has seen over: it stays so."""


def next_step(
    leader: Leader, record: Record, seen: Mapping[str, ObservedMember], candidates: Sequence[str]
) -> steps.Step | None:
    """Return what is to be written next; None where others have to do something first.

    `seen` has the members that could be read, `candidates` the names of those that may take the
    gang, the best first.
    """
    if not has_record(leader, record):
        return steps.TakeRecord(leader.term, record.version)
    if has_retried(leader, record):
        return steps.Retry(leader.retried, record.version)
    if record.cluster:
        return next(_follow(leader, record, seen), None)
    return next(_choose(leader, record, seen, candidates[:AT_ONCE]), None)


def retry_after_loss(leader: Leader, record: Record, now: float) -> steps.Retry | None:
    """Return the next attempt where the recorded member was lost for too long; None before that.

    All pods of the recorded attempt have ended by then: what they may run for is over earlier by
    the member's own clock (`offering.may_run_until`).
    """
    if not has_record(leader, record) or not record.cluster:
        return None
    lost_after = fence_of(record)
    if not lost_after or not fence_is_over(leader, record.cluster, now, lost_after):
        return None
    return steps.Retry(record.attempt + 1, record.version)


# ---- the rules: without any of them two may run (tests/dispatcher/test_rules.py)


def has_record(leader: Leader, record: Record) -> bool:
    """Whether late writes of earlier leaders to the record fail."""
    return record.term >= leader.term


def has_member(leader: Leader, lease: Lease) -> bool:
    """Whether late acceptances of earlier leaders start nothing there."""
    return lease.term >= leader.term


def has_retried(leader: Leader, record: Record) -> bool:
    """Whether the leader has given the attempt up, though that write did not arrive yet."""
    return record.attempt < leader.retried


def may_accept(record: Record, cluster: str) -> bool:
    """Whether the attempt may start there: it is on record, so it starts nowhere else."""
    return record.cluster == cluster


def is_bound(record: Record, offer: Offer) -> bool:
    """Whether the member will stop it as is on record: one of an older release knows no fence."""
    return offer.lost_after == record.lost_after


def is_over(member: ObservedMember) -> bool:
    """Whether no pod of the attempt is left there, and none will come."""
    return member.offer is None or member.offer.phase is Phase.CLOSED


def fence_of(record: Record) -> float:
    """Return the seconds after which the member stops it; another rule of its queue came later."""
    return record.lost_after


def fence_is_over(leader: Leader, cluster: str, now: float, lost_after: float) -> bool:
    """Whether all that any leader let the member run has ended."""
    return now - lost_since(leader, cluster) >= lost_after


def acceptance(leader: Leader, cluster: str, offer: Offer) -> steps.Accept:
    """Return the acceptance of the very offer that was read."""
    return steps.Accept(cluster, offer.attempt, leader.term, offer.uid, offer.version)


# ---- the way of an attempt


def lost_since(leader: Leader, cluster: str) -> float:
    """Return since when no leader can have let gangs of a member run any longer."""
    return leader.copied_at.get(cluster, leader.began)


def _choose(
    leader: Leader, record: Record, seen: Mapping[str, ObservedMember], candidates: Sequence[str]
) -> Iterator[steps.Step]:
    """Ask candidates, and choose the first that offers; begin anew where one has refused.

    What was asked of others, or for an earlier attempt, is taken back.
    """
    asked = [name for name in candidates if name in seen]
    for name in asked:
        yield from _accept(leader, record, name, seen[name])
    for name in asked:
        if _is_open(record, seen[name].offer):
            yield steps.Choose(name, record.attempt, record.version)
    for name in asked:
        if seen[name].offer is None:
            yield steps.Ask(name, record.attempt, record.lost_after)
    if any(is_over(seen[name]) for name in asked):
        yield steps.Retry(record.attempt + 1, record.version)
    yield from _withdraw(seen, asked)


def _follow(
    leader: Leader, record: Record, seen: Mapping[str, ObservedMember]
) -> Iterator[steps.Step]:
    """See the recorded attempt to its end, and take back what else was asked for it."""
    member = seen.get(record.cluster)
    if member is not None:
        if not has_member(leader, member.lease):
            yield steps.TakeMember(record.cluster, leader.term)
        if is_over(member):
            yield steps.Retry(record.attempt + 1, record.version)
        yield from _accept(leader, record, record.cluster, member)
    yield from _withdraw(seen, [record.cluster])


def _accept(
    leader: Leader, record: Record, cluster: str, member: ObservedMember
) -> Iterator[steps.Accept]:
    offer = member.offer
    if offer is None or not _is_open(record, offer) or offer.accepted_by >= leader.term:
        return
    if may_accept(record, cluster):
        yield acceptance(leader, cluster, offer)


def _withdraw(seen: Mapping[str, ObservedMember], asked: Sequence[str]) -> Iterator[steps.Withdraw]:
    """Take back what was asked of members that are not asked any more, and for earlier attempts."""
    for name, member in seen.items():
        elsewhere = name not in asked and member.offer is not None
        for offer in (*member.earlier, *((member.offer,) if elsewhere else ())):
            if offer is not None and not offer.withdrawn:
                yield steps.Withdraw(name, offer.attempt, offer.uid)


def _is_open(record: Record, offer: Offer | None) -> bool:
    if offer is None or offer.phase is not Phase.OFFERED or offer.withdrawn:
        return False
    return is_bound(record, offer)
