"""Decides what is written next for one Ray object, on the manager and on members. Pure.

`dispatcher.protocol` has the rules by which it never runs on two. Here each of its steps becomes a
write, and what follows once a member is on record is done: the copy, its user's wishes, the mirror.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from msgspec.structs import replace

from dispatcher.candidates import Member, able, one_line, ranked, refusals
from dispatcher.copies import acceptance, copy_body, offer_body, offer_name, why_never, wishes_patch
from dispatcher.messages import (
    EVENT,
    RECORD,
    STATUS,
    AskMember,
    CloseRecord,
    CreateCopy,
    Deed,
    MirrorStatus,
    PatchCopy,
    PatchOffer,
    TakeLease,
    TellWarning,
    WithdrawOffer,
    WriteRecord,
)
from dispatcher.mirroring import differs, status_at_end, status_of, status_without_copy
from dispatcher.protocol.dispatching import AT_ONCE, ObservedMember, next_step
from dispatcher.protocol.objects import Phase
from dispatcher.protocol.steps import (
    Accept,
    Ask,
    Choose,
    Retry,
    Step,
    TakeMember,
    TakeRecord,
    Withdraw,
)
from dispatcher.reading import Answer, Original, Turn
from dispatcher.view import Look, observed, record_of
from kube.gang.holes import Room
from kube.objects.clusters.dispatch import ASKED, CLOSED, ENDS, OFFERED, STARTED, GangDispatch

TOLD_EVERY = 2.0
"""Seconds from one record of what members say to the next."""

TURNED_EVERY = 60.0
"""Seconds after which the next candidates are asked, where there are more than `AT_ONCE`."""

Written = tuple[str, Deed]
"""A write, and its lane."""


def next_deeds(look: Look) -> Iterator[Written | TakeLease]:
    """Yield all that can be written now: at most one write for each lane."""
    used: set[str] = set()
    for each in chain(_steps(look), _of_copy(look), _told(look)):
        if isinstance(each, TakeLease):
            yield each
        elif each[0] not in used and look.is_free(each[0]):
            used.add(each[0])
            yield each


# ---- the protocol


def _steps(look: Look) -> Iterator[Written | TakeLease]:
    original, turn = look.view.original, look.view.turn
    if original is None or original.is_going:
        yield from _withdraw_all(look)
    elif turn is None:
        return  # its Gang is made by the coordinator
    elif turn.dispatch is None:
        yield from _begin(look, original, turn)
    elif turn.dispatch.end:
        yield from _withdraw_all(look, turn.dispatch)
    elif not turn.dispatch.is_open:
        yield from _withdraw_all(look)
        yield from _begin_again(look, turn, turn.dispatch)
    elif turn.dispatch.cluster:
        yield from _withdraw_all(look) if turn.is_to_end or look.moves else ()
        yield from _go_on(look, original, turn, turn.dispatch)
    else:
        yield from _seek(look, original, turn, turn.dispatch)


def _begin(look: Look, original: Original, turn: Turn) -> Iterator[Written]:
    """Write the first record; that of a Gang that was made anew is found on the members."""
    if not all(each.is_tried for each in look.members.values()):
        return
    term = look.view.leader.term
    found = list(look.all_answers())
    stands = (each for each in found if _stands(each[1]))
    member, answer = next(stands, ("", None))
    if answer is not None:
        end = answer.reason if answer.phase == CLOSED else ""
        phase = CLOSED if end else OFFERED
        adopted = GangDispatch(answer.attempt, member, term, phase, why_never(original), end)
        yield RECORD, WriteRecord(turn, adopted)
    elif turn.is_its_turn and look.clusters is not None:
        attempt = 1 + max((each.attempt for _, each in found), default=0)
        yield RECORD, WriteRecord(turn, GangDispatch(attempt, "", term, ASKED, why_never(original)))


def _stands(answer: Answer) -> bool:
    """Whether a GangOffer is that of an attempt which may run, or has ended for good."""
    return bool(answer.accepted_by) and (answer.phase != CLOSED or answer.reason in ENDS)


def _begin_again(look: Look, turn: Turn, dispatch: GangDispatch) -> Iterator[Written]:
    if turn.is_its_turn and look.clusters is not None:
        yield from _next_attempt(look, turn, dispatch.attempt + 1)


def _seek(
    look: Look, original: Original, turn: Turn, dispatch: GangDispatch
) -> Iterator[Written | TakeLease]:
    """Find a member, for as long as it is the gang's turn."""
    if turn.is_to_end or look.clusters is None:
        yield from _withdraw_all(look)
        term = max(look.view.leader.term, dispatch.term)
        yield RECORD, WriteRecord(turn, GangDispatch(dispatch.attempt, "", term, CLOSED))
    elif look.may_ask and turn.is_its_turn and not why_never(original):
        yield from _go_on(look, original, turn, dispatch)
    else:
        yield from _withdraw_all(look)


