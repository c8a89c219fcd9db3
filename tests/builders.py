"""Small worlds in a line: nodes, shapes, groups and gangs, with defaults for the rest.

Amounts are written as people write them (`cpu=8`, `cpu="500m"`, `memory="16Gi"`).
"""

from collections.abc import Iterable, Mapping

from scheduling.model.amounts import CPU, MEMORY, PODS, sorted_requests
from scheduling.model.constraints import (
    NodeTerm,
    PodTerm,
    Requirement,
    SpreadConstraint,
    Toleration,
)
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.node import Node, Taint
from scheduling.model.pod import PodShape
from scheduling.model.quantity import allocatable_amount, request_amount
from scheduling.model.shape.host_ports import HostPort, port_amounts
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.node_table import node_snapshot_of

GPU = "nvidia.com/gpu"

Amount = int | str


def node(
    name: str,
    *,
    cpu: Amount = 64,
    memory: Amount = "256Gi",
    gpu: Amount = 0,
    pods: Amount = 110,
    labels: Mapping[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
    unschedulable: bool = False,
    extra: Mapping[str, Amount] | None = None,
) -> Node:
    written = {CPU: cpu, MEMORY: memory, PODS: pods, **({GPU: gpu} if gpu else {}), **(extra or {})}
    allocatable = {key: allocatable_amount(key, str(text)) for key, text in written.items()}
    return Node(name, labels or {}, taints, unschedulable, allocatable)


def shape(
    *,
    cpu: Amount = 0,
    memory: Amount = 0,
    gpu: Amount = 0,
    selector: Mapping[str, str] | None = None,
    node_affinity: tuple[NodeTerm, ...] | None = None,
    tolerations: tuple[Toleration, ...] = (),
    unsupported: tuple[str, ...] = (),
    extra: Mapping[str, Amount] | None = None,
    ports: Iterable[HostPort] = (),
    affinity: Iterable[PodTerm] = (),
    anti_affinity: Iterable[PodTerm] = (),
    spread: Iterable[SpreadConstraint] = (),
) -> PodShape:
    written = {CPU: cpu, MEMORY: memory, GPU: gpu, PODS: 1, **(extra or {})}
    requests = {key: request_amount(key, str(text)) for key, text in written.items()}
    return PodShape(
        own_requests=sorted_requests({**requests, **port_amounts(ports)}),
        node_selector=tuple(sorted((selector or {}).items())),
        node_affinity=node_affinity,
        tolerations=tolerations,
        own_unsupported=unsupported,
        affinity=tuple(affinity),
        anti_affinity=tuple(anti_affinity),
        spread=tuple(spread),
    )


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key, value, effect)


def toleration(
    key: str = "", *, operator: str = "Equal", value: str = "", effect: str = ""
) -> Toleration:
    return Toleration(key, operator, value, effect)


def require(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key, operator, values)


def group(pod_set: str, count: int, of: PodShape, *, replica: str = "") -> Group:
    return Group(pod_set, replica, of, count)


def gang(
    name: str,
    *minimum: Group,
    priority: int = 0,
    created: float = 0.0,
    surplus: tuple[tuple[Group, ...], ...] = (),
    namespace: str = "team",
) -> PendingGang:
    return PendingGang(GangKey(namespace, name), priority, created, minimum, surplus)


def columns(
    *nodes: Node,
    used: Mapping[str, Mapping[str, int]] | None = None,
) -> NodeSnapshot:
    return node_snapshot_of(nodes, used)
