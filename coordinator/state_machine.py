"""The one state machine of the coordinator: from events to the writes that follow from them.

Theory. There are two kinds of fact: what was observed (`ClusterCache`), and what the leader
decided (one `GangView` per gang, only while a term lasts). Events change them in `handle`, and
nowhere else. Afterwards every gang that an event concerned is brought forward by one list of steps
(`reconcile.advance`): look at where it stands, and ask for the next writes that are missing. It is
level-triggered: an event that is lost, doubled or late changes when something happens, never
what. The rules that keep a gang whole:

1. A decision takes its room at once (the reservation), is written down next, and pods are
   released only after the write was acknowledged.
2. A pod goes to the node of its slot. Once a release was sent, another node needs a fence first;
   so does a pod of a placement that an earlier term wrote.
3. One write of a gang's own object is under way at a time, each tested against the version seen.
4. While a watch is down nothing is decided and nothing released.
5. A term's end throws all views away; the next leader reads them off the records.
"""

from collections.abc import Iterable, Iterator, Sequence

from coordinator.gang.left_nominations import Left, are_left
from coordinator.gang.nominations import Guard
from coordinator.gang.source import opt_in_of
from coordinator.gang.start_window import is_starting
from coordinator.gang.view import GangView
from coordinator.messages.actions import Action, NominatePod
from coordinator.messages.events import CycleDue, Event
from coordinator.queues.census import Counted, waits
from coordinator.queues.counting import concerns_us, is_out, pods_that_count
from coordinator.reconcile.advance import advance
from coordinator.reconcile.decisions import decisions
from coordinator.reconcile.look import Look, Scene
from coordinator.reconcile.next_wake import wake_at
from coordinator.reconcile.opening import open_view
from coordinator.reconcile.submitter import room_beside
from coordinator.record.event_budget import spacing_of
from coordinator.record.urgency import Bustle
from coordinator.state.agenda import LATER
from coordinator.state.cycle_input import question_of
from coordinator.state.draining import drain
from coordinator.state.gang_counts import facts_of
from coordinator.state.intake import take
from coordinator.state.known import Known
from coordinator.state.preemption_trials import settle_trials
from coordinator.state.queue_changes import follow_queues
from coordinator.state.queue_reports import report
from coordinator.state.rayjob_resumption import resume_jobs
from coordinator.state.run_cycle import NO_PLACEMENT, decide
from kube.codec.observed_pod import STRAYS, ObservedPod
from kube.gang.source import GangSource
from kube.ray.gang_terms import queue_counted_in
from reservation.release_order import is_ordered
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey
from scheduling.model.queue import DEFAULT_QUEUE

INTAKE = "intake"
GANGS = "gangs"
QUEUE_REPORTS = "queue_reports"
"""The parts of a step, beside those of deciding."""


