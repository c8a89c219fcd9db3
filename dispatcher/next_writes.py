"""Decides the next writes for one Ray object, on the manager and on members. Pure.

`dispatcher.protocol` has the rules by which it never runs on two. Here each of its steps becomes a
write, and what follows once a member is on record is done: the copy, and its user's wishes.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from msgspec.structs import replace

from dispatcher.candidates import Member, able, one_line, ranked
from dispatcher.copies import acceptance, copy_body, offer_body, offer_name, why_never, wishes_patch
from dispatcher.messages import (
    RECORD,
    AskMember,
    CloseRecord,
    CreateCopy,
    PatchCopy,
    PatchOffer,
    TakeLease,
    WithdrawOffer,
    WriteRecord,
    Written,
)
from dispatcher.preempting import found_on_members, given_of, let_stop_gangs, not_over
from dispatcher.protocol import steps
from dispatcher.protocol.dispatching import (
    AT_ONCE,
    ObservedMember,
    lost_since,
    next_step,
    retry_after_loss,
)
from dispatcher.protocol.objects import Phase, Record
from dispatcher.reading import Answer, Original, Turn
from dispatcher.telling import told
from dispatcher.view import Look, observed, record_of
from kube.gang.holes import Room
from kube.objects.clusters.dispatch import ASKED, CLOSED, ENDS, OFFERED, GangDispatch
from kube.objects.clusters.member_cluster import SAME

TURNED_EVERY = 60.0
"""Seconds after which the next candidates are asked, where there are more than `AT_ONCE`."""


def next_writes(look: Look) -> Iterator[Written | TakeLease]:
    """Yield all that can be written now: at most one write for each lane."""
    used: set[str] = set()
    for each in chain(_steps(look), _of_copy(look), told(look)):
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
    elif turn.dispatch is None and turn.waits:
        return  # its record, if it has lost one, is looked for when it is its turn
    elif turn.dispatch is None:
        yield from _begin(look, original, turn)
    elif turn.dispatch.end:
        yield from _withdraw_all(look, turn.dispatch)
    elif not turn.dispatch.is_open:
        yield from _withdraw_all(look)
        yield from _begin_again(look, turn, turn.dispatch)
    elif turn.dispatch.cluster:
        yield from _withdraw_all(look) if _is_to_leave(look, turn, turn.dispatch) else ()
        yield from _go_on(look, original, turn, turn.dispatch)
    else:
        yield from _seek(look, original, turn, turn.dispatch)


def _is_to_leave(look: Look, turn: Turn, dispatch: GangDispatch) -> bool:
    """Say whether the recorded attempt ends: for another gang, or as its creator has no right."""
    answer = look.answer(dispatch.cluster)
    refused = answer is not None and answer.metadata.uid in look.view.refused
    return turn.is_to_end or look.moves or refused


def _begin(look: Look, original: Original, turn: Turn) -> Iterator[Written]:
    """Write the first record; that of a Gang that was made anew is found on the members."""
    if not all(each.is_tried for each in look.members.values()):
        return
    found = list(look.all_answers())
    stands = (each for each in found if _stands(each[1]))
    member, answer = next(stands, ("", None))
    if answer is not None:
        end = answer.reason if answer.phase == CLOSED else ""
        phase = CLOSED if end else OFFERED
        adopted = _new_record(look, answer.attempt, answer.lost_after, original)
        yield RECORD, WriteRecord(turn, replace(adopted, cluster=member, phase=phase, end=end))
    elif _is_asked_for(look, turn):
        attempt = 1 + max((each.attempt for _, each in found), default=0)
        yield RECORD, WriteRecord(turn, _new_record(look, attempt, look.lost_after, original))


def _new_record(look: Look, attempt: int, lost_after: int, original: Original) -> GangDispatch:
    term, leave = look.view.leader.term, found_on_members(look)
    said = why_never(original)
    return GangDispatch(attempt, "", term, ASKED, lost_after, said, stops_gangs=leave)


def _stands(answer: Answer) -> bool:
    """Whether a GangOffer is that of an attempt which may run, or has ended for good."""
    return bool(answer.accepted_by) and (answer.phase != CLOSED or answer.reason in ENDS)


def _is_asked_for(look: Look, turn: Turn) -> bool:
    """Say whether an attempt begins: others of its queue may be before it, and cost nothing yet."""
    may_begin = look.may_ask or look.view.is_never_sent
    return may_begin and turn.is_its_turn and look.clusters is not None


def _begin_again(look: Look, turn: Turn, dispatch: GangDispatch) -> Iterator[Written]:
    if _is_asked_for(look, turn):
        yield from _next_attempt(look, turn, dispatch, dispatch.attempt + 1)


def _seek(
    look: Look, original: Original, turn: Turn, dispatch: GangDispatch
) -> Iterator[Written | TakeLease]:
    """Find a member, for as long as it is the gang's turn."""
    if turn.is_to_end or look.clusters is None:
        yield from _withdraw_all(look)
        term = max(look.view.leader.term, dispatch.term)
        yield RECORD, WriteRecord(turn, _anew(dispatch, term=term, phase=CLOSED))
    elif look.may_ask and turn.is_its_turn and not look.view.is_never_sent:
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
    best_first = _best_first(look, original, turn)
    candidates = _turned(look, dispatch, best_first)
    while (step := next_step(view.leader, record, seen, candidates)) is not None:
        yield from _written(look, original, turn, dispatch, step)
        if isinstance(step, steps.TakeRecord | steps.Choose | steps.Retry):
            return
        del seen[step.cluster]
    names, asked = [name for _, name in best_first], candidates[:AT_ONCE]
    yield from let_stop_gangs(look, turn, dispatch, names, asked)
    if _is_lost(look, record):
        view.leader.fenced = record.attempt
        yield from _close(look, original, turn, dispatch)