def _go_on(
    look: Look, original: Original, turn: Turn, dispatch: GangDispatch
) -> Iterator[Written | TakeLease]:
    """Take the steps of the protocol, until the next has to wait for one that is under way.

    A member with a write under way counts as one that was not read: no other waits for it.
    """
    view, record = look.view, record_of(turn, dispatch)
    seen = _seen(look, dispatch.attempt)
    candidates = _candidates(look, original, turn)
    while (step := next_step(view.leader, record, seen, candidates)) is not None:
        yield from _written(look, original, turn, dispatch, step)
        if isinstance(step, TakeRecord | Choose | Retry):
            return
        del seen[step.cluster]


def _seen(look: Look, attempt: int) -> dict[str, ObservedMember]:
    return {
        name: observed(member, look.view.answers.get(name, {}), attempt)
        for name, member in look.members.items()
        if member.up and look.is_free(name)
    }


def _written(
    look: Look, original: Original, turn: Turn, dispatch: GangDispatch, step: Step
) -> Iterator[Written | TakeLease]:
    """Say how a step is written."""
    view, namespace = look.view, original.metadata.namespace
    match step:
        case TakeRecord(term=term):
            yield RECORD, WriteRecord(turn, replace(dispatch, term=term))
        case TakeMember(cluster=name, term=term):
            yield TakeLease(name, 0, look.manager, term)
        case Ask(cluster=name, attempt=attempt):
            yield name, AskMember(name, namespace, offer_body(original, attempt, look.manager))
        case Choose(cluster=name):
            found = GangDispatch(dispatch.attempt, name, view.leader.term, OFFERED)
            yield RECORD, WriteRecord(turn, found)
        case Accept(cluster=name, uid=uid, term=term):
            answer = _named(look, name, uid)
            operations = acceptance(answer, uid, answer.metadata.resource_version, term)
            yield name, PatchOffer(name, answer, operations)
        case Withdraw(cluster=name, uid=uid):
            yield name, WithdrawOffer(name, _named(look, name, uid))
        case Retry() if dispatch.cluster:
            yield from _close(look, original, turn, dispatch)
        case Retry(attempt=attempt):
            yield from _next_attempt(look, turn, attempt)


def _close(look: Look, original: Original, turn: Turn, dispatch: GangDispatch) -> Iterator[Written]:
    """Write that the attempt is over; from then on it is accepted no more."""
    view, member = look.view, look.members.get(dispatch.cluster)
    if member is None or not member.up or not look.is_free(RECORD):
        return
    view.leader.retried = dispatch.attempt + 1
    answer = look.answer(member.name)
    said = f"{answer.reason}: {answer.message}" if answer is not None else "its GangOffer is gone"
    closed = GangDispatch(
        dispatch.attempt,
        member.name,
        view.leader.term,
        CLOSED,
        one_line(f"{member.name}: {said}"),
        answer.reason if answer is not None and answer.reason in ENDS else "",
    )
    offer = offer_name(original, dispatch.attempt)
    place = original.metadata.namespace
    yield RECORD, CloseRecord(member.name, turn, closed, place, offer)


def _next_attempt(look: Look, turn: Turn, attempt: int) -> Iterator[Written]:
    view, now = look.view, look.moment.now
    if view.next_attempt.not_before > now:
        look.wakes.append(view.next_attempt.not_before)
    elif look.is_free(RECORD):
        view.next_attempt.lengthen(now)
        view.leader.retried = attempt
        yield RECORD, WriteRecord(turn, GangDispatch(attempt, "", view.leader.term, ASKED))


def _withdraw_all(look: Look, but: GangDispatch | None = None) -> Iterator[Written]:
    """Withdraw all GangOffers but that of one record: what has ended says so until it goes."""
    kept = (but.cluster, but.attempt) if but is not None else None
    for name, answer in look.all_answers():
        if not answer.is_withdrawn and (name, answer.attempt) != kept:
            yield name, WithdrawOffer(name, answer)


def _named(look: Look, member: str, uid: str) -> Answer:
    found = look.view.answers[member].values()
    return next(each for each in found if each.metadata.uid == uid)


def _candidates(look: Look, original: Original, turn: Turn) -> list[str]:
    """Name the members to ask, the best first: those that have offered, then those with room."""
    if look.clusters is None:
        return []
    place = original.metadata.namespace
    found = able(look.clusters, place, look.members, look.trouble())
    best_first = ranked(look.clusters, turn.queue, turn.needs, found)
    names = _turned(look, best_first)
    return sorted(names, key=lambda name: not _has_offered(look, name))