class CoordinatorState(Known):
    """All that the coordinator knows, and the one way to change it."""

    def handle(self, events: Iterable[Event], moment: Moment) -> list[Action]:
        """Take in what happened and say what is to be done."""
        due = False
        for event in events:
            take(event, self, moment)
            due = due or isinstance(event, CycleDue)
        agenda = self.agenda
        if not self.term.epoch:
            agenda.dirty.clear()
            agenda.cycle_wanted = False
            return []
        follow_queues(self, moment)
        if due:
            agenda.dirty |= agenda.late  # a decision must know where each pod is
        self.lap(INTAKE)
        actions = self._advance_dirty(moment)
        self.lap(GANGS)
        if due and not self.blind:
            decided = decide(self, moment)
            actions += self._advance_dirty(moment, [*drain(self, moment), *decided])
        actions += settle_trials(self, moment)
        actions += self._advance_dirty(moment)
        actions += resume_jobs(self, moment)
        self.lap(GANGS)
        actions += report(self, moment)
        self.lap(QUEUE_REPORTS)
        self._look_again_at_freed_quotas(moment)
        for key in self.turns.settle(moment.now):
            agenda.put_off(key, moment.now)
        agenda.cycle_wanted &= not self.blind  # the end of the blindness asks for one
        return actions

    def _look_again_at_freed_quotas(self, moment: Moment) -> None:
        """Have gangs looked at that wait for a quota of which less is claimed; no quota changed."""
        for key in self.cache.foreseen.take_freed():
            view = self.views.get(key)
            if view is not None and view.held.problem is not None:
                self.agenda.put_off(key, moment.now)

    @property
    def cycle_wanted(self) -> bool:
        """Whether a cycle may turn a verdict."""
        return self.agenda.cycle_wanted

    def has_fenced(self, epoch: int) -> bool:
        """Whether in this term no gated pod is left that an earlier leader may yet release.

        Not before the term's beginning was taken in: until then nothing is known of such pods.
        """
        pods = self.cache.pods.values()
        left = any(pod.gated and self._may_be_released(pod) for pod in pods)
        return self.term.epoch == epoch and not left

    def _may_be_released(self, pod: ObservedPod) -> bool:
        """By an earlier leader; not where its record says that it never decided anything."""
        if pod.uid not in self.term.inherited or pod.member is None:
            return False
        view = self.views.get(pod.member.gang)
        if view is None:
            return True
        return view.pod_writes.fences.get(pod.uid, pod.member.fence) != pod.member.fence

    def _advance_dirty(self, moment: Moment, order: Iterable[GangKey] = ()) -> list[Action]:
        """Bring the gangs forward that something happened to, those in `order` first, as given."""
        place = {key: at for at, key in enumerate(order)}
        scene = self._scene(moment)
        actions: list[Action] = []
        while self.agenda.dirty or self._call_next(moment):
            dirty = self.agenda.dirty
            keys = sorted(dirty, key=lambda key: (place.get(key, len(place)), self._age(key)))
            dirty.clear()
            self._balance(keys, scene)
            for key in self._plans_first(keys):
                actions += self._look_at(key, scene)
        return actions

    def _scene(self, moment: Moment) -> Scene:
        return Scene(
            cache=self.cache,
            refusals=self.term.refusals,
            epoch=self.term.epoch,
            patience=self.patience,
            moment=moment,
            bustle=Bustle(self.cycles.quiet, self.came_at),
            sighted=not self.blind,
            inherited=self.term.inherited,
            allowed=self.allowed,
            window=self.term.window,
            queues=self.queues,
            foresee=self.foresee,
            profiles=self.profiles,
            lines=self.agenda.lines,
            views=self.views,
            decided=self.cycles.memory is not None,
            astray=self.term.astray,
            reserved=self.room.holders,
            pace=self.term.pace,
            turns=self.turns,
            node_quota=self.node_quota,
            guard=self.guard if moment.now >= self.term.forbidden_until else Guard.NONE,
            scheduler=self.scheduler,
        )

    def _age(self, key: GangKey) -> tuple[float, str]:
        """Order gangs as they came: at the beginning of a term the first of them are released."""
        source = self.cache.sources.get(key)
        return (self.cache.owners.arrived_at(source) if source is not None else 0.0), str(key)

    def _call_next(self, moment: Moment) -> bool:
        """Have the gangs looked at that may be released, or written, now: it is their turn.

        So it is of those whose plans meet reservations. Where reservations end it is in a moment,
        for others mostly follow them.
        """
        self.agenda.dirty |= self.room.met
        self.room.met.clear()
        for key in self.room.parted:
            self.agenda.wake_by(key, moment.now + LATER)
        self.room.parted.clear()
        if not self.blind:
            self.agenda.dirty.update(self.term.window.call(moment.now))
        self.agenda.dirty.update(self.agenda.lines.call(moment.now))
        return bool(self.agenda.dirty)

    def _plans_first(self, keys: Sequence[GangKey]) -> Sequence[GangKey]:
        """Put gangs first that are nominated for a plan: what they are to take back is then known.

        Those are among them whose plans meet reservations that came just now.
        """
        met, plans = sorted(self.room.met.difference(keys), key=str), self.room.plans
        self.room.met.clear()
        return sorted([*met, *keys], key=lambda key: key not in plans) if plans else keys

    def _balance(self, keys: Iterable[GangKey], scene: Scene) -> None:
        """Bring reservations up to date before any gang is looked at: also those of new views.

        Counted twice, a pod that was bound would make its node look overfull to its own gang and
        others. What a reservation loses here a bound pod has taken, so that no cycle is wanted.
        """
        for key in keys:
            view = self._view(key, self.cache.sources.get(key), scene)
            self.agenda.cycle_wanted |= self.orphan_reservations.look(key, scene.moment.now)
            if view is not None:
                self.room.update(view, self.cache.members(key, view.cluster_uid))
        self.agenda.cycle_wanted |= self.submitter_room.give_way()

    def _look_at(self, key: GangKey, scene: Scene) -> list[Action]:
        """Bring a gang forward; keys without a meaning, and gates, are told of where none is."""
        self.cycles.looked_at.add(key)
        self.agenda.in_turn.pop(key, None)
        news = [*self._told_of(key, scene.moment.now)]
        actions = [*news, *self._advance_gang(key, scene), *self._take_back_left(key, scene)]
        self._bound_waiting(key)
        self._count_held(key)
        self._count(key, scene.moment.now)
        for due in (
            self.unknown_keys,
            self.stray_gates,
            self.orphan_reservations,
            self.submitter_room,
        ):
            again = due.due_at(key)
            if again is not None:
                self.agenda.wake_by(key, again)
        return actions

    def _told_of(self, key: GangKey, now: float) -> Iterator[Action]:
        source = self.cache.sources.get(key)
        if source is not None:
            self.unknown_keys.seen(key, source, opt_in_of(source, self.cache))
        yield from self.unknown_keys.news(key, now)
        yield from self.stray_gates.news(key, now)

    def _take_back_left(self, key: GangKey, scene: Scene) -> Sequence[Action]:
        """Take nominations back of pods whose RayCluster is gone."""
        view, left = self.views.get(key), self.term.left
        uid = view.cluster_uid if view is not None else ""
        pods = [pod for pod in self.cache.pods_of(key) if pod.gated and not _is_of(pod, uid)]
        if not are_left(left.get(key), pods):
            left.pop(key, None)
            return ()
        mine = left.setdefault(key, Left(scene.moment.now))
        if not scene.sighted:
            return ()  # the end of the blindness has it looked at
        due = mine.due(pods, scene.moment.now)
        if mine.writes.next_at is not None:
            self.agenda.wake_by(key, mine.writes.next_at)
        return [NominatePod(key, pod.raw, "", self.scheduler) for pod in due if pod.raw is not None]

    def _bound_waiting(self, key: GangKey) -> None:
        """Count a gang among those of its namespace that wait; have those decided that come up."""
        view = self.views.get(key)
        asked = question_of(view) if view is not None else None
        waits = asked is not None and bool(asked.minimum) and not asked.is_repair
        moved = self.waiting_limit.note(key, asked.created if asked is not None and waits else None)
        self.cycles.looked_at |= moved
        self.agenda.cycle_wanted |= bool(moved)

    def _count_held(self, key: GangKey) -> None:
        """Bring what the gang's queue holds up to date, also of a gang that is gone."""
        view = self.views.get(key)
        uids = {pod.member.cluster_uid for pod in self.cache.pods_of(key) if pod.member is not None}
        uids |= self.quota.of(key).keys() | ({view.cluster_uid} if view is not None else set())
        for uid in sorted(uids):
            mine = view if view is not None and view.cluster_uid == uid else None
            kept = self.orphan_reservations.reserved(key, uid)
            reserved = mine.reservation.reserved if mine is not None else kept
            queue, pods = self._queue_of(key, uid, mine), pods_that_count(self.cache, key, uid)
            self.agenda.cycle_wanted |= self.quota.note(key, uid, queue, pods, reserved)
        held = tuple(self.quota.of(key).values())
        self.reports.census.note(key, Counted(_waits_in(view), held, is_out(self.cache, key)))

    def _count(self, key: GangKey, now: float) -> None:
        """Bring up to date what metrics tell of the gang."""
        view, facts = self.views.get(key), None
        if view is not None and not view.is_finished:
            held = self.quota.of(key).get(view.cluster_uid)
            queue = self._queue_of(key, view.cluster_uid, view)
            facts = facts_of(view, queue, held, self.gpu_pools.resources)
        self.term.counts.note(key, facts, now)

    def _queue_of(self, key: GangKey, uid: str, view: GangView | None) -> str:
        """Return the queue that counts what a RayCluster holds: the one it was admitted in."""
        placed, terms = (view.reservation, view.understood.terms) if view else (None, None)
        if placed is not None and placed.queue:
            return placed.queue
        if terms is not None:
            return terms.queue
        if key.name == STRAYS:
            return self._queue_of_strays(key, uid)
        return self.quota.queue_of(key, uid) or self._queue_by_label(key, uid)

    def _queue_of_strays(self, key: GangKey, noted: str) -> str:
        """Return the queue that is noted on pods, where those of their namespace may use it."""
        open_to = self.queues.selections.open_to(self.cache.namespace_labels(key.namespace))
        return noted if noted in open_to else next(iter(open_to), DEFAULT_QUEUE)

    def _queue_by_label(self, key: GangKey, uid: str) -> str:
        """Return the queue that a RayCluster without a record asks for.

        Of one that is gone nothing but its pods is left: they count in a queue of their namespace,
        the first by name where there are several.
        """
        source, selections = self.cache.sources.get(key), self.queues.selections
        labels = self.cache.namespace_labels(key.namespace)
        if source is None or source.metadata.uid != uid:
            return next(iter(selections.open_to(labels)), DEFAULT_QUEUE)
        return queue_counted_in(source.metadata, labels, selections)

    def _advance_gang(self, key: GangKey, scene: Scene) -> list[Action]:
        self.agenda.late.discard(key)
        source = self.cache.sources.get(key)
        view = self._view(key, source, scene)
        if view is None or source is None:
            return self._orphan(key, scene)
        view.unknown_keys = self.unknown_keys.of(key)
        asked, look = question_of(view), Look(view, source, scene)
        advance(look)
        view.looked_at = True
        self._follow_up(look)
        asks = question_of(view)
        self.agenda.cycle_wanted |= asks is not None and asks != asked
        spacing = spacing_of(len(self.cycles.waiting))
        look.actions = view.telling.sift(look.actions, look.now, spacing)
        self.agenda.wake(key, wake_at(look))
        return [*look.actions, *decisions(look)]

    def _follow_up(self, look: Look) -> None:
        """Bring the course, the window and the reserved room in line with what was found."""
        view, placement = look.view, look.view.reservation.placement
        in_steps = is_ordered(placement or NO_PLACEMENT)
        view.course.begin(view.survey.standing, in_steps=in_steps)
        self.agenda.cycle_wanted |= view.eviction.reopen(look.now)
        if view.key in self.term.window and not is_starting(view):
            self.term.window.leave(view.key)
        if placement is None:
            self.cache.foreseen.unclaim(view.key)
        self._keep_for_submitter(look)
        if placement is not look.before or view.queueing.planned is not look.planned_before:
            self.agenda.cycle_wanted |= self.room.update(view, look.pods)
        self.room.note_plan(view)
        self._note_astray(view, view.nominating.blocked_nodes_at(look.now))

    def _keep_for_submitter(self, look: Look) -> None:
        """Keep room for the submitter of a gang that has its place, as long as that may come."""
        key, ended = look.view.key, False
        if look.view.reservation.placement is None:
            ended = self.submitter_room.end(key)
        elif self.submitter_room.is_wanted(key) and not self.blind:
            self.submitter_room.keep(key, room_beside(look))
        else:
            ended = self.submitter_room.look(key, look.now, self.patience.torn)
        self.agenda.cycle_wanted |= ended

    def _note_astray(self, view: GangView, nodes: frozenset[str]) -> None:
        """Have gangs looked at whose releases waited for the end of nominations of this one."""
        before = self.term.astray.pop(view.key, frozenset())
        if nodes:
            self.term.astray[view.key] = nodes
        for node in before - nodes:
            self.agenda.dirty |= {view.key, *self.room.gangs_on(node)}

    def _orphan(self, key: GangKey, scene: Scene) -> list[Action]:
        """See to a Gang whose RayCluster is gone."""
        gang, orphans = self.cache.gangs.get(key), self.term.orphans
        if gang is None or key in self.cache.sources:
            orphans.forget(key)
            return []
        if not scene.sighted:
            return []  # the end of the blindness has all looked at
        actions = orphans.look(key, gang, scene.moment, self.term.epoch)
        self.agenda.wake(key, orphans.next_look(key))
        return actions

    def _view(self, key: GangKey, source: GangSource | None, scene: Scene) -> GangView | None:
        """The view of this very RayCluster, made where there is something to be seen to."""
        view = self.views.get(key)
        if view is not None and (source is None or view.cluster_uid != source.metadata.uid):
            self._drop(view, scene)
            view = None
        if view is None and source is not None and concerns_us(self.cache, key, source):
            view = self.views[key] = open_view(key, source, scene)
            self.orphan_reservations.drop(key, view.cluster_uid)
            counted = self.quota.queue_of(key, view.cluster_uid)
            view.reservation.queue = view.reservation.queue or counted or ""
            self.room.note_plan(view)
            pods = self.cache.members(key, view.cluster_uid)
            self.agenda.cycle_wanted |= self.room.update(view, pods)
        return view

    def _drop(self, view: GangView, scene: Scene) -> None:
        self._note_astray(view, frozenset())
        self.orphan_reservations.keep(view, scene.moment.now + scene.patience.arrival)
        self.agenda.cycle_wanted |= self.submitter_room.end(view.key)
        self.agenda.cycle_wanted |= self.room.release(view)
        self.term.window.leave(view.key)
        del self.views[view.key]
        self.cache.foreseen.drop(view.key)
        self.node_quota.drop(view.key)
        self.turns.note(view.key, None)
        self.agenda.wake(view.key, None)
        self.agenda.lines.drop(view.key)


def _is_of(pod: ObservedPod, cluster_uid: str) -> bool:
    return pod.member is not None and pod.member.cluster_uid == cluster_uid


def _waits_in(view: GangView | None) -> str:
    """Return the queue that a gang waits in; empty where it waits in none."""
    terms = view.understood.terms if view is not None else None
    return terms.queue if view is not None and terms is not None and waits(view) else ""