def _is_lost(look: Look, record: Record) -> bool:
    """Say whether its member is lost, and the fence is over; have it looked at when it may be."""
    member, leader, now = look.members.get(record.cluster), look.view.leader, look.moment.now
    if not record.cluster or not record.lost_after or (member is not None and member.up):
        return False
    if retry_after_loss(leader, record, now) is not None:
        return True
    look.wakes.append(lost_since(leader, record.cluster) + record.lost_after)
    return False


def _seen(look: Look, attempt: int) -> dict[str, ObservedMember]:
    return {
        name: observed(member, look.view.answers.get(name, {}), attempt)
        for name, member in look.members.items()
        if member.up and look.is_free(name)
    }


def _written(
    look: Look, original: Original, turn: Turn, dispatch: GangDispatch, step: steps.Step
) -> Iterator[Written | TakeLease]:
    """Say how a step is written."""
    view, namespace = look.view, original.metadata.namespace
    match step:
        case steps.TakeRecord(term=term):
            yield RECORD, WriteRecord(turn, replace(dispatch, term=term))
        case steps.TakeMember(cluster=name, term=term):
            yield TakeLease(name, 0, look.manager, term)
        case steps.Ask(cluster=name, attempt=attempt):
            fence = dispatch.lost_after_seconds
            body = offer_body(original, attempt, look.manager, fence)
            yield name, AskMember(name, namespace, body, _creator_of(look, name, original))
        case steps.Choose(cluster=name):
            found = _anew(dispatch, cluster=name, term=view.leader.term, phase=OFFERED)
            yield RECORD, WriteRecord(turn, found)
        case steps.Accept(cluster=name, term=term) if not _is_renewed(look, name, dispatch):
            yield TakeLease(name, 0, look.manager, term)
        case steps.Accept(cluster=name, uid=uid, term=term):
            answer = _named(look, name, uid)
            operations = acceptance(answer, uid, answer.metadata.resource_version, term)
            creator_of = _creator_of(look, name, original)
            yield name, PatchOffer(name, answer, operations, creator_of)
        case steps.Withdraw(cluster=name, uid=uid):
            yield name, WithdrawOffer(name, _named(look, name, uid))
        case steps.Retry() if dispatch.cluster:
            yield from _close(look, original, turn, dispatch)
        case steps.Retry(attempt=attempt):
            yield from _next_attempt(look, turn, dispatch, attempt)


def _creator_of(look: Look, name: str, original: Original) -> Original | None:
    """Return the object whose creator a member is asked about; None where users are others."""
    return original if look.members[name].cluster.spec.users == SAME else None


def _is_renewed(look: Look, name: str, dispatch: GangDispatch) -> bool:
    """Say whether a member would start what is accepted: a fence stops what is not renewed."""
    fence, since = dispatch.lost_after_seconds, look.members[name].renewed_at
    return not fence or look.moment.now - since < fence / 3


