"""Keeps the known state of all AppWrappers, and lets each of them take its next step.

Pure: events and the moment go in, actions come out. An AppWrapper is looked at when something of it
changed or its moment has come, never on a round over all; and it has one action under way at most,
so that one that fails again and again holds up none.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from appwrapper.phases import Phase
from kube.objects.app_wrapper import AppWrapperStatus
from runtime.controller.moment import Moment
from wrapper import status
from wrapper.lifecycle import FIRST_READ, QUIET_DOUBLINGS, is_known, next_step
from wrapper.messages import (
    Action,
    Created,
    CreateItems,
    Deleted,
    DeleteItems,
    Ended,
    Event,
    GangGone,
    GangSeen,
    GangSignal,
    NotWritten,
    PodGone,
    PodSeen,
    Read,
    ReadItems,
    Result,
    TellUser,
    TermEnded,
    TermStarted,
    TimePassed,
    WrappedPod,
    Wrapper,
    WrapperGone,
    WrapperKey,
    WrapperSeen,
    WriteStatus,
    Written,
)
from wrapper.steps import Become, Create, Delete, Inspect, Look, Record, Remember, Rest, Step
from wrapper.view import PodCounts, View, counted

WARNS = (Phase.FAILED, Phase.RESETTING, Phase.SUSPENDING)
QUIET = (Phase.RESUMING, Phase.SUSPENDED)
"""Phases whose beginning is no Event: the Gang's own tell it."""


