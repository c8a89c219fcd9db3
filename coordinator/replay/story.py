"""Tells the story of one gang from a recording: a line for each thing that was seen or decided."""

import difflib
from collections.abc import Iterable, Iterator

from coordinator.messages.actions import Action
from coordinator.messages.clock import Moment
from coordinator.messages.events import ClusterSeen, Event, PodSeen
from coordinator.replay.done import Done
from coordinator.replay.lines import Recording, Step, read_actions
from coordinator.replay.seen import Seen
from scheduling.model.gang import GangKey

NEAR = 3
"""Names that are proposed in the place of one that is not there."""


class UnknownGangError(Exception):
    """A recording knows nothing of a gang; the text is one line for people."""


def tell(recording: Recording, key: GangKey) -> Iterator[str]:
    """Tell of a gang, in lines of a time, `saw` or `did`, and a sentence.

    Raises:
        UnknownGangError: It is not in the recording.
        BadRecordingError: A line cannot be read.

    """
    seen, done, others = Seen(key), Done(), set[str]()
    before: list[str] = []  # of the coordinator, while the gang is not there yet
    for step in recording.steps():
        others.update(_gangs(step.events))
        seen.places = done.places
        before += (_line(step.moment, "saw", each) for each in seen.tell(step.events))
        before += (_line(step.moment, "did", each) for each in done.tell(_about(step, key)))
        if step.failed:
            before.append(_line(step.moment, "did", f"the state machine failed: {step.failed}"))
        if seen.known:
            yield from before
            before.clear()
    if not seen.known:
        raise UnknownGangError(_unknown(key, others))


def _line(moment: Moment, who: str, sentence: str) -> str:
    """Write one line, whatever is in it: some of it is the words of others."""
    words = " ".join(sentence.split())
    shown = "".join(each if each.isprintable() else "?" for each in words)
    return f"{moment.stamp.removesuffix('Z')}.{int(moment.wall % 1 * 1000):03}Z  {who}  {shown}"


def _about(step: Step, key: GangKey) -> list[Action]:
    wanted = {"namespace": key.namespace, "name": key.name}
    found = [each for each in step.actions or () if wanted in (each.get("key"), each.get("gang"))]
    return read_actions(step, found)


def _gangs(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event, ClusterSeen):
            yield f"{event.cluster.metadata.namespace}/{event.cluster.metadata.name}"
        elif isinstance(event, PodSeen) and event.pod.member is not None:
            yield str(event.pod.member.gang)


def _unknown(key: GangKey, others: Iterable[str]) -> str:
    names = sorted(others)
    near = difflib.get_close_matches(str(key), names, n=NEAR, cutoff=0.5) or names[:NEAR]
    return f"{key}: not in this recording; there are {', '.join(near) if near else 'no gangs'}"