def _close(look: Look, original: Original, turn: Turn, dispatch: GangDispatch) -> Iterator[Written]:
    """Write that the attempt is over; from then on it is accepted no more."""
    view, name, member = look.view, dispatch.cluster, look.members.get(dispatch.cluster)
    is_lost = view.leader.fenced == dispatch.attempt
    if not (is_lost or (member is not None and member.up)) or not look.is_free(RECORD):
        return
    view.leader.retried = dispatch.attempt + 1
    closed = _anew(dispatch, term=view.leader.term, phase=CLOSED)
    if is_lost:
        said = f"lost for {dispatch.lost_after_seconds} s: what ran there has ended by itself"
        yield RECORD, WriteRecord(turn, replace(closed, message=f"{name}: {said}"))
        return
    answer = look.answer(name)
    said = f"{answer.reason}: {answer.message}" if answer is not None else "its GangOffer is gone"
    end = answer.reason if answer is not None and answer.reason in ENDS else ""
    closed = replace(closed, message=one_line(f"{name}: {said}"), end=end)
    offer = offer_name(original, dispatch.attempt)
    yield RECORD, CloseRecord(name, turn, closed, original.metadata.namespace, offer)


def _anew(dispatch: GangDispatch, **changes: Any) -> GangDispatch:
    """Return a record of the same attempt without what was told of it."""
    return replace(dispatch, **{"reason": "", "message": "", "refusals": (), **changes})


def _next_attempt(look: Look, turn: Turn, before: GangDispatch, attempt: int) -> Iterator[Written]:
    view, now = look.view, look.moment.now
    if view.next_attempt.not_before > now:
        look.wakes.append(view.next_attempt.not_before)
    elif look.is_free(RECORD):
        view.next_attempt.lengthen(now)
        view.leader.retried = attempt
        leave = not_over(before, look.moment.wall)
        found = GangDispatch(
            attempt, "", view.leader.term, ASKED, look.lost_after, stops_gangs=leave
        )
        yield RECORD, WriteRecord(turn, found)


def _withdraw_all(look: Look, but: GangDispatch | None = None) -> Iterator[Written]:
    """Withdraw all GangOffers but that of one record: what has ended says so until it goes."""
    look.view.leave.forget_reasons()
    kept = (but.cluster, but.attempt) if but is not None else None
    for name, answer in look.all_answers():
        if not answer.is_withdrawn and (name, answer.attempt) != kept:
            yield name, WithdrawOffer(name, answer)


def _named(look: Look, member: str, uid: str) -> Answer:
    found = look.view.answers[member].values()
    return next(each for each in found if each.metadata.uid == uid)


def _best_first(look: Look, original: Original, turn: Turn) -> list[tuple[Room, str]]:
    """List the members that may take it, those that show room before all, each with that."""
    if look.clusters is None:
        return []
    place = original.metadata.namespace
    found = able(look.clusters, place, look.members, look.trouble())
    return ranked(look.clusters, turn.queue, turn.needs, found)


def _turned(look: Look, dispatch: GangDispatch, found: list[tuple[Room, str]]) -> list[str]:
    """Name the members to ask, the best first: those that have offered, then who has leave."""
    given = given_of(dispatch)
    leave = given.cluster if given is not None and not given.is_over(look.moment.wall) else ""
    names = _next_ones(look, found)
    return sorted(names, key=lambda name: (not _has_offered(look, name), name != leave))


def _next_ones(look: Look, found: list[tuple[Room, str]]) -> list[str]:
    """Put those first whose turn it is, where there are more than are asked at once.

    Before them come those that show more room than when that turn began.
    """
    names = [name for _, name in found]
    if len(names) <= AT_ONCE:
        return names
    turns, now = look.view.turns_for_now, look.moment.now
    if now - turns.began >= TURNED_EVERY:
        turns.begin(found, AT_ONCE, now)
    look.wakes.append(turns.began + TURNED_EVERY)
    better = {name for room, name in found if room < turns.rooms.get(name, room)}
    return sorted(names, key=lambda name: (name not in better, name not in turns.now))


def _has_offered(look: Look, member: str) -> bool:
    """Say whether a member keeps room for the attempt: what it shows is without that room."""
    answer = look.answer(member)
    if answer is None or look.view.is_older(answer):
        return False
    return answer.phase == Phase.OFFERED


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
