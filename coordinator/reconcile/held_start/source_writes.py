"""Asks for the writes that resume and suspend a source, and says how they go.

Where another program does it the record says it all: it sees it there.
"""

from dataclasses import replace

from coordinator.gang.held_start.phases import Waiting
from coordinator.gang.held_start.start import Asked
from coordinator.messages.actions import Action, ResumeRayCluster, SuspendRayCluster
from coordinator.reconcile.look import Look
from kube.gang.source import GangSource


def resume_source(look: Look) -> list[Action]:
    """Have the source resumed."""
    return _asked(look, ResumeRayCluster)


def suspend_source(look: Look) -> list[Action]:
    """Have the source suspended."""
    return _asked(look, SuspendRayCluster)


def as_it_is(look: Look) -> GangSource:
    """Return the source as it was seen: a look at a gang that waits has it as if resumed."""
    return look.scene.cache.sources[look.view.key]


def is_being_resumed(look: Look) -> bool:
    """Say whether the source was asked to be resumed, so that pods may come any time."""
    write = look.view.held.write
    return write.under_way or write.was_asked(look.source.metadata.generation)


def is_without_effect(look: Look) -> bool:
    """Say whether the source stays as it is though the resumption was taken long ago."""
    write, asked = look.view.held.write, look.view.held.write.asked
    if asked is None or write.under_way or look.view.reservation.placement is None:
        return False
    is_due = look.now >= asked.at + look.create_seconds
    return asked.generation == look.source.metadata.generation and look.scene.sighted and is_due


def is_never_resumed(look: Look, waiting: Waiting) -> bool:
    """Say whether the resumption fails for so long that others should have the room."""
    view = look.view
    fails = view.reservation.placement is not None and view.held.write.attempts.failures > 0
    since = look.now if waiting.refused_since is None else waiting.refused_since
    view.held.state = replace(waiting, refused_since=since if fails else None)
    return fails and look.now >= since + look.create_seconds


def _asked(look: Look, what: type[ResumeRayCluster] | type[SuspendRayCluster]) -> list[Action]:
    """Ask for a write once for each generation of the source, again where it failed."""
    write, source = look.view.held.write, as_it_is(look)
    generation, cluster = source.metadata.generation, source.resumable
    if write.under_way or write.was_asked(generation) or look.now < write.attempts.not_before:
        return []
    write.asked = Asked(generation, look.now)
    if cluster is None:
        return []
    write.under_way = True
    return [what(look.view.key, cluster)]