class WrapperState:
    """The state of one replica. Only a leader gets actions."""

    def __init__(self) -> None:
        self.views: dict[WrapperKey, View] = {}
        self.leads = False
        self._gangs: dict[WrapperKey, GangSignal] = {}
        self._pods: dict[WrapperKey, dict[str, WrappedPod]] = {}
        self._wakes: list[tuple[float, WrapperKey]] = []
        self._wake_of: dict[WrapperKey, float] = {}
        self._tickets = 0

    @property
    def next_wake(self) -> float | None:
        """When time itself is an event: monotonic seconds, None for never."""
        return self._wakes[0][0] if self._wakes else None

    def handle(self, events: Iterable[Event], moment: Moment) -> list[Action]:
        """Take in what happened, and return what is to be done."""
        concerned: dict[WrapperKey, None] = {}
        for event in events:
            concerned.update(dict.fromkeys(self._take(event, moment)))
        if not self.leads:
            return []
        return [each for key in concerned for each in self._advance(key, moment)]

    # --- taking in ----------------------------------------------------------------------------

    def _take(self, event: Event, moment: Moment) -> Iterable[WrapperKey]:
        """Take one event in; returns the AppWrappers that are to be looked at."""
        found: Iterable[WrapperKey]
        match event:
            case WrapperSeen(wrapper):
                found = self._see(wrapper)
            case WrapperGone(key, uid):
                found = self._forget(key, uid)
            case GangSeen(signal):
                found = self._gang_seen(signal)
            case GangGone(signal):
                found = self._gang_gone(signal)
            case PodSeen(pod):
                found = self._pod_seen(pod, moment)
            case PodGone(pod):
                found = self._pod_gone(pod, moment)
            case Ended(key, ticket, result):
                found = self._ended(key, ticket, result, moment)
            case TimePassed():
                found = list(self._due(moment.now))
            case TermStarted() | TermEnded():
                found = self._turn(event)
        return found

    def _turn(self, event: TermStarted | TermEnded) -> Iterable[WrapperKey]:
        """Begin or end a term; what an earlier one had under way is not known."""
        self.leads = isinstance(event, TermStarted)
        self._wakes, self._wake_of = [], {}
        for view in self.views.values():
            view.forget_term()
        return list(self.views) if self.leads else ()

    def _see(self, wrapper: Wrapper) -> Iterable[WrapperKey]:
        key = wrapper.key
        view = self.views.get(key)
        if view is None or view.wrapper.metadata.uid != wrapper.metadata.uid:
            self.views[key] = View(wrapper)
        else:
            view.see(wrapper)
        return (key,)

    def _forget(self, key: WrapperKey, uid: str) -> Iterable[WrapperKey]:
        view = self.views.get(key)
        if view is not None and view.wrapper.metadata.uid == uid:
            del self.views[key]
        return ()

    def _gang_seen(self, signal: GangSignal) -> Iterable[WrapperKey]:
        self._gangs[signal.wrapper] = signal
        return self._known(signal.wrapper)

    def _gang_gone(self, signal: GangSignal) -> Iterable[WrapperKey]:
        known = self._gangs.get(signal.wrapper)
        if known is not None and known.metadata.uid == signal.metadata.uid:
            del self._gangs[signal.wrapper]
        return self._known(signal.wrapper)

    def _pod_seen(self, pod: WrappedPod, moment: Moment) -> Iterable[WrapperKey]:
        pods = self._pods.setdefault(pod.wrapper, {})
        before = pods.get(pod.metadata.uid)
        completed = before is not None and before.completed
        pods[pod.metadata.uid] = replace(pod, completed=True) if completed else pod
        if before is not None and _same(before, pod):
            return ()
        return self._stirred(pod.wrapper, moment) if _ends(pod) else self._known(pod.wrapper)

    def _pod_gone(self, pod: WrappedPod, moment: Moment) -> Iterable[WrapperKey]:
        pods, view = self._pods.get(pod.wrapper, {}), self.views.get(pod.wrapper)
        known = pods.pop(pod.metadata.uid, pod)
        if view is not None and known.completed and known.of == view.wrapper.metadata.uid:
            view.completed[known.pod_set] += 1
        if not pods:
            self._pods.pop(pod.wrapper, None)
        return self._stirred(pod.wrapper, moment)

    def _stirred(self, key: WrapperKey, moment: Moment) -> Iterable[WrapperKey]:
        """A pod ended: how its items are may have changed with it."""
        view = self.views.get(key)
        if view is not None and view.wrapper.status.phase != Phase.RESUMING:
            pause = view.progress.pause
            soon = max(moment.now + FIRST_READ, view.progress.read_from)
            pause.tries, pause.not_before = 0, min(pause.not_before or soon, soon)
        return self._known(key)

    def _known(self, key: WrapperKey) -> Iterable[WrapperKey]:
        return (key,) if key in self.views else ()

    def _due(self, now: float) -> Iterator[WrapperKey]:
        while self._wakes and self._wakes[0][0] <= now:
            at, key = heapq.heappop(self._wakes)
            if self._wake_of.get(key) == at:
                del self._wake_of[key]
                yield key

    def _ended(
        self, key: WrapperKey, ticket: int, result: Result, moment: Moment
    ) -> Iterable[WrapperKey]:
        view = self.views.get(key)
        if view is None or view.ticket != ticket:
            return ()
        view.ticket = 0
        _took(view, result, moment.now)
        return (key,)

    # --- acting -------------------------------------------------------------------------------

    def _advance(self, key: WrapperKey, moment: Moment) -> Iterator[Action]:
        view = self.views.get(key)
        if view is None or view.ticket:
            return
        if moment.now < view.write_pause.not_before:
            self._wake(key, view.write_pause.not_before)
            return
        if view.first_looked is None:
            view.first_looked = moment.now
        look = self._look(view, moment)
        step = next_step(look)
        if isinstance(step, Rest):
            yield from self._inform(view, look, step)
            return
        self._tickets += 1
        view.ticket = self._tickets
        yield from _actions(view, look, step)

    def _look(self, view: View, moment: Moment) -> Look:
        found = self._pods.get(view.key)
        pods = counted(found.values(), view.wrapper.metadata.uid) if found else PodCounts()
        view.progress.count(pods, view.wrapper.contents.needed, moment.now)
        return Look(
            wrapper=view.wrapper,
            progress=view.progress,
            signal=self._gangs.get(view.key),
            pods=pods,
            moment=moment,
            members=found or {},
        )

    def _inform(self, view: View, look: Look, rest: Rest) -> Iterator[Action]:
        """Write what a user should know, if it is time for that, and rest."""
        if rest.until is not None:
            self._wake(view.key, rest.until)
        if look.wrapper.metadata.deletion_timestamp or not is_known(look.wrapper.status.phase):
            return
        known = view.status_told
        after = status.told(replace(look, wrapper=replace(look.wrapper, status=known)))
        if after == known:
            return
        at = self._informed_next(view, after)
        if at > look.moment.now:
            self._wake(view.key, at)
            return
        yield self._written(view, look, after)

    def _informed_next(self, view: View, after: AppWrapperStatus) -> float:
        """Return when it is time to inform; why it waits is told at once the first time.

        One that is new and has nothing to tell is given a moment: most start within it, and a
        status that is written before is a write more. Users of MCAD's generation know it, as the
        condition Queueing.
        """
        is_new = view.wrapper.status.phase == Phase.NEW and not view.wrapper.contents.is_mcad
        if is_new and not after.reason:
            return (view.first_looked or 0.0) + status.NEW_FOR
        was_told = view.wrapper.status.reason or (view.asked is not None and view.asked.reason)
        is_first = bool(after.reason) and not was_told
        if view.informed_at is None or is_first:
            return 0.0
        return view.informed_at + status.informing_spaced(
            len(self.views), view.wrapper.status.phase
        )

    def _written(self, view: View, look: Look, after: AppWrapperStatus) -> Action:
        self._tickets += 1
        view.ticket = self._tickets
        view.informed_at, view.asked = look.moment.now, after
        return WriteStatus(view.key, view.ticket, view.wrapper, after, informs=True)

    def _wake(self, key: WrapperKey, at: float) -> None:
        known = self._wake_of.get(key)
        if known is None or at < known:
            self._wake_of[key] = at
            heapq.heappush(self._wakes, (at, key))


