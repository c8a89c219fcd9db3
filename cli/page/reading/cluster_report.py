"""Reports one Ray cluster for its page: groups, gang, pods and their nodes, times, links. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from cli.managing.owners import owner_among
from cli.page.reading.links import Link
from cli.page.reading.timeline import Timeline
from cli.report.order import natural
from cli.report.snapshot import NODES, PODS, QUEUES, Snapshot, Unread
from cli.report.why import Case, WhyReport, why_report
from kube.objects import names
from kube.objects.base import ObjectMeta, OrNull, Part, Slim
from kube.objects.gang import Gang
from kube.objects.ray import RayCluster, WorkerGroup

MOST_PODS = 2000
"""Pods that are sent: what a picture can show."""


# ---- objects


class _Said(Slim, frozen=True):
    reason: str = ""
    message: str = ""


class _State(Slim, frozen=True):
    waiting: _Said | None = None
    terminated: _Said | None = None


class _ContainerState(Slim, frozen=True):
    ready: bool = False
    state: _State = _State()


class _Named(Slim, frozen=True):
    name: str = ""


class _PodSpec(Part, frozen=True):
    node_name: str = ""
    scheduling_gates: OrNull[tuple[_Named, ...]] = ()
    containers: OrNull[tuple[_Named, ...]] = ()
    init_containers: OrNull[tuple[_Named, ...]] = ()


class _PodStatus(Part, frozen=True):
    phase: str = ""
    reason: str = ""
    container_statuses: OrNull[tuple[_ContainerState, ...]] = ()


class ShownPod(Slim, frozen=True):
    """What of a pod the page shows."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


# ---- reports


class PodReport(Slim, frozen=True):
    """One pod; `containers` are those that have logs, the one in which Ray runs first."""

    name: str
    group: str
    node: str
    phase: str
    ready: bool
    gated: bool
    ending: bool
    reason: str
    created: str
    containers: tuple[str, ...]


class GroupReport(Slim, frozen=True):
    """A worker group, as the RayCluster has it; None where it is silent."""

    name: str
    replicas: int | None
    min: int | None
    max: int | None
    hosts: int
    suspended: bool


class LinkReport(Slim, frozen=True):
    """A link by its name."""

    name: str
    address: str


class ClusterReport(Slim, frozen=True):
    """One RayCluster; without a gang `no_gang` says why it has none."""

    namespace: str
    name: str
    gang_name: str
    state: str
    created: str
    owner: str
    suspended: bool
    ending: bool
    autoscaler: bool
    groups: tuple[GroupReport, ...]
    gang: WhyReport | None
    no_gang: str
    pods: tuple[PodReport, ...]
    all_pods: int
    timeline: Timeline
    links: tuple[LinkReport, ...]
    unread: tuple[str, ...]


def cluster_report(
    cluster: RayCluster,
    gang: tuple[str, Gang | None, str],
    pods: Sequence[ShownPod],
    times: Timeline,
    links: Iterable[Link],
    unread: Sequence[str],
) -> ClusterReport:
    """Report on one cluster; of its gang come the name, the object, and why there is none."""
    meta, (gang_name, found, no_gang) = cluster.metadata, gang
    return ClusterReport(
        namespace=meta.namespace,
        name=meta.name,
        gang_name=gang_name,
        state=cluster.status.state,
        created=meta.creation_timestamp or "",
        owner=owner_among(meta.owner_references),
        suspended=bool(cluster.spec.suspend),
        ending=meta.deletion_timestamp is not None,
        autoscaler=bool(cluster.spec.enable_in_tree_autoscaling),
        groups=tuple(map(_group, cluster.spec.worker_group_specs)),
        gang=by_itself(found) if found is not None else None,
        no_gang=no_gang,
        pods=tuple(_pods(pods)),
        all_pods=len(pods),
        timeline=times,
        links=tuple(
            LinkReport(each.name, each.address(meta.namespace, meta.name)) for each in links
        ),
        unread=tuple(unread),
    )


def by_itself(gang: Gang) -> WhyReport:
    """Report what a Gang says of itself, while neither nodes nor other gangs were read."""
    unread = tuple(Unread(each, "") for each in (NODES, PODS, QUEUES))
    return replace(why_report(Snapshot((gang,), unread=unread), Case(gang)), unread=())


def _group(each: WorkerGroup) -> GroupReport:
    return GroupReport(
        each.group_name,
        each.replicas,
        each.min_replicas,
        each.max_replicas,
        each.num_of_hosts or 1,
        bool(each.suspend),
    )


def _pods(pods: Iterable[ShownPod]) -> Iterator[PodReport]:
    """Yield the head, then the workers by group and name."""
    yield from sorted(map(_pod, pods), key=_order)[:MOST_PODS]


def _order(pod: PodReport) -> tuple[object, ...]:
    return pod.group != names.RAY_HEAD_GROUP, pod.group, natural(pod.name)


def _pod(pod: ShownPod) -> PodReport:
    labels, spec, status = pod.metadata.labels, pod.spec, pod.status
    is_head = labels.get(names.RAY_NODE_TYPE) == "head"
    started = status.container_statuses
    return PodReport(
        name=pod.metadata.name,
        group=names.RAY_HEAD_GROUP if is_head else labels.get(names.RAY_GROUP, ""),
        node=spec.node_name,
        phase=status.phase,
        ready=bool(started) and all(each.ready for each in started),
        gated=any(each.name == names.GATE for each in spec.scheduling_gates),
        ending=pod.metadata.deletion_timestamp is not None,
        reason=status.reason or next(_troubles(pod), ""),
        created=pod.metadata.creation_timestamp or "",
        containers=tuple(each.name for each in (*spec.containers, *spec.init_containers)),
    )


def _troubles(pod: ShownPod) -> Iterator[str]:
    """Yield why containers do not run."""
    for each in pod.status.container_statuses:
        said = each.state.waiting or each.state.terminated
        if said is not None and said.reason:
            yield f"{said.reason}: {said.message}" if said.message else said.reason
