"""Chooses the member that may stop gangs for a gang without room anywhere, and tells it. Pure."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from dispatcher.messages import RECORD, GiveLeave, WriteRecord, Written
from dispatcher.protocol.leave import CLOCK_SECONDS, LEAVE_SECONDS, Given
from dispatcher.protocol.objects import Phase
from dispatcher.reading import Turn
from dispatcher.view import Look
from kube.codec.fields import moment_of, stamp_of
from kube.objects.clusters.dispatch import GangDispatch, StopsGangs

HELPED = ("InsufficientResources", "QuotaExceeded", "QueueBlocked", "Undecided", "Preempting")
"""Reasons of members for which it helps that they stop gangs, or ask for nodes."""
HELPED_BY_NODES = ("NeverFits", "NoFeasibleNode")
"""Those for which nodes alone help, also where there is none yet."""

PENDING = "Pending"
"""Of members that have not decided yet."""


def let_stop_gangs(
    look: Look, turn: Turn, dispatch: GangDispatch, names: Sequence[str], asked: Sequence[str]
) -> Iterator[Written]:
    """Write who may stop gangs for a gang that is on no member, and tell those on record.

    `names` are the members that may take it, the best first, and `asked` those that are asked now.
    """
    given, wall, leave = given_of(dispatch), look.moment.wall, look.view.leave
    leave.note(given)
    if dispatch.cluster:
        leave.forget_reasons()
        return
    leave.hear({name: _reason(look, name) for name in asked}, look.moment.now)
    if given is not None and not given.is_over(wall):
        look.wakes.append(look.moment.now + given.until - wall)
        yield from _tell(look, given)
    elif (after := _next(look, names, turn.queue)) is not None:
        yield RECORD, WriteRecord(turn, replace(dispatch, stops_gangs=written(after)))


def given_of(dispatch: GangDispatch) -> Given | None:
    """Return the permission that the record holds."""
    found = dispatch.stops_gangs
    return Given(found.cluster, moment_of(found.until)) if found is not None else None


def not_over(dispatch: GangDispatch, wall: float) -> StopsGangs | None:
    """Return the permission that the record of a later attempt must hold as well."""
    given = given_of(dispatch)
    return None if given is None or given.is_over(wall) else dispatch.stops_gangs


def found_on_members(look: Look) -> StopsGangs | None:
    """Return the last permission that members know of where the record was lost.

    Its end on the manager's clock is not known, so it gets the longest possible one.
    """
    told = [(each.may_stop_until, name) for name, each in look.all_answers() if each.may_stop_until]
    longest = look.moment.wall + LEAVE_SECONDS + CLOCK_SECONDS
    return written(Given(max(told)[1], longest)) if told else None


def written(given: Given) -> StopsGangs:
    """Return it as the record has it."""
    return StopsGangs(given.cluster, stamp_of(given.until))


def _reason(look: Look, name: str) -> str:
    """Return why a member has no room for it, empty where it does not say, or not yet."""
    answer = look.answer(name)
    if answer is None or answer.is_withdrawn or answer.phase != Phase.ASKED:
        return ""
    is_answer = answer.reason != PENDING and not look.view.is_older(answer)
    return answer.reason if is_answer else ""


def _next(look: Look, names: Sequence[str], queue: str) -> Given | None:
    """Choose the next member, once each had its turn to be asked and has no room."""
    leave, moment = look.view.leave, look.moment
    if not all(each.is_tried for each in look.members.values()):
        return None
    if leave.waits_until() > moment.now:
        look.wakes.append(leave.waits_until())
        return None
    if not leave.reasons.keys() >= set(names):
        return None
    helped = [name for name in names if leave.reasons[name] in HELPED]
    helped += [name for name in names if _helped_by_nodes(look, name, queue)]
    return leave.next_one(helped, moment.wall)


def _helped_by_nodes(look: Look, name: str, queue: str) -> bool:
    reason, room = look.view.leave.reasons[name], look.members[name].rooms.get(queue)
    return reason in HELPED_BY_NODES and room is not None and room.provisions


def _tell(look: Look, given: Given) -> Iterator[Written]:
    """Tell the member once of each of its offers; what it was told ends by itself."""
    answer, left = look.answer(given.cluster), given.seconds_left(look.moment.wall)
    if answer is None or answer.is_withdrawn or answer.phase != Phase.ASKED or left <= 0:
        return
    if (given.cluster, answer.metadata.uid, given.until) != look.view.leave.told:
        yield given.cluster, GiveLeave(given.cluster, answer, given.until, look.moment.now + left)