def _took(view: View, result: Result, now: float) -> None:
    """Take in how an action ended."""
    match result:
        case Written(wrapper):
            view.write_pause.end()
            view.answered = wrapper.status
            view.read(wrapper)
        case NotWritten(_, wrapper):
            view.write_pause.lengthen(now)
            view.asked = None
            if wrapper is not None:
                view.read(wrapper)
        case Created():
            view.progress.created_some(result, now)
        case Deleted():
            view.progress.deleted_some(result, now)
        case Read():
            view.progress.read_all(result, len(view.wrapper.contents.items), now)


def _actions(view: View, look: Look, step: Step) -> Iterator[Action]:
    """Say how a step is carried out."""
    key, ticket, wrapper = view.key, view.ticket, view.wrapper
    match step:
        case Become(phase=phase):
            view.asked, starts = status.entered(look, step), phase is Phase.RESUMING
            yield WriteStatus(key, ticket, wrapper, view.asked, starts)
            yield from _events(view, step)
        case Record():
            view.asked = status.noted(look, step)
            yield WriteStatus(key, ticket, wrapper, view.asked)
        case Create(items):
            yield CreateItems(key, ticket, wrapper, items)
        case Delete(items, pods):
            yield DeleteItems(key, ticket, wrapper, items, pods)
        case Inspect(quiet):
            view.progress.pause.at_least(QUIET_DOUBLINGS if quiet else 0)
            left = look.pods.pending + look.pods.running
            completed = view.completed + Counter(look.pods.completed)
            yield ReadItems(key, ticket, wrapper, left, completed)
        case Remember():
            view.asked = status.remembered(look, step)
            yield WriteStatus(key, ticket, wrapper, view.asked)


def _events(view: View, step: Become) -> Iterator[Action]:
    if step.phase in QUIET or view.told == (step.reason, step.message):
        return
    view.told = step.reason, step.message
    warning = step.phase in WARNS
    yield TellUser(view.key, view.wrapper, step.reason, step.message, warning)


def _ends(pod: WrappedPod) -> bool:
    return bool(pod.metadata.deletion_timestamp) or pod.phase in ("Succeeded", "Failed")


def _same(before: WrappedPod, after: WrappedPod) -> bool:
    going = bool(before.metadata.deletion_timestamp) == bool(after.metadata.deletion_timestamp)
    return going and (before.phase, before.exits) == (after.phase, after.exits)