def _turned(look: Look, found: list[tuple[Room, str]]) -> list[str]:
    """Put the next ones first after a time, where there are more than are asked at once.

    It begins anew with the best where other members are the best ones.
    """
    names = [name for _, name in found]
    if len(names) <= AT_ONCE:
        return names
    view, now = look.view, look.moment.now
    best = frozenset(name for room, name in found if room is found[0][0])
    if best != view.best:
        view.best, view.first, view.turned_at = best, 0, now
    elif now - view.turned_at >= TURNED_EVERY:
        view.first, view.turned_at = view.first + AT_ONCE, now
    look.wakes.append(view.turned_at + TURNED_EVERY)
    first = view.first % len(names)
    return names[first:] + names[:first]


def _has_offered(look: Look, member: str) -> bool:
    """Say whether a member keeps room for the attempt: what it shows is without that room."""
    answer = look.answer(member)
    return answer is not None and answer.phase == Phase.OFFERED


# ---- once it is started


def _of_copy(look: Look) -> Iterator[Written]:
    """Create the copy once, and carry to it what its user changed since."""
    view, original = look.view, look.view.original
    answer, member = _started(look)
    if original is None or original.is_going or answer is None or member is None:
        return
    name, copy = member.name, view.copy_on(member.name)
    if copy is not None and copy.offer == answer.metadata.uid:
        operations = wishes_patch(original, copy)
        if operations and copy.metadata.deletion_timestamp is None:
            yield name, PatchCopy(name, copy, operations)
    elif answer.metadata.uid not in view.created:
        body = copy_body(original, answer, look.manager)
        yield name, CreateCopy(name, original.metadata.namespace, body)


def _started(look: Look) -> tuple[Answer | None, Member | None]:
    """Return the GangOffer that its copy is created for, and where."""
    member = look.members.get(look.view.cluster)
    if member is None or not member.up:
        return None, None
    answer = look.answer(member.name)
    if answer is None or answer.phase != Phase.STARTED or answer.is_withdrawn:
        return None, None
    return answer, member


# ---- what is told


def _told(look: Look) -> Iterator[Written]:
    original, turn = look.view.original, look.view.turn
    if original is None or original.is_going or turn is None or turn.dispatch is None:
        return
    yield from _mirrored(look, original)
    for reason, message in islice(look.view.warnings.pending.items(), 1):
        yield EVENT, TellWarning(original, reason, message)
    after = _record_told(look, original, turn.dispatch)
    if after == turn.dispatch or not after.is_open or after.term != look.view.leader.term:
        return
    due = look.view.told_at + TOLD_EVERY
    if after.phase == turn.dispatch.phase and due > look.moment.now:
        look.wakes.append(due)
        return
    yield RECORD, WriteRecord(turn, after)


def _record_told(look: Look, original: Original, dispatch: GangDispatch) -> GangDispatch:
    """Return the record with what members say of the gang by now."""
    if not dispatch.is_open:
        return dispatch
    if dispatch.cluster:
        answer = look.answer(dispatch.cluster)
        is_started = dispatch.phase == STARTED or (answer and answer.phase == Phase.STARTED)
        phase = STARTED if is_started else OFFERED
        return replace(dispatch, phase=phase, message=_message(look, dispatch.cluster))
    if look.clusters is None:
        return dispatch
    said = look.trouble() | {
        name: each.message or each.reason
        for name, each in look.all_answers()
        if each.attempt == dispatch.attempt and each.phase != CLOSED
    }
    faults = {name: each for name, each in look.view.faults.items() if name in look.members}
    place = original.metadata.namespace
    lines = refusals(look.clusters, place, look.members, said | faults)
    return replace(dispatch, message=why_never(original), refusals=lines)


def _message(look: Look, cluster: str) -> str:
    member, fault = look.members.get(cluster), look.view.faults.get(cluster, "")
    if member is None:
        return f"there is no MemberCluster {cluster} any more"
    if not member.up:
        return one_line(f"{cluster} is not connected: {member.why_down}")
    return one_line(f"{cluster}: {fault}") if fault else ""


def _mirrored(look: Look, original: Original) -> Iterator[Written]:
    """Have the original say how its copy is, or that there is none any more."""
    record = look.view.dispatch
    ended = record if record is not None and record.end else None
    cluster = ended.cluster if ended is not None else look.view.cluster
    member, copy = look.members.get(cluster), look.view.copy_on(cluster)
    if cluster and (member is None or not member.up):
        return  # it is as it was last seen
    status: dict[str, Any] | None
    if copy is not None:
        status = status_of(original, copy, cluster)
    elif ended is not None:
        status = status_at_end(original, ended)
    else:
        said = f"it starts on cluster {cluster}" if cluster else "it waits for a cluster"
        status = status_without_copy(original, said, look.moment.stamp)
    if status is None:
        return
    if differs(original, status) and status != look.view.mirrored:
        yield STATUS, MirrorStatus(original, status)
