"""The one state machine of the coordinator: from events to the writes that follow from them.

Theory. There are two kinds of fact: what was observed (`ClusterCache`), and what the leader
decided (one `GangView` per gang, only while a term lasts). Events change them in `handle`, and
nowhere else. Afterwards every gang that an event concerned is brought forward by one rule set
(`_advance`): look at where it stands, and ask for the next writes that are missing. It is
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

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import singledispatchmethod

from coordinator.cluster.bind_refusals import Refusals
from coordinator.cluster.cache import ClusterCache
from coordinator.gang.assumed_pods import assumed_claims, assumed_pods
from coordinator.gang.demand import avoiding
from coordinator.gang.ending import Orphans
from coordinator.gang.expected_changes import goes_on
from coordinator.gang.priority import AllowedClasses
from coordinator.gang.start_window import Window, is_starting
from coordinator.gang.view import GangView
from coordinator.messages.actions import Action
from coordinator.messages.clock import Moment, Patience
from coordinator.messages.events import (
    ClusterGone,
    ClusterSeen,
    CycleDue,
    DeviceClassGone,
    DeviceClassSeen,
    Event,
    FactGone,
    FactSeen,
    FactsLost,
    FactsSeen,
    GangGone,
    GangSeen,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PodGone,
    PodPatchEnded,
    PodSeen,
    PriorityClassGone,
    PriorityClassSeen,
    SightLost,
    SightRegained,
    TermEnded,
    TermStarted,
    TimePassed,
    WriteEnded,
)
from coordinator.reconcile.advance import (
    Scene,
    advance,
    open_view,
    opt_in_of,
    opted_out,
    wake_at,
    wind_down,
)
from coordinator.reconcile.decisions import Look, decisions
from coordinator.record.event_budget import spacing_of
from coordinator.record.renewals import Renewals
from coordinator.record.unknown_keys import UnknownKeys
from coordinator.record.urgency import QUIET_DELAY, Bustle, quiet_delay
from kube.codec.fields import created_at
from kube.codec.observed_pod import ObservedPod
from kube.objects.ray import RayCluster
from kube.ray.ray_cluster import Answer, is_terminating, says_the_same
from reservation.edits import merged
from reservation.release_order import is_ordered
from reservation.slots import Reserved, reserved
from scheduling.admission.refusal_memory import Memory
from scheduling.cycle import next_cycle
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.verdict import Admitted, Decision, Refusal
from scheduling.state.holder_index import Holders
from scheduling.state.pod_index import ExistingPods

NOTHING = Placement()
LATER = 0.5  # seconds; what only goes on as decided has its gang looked at so often
KUBERAY = "ray.io/kuberay-operator"  # who else manages a RayCluster makes no pods here


@dataclass
class CoordinatorState:
    """All that the coordinator knows, and the one way to change it."""

    patience: Patience = field(default_factory=Patience)
    allowed: AllowedClasses = field(default_factory=AllowedClasses)
    cache: ClusterCache = field(default_factory=ClusterCache)
    views: dict[GangKey, GangView] = field(default_factory=dict)
    refusals: Refusals = field(default_factory=Refusals)
    unknown_keys: UnknownKeys = field(default_factory=UnknownKeys)
    window: Window = field(default_factory=Window)
    epoch: int = 0
    cycle_wanted: bool = False
    wake_at: dict[GangKey, float] = field(default_factory=dict)
    _refresh_at: float | None = None
    _cycled_at: float = 0.0
    _memory: Memory | None = None
    _renewals: Renewals = field(default_factory=Renewals)
    _quiet: float = QUIET_DELAY
    _came_at: float = float("-inf")
    _admissions: int = 0
    _orphans: Orphans = field(default_factory=Orphans)
    _blind: set[str] = field(default_factory=set)
    _inherited: frozenset[str] = frozenset()
    _dirty: set[GangKey] = field(default_factory=set)
    _late: set[GangKey] = field(default_factory=set)
    _holders: defaultdict[str, set[GangKey]] = field(default_factory=lambda: defaultdict(set))

    def handle(self, events: Iterable[Event], moment: Moment) -> list[Action]:
        """Take in what happened and say what is to be done."""
        due, take = False, self._take  # looked up once: that costs more than to take one in
        for event in events:
            take(event, moment)
            due = due or isinstance(event, CycleDue)
        if not self.epoch:
            self._dirty.clear()
            self.cycle_wanted = False
            return []
        if due:
            self._dirty |= self._late  # what is decided must know who is where
        actions = self._advance_dirty(moment)
        if due and not self._blind:
            actions += self._advance_dirty(moment, self._run_cycle(moment))
        self.cycle_wanted &= not self._blind  # the end of the blindness asks for one
        return actions

    @property
    def next_wake(self) -> float | None:
        """When time alone will have something to be done."""
        ends = (self._refresh_at, self.refusals.next_end, self.window.next_end)
        alone = (at for at in ends if at is not None)
        return min((*self.wake_at.values(), *alone), default=None)

    def has_fenced(self, epoch: int) -> bool:
        """Whether in this term no gated pod is left that an earlier leader may yet release.

        Not before the term's beginning was taken in: until then nothing is known of such pods.
        """
        pods = self.cache.pods.values()
        left = any(pod.gated and self._may_be_released(pod) for pod in pods)
        return self.epoch == epoch and not left

    def _may_be_released(self, pod: ObservedPod) -> bool:
        """By an earlier leader; not where its record says that it never decided anything."""
        if pod.uid not in self._inherited or pod.member is None:
            return False
        view = self.views.get(pod.member.gang)
        return view is None or view.fences.get(pod.uid, pod.member.fence) != pod.member.fence

    # --- bringing forward -------------------------------------------------------------------

    def _advance_dirty(self, moment: Moment, order: Iterable[GangKey] = ()) -> list[Action]:
        """Bring the gangs forward that something happened to, those in `order` first, as given."""
        place = {key: at for at, key in enumerate(order)}
        scene = Scene(
            self.cache,
            self.refusals,
            self.epoch,
            self.patience,
            moment,
            Bustle(self._quiet, self._came_at),
            not self._blind,
            self._inherited,
            self.allowed,
            self.window,
        )
        actions: list[Action] = []
        while self._dirty or self._call_next(moment):
            keys = sorted(self._dirty, key=lambda key: (place.get(key, len(place)), self._age(key)))
            self._dirty.clear()
            self._balance(keys)
            for key in keys:
                actions += self._advance(key, scene)
        return actions

    def _age(self, key: GangKey) -> tuple[float, str]:
        """Order gangs as they came: at the beginning of a term the first of them are released."""
        cluster = self.cache.clusters.get(key)
        return created_at(cluster.metadata) if cluster is not None else 0.0, str(key)

    def _call_next(self, moment: Moment) -> bool:
        """Have the gangs looked at that may be released now, because others are bound."""
        if not self._blind:
            self._dirty.update(self.window.call(moment.now))
        return bool(self._dirty)

    def _balance(self, keys: Iterable[GangKey]) -> None:
        """Turn the reservations of pods that were bound into use, before anybody looks.

        Counted twice, such a pod would make its node look overfull to its own gang and others.
        """
        for key in keys:
            view = self.views.get(key)
            if view is not None:
                wanted = self.cycle_wanted
                self._reserve(view, self._room_of(view))
                self.cycle_wanted = wanted  # what a reservation lost here, a bound pod has taken

    def _advance(self, key: GangKey, scene: Scene) -> list[Action]:
        """Bring a gang forward; keys without a meaning are told of any RayCluster."""
        news = self.unknown_keys.news(key, scene.moment.now)
        actions = [*news, *self._advance_gang(key, scene)]
        again = self.unknown_keys.due_at(key)
        if again is not None:
            self.wake_at[key] = min(self.wake_at.get(key, again), again)
        return actions

    def _advance_gang(self, key: GangKey, scene: Scene) -> list[Action]:
        self._late.discard(key)
        cluster = self.cache.clusters.get(key)
        view = self._view(key, cluster, scene)
        if view is None or cluster is None:
            return self._orphan(key, scene)
        view.unknown_keys = self.unknown_keys.of(key)
        before, held = _ready_to_ask(view), view.placement
        if is_terminating(cluster):
            actions = wind_down(view, cluster, scene)
        elif opt_in_of(cluster, self.cache).answer is Answer.NO:
            actions = opted_out(view, cluster, scene)
        else:
            view.out_since = None
            actions = advance(view, cluster, scene)
        view.course.begin(view.standing, in_steps=is_ordered(view.placement or NOTHING))
        if key in self.window and not is_starting(view):
            self.window.leave(key)
        if view.placement is not held:
            self._reserve(view, self._room_of(view))
        asks = _ready_to_ask(view)
        self.cycle_wanted |= asks is not None and asks != before
        actions = self._told(view, cluster, held, actions, scene)
        self._wake(key, wake_at(view, scene))
        return actions

    def _orphan(self, key: GangKey, scene: Scene) -> list[Action]:
        """See to a Gang whose RayCluster is gone."""
        gang = self.cache.gangs.get(key)
        if gang is None or key in self.cache.clusters:
            self._orphans.forget(key)
            return []
        if not scene.sighted:
            return []  # the end of the blindness has all looked at
        actions = self._orphans.look(key, gang, scene.moment, self.epoch)
        self._wake(key, self._orphans.next_look(key))
        return actions

    def _told(
        self,
        view: GangView,
        cluster: RayCluster,
        held: Placement | None,
        actions: list[Action],
        scene: Scene,
    ) -> list[Action]:
        """The actions, with the Events that may be written now and what the log is to tell."""
        found = view.telling.sift(actions, scene.moment.now, spacing_of(scene.bustle.quiet))
        return found + list(decisions(Look(view, cluster, held, found, scene)))

    def _view(self, key: GangKey, cluster: RayCluster | None, scene: Scene) -> GangView | None:
        """The view of this very RayCluster, made where there is something to be seen to."""
        view = self.views.get(key)
        if view is not None and (cluster is None or view.cluster_uid != cluster.metadata.uid):
            self._drop(view)
            view = None
        if view is None and cluster is not None and self._concerns_us(key, cluster):
            view = self.views[key] = open_view(key, cluster, scene)
            self._reserve(view, self._room_of(view))
        return view

    def _concerns_us(self, key: GangKey, cluster: RayCluster) -> bool:
        if opt_in_of(cluster, self.cache).answer is not Answer.NO:
            return (cluster.spec.managed_by or KUBERAY) == KUBERAY
        ours = self.cache.members(key, cluster.metadata.uid)
        return key in self.cache.gangs or any(pod.gated for pod in ours)

    def _drop(self, view: GangView) -> None:
        self._reserve(view, Reserved())
        self.window.leave(view.key)
        del self.views[view.key]
        self.wake_at.pop(view.key, None)

    def _wake(self, key: GangKey, at: float | None) -> None:
        if at is None:
            self.wake_at.pop(key, None)
        else:
            self.wake_at[key] = at

    def _room_of(self, view: GangView) -> Reserved:
        pods = self.cache.members(view.key, view.cluster_uid)
        return reserved(view.placement or NOTHING, pods)

    def _reserve(self, view: GangView, promised: Reserved) -> None:
        """Make `promised` what the gang keeps from others, in place of what it kept before."""
        before, room = view.reserved.room, promised.room
        view.reserved = promised
        if room == before:
            return
        change = Counter(room)
        change.subtract(before)
        taken = ((node, requests, n) for (node, requests), n in change.items() if n)
        self.cache.reserve(view.key, taken)
        self.cycle_wanted |= any(n < 0 for n in change.values())
        for node in {node for node, _ in before} - {node for node, _ in room}:
            self._let_go(node, view.key)
        for node, _ in room:
            self._holders[node].add(view.key)

    def _take_back(self, view: GangView, pod: ObservedPod) -> bool:
        """Turn the reservation of one pod into use; False where all must be looked at for that."""
        if not view.reserved.bound(pod):
            return False
        self.cache.reserve(view.key, [(pod.holds, pod.used, -1)])
        if not view.reserved.keeps(pod.holds):
            self._let_go(pod.holds, view.key)
        return True

    def _let_go(self, node: str, gang: GangKey) -> None:
        """Note that a gang keeps nothing on a node any more."""
        self._holders[node].discard(gang)
        if not self._holders[node]:
            del self._holders[node]

    # --- deciding ---------------------------------------------------------------------------

    def _run_cycle(self, moment: Moment) -> list[GangKey]:
        """Decide; returns the gangs in the order of the queue, in which they are to be written."""
        self.cycle_wanted, self._refresh_at, self._cycled_at = False, None, moment.now
        asked = (_ready_to_ask(view) for view in self.views.values())
        pending = self._avoiding(each for each in asked if each is not None)
        position = growing = 0
        decisions = self._decisions(pending, moment)
        for decision in decisions:
            if isinstance(decision.verdict, Refusal):
                position += 1
            elif decision.verdict.left_out is not None:
                growing += 1
            self._decided(decision, position, moment)
        self._quiet = quiet_delay(position + growing)
        return [decision.key for decision in decisions]

    def _avoiding(self, asked: Iterable[PendingGang]) -> list[PendingGang]:
        nodes = {
            namespace: self.refusals.nodes(namespace) for namespace in self.refusals.namespaces
        }
        return [avoiding(each, nodes.get(each.key.namespace, {})) for each in asked]

    def _decisions(self, pending: list[PendingGang], moment: Moment) -> tuple[Decision, ...]:
        """Decide anew what a change could have turned, and those whose numbers are to be renewed.

        A refusal that is kept has the numbers of its time, so another cycle follows where they may
        have moved.
        """
        decisions, self._memory = next_cycle(
            pending,
            self.cache.columns(),
            self._remembered(moment),
            existing=self._company(),
            holders=Holders(self.cache.holders),
            volumes=self._volumes(),
        )
        if self._memory.old:
            self._refresh_at = self._renewals.next_at(moment.now, self._quiet)
        return decisions

    def _remembered(self, moment: Moment) -> Memory | None:
        """What is known of the last cycle, but not of the gangs to be decided anew now."""
        waiting = self._memory.waiting() if self._memory else ()
        due = self._renewals.due(waiting, moment.now, self._quiet)
        return self._memory.without(due) if self._memory else None

    def _company(self) -> ExistingPods:
        """Who is where, with the pods that have their room and are not bound yet."""
        if not self.cache.is_minded:
            return ExistingPods(self.cache.company)
        on_their_way = (view for view in self.views.values() if view.reserved.room)
        expected = (pod for view in on_their_way for pod in assumed_pods(view))
        return ExistingPods(self.cache.company, expected)

    def _volumes(self) -> Volumes:
        """What is known of volumes, with the claims of pods that are not bound yet."""
        if not self.cache.is_mounting:
            return Volumes(self.cache.storage)
        expected = (key for view in self.views.values() for key in assumed_claims(view))
        return Volumes(self.cache.storage, self.cache.table.held, expected)

    def _decided(self, decision: Decision, position: int, moment: Moment) -> None:
        view = self.views[decision.key]
        match decision.verdict:
            case Admitted() as admitted:
                self._admitted(view, admitted, moment)
            case Refusal() as refusal:
                self._refused(view, refusal, position, moment)

    def _admitted(self, view: GangView, admitted: Admitted, moment: Moment) -> None:
        """Take the room; where it is none, why the surplus waits may still be news."""
        if view.left_out != admitted.left_out:
            self._look_when_quiet(view, moment)
        view.refusal, view.position, view.left_out = None, 0, admitted.left_out
        if not admitted.placement.assignments:
            return
        pods = self.cache.members(view.key, view.cluster_uid)
        view.placement = merged(view.placement or NOTHING, admitted.placement, pods)
        view.placement_epoch = self.epoch
        view.decided += 1
        self._admissions += 1
        view.admitted_as = self._admissions
        view.notes.decided(admitted.placement, view.decided)
        self._reserve(view, self._room_of(view))
        self._dirty.add(view.key)

    def _refused(self, view: GangView, refusal: Refusal, position: int, moment: Moment) -> None:
        """Numbers that moved are written when the gang's quiet time is over, a new reason now."""
        same_reason = view.refusal is not None and view.refusal.reason == refusal.reason
        same = same_reason and view.refusal == refusal and view.position == position
        view.refusal, view.position, view.left_out = refusal, position, None
        if not same_reason:
            self._dirty.add(view.key)
        elif not same:
            self._look_when_quiet(view, moment)

    def _look_when_quiet(self, view: GangView, moment: Moment) -> None:
        since = view.urgency.fall_behind(moment.now)
        due = since + view.urgency.renewal_delay(self._quiet)
        self.wake_at[view.key] = min(self.wake_at.get(view.key, due), due)

    # --- taking in -------------------------------------------------------------------------

    @singledispatchmethod
    def _take(self, event: Event, moment: Moment) -> None:
        raise TypeError(f"unknown event {event!r}")

    @_take.register
    def _pod_seen(self, event: PodSeen, moment: Moment) -> None:
        before = self.cache.pods.get(event.pod.key)
        if self.cache.put_pod(event.pod, event.teller) is None:
            return
        self._note_step(before, event.pod, moment)
        gathering = self._gathering(event.pod) if before is None else None
        if gathering is not None:
            self._put_off(gathering, moment)
        elif before is None or not self._goes_on(before, event.pod, moment):
            self._pod_changed(before, event.pod)

    def _gathering(self, pod: ObservedPod) -> GangKey | None:
        """Name the gang of a new pod where it goes on waiting for others of its minimum."""
        view = self.views.get(pod.member.gang) if pod.member is not None and pod.gated else None
        if view is None or view.terms is None or view.placement is not None or view.ran:
            return None
        minimum = sum(each.minimum for each in view.terms.pod_sets)
        return view.key if self.cache.count(view.key) < minimum else None

    def _goes_on(self, before: ObservedPod, after: ObservedPod, moment: Moment) -> bool:
        """Take in a step of a pod that was decided, without a look at its whole gang."""
        view = self.views.get(after.member.gang) if after.member is not None else None
        if view is None or after.uid in view.leaving:
            return False
        if not goes_on(before, after, view.targets.get(after.uid, "")):
            return False
        if after.holds != before.holds and not self._take_back(view, after):
            return False
        self._company_changed(before, after)
        if view.course.is_last(before, after) or self._makes_way(view):
            self._dirty.add(view.key)
        else:
            self._put_off(view.key, moment)
        return True

    def _makes_way(self, view: GangView) -> bool:
        """Say whether others wait for the place of a gang whose pods are all bound."""
        waited_for = self.window.has_line and view.key in self.window
        return waited_for and not view.course.binding

    def _note_step(self, before: ObservedPod | None, after: ObservedPod, moment: Moment) -> None:
        """Note that pods of gangs come, and how far those have come that are being started."""
        if after.member is None:
            return
        if before is None:
            self._came_at = moment.now if after.gated else self._came_at
        elif after.node and not before.node:
            self.window.bound(after.member.gang, moment.now)
        elif before.gated and not after.gated:
            self.window.step(after.member.gang, moment.now)

    def _put_off(self, key: GangKey, moment: Moment) -> None:
        """Look at a gang in a moment, unless something has it looked at before."""
        at = moment.now + LATER
        self.wake_at[key] = min(self.wake_at.get(key, at), at)
        self._late.add(key)

    @_take.register
    def _pod_gone(self, event: PodGone, moment: Moment) -> None:
        before = self.cache.remove_pod(event.namespace, event.name, event.uid, event.teller)
        if before is not None:
            self._pod_changed(before, None)

    def _pod_changed(self, before: ObservedPod | None, after: ObservedPod | None) -> None:
        for pod in (before, after):
            if pod is not None and pod.member is not None:
                self._dirty.add(pod.member.gang)
        self._company_changed(before, after)
        freed = before.holds if before is not None else ""
        taken = after.holds if after is not None else ""
        shrunk = before is not None and after is not None and _claim(before) != _claim(after)
        if freed and (freed != taken or shrunk):
            self.cycle_wanted = True
        if taken and taken != freed:
            self._dirty |= self._holders.get(taken, set())
            if self.epoch:  # less room starts nobody, but the numbers of who waits move
                soon = self._cycled_at + QUIET_DELAY
                self._refresh_at = min(self._refresh_at or soon, soon)

    def _company_changed(self, before: ObservedPod | None, after: ObservedPod | None) -> None:
        """Ask anew where somebody minds who is where; whom a pod keeps away minds it too."""
        keeps = any(pod is not None and pod.repels for pod in (before, after))
        if (self.cache.is_minded or keeps) and _place(before) != _place(after):
            self.cycle_wanted = True

    @_take.register
    def _node_seen(self, event: NodeSeen, moment: Moment) -> None:
        if self.cache.put_node(event.node):
            self._node_changed(event.node.metadata.name)

    @_take.register
    def _node_gone(self, event: NodeGone, moment: Moment) -> None:
        self.cache.remove_node(event.name)
        self._node_changed(event.name)

    def _node_changed(self, name: str) -> None:
        self.cycle_wanted = True
        self._dirty |= self._holders.get(name, set())
        self._dirty |= self.refusals.forget_node(name)

    @_take.register
    def _cluster_seen(self, event: ClusterSeen, moment: Moment) -> None:
        meta = event.cluster.metadata
        key = GangKey(meta.namespace, meta.name)
        known = self.cache.clusters.get(key)
        if known is not None and says_the_same(known, event.cluster):
            return  # most of what KubeRay writes there is for its own users
        self.cycle_wanted |= is_terminating(event.cluster)
        self.cache.clusters[key] = event.cluster
        self.unknown_keys.seen(key, event.cluster)
        self._dirty.add(key)

    @_take.register
    def _cluster_gone(self, event: ClusterGone, moment: Moment) -> None:
        known = self.cache.clusters.get(event.key)
        if known is not None and known.metadata.uid == event.uid:
            del self.cache.clusters[event.key]
            self.unknown_keys.gone(event.key)
        self._dirty.add(event.key)
        self.cycle_wanted = True

    @_take.register
    def _gang_seen(self, event: GangSeen, moment: Moment) -> None:
        if not self.cache.put_gang(event.gang):
            return
        key = GangKey(event.gang.metadata.namespace, event.gang.metadata.name)
        view = self.views.get(key)
        if view is None or not view.writing:  # else the end of the write has it looked at
            self._dirty.add(key)

    @_take.register
    def _gang_gone(self, event: GangGone, moment: Moment) -> None:
        self.cache.remove_gang(event.key, event.uid)
        self._dirty.add(event.key)

    @_take.register
    def _namespace_seen(self, event: NamespaceSeen, moment: Moment) -> None:
        name = event.namespace.metadata.name
        before = self.cache.namespace_labels(name)
        self.cache.put_namespace(event.namespace)
        if dict(before) != dict(event.namespace.metadata.labels):
            self._dirty |= {key for key in self.cache.clusters if key.namespace == name}

    @_take.register
    def _namespace_gone(self, event: NamespaceGone, moment: Moment) -> None:
        self.cache.remove_namespace(event.name)

    @_take.register
    def _priority_class_seen(self, event: PriorityClassSeen, moment: Moment) -> None:
        self.cache.priority_classes[event.priority_class.metadata.name] = event.priority_class
        self._dirty |= set(self.views)

    @_take.register
    def _priority_class_gone(self, event: PriorityClassGone, moment: Moment) -> None:
        self.cache.priority_classes.pop(event.name, None)
        self._dirty |= set(self.views)

    @_take.register
    def _device_class_seen(self, event: DeviceClassSeen, moment: Moment) -> None:
        self.cache.put_device_class(event.device_class)
        self._memory, self.cycle_wanted = None, True

    @_take.register
    def _device_class_gone(self, event: DeviceClassGone, moment: Moment) -> None:
        self.cache.remove_device_class(event.name)
        self._memory, self.cycle_wanted = None, True

    @_take.register
    def _fact_seen(self, event: FactSeen, moment: Moment) -> None:
        if self.cache.storage.put(event.fact):
            self.cycle_wanted |= self.cache.is_mounting

    @_take.register
    def _fact_gone(self, event: FactGone, moment: Moment) -> None:
        self.cache.storage.drop(event.fact)
        self.cycle_wanted |= self.cache.is_mounting

    @_take.register
    def _facts_seen(self, event: FactsSeen, moment: Moment) -> None:
        self.cache.storage.see(event.kind)
        self.cycle_wanted |= self.cache.is_mounting

    @_take.register
    def _facts_lost(self, event: FactsLost, moment: Moment) -> None:
        self.cache.storage.lose_sight(event.kind)

    @_take.register
    def _sight_lost(self, event: SightLost, moment: Moment) -> None:
        self._blind.add(event.watch)

    @_take.register
    def _sight_regained(self, event: SightRegained, moment: Moment) -> None:
        self._blind.discard(event.watch)
        if not self._blind:
            self._dirty |= set(self.views) | set(self.cache.gangs)
            self.cycle_wanted = True

    @_take.register
    def _term_started(self, event: TermStarted, moment: Moment) -> None:
        self._forget_term()  # also one whose end was never told
        self.epoch = event.epoch
        gated = frozenset(pod.uid for pod in self.cache.pods.values() if pod.gated)
        self._inherited = frozenset() if event.clean else gated
        self._dirty = set(self.cache.clusters) | set(self.cache.gangs)
        self.cycle_wanted = True

    @_take.register
    def _term_ended(self, event: TermEnded, moment: Moment) -> None:
        self._forget_term()

    def _forget_term(self) -> None:
        """Drop all that is only of use to who leads: others may have changed it meanwhile."""
        for view in self.views.values():
            self._reserve(view, Reserved())
        self.views.clear()
        self.window = Window()
        self._late.clear()
        self._orphans.clear()
        self.wake_at.clear()
        self.refusals = Refusals()
        self.unknown_keys.forget_told()
        self._refresh_at = self._memory = None
        self.epoch = 0
        self.cycle_wanted = False

    @_take.register
    def _time_passed(self, event: TimePassed, moment: Moment) -> None:
        due = {key for key, at in self.wake_at.items() if at <= moment.now}
        for key in due:
            del self.wake_at[key]
        self._dirty |= due
        self._end_starts(moment)
        over = self.refusals.expire(moment.now)
        self._dirty |= over
        self.cycle_wanted |= bool(over)
        if self._refresh_at is not None and self._refresh_at <= moment.now:
            self._refresh_at, self.cycle_wanted = None, True

    def _end_starts(self, moment: Moment) -> None:
        """Count gangs no more that make no step, also where a request takes that long."""
        for key in self.window.overdue(moment.now):
            self.window.give_up(key)

    @_take.register
    def _write_ended(self, event: WriteEnded, moment: Moment) -> None:
        view = self.views.get(event.key)
        if view is None:
            return
        view.writing = view.replacing = False
        if event.error is None:
            view.write_attempts.failures = 0
        else:
            view.write_attempts.failed(moment.now, event.error)
            view.urgency.failed()
            view.sent = {}
        self._dirty.add(event.key)

    @_take.register
    def _patch_ended(self, event: PodPatchEnded, moment: Moment) -> None:
        view = self.views.get(event.gang)
        if view is None:
            return
        view.inflight.discard(event.uid)
        if event.error is None:
            view.attempts.pop(event.uid, None)
            view.unsure.discard(event.uid)
        else:
            if event.unknown:
                view.unsure.add(event.uid)
            view.deleted.discard(event.uid)
            refusal = event.error if event.refused else ""
            view.attempts_at(event.uid).failed(moment.now, refusal)
        if event.error is None and (view.inflight or not self.cache.is_gated(view.key)):
            self._put_off(event.gang, moment)
        else:
            self._dirty.add(event.gang)

    @_take.register
    def _cycle_due(self, event: CycleDue, moment: Moment) -> None:
        """Nothing to take in: the cycle runs once all events before it were followed up."""


def _claim(pod: ObservedPod) -> tuple[object, ...]:
    """How much room a pod takes, and whom it keeps out of it."""
    return pod.used, pod.nominated


def _place(pod: ObservedPod | None) -> tuple[object, ...]:
    """What of a pod matters to those who mind its company."""
    if pod is None or not pod.holds:
        return ()
    return pod.holds, pod.stay, pod.kind, pod.repels


def _ready_to_ask(view: GangView) -> PendingGang | None:
    """What the gang asks of a cycle, once there is a record that can hold the answer."""
    if view.record is None or not isinstance(view.asked, PendingGang):
        return None
    return view.asked
