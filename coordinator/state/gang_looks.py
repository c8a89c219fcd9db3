"""Looks at the gangs that something happened to, and brings each of them forward."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from coordinator.gang import ending
from coordinator.gang.nominations import Guard
from coordinator.gang.pods.left_nominations import Left, are_left
from coordinator.gang.source import followers_of, opt_in_of
from coordinator.gang.start_window import is_starting
from coordinator.gang.together import ALONE
from coordinator.messages.actions import Action, NominatePod
from coordinator.reconcile.advance import advance
from coordinator.reconcile.decisions import decisions
from coordinator.reconcile.look import Look, Scene
from coordinator.reconcile.next_wake import wake_at
from coordinator.reconcile.submitter import room_beside
from coordinator.reconcile.together.starts import due_beside, shown, to_tell
from coordinator.record.event_budget import spacing_of
from coordinator.record.urgency import ClusterActivity
from coordinator.state.agenda import LATER
from coordinator.state.cycle.device_facts import devices_left
from coordinator.state.cycle.joining import joined_since
from coordinator.state.cycle.run_cycle import NO_PLACEMENT
from coordinator.state.gang_usage import count_for_metrics, count_held, learn_duration
from coordinator.state.gang_views import note_misnominated, view_of
from coordinator.state.known import Known
from coordinator.state.offers import reconcile_offer
from kube.codec.observed_pod import ObservedPod
from kube.objects.gang import Gang
from reservation.release_order import is_ordered
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey
from scheduling.model.holder import is_offer_gang, offer_gang


def advance_dirty(known: Known, moment: Moment, order: Iterable[GangKey] = ()) -> list[Action]:
    """Bring the gangs forward that something happened to, those in `order` first, as given."""
    place = {key: at for at, key in enumerate(order)}
    scene = scene_of(known, moment)
    actions: list[Action] = []
    while known.agenda.dirty or _call_next(known, moment):
        dirty = known.agenda.dirty
        keys = sorted(dirty, key=lambda key: (place.get(key, len(place)), _age(known, key)))
        dirty.clear()
        _balance(known, keys, scene)
        for key in _plans_first(known, keys):
            actions += look_at(known, key, scene)
    return actions


def scene_of(known: Known, moment: Moment) -> Scene:
    """Return what looks at gangs read beside their views."""
    return Scene(
        cache=known.cache,
        refusals=known.term.refusals,
        epoch=known.term.epoch,
        patience=known.patience,
        moment=moment,
        activity=ClusterActivity(known.cycles.quiet, known.came_at),
        sighted=not known.blind,
        inherited=known.term.inherited,
        allowed=known.allowed,
        window=known.term.window,
        queues=known.queues,
        foresee=known.foresee,
        profiles=known.profiles,
        lines=known.agenda.lines,
        views=known.views,
        decided=known.cycles.memory is not None,
        misnominated=known.term.misnominated,
        reserved=known.room.holders,
        pace=known.term.pace,
        turns=known.turns,
        node_quota=known.node_quota,
        devices_left=partial(devices_left, known),
        guard=known.guard if moment.now >= known.term.forbidden_until else Guard.NONE,
        scheduler=known.scheduler,
    )


def _age(known: Known, key: GangKey) -> tuple[float, str]:
    """Order gangs as they came: at the beginning of a term the first of them are released."""
    source = known.cache.sources.get(key)
    return (known.cache.owners.arrived_at(source) if source is not None else 0.0), str(key)


def _call_next(known: Known, moment: Moment) -> bool:
    """Have the gangs looked at that may be released, or written, now: it is their turn.

    So it is of those whose plans meet reservations. Where reservations end it is in a moment,
    for others mostly follow them.
    """
    known.agenda.dirty |= known.room.met
    known.room.met.clear()
    for key in known.room.parted:
        known.agenda.wake_by(key, moment.now + LATER)
    known.room.parted.clear()
    if not known.blind:
        known.agenda.dirty.update(known.term.window.call(moment.now))
    known.agenda.dirty.update(known.agenda.lines.call(moment.now))
    return bool(known.agenda.dirty)


def _plans_first(known: Known, keys: Sequence[GangKey]) -> Sequence[GangKey]:
    """Put gangs first that are nominated for a plan: what they are to take back is then known.

    Those are among them whose plans meet reservations that came just now.
    """
    met, plans = sorted(known.room.met.difference(keys), key=str), known.room.plans
    known.room.met.clear()
    return sorted([*met, *keys], key=lambda key: key not in plans) if plans else keys


def _balance(known: Known, keys: Iterable[GangKey], scene: Scene) -> None:
    """Bring reservations up to date before any gang is looked at: also those of new views.

    Counted twice, a pod that was bound would make its node look overfull to its own gang and
    others. What a reservation loses here a bound pod has taken, so that no cycle is wanted.
    """
    for key in keys:
        view = view_of(known, key, known.cache.sources.get(key), scene)
        known.agenda.cycle_wanted |= known.orphan_reservations.look(key, scene.moment.now)
        if view is not None:
            known.room.update(view, known.cache.members(key, view.cluster_uid))
    known.agenda.cycle_wanted |= known.submitter_room.give_way()


def look_at(known: Known, key: GangKey, scene: Scene) -> list[Action]:
    """Bring a gang forward; keys without a meaning, and gates, are told of where none is."""
    known.cycles.looked_at.add(key)
    known.agenda.in_turn.pop(key, None)
    news = [*_told_of(known, key, scene.moment.now)]
    actions = [*news, *_advance_gang(known, key, scene), *_take_back_left(known, key, scene)]
    actions += reconcile_offer(known, key, scene.moment)
    _bound_waiting(known, key)
    count_held(known, key)
    count_for_metrics(known, key, scene.moment.now)
    learn_duration(known, key, scene.moment.wall)
    for due in (
        known.unknown_keys,
        known.stray_gates,
        known.orphan_reservations,
        known.submitter_room,
    ):
        again = due.due_at(key)
        if again is not None:
            known.agenda.wake_by(key, again)
    return actions


def _told_of(known: Known, key: GangKey, now: float) -> Iterator[Action]:
    source = known.cache.sources.get(key)
    if source is not None:
        known.unknown_keys.seen(key, source, opt_in_of(source, known.cache))
    yield from known.unknown_keys.news(key, now)
    yield from known.stray_gates.news(key, now)


def _take_back_left(known: Known, key: GangKey, scene: Scene) -> Sequence[Action]:
    """Take nominations back of pods whose RayCluster is gone."""
    view, left = known.views.get(key), known.term.left
    uid = view.cluster_uid if view is not None else ""
    pods = [pod for pod in known.cache.pods_of(key) if pod.gated and not _is_of(pod, uid)]
    if not are_left(left.get(key), pods):
        left.pop(key, None)
        return ()
    mine = left.setdefault(key, Left(scene.moment.now))
    if not scene.sighted:
        return ()  # the end of the blindness has it looked at
    due = mine.due(pods, scene.moment.now)
    if mine.writes.next_at is not None:
        known.agenda.wake_by(key, mine.writes.next_at)
    return [NominatePod(key, pod.raw, "", known.scheduler) for pod in due if pod.raw is not None]


def _bound_waiting(known: Known, key: GangKey) -> None:
    """Count a gang among those of its namespace that wait; have those decided that come up."""
    view = known.views.get(key)
    asked = view.question if view is not None else None
    waits = asked is not None and bool(asked.minimum) and not asked.is_repair
    since = asked.created if asked is not None and waits else None
    if view is not None and view.joins:
        since = joined_since(known, view)  # that of one is counted, and of no other
    moved = known.waiting_limit.note(key, since)
    known.cycles.looked_at |= moved
    known.agenda.cycle_wanted |= bool(moved)


def _advance_gang(known: Known, key: GangKey, scene: Scene) -> list[Action]:
    known.agenda.late.discard(key)
    source = known.cache.sources.get(key)
    view = view_of(known, key, source, scene)
    if view is None or source is None:
        return _orphan(known, key, scene)
    view.unknown_keys = known.unknown_keys.of(key)
    asked, look = view.question, Look(view, source, scene)
    _begin_as_member(known, look)
    advance(look)
    view.looked_at = True
    _follow_up(known, look)
    _show_members(known, look)
    asks = view.question
    known.agenda.cycle_wanted |= asks is not None and asks != asked
    spacing = spacing_of(len(known.cycles.waiting))
    look.actions = view.events.sift(look.actions, look.now, spacing)
    known.agenda.wake(key, wake_at(look, spacing))
    return [*look.actions, *decisions(look)]


def _begin_as_member(known: Known, look: Look) -> None:
    """Note the group of a gang; what it asks for as a member is known once it was looked at."""
    mate, member = known.cache.together.of(look.view.key), look.view.together
    member.group = mate.asked if mate is not None else None
    member.asks, member.due_beside = None, due_beside(look)


def _show_members(known: Known, look: Look) -> None:
    """Have the others of its group looked at, where they may go by what changed of a gang."""
    member, placed = look.view.together, look.view.reservation.together
    if member.group is None and placed is ALONE and not member.shown:
        return
    before, member.shown = member.shown, shown(look)
    if member.shown != before:
        known.agenda.dirty |= to_tell(look)


def _follow_up(known: Known, look: Look) -> None:
    """Bring the course, the window and the reserved room in line with what was found."""
    view, placement = look.view, look.view.reservation.placement
    in_steps = is_ordered(placement or NO_PLACEMENT) or view.together.due_beside is not None
    view.expected_changes.begin(view.survey.standing, view.pod_writes.inflight, in_steps=in_steps)
    known.agenda.cycle_wanted |= view.eviction.reopen(look.now) or look.ends_less
    if view.key in known.term.window and not is_starting(view):
        known.term.window.leave(view.key)
    if placement is None:
        known.cache.foreseen.unclaim(view.key)
    _keep_for_submitter(known, look)
    if placement is not look.before or view.queueing.planned is not look.planned_before:
        known.agenda.cycle_wanted |= known.room.update(view, look.pods)
    known.room.note_plan(view)
    _end_record_of_offer(known, look)
    note_misnominated(known, view, view.nominating.blocked_nodes_at(look.now))


def _end_record_of_offer(known: Known, look: Look) -> None:
    """Have the Gang of an offer looked at once its room is on record as that of this gang.

    The extender would keep the room from it for as long as both hold it.
    """
    made_for = look.source.takes_over
    if made_for is None:
        return
    key = GangKey(look.view.key.namespace, offer_gang(made_for.name))
    if look.view.waits_stopped:
        known.agenda.wake_by(key, look.now + LATER)
    if not look.view.survey.durable:
        return
    is_seen_to = known.agenda.wake_at.get(key, look.now) > look.now + LATER
    if key in known.cache.gangs and not is_seen_to:
        known.agenda.dirty.add(key)


def _keep_for_submitter(known: Known, look: Look) -> None:
    """Keep room for the submitter of a gang that has its place, as long as that may come."""
    key, ended = look.view.key, False
    if look.view.reservation.placement is None:
        ended = known.submitter_room.end(key)
    elif known.submitter_room.is_wanted(key) and not known.blind:
        known.submitter_room.keep(key, room_beside(look))
    else:
        ended = known.submitter_room.look(key, look.now, known.patience.torn)
    known.agenda.cycle_wanted |= ended


def _orphan(known: Known, key: GangKey, scene: Scene) -> list[Action]:
    """See to a Gang whose RayCluster is gone."""
    gang, orphans = known.cache.gangs.get(key), known.term.orphans
    if gang is not None and is_offer_gang(key) and scene.sighted:
        return _end_offered(known, key, gang, scene)
    if gang is None or key in known.cache.sources:
        orphans.forget(key)
        return []
    if not scene.sighted:
        return []  # the end of the blindness has all looked at
    actions = orphans.look(key, gang, scene.moment, known.term.epoch)
    known.agenda.wake(key, orphans.next_look(key))
    return actions


def _end_offered(known: Known, key: GangKey, gang: Gang, scene: Scene) -> list[Action]:
    """Delete the Gang of an offer that is closed, or whose room another gang has on its record."""
    source = known.cache.sources.get(key)
    if source is not None and source.offered is not None:
        followers = followers_of(source.metadata, source.offered, known.cache)
        views = (known.views.get(each) for each in followers)
        if not any(each is not None and each.survey.durable for each in views):
            known.agenda.wake(key, scene.moment.now + LATER)
            return []
    known.agenda.wake(key, scene.moment.now + ending.ORPHAN_DELAY)
    return ending.clear_away(key, gang, known.term.epoch)


def _is_of(pod: ObservedPod, cluster_uid: str) -> bool:
    return pod.member is not None and pod.member.cluster_uid == cluster_uid
