"""Has a gang that starts together with others wait for them, and says which are missing.

Members of a group see what the others were after their last look; `gang_looks` has them looked at
again where that changed.
"""

from collections.abc import Sequence

from coordinator.cluster.together_index import Mate
from coordinator.gang.demand import NotReady
from coordinator.gang.held_start.phases import Phase
from coordinator.gang.view import GangView
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from coordinator.reconcile.together.members import Member, has_started, members
from kube.foreseen.gang import is_foreseen
from kube.objects import names
from kube.ray.gang_terms import Problem
from kube.ray.together import Together
from scheduling.admission.together import disagreement
from scheduling.model.gang import PendingGang
from scheduling.model.verdict import Reason

MEMBERS_NAMED = 3

OLD_SCHEMA = (
    "gangs that start together while the API server drops status.together of Gangs (apply "
    "manifests/crds of this release)"
)
COUNTED = (
    "gangs that start together while a ResourceQuota counts pods of this one that wait for others "
    "(put all members into one AppWrapper)"
)


def wait_for_members(look: Look) -> StepResult:
    """Have a gang wait that asks for its start while not all members of its group do."""
    view, member = look.view, look.view.together
    member.asks = None
    asked, mine = view.queueing.asked, look.scene.cache.together.of(view.key)
    if mine is None or not isinstance(asked, PendingGang) or not _is_to_start(view, asked):
        return NOTHING_DONE
    waits = _excess(look, mine) if has_started(look) else _hindrance(look, mine, asked)
    if waits is not None:
        view.queueing.asked = waits
        view.queueing.refusal = view.queueing.left_out = view.queueing.planned = None
        view.queueing.position = 0
    return NOTHING_DONE


def _is_to_start(view: GangView, asked: PendingGang) -> bool:
    started = view.released_any or view.survey.ran or view.reservation.placement is not None
    return bool(asked.minimum) and not asked.is_repair and not started


def _excess(look: Look, mine: Mate) -> NotReady | None:
    """Refuse a gang that comes to a group that started whole without it."""
    return _too_many(members(look), mine)


def _hindrance(look: Look, mine: Mate, asked: PendingGang) -> NotReady | None:
    """Say why the group cannot be asked for; note what this gang asks for if it is not to blame."""
    there, member = members(look), look.view.together
    problem = _problem(look, there, mine)
    if problem is not None:
        return problem
    member.asks = asked
    agreeing = [each for each in there if each.mate.asked == mine.asked]
    waits = _absent(there, agreeing, mine) or _unready(agreeing, mine)
    if waits is not None:
        return waits
    gangs = [each.view.together.asks for each in agreeing if each.view.together.asks is not None]
    differ = disagreement(gangs)
    return NotReady(differ.reason, differ.message) if differ is not None else None


def _problem(look: Look, there: Sequence[Member], mine: Mate) -> NotReady | None:
    """Say what keeps this gang from being a member of its group."""
    if there and mine.asked != there[0].mate.asked:
        return _disagrees(there[0], mine)
    too_many = _too_many(there, mine)
    if too_many is not None:
        return too_many
    newest = next((each for each in there if each.mate.member == mine.member), None)
    if newest is not None and newest.mate.key != mine.key:
        said = f"{newest.name} starts with its group by RayCluster {newest.mate.key.name}"
        return NotReady(Reason.WAITS_FOR_MEMBERS, said)
    if "together" in look.view.record.drops:
        return not_supported(OLD_SCHEMA)
    if look.view.held.phase is Phase.NONE and is_kept_back(look) and _has_pods(look):
        return not_supported(COUNTED)
    return None


def _disagrees(first: Member, mine: Mate) -> NotReady:
    key, value, theirs = _differences(mine.asked, first.mate.asked)[0]
    allowed = f"{theirs}, as {first.name} of group {mine.asked.name} says"
    return NotReady(Reason.MISCONFIGURED, Problem(key, value, allowed).message)


def _differences(mine: Together, theirs: Together) -> list[tuple[str, str, str]]:
    """Return the keys in which two members of a group disagree, with the values of both."""
    said = (
        (names.TOGETHER_SIZE, str(mine.size), str(theirs.size)),
        (names.TOGETHER_END, mine.end, theirs.end),
        (names.TOGETHER_TOPOLOGY, mine.topology, theirs.topology),
    )
    return [each for each in said if each[1] != each[2]]


def _has_pods(look: Look) -> bool:
    return any(not is_foreseen(pod) for pod in look.pods)


def not_supported(what: str) -> NotReady:
    """Say that Muster does not start gangs together so, and what to do instead."""
    return NotReady(Reason.UNSUPPORTED, f"not supported by Muster; {what}")


def _too_many(there: Sequence[Member], mine: Mate) -> NotReady | None:
    agreeing = [each for each in there if each.mate.asked.size == mine.asked.size]
    is_heard = any(each.mate.member == mine.member for each in agreeing)
    if len(agreeing) <= mine.asked.size and is_heard:
        return None
    count = f"{len(agreeing)}" if is_heard else f"{len(agreeing)} or more"
    allowed = (
        f"a group of {mine.asked.size} members ({names.TOGETHER_SIZE}), and {count} name it: "
        f"{_named(agreeing)}; delete one, or name another group"
    )
    said = Problem(names.TOGETHER, mine.asked.name, allowed).message
    return NotReady(Reason.MISCONFIGURED, said)


def _absent(there: Sequence[Member], agreeing: Sequence[Member], mine: Mate) -> NotReady | None:
    """Say for how many members the group waits."""
    group, absent = mine.asked, mine.asked.size - len(agreeing)
    if absent <= 0:
        return None
    verb = "is" if len(agreeing) == 1 else "are"
    said = (
        f"{len(agreeing)} of {group.size} members of {group.name} {verb} there: "
        f"{_named(agreeing)}; waits for {absent} more"
    )
    other = next((each for each in there if each.mate.asked != group), None)
    if other is not None:
        key, value, _ = _differences(other.mate.asked, group)[0]
        said += f"; {other.name} says {key} {value}"
    return NotReady(Reason.WAITS_FOR_MEMBERS, said)


def _unready(agreeing: Sequence[Member], mine: Mate) -> NotReady | None:
    """Say which member is there and does not ask for room yet, and why, the first of them."""
    others = [each for each in agreeing if each.view.together.asks is None]
    if not others:
        return None
    group, first = mine.asked, others[0]
    asked = first.view.queueing.asked
    why = f" ({asked.reason})" if isinstance(asked, NotReady) else ""
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    said = (
        f"{group.size} of {group.size} members of {group.name} are there; waits for "
        f"{first.name}{why}{more}"
    )
    return NotReady(Reason.WAITS_FOR_MEMBERS, said)


def _named(found: Sequence[Member]) -> str:
    some = ", ".join(each.name for each in found[:MEMBERS_NAMED])
    more = len(found) - MEMBERS_NAMED
    return some + (f" and {more} more" if more > 0 else "")


def is_kept_back(look: Look) -> bool:
    """Say whether pods of a member would be counted by a ResourceQuota while it waits."""
    cache, key = look.scene.cache, look.view.key
    return cache.together.of(key) is not None and bool(cache.admission.quotas(key.namespace))
