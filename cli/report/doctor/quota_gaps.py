"""The check of `muster doctor` for gangs that no quota of a GangQueue bounds."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from cli.report.doctor.examined import Examined, Looked, RayObject
from cli.report.doctor.findings import Finding, ok, unread, warn
from cli.report.order import natural
from cli.report.snapshot import Unread
from kube.codec.fields import InvalidObject
from kube.codec.queues.queue import read_namespaces
from kube.objects.base import Labels
from kube.objects.core import Namespace
from kube.objects.names import KUBE_SYSTEM
from kube.objects.queues.queue import RESOURCES_LIMITED, USAGE_COUNTED, GangQueue
from kube.ray.ray_cluster import Answer, opt_in
from scheduling.model.labels import selects
from scheduling.model.queue import DEFAULT_QUEUE

CHECK: Final = "quota"
OPTED_OUT: Final = "opted out"
NAMED = 5
"""Objects that one finding names."""

_SYSTEM: Final = (KUBE_SYSTEM, "kube-public", "kube-node-lease")
_SELECT: Final = (
    f"select them by a GangQueue, or make one named {DEFAULT_QUEUE} with quota, 0 for none: "
    "docs/queues.md"
)
_LIMIT: Final = "kubectl edit gangqueue: docs/queues-reference.md#quota"
_COUNT: Final = "mend what the message names: docs/queues-reference.md#fair-share-over-time"
_REMEDIES: Final = {RESOURCES_LIMITED: _LIMIT, USAGE_COUNTED: _COUNT}
_REFUSED: Final = "manifests/no-opting-out refuses it: docs/queues.md"


def check_quota_gaps(seen: Examined) -> Iterator[Finding]:
    """Name what escapes all quota, where any GangQueue has quota."""
    if isinstance(seen.queues, Unread):
        yield unread(CHECK, seen.queues)
    elif isinstance(seen.namespaces, Unread):
        yield unread(CHECK, seen.namespaces)
    elif not any(each.spec.quota for each in seen.queues):
        yield ok(CHECK, "no GangQueue has quota")
    else:
        ours = (*_SYSTEM, seen.namespace)
        homes = [each for each in seen.namespaces if each.metadata.name not in ours]
        gaps = [
            *_unselected(seen.queues, homes),
            *_unlimited(seen.queues),
            *_opted_out(seen.ray_clusters, homes),
        ]
        yield from gaps or [ok(CHECK, "it bounds the gangs of every namespace")]


def _unselected(queues: Sequence[GangQueue], namespaces: Sequence[Namespace]) -> Iterator[Finding]:
    """Name the namespaces whose gangs wait in the queue `default`, where that has no quota."""
    named = {each.metadata.name: each for each in queues}
    if DEFAULT_QUEUE in named and named[DEFAULT_QUEUE].spec.quota:
        return
    found = [each.metadata.name for each in namespaces if not _is_selected(each, queues)]
    if found:
        is_of = "namespaces {} are" if len(found) > 1 else "namespace {} is"
        said = f"{is_of.format(_some(found))} selected by no GangQueue: no quota bounds gangs there"
        yield warn(CHECK, said, _SELECT)


def _unlimited(queues: Sequence[GangQueue]) -> Iterator[Finding]:
    """Name the queues of which the coordinator says that a rule has a gap, or counts nothing."""
    for queue in queues:
        for each in queue.status.conditions:
            if each.type in _REMEDIES and each.status == "False":
                said = f"GangQueue {queue.metadata.name}: {each.message}"
                yield warn(CHECK, said, _REMEDIES[each.type])


def _is_selected(namespace: Namespace, queues: Sequence[GangQueue]) -> bool:
    return any(_selects(each, namespace.metadata.labels) for each in queues)


def _selects(queue: GangQueue, labels: Labels) -> bool:
    try:
        selector = read_namespaces(queue)
    except InvalidObject:
        return False
    return selector is not None and selects(selector, labels)


def _opted_out(found: Looked[RayObject], namespaces: Sequence[Namespace]) -> Iterator[Finding]:
    """Name the Ray clusters that say no where their namespace says yes."""
    if isinstance(found, Unread):
        yield unread(OPTED_OUT, found)
        return
    labels = {each.metadata.name: each.metadata.labels for each in namespaces}
    opted_in = {name for name, said in labels.items() if opt_in({}, {}, said).answer is Answer.YES}
    named = [
        f"{each.metadata.namespace}/{each.metadata.name}"
        for each in found
        if each.metadata.namespace in opted_in and _says_no(each)
    ]
    if named:
        plural = "RayClusters {} are opted out of their namespaces"
        is_of = plural if len(named) > 1 else "RayCluster {} is opted out of its namespace"
        said = f"{is_of.format(_some(named))}, and in no queue: no quota bounds the pods"
        yield warn(OPTED_OUT, said, _REFUSED)


def _says_no(found: RayObject) -> bool:
    meta = found.metadata
    said = opt_in(meta.labels, meta.annotations, {})
    return said.answer is Answer.NO and bool(said.value)


def _some(names: Collection[str]) -> str:
    some, more = sorted(names, key=natural)[:NAMED], len(names) - NAMED
    return f"{', '.join(some)} and {more} more" if more > 0 else ", ".join(some)
