"""Dry-runs the creation of an object, and of a pod of each pod set."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from cli.endings import CannotRead
from cli.fitting.asked import Asked, exists
from cli.fitting.manifests import Manifest
from cli.fitting.unknown_fields import unknown_fields
from cli.read.dry_created import Answer, DryCreated
from cli.read.reader import Reader
from kube.api import resources
from kube.api.kinds import Kind
from kube.api.resources import Resource

MOST_PODS: Final = 50
"""Pod sets of one object whose pod is asked about."""

MOST_FIELDS: Final = 5
"""Unknown fields that are named."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the API server says: `refusal` is for good, `over_quota` is not now.

    `pods` are those that it admits, as it admits them, by pod set.
    """

    refusal: str = ""
    over_quota: str = ""
    notes: tuple[str, ...] = ()
    pods: Mapping[str, Manifest] = field(default_factory=dict)


NOTHING: Final = Said()


async def ask_nothing(reader: Reader, asked: Asked) -> Said:  # noqa: ARG001 - stands for ask
    """Leave the API server unasked."""
    return NOTHING


async def ask(reader: Reader, asked: Asked) -> Said:
    """Ask with the caller's own rights; nothing is created."""
    try:
        served = await reader.served(Kind(asked.api_version, asked.kind))
    except CannotRead:
        return NOTHING  # which is said where it is judged whether it can be created
    if served is None:
        return NOTHING
    pods = dict(list(asked.pods.items())[:MOST_PODS])
    own, *of_pods = await asyncio.gather(
        reader.would_create(served.resource, asked.namespace, asked.manifest),
        *(reader.would_create(resources.PODS, asked.namespace, each) for each in pods.values()),
    )
    of_object = _of_object(own, asked)
    if own.answer is Answer.NO_RIGHT:  # which is said with all other rights that are lacking
        of_object = await _by_schema(reader, served.resource, asked.kind, {"it": asked.manifest})
    by_schema = NOTHING
    if unasked := _without_right(pods, of_pods):
        by_schema = await _by_schema(reader, resources.PODS, "Pod", unasked)
    return _joined([of_object, *_of_pods(pods, of_pods, asked.namespace), by_schema])


def _without_right(
    pods: Mapping[str, Manifest], answers: Sequence[DryCreated]
) -> Mapping[str, Manifest]:
    """Return the pods that the caller may not create, as messages name them."""
    both = zip(pods.items(), answers, strict=True)
    return {
        f"a pod of {pod_set}": pod
        for (pod_set, pod), said in both
        if said.answer is Answer.NO_RIGHT
    }


async def _by_schema(
    reader: Reader, resource: Resource, kind: str, objects: Mapping[str, Manifest]
) -> Said:
    """Judge objects of one kind by its schema, which every user may read; keys are for messages."""
    try:
        document = await reader.schema(resource)
    except CannotRead as fault:
        return _not_asked(", ".join(objects), str(fault))
    version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    for name, each in objects.items():
        if unknown := unknown_fields(document, version, kind, each):
            named = ", ".join(f'"{field}"' for field in unknown[:MOST_FIELDS])
            return Said(refusal=f"the API server would refuse {name}: unknown field {named}")
    return NOTHING


def _not_asked(what: str, why: str) -> Said:
    return Said(notes=(f"the API server was not asked whether it takes {what}: {why}",))


def _of_object(said: DryCreated, asked: Asked) -> Said:
    match said.answer:
        case Answer.REFUSED:
            return Said(refusal=f"the API server refuses it: {said.message}")
        case Answer.OVER_QUOTA:
            return Said(refusal=f"not now, for want of quota: {said.message}")
        case Answer.EXISTS:
            return Said(notes=(exists(asked),))
        case Answer.NOT_ASKED:
            return _not_asked("it", said.message)
        case Answer.TAKEN | Answer.NO_RIGHT:
            return NOTHING


def _of_pods(
    pods: Mapping[str, Any], answers: Sequence[DryCreated], namespace: str
) -> Iterator[Said]:
    for pod_set, said in zip(pods, answers, strict=True):
        match said.answer:
            case Answer.TAKEN if said.admitted:
                yield Said(pods={pod_set: msgspec.json.decode(said.admitted, type=dict[str, Any])})
            case Answer.REFUSED:
                yield Said(f"the API server refuses a pod of {pod_set}: {said.message}")
            case Answer.OVER_QUOTA:
                yield Said(over_quota=f"a pod of {pod_set}: {said.message}")
            case Answer.NO_RIGHT:
                why = f"you may not create pods in namespace {namespace}"
                yield Said(notes=(f"{why}: whether they are admitted was not asked",))
            case Answer.NOT_ASKED:
                why = f"whether a pod of {pod_set} is admitted could not be asked"
                yield Said(notes=(f"{why}: {said.message}",))


def _joined(said: Sequence[Said]) -> Said:
    return Said(
        next((each.refusal for each in said if each.refusal), ""),
        next((each.over_quota for each in said if each.over_quota), ""),
        tuple(dict.fromkeys(note for each in said for note in each.notes)),
        {pod_set: pod for each in said for pod_set, pod in each.pods.items()},
    )
