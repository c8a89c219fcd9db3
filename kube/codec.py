"""What do Kubernetes objects mean in the words of the core, and how is a placement written down?

Sound in one direction: whatever of a pod the core does not model is named in the `unsupported`
of its shape, so that nothing is placed on a guess. What binds a pod to nodes was looked up in
the plugins of kube-scheduler 1.36 that are on by default.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from kube import objects
from kube.in_tree import TAKEN_OVER, handle_of
from kube.objects import (
    BareNode,
    Container,
    ContainerStatus,
    Pod,
    PodSpec,
    Quantities,
    Quantity,
    VolumeSource,
)
from kube.profiles import (
    COMPANY,
    DEFAULT_SCHEDULER,
    MOST_SPREADS,
    PORTS,
    SPREAD,
    STOCK,
    Profile,
    Profiles,
)
from scheduling import model
from scheduling.holders import Held
from scheduling.model import (
    Assignment,
    Mount,
    NodeTerm,
    Placement,
    PodShape,
    PodTerm,
    Requirement,
    SpreadConstraint,
)
from scheduling.ports import HostPort, port_amounts
from scheduling.resources import (
    BadQuantity,
    ContainerRequests,
    allocatable_amount,
    pod_requests,
    request_amount,
    sorted_requests,
)
from scheduling.verdict import PodSetRefusal

AFTER_ALL = 253402300800.0
"""The first second of the year 10000."""

_QUANTITY_ALLOWED = "a quantity that is not negative and fits 64 bits, such as 500m, 2 or 1.5Gi"
_MOST_TERMS = 200  # no real pod has as many; each costs a look at all nodes
_MOST_PORTS = 50  # host ports of a pod; each costs a look at the nodes where it is taken
_MOST_VOLUMES = 100  # claims and disks; no node attaches as many, and each costs a look at all
_MOST_PODS = 2**20  # on a node, of one kind; what they take together must fit 64 bits
_MOST_TURNS = 2**31  # what comes later counts on, and must fit the schema
_SHOWN = 120  # what tenants write may be long, a message should not

CLAIM, EPHEMERAL = "persistentVolumeClaim", "ephemeral"
_MOUNTED = frozenset((CLAIM, EPHEMERAL, *TAKEN_OVER))

# Disks that plugin VolumeRestrictions gives to one pod of a node, if pods name them themselves.
_EXCLUSIVE_DISKS = frozenset(("awsElasticBlockStore", "gcePersistentDisk", "iscsi", "rbd"))

# Volumes that no Filter plugin looks at, those of claims, and the kinds of disk of `in_tree`. Any
# other kind is of a later release.
_MODELLED_VOLUMES = frozenset(
    (
        *(CLAIM, EPHEMERAL, "azureFile", "vsphereVolume"),
        *TAKEN_OVER,
        *("configMap", "csi", "downwardAPI", "emptyDir", "hostPath", "image", "projected"),
        *("secret", "nfs", "cephfs", "fc", "flexVolume", "gitRepo", "glusterfs"),
        *("flocker", "photonPersistentDisk", "quobyte", "scaleIO", "storageos"),
    )
)

# What none of the functions here that look at volumes has anything to say of.
_PLAIN = frozenset(("name", *_MODELLED_VOLUMES - _MOUNTED - _EXCLUSIVE_DISKS))

Amounts = dict[str, int]


class InvalidObject(ValueError):  # noqa: N818 - the noun of the design: an object that is invalid
    """A field of an object has a value that cannot be used."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        super().__init__(f'{field}: "{_shortened(str(value))}" is not valid; allowed: {allowed}')


# ---- pods


def pod_shape(pod: Pod, profiles: Profiles = STOCK) -> PodShape:
    """Reduce a pod, as admitted, to what matters to its scheduler, one of the `profiles`.

    One with too many terms of a sort is not supported; of too many node selection terms none is
    read, and no node matches its shape.
    """
    spec = pod.spec
    profile = profiles.get(spec.scheduler_name or DEFAULT_SCHEDULER)
    off = profile.off if profile else frozenset()
    readable = _selection_terms(spec) <= _MOST_TERMS
    minds = COMPANY not in off and _company_terms(spec) <= _MOST_TERMS
    containers = _asked(spec.containers, "spec.containers")
    init_containers = _asked(spec.init_containers, "spec.initContainers")
    constraints, mounted = spec.topology_spread_constraints, mounts(pod)
    return PodShape(
        requests=sorted_requests(
            {
                **_pod_total(spec, containers, init_containers, _pod_level(spec)),
                **_port_amounts(spec, off),
                model.PODS: 1,
            }
        ),
        node_selector=tuple(sorted(spec.node_selector.items())) if readable else (),
        node_affinity=_required_terms(spec) if readable else (),
        tolerations=tuple(_toleration(each) for each in spec.tolerations) if readable else (),
        added_affinity=profile.added if profile else None,
        features=tuple(sorted(_features(spec))),
        unsupported=tuple(sorted({*_not_modelled(spec, profile)})),
        near=_affinity_terms(pod) if minds else (),
        apart=anti_affinity_terms(pod) if minds else (),
        spread=() if SPREAD in off else _spread_constraints(constraints, pod.metadata),
        volumes=() if len(mounted) > _MOST_VOLUMES else _volume_names(mounted),
    )


def pod_used(pod: Pod) -> Amounts:
    """Count what an existing pod takes on its node, its slot included.

    While a resize is under way that is the most of what it asks for, was given, and runs with.
    """
    choose = _larger_of_given if _resize_is_infeasible(pod) else _larger_of_all
    spec, status = pod.spec, pod.status
    main = _in_use(spec.containers, status.container_statuses, "containers", choose)
    init = _in_use(spec.init_containers, status.init_container_statuses, "initContainers", choose)
    total = _pod_total(spec, main, init, _pod_level_in_use(pod, choose))
    return {**total, **port_amounts(_host_ports(spec)), model.PODS: 1}


def holds_room(pod: Pod) -> bool:
    """Say whether a pod takes room on some node; a terminating one still does."""
    return room_on(pod) != ""


def room_on(pod: Pod) -> str:
    """Name the node on which a pod takes room: where it is bound, else where it is nominated."""
    if pod.status.phase in ("Succeeded", "Failed"):
        return ""
    return pod.spec.node_name or pod.status.nominated_node_name


def nominated_priority(pod: Pod, profiles: Profiles = STOCK) -> int | None:
    """Return the priority up to which a nomination holds its room; None where it holds for all.

    kube-scheduler passes over nominations of lower priority than the pod at hand. Since 1.35 it
    also writes one for a pod that it has placed and is still binding, where that takes work
    (claims of volumes and devices, a plugin that has it wait): such a pod holds its room.
    """
    spec = pod.spec
    if spec.node_name or not room_on(pod) or _has_claims(spec):
        return None
    if (spec.scheduler_name or DEFAULT_SCHEDULER) not in profiles or not _unschedulable(pod):
        return None
    return spec.priority or 0


def _has_claims(spec: PodSpec) -> bool:
    claims = ("persistentVolumeClaim", "ephemeral")
    return bool(spec.resource_claims) or any(v.get(c) for v in spec.volumes for c in claims)


def _unschedulable(pod: Pod) -> bool:
    return any(
        (each.type, each.status, each.reason) == ("PodScheduled", "False", "Unschedulable")
        for each in pod.status.conditions
    )


def created_at(metadata: objects.ObjectMeta) -> float:
    """Give the creation time in seconds since the epoch; 0 where there is none yet.

    Who has one that cannot be read comes after all others.
    """
    text = metadata.creation_timestamp
    if not text:
        return 0.0
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return AFTER_ALL


# ---- requests


def _amounts(quantities: Quantities, field: str) -> Amounts:
    return {name: _amount(name, text, field) for name, text in quantities.items()}


def _amount(name: str, text: Quantity, field: str) -> int:
    try:
        return request_amount(name, str(text))
    except BadQuantity:
        raise InvalidObject(f"{field}[{name}]", text, _QUANTITY_ALLOWED) from None


def _pod_total(
    spec: PodSpec,
    containers: list[ContainerRequests],
    init_containers: list[ContainerRequests],
    pod_level: Amounts,
) -> Amounts:
    overhead = _amounts(spec.overhead, "spec.overhead")
    try:
        return pod_requests(containers, init_containers, overhead, pod_level)
    except BadQuantity as error:
        raise InvalidObject("spec.containers", error, "a sum that fits 64 bits") from None


def _asked(containers: Iterable[Container], field: str) -> list[ContainerRequests]:
    return [
        _container(each, _amounts(each.resources.requests, f"{field}[{i}].resources.requests"))
        for i, each in enumerate(containers)
    ]


def _container(container: Container, amounts: Amounts) -> ContainerRequests:
    return ContainerRequests(amounts, restartable=_keeps_running(container))


def _keeps_running(container: Container) -> bool:
    return container.restart_policy == "Always"


def _pod_level(spec: PodSpec) -> Amounts:
    return _amounts(spec.resources.requests, "spec.resources.requests") if spec.resources else {}


def _port_amounts(spec: PodSpec, off: frozenset[str]) -> Amounts:
    """Count host ports, of too many none: such a pod is not supported."""
    return {} if PORTS in off or _has_many_ports(spec) else port_amounts(_host_ports(spec))


def _has_many_ports(spec: PodSpec) -> bool:
    return len({*_host_ports(spec)}) > _MOST_PORTS


def _host_ports(spec: PodSpec) -> Iterator[HostPort]:
    """List the ports of the host that a pod holds for as long as it runs."""
    side_cars = (each for each in spec.init_containers if _keeps_running(each))
    for container in (*spec.containers, *side_cars):
        for port in container.ports:
            if port.host_port > 0:
                yield port.host_ip, port.protocol, port.host_port


# ---- requests of a pod that exists: spec, allocated, actuated

_Choice = Callable[[Amounts, Amounts, Amounts], Amounts]


def _larger_of_all(asked: Amounts, allocated: Amounts, actuated: Amounts) -> Amounts:
    return _larger(asked, _larger(allocated, actuated))


def _larger_of_given(_asked: Amounts, allocated: Amounts, actuated: Amounts) -> Amounts:
    """The node cannot ever give what is asked for, so that does not count."""
    return _larger(allocated, actuated)


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def _resize_is_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _in_use(
    containers: Iterable[Container],
    statuses: Iterable[ContainerStatus],
    field: str,
    choose: _Choice,
) -> list[ContainerRequests]:
    asked = _asked(containers, f"spec.{field}")
    reported = {status.name: status for status in statuses}
    return [
        _container(container, _resized(each.requests, reported.get(container.name), field, choose))
        if field == "containers" or each.restartable
        else each
        for container, each in zip(containers, asked, strict=True)
    ]


def _resized(
    asked: Mapping[str, int], status: ContainerStatus | None, field: str, choose: _Choice
) -> Amounts:
    if status is None or status.resources is None:
        return dict(asked)
    where = f"status of {field} {status.name}"
    allocated = _amounts(status.allocated_resources, f"{where} allocatedResources")
    actuated = _amounts(status.resources.requests, f"{where} resources.requests")
    return choose(dict(asked), allocated, actuated)


def _pod_level_in_use(pod: Pod, choose: _Choice) -> Amounts:
    asked, status = _pod_level(pod.spec), pod.status
    if not asked or status.resources is None:
        return asked
    allocated = _amounts(status.allocated_resources, "status.allocatedResources")
    actuated = _amounts(status.resources.requests, "status.resources.requests")
    chosen = choose(asked, allocated, actuated)
    return {name: chosen.get(name, 0) for name in asked}


# ---- constraints


def _required_terms(spec: PodSpec) -> tuple[NodeTerm, ...] | None:
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    if node_affinity is None or node_affinity.required is None:
        return None
    return node_terms(node_affinity.required)


def node_terms(found: objects.NodeSelector) -> tuple[NodeTerm, ...]:
    """Read ORed terms for nodes."""
    return tuple(
        NodeTerm(_requirements(term.match_expressions), _requirements(term.match_fields))
        for term in found.node_selector_terms
    )


def _selection_terms(spec: PodSpec) -> int:
    """Count what must be asked of nodes; fields are left out, so that our pin changes nothing."""
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    required = node_affinity.required if node_affinity else None
    terms = required.node_selector_terms if required else ()
    expressions = sum(len(term.match_expressions) for term in terms)
    return len(spec.node_selector) + expressions + len(spec.tolerations)


def _requirements(found: Iterable[objects.SelectorRequirement]) -> tuple[Requirement, ...]:
    return tuple(Requirement(each.key, each.operator, each.values) for each in found)


def _toleration(found: objects.Toleration) -> model.Toleration:
    return model.Toleration(found.key, found.operator or "Equal", found.value, found.effect)


def _not_modelled(spec: PodSpec, profile: Profile | None) -> Iterator[str]:
    """Name what binds a pod and the core knows nothing of; the names end up in messages.

    What to do instead stands behind each, in brackets.
    """
    if profile is None:
        name = _shortened(spec.scheduler_name or DEFAULT_SCHEDULER)
        yield f"schedulerName {name} (use one of the schedulers in the coordinator's PROFILES)"
    yield from _volumes(spec)
    if _has_many_ports(spec):
        yield f"more than {_MOST_PORTS} host ports (use fewer)"
    if _selection_terms(spec) > _MOST_TERMS:
        yield f"more than {_MOST_TERMS} node selection terms (use fewer, with more values each)"
    else:
        yield from _tolerations(spec)
    if not (profile and COMPANY in profile.off) and _company_terms(spec) > _MOST_TERMS:
        yield f"more than {_MOST_TERMS} terms of affinity between pods (use fewer)"
    spread_is_off = profile is not None and SPREAD in profile.off
    if not spread_is_off and len(spec.topology_spread_constraints) > MOST_SPREADS:
        yield f"more than {MOST_SPREADS} topologySpreadConstraints (use fewer)"
    if profile and profile.spreads_by_default and not spec.topology_spread_constraints:
        yield (
            f"default topology spread constraints of scheduler {profile.name} "
            "(give the pods topologySpreadConstraints of their own)"
        )
    if spec.resource_claims:
        yield "resourceClaims (ask for the extended resource of a device plugin instead)"
    if spec.scheduling_group is not None:
        yield "schedulingGroup (leave it out: Muster starts the gang as a whole)"


def _volumes(spec: PodSpec) -> Iterator[str]:
    if sum(kind in _MOUNTED for _, kind, _ in _sources(spec)) > _MOST_VOLUMES:
        yield f"more than {_MOST_VOLUMES} volumes of claims and disks (use fewer)"
    remedy = "use a PersistentVolumeClaim instead"
    for _, kind, source in _sources(spec):
        if kind in _EXCLUSIVE_DISKS or kind not in _MODELLED_VOLUMES:
            yield f"volume of kind {kind} ({remedy})"
        elif kind in TAKEN_OVER and not handle_of(kind, source, {}):
            yield f"volume of kind {kind} that no CSI driver can take over ({remedy})"


def _sources(spec: PodSpec) -> Iterator[tuple[str, str, VolumeSource]]:
    """Yield name, kind and source of each volume that is more than files in the container."""
    for volume in telling_volumes(spec):
        for kind, source in volume.items():
            if isinstance(source, VolumeSource):
                yield str(volume.get("name", "")), kind, source


def telling_volumes(spec: PodSpec) -> tuple[Mapping[str, str | VolumeSource | None], ...]:
    """List the volumes that may decide where a pod goes; most pods have none."""
    return tuple(each for each in spec.volumes if not each.keys() <= _PLAIN)


def mounts(pod: Pod) -> tuple[Mount, ...]:
    """List the claims that a pod mounts, and the disks it names that count as a driver's.

    A disk has no claim: `volume` is its driver and `owner` its handle.
    """
    found = (_mount(pod.metadata, *each) for each in _sources(pod.spec))
    return tuple(mount for mount in found if mount is not None)


def _mount(pod: objects.ObjectMeta, volume: str, kind: str, source: VolumeSource) -> Mount | None:
    if kind == CLAIM:
        return Mount(source.claim_name)
    if kind == EPHEMERAL:
        return Mount(f"{pod.name}-{volume}", volume, pod.uid)
    if kind in TAKEN_OVER:
        return Mount("", TAKEN_OVER[kind].driver, handle_of(kind, source, {}))
    return None


def _volume_names(found: Iterable[Mount]) -> tuple[str, ...]:
    """Name what tells pods apart that mount volumes: claims, but not who has which of his own."""
    return tuple(sorted({_volume_name(each) for each in found}))


def _volume_name(found: Mount) -> str:
    if not found.claim:
        return f"{found.volume} {found.owner}"
    return f"{EPHEMERAL} {found.volume}" if found.volume else f"{CLAIM} {found.claim}"


def _tolerations(spec: PodSpec) -> Iterator[str]:
    for toleration in spec.tolerations:
        if toleration.operator not in ("", "Equal", "Exists"):
            yield f"toleration operator {_shortened(toleration.operator)} (use Equal or Exists)"


def _features(spec: PodSpec) -> Iterator[str]:
    """Name the features that a node must declare for the pod, as kube-scheduler 1.36 infers them.

    They are those of component-helpers/nodedeclaredfeatures whose InferForScheduling can be true.
    1.35 infers none unless an alpha gate is on; a pod that needs one passes its API server only
    where other alpha gates are on, and is asked for more than need be.
    """
    rules = (r for c in (*spec.containers, *spec.init_containers) for r in c.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        yield "RestartAllContainersOnContainerExits"
    if spec.host_network and spec.host_users is False:
        yield "UserNamespacesHostNetworkSupport"


# ---- affinity between pods


def anti_affinity_terms(pod: Pod) -> tuple[PodTerm, ...]:
    """List the required anti-affinity terms of a pod."""
    affinity = pod.spec.affinity
    found = affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else ()
    return tuple(_pod_term(term, pod.metadata.namespace) for term in found)


def _company_terms(spec: PodSpec) -> int:
    """Count what must be asked of other pods."""
    affinity = spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return sum(_expressions(term) for side in sides if side for term in side.required)


def _expressions(term: objects.PodAffinityTerm) -> int:
    selectors = (term.label_selector, term.namespace_selector)
    return 1 + sum(len(s.match_labels) + len(s.match_expressions) for s in selectors if s)


def _affinity_terms(pod: Pod) -> tuple[PodTerm, ...]:
    affinity = pod.spec.affinity
    found = affinity.pod_affinity.required if affinity and affinity.pod_affinity else ()
    return tuple(_pod_term(term, pod.metadata.namespace) for term in found)


def _pod_term(found: objects.PodAffinityTerm, namespace: str) -> PodTerm:
    """Read a term; one that names no namespace at all means the pod's own."""
    elsewhere = found.namespace_selector
    own = (namespace,) if elsewhere is None else ()
    return PodTerm(
        key=found.topology_key,
        selector=selector(found.label_selector),
        namespaces=found.namespaces or own,
        namespace_selector=None if elsewhere is None else selector(elsewhere),
    )


def _spread_constraints(
    found: tuple[objects.TopologySpreadConstraint, ...], pod: objects.ObjectMeta
) -> tuple[SpreadConstraint, ...]:
    """Read the constraints of a pod that bind; of too many none, for it is not supported then."""
    if len(found) > MOST_SPREADS:
        return ()
    binding = (each for each in found if each.when_unsatisfiable != "ScheduleAnyway")
    return tuple(_spread_constraint(each, pod) for each in binding)


def _spread_constraint(
    found: objects.TopologySpreadConstraint, pod: objects.ObjectMeta
) -> SpreadConstraint:
    picked = _counted(found, pod.labels)
    return SpreadConstraint(
        counted=PodTerm(found.topology_key, picked, (pod.namespace,)),
        max_skew=found.max_skew,
        min_domains=found.min_domains or 1,
        heeds_affinity=found.node_affinity_policy in (None, "Honor"),
        heeds_taints=found.node_taints_policy == "Honor",
    )


def _counted(
    found: objects.TopologySpreadConstraint, labels: objects.Labels
) -> tuple[Requirement, ...]:
    """Read whom a constraint counts.

    The values of the keys to match are in the selector since Kubernetes 1.34; before that the
    scheduler looked them up. An empty selector counts nobody: then nothing is ever above the least.
    """
    counted = selector(found.label_selector)
    keys = (Requirement(k, "In", (labels[k],)) for k in found.match_label_keys if k in labels)
    if found.label_selector is None:
        return counted
    return tuple(dict.fromkeys((*counted, *keys))) or (_NOTHING,)


def selector(found: objects.LabelSelector | None) -> tuple[Requirement, ...]:
    """Read a selector; none at all picks nothing, an empty one everything."""
    if found is None:
        return (_NOTHING,)
    labels = (Requirement(key, "In", (value,)) for key, value in found.match_labels.items())
    return (*labels, *_requirements(found.match_expressions))


_NOTHING = Requirement("", "In", ())


# ---- nodes


def whole_node(found: objects.Node | BareNode) -> objects.Node:
    """Return a node that can be read; where the rest of one cannot, it is full and cordoned."""
    if isinstance(found, objects.Node):
        return found
    return objects.Node(metadata=found.metadata, spec=objects.NodeSpec(unschedulable=True))


def node(found: objects.Node) -> model.Node:
    """Read a node; of what it has not said, or not in words that can be read, it offers nothing.

    It is there all the same: it is in its domains, and pods may be on it.
    """
    return model.Node(
        name=found.metadata.name,
        labels=found.metadata.labels,
        taints=tuple(model.Taint(t.key, t.value, t.effect) for t in found.spec.taints),
        unschedulable=found.spec.unschedulable,
        allocatable={
            name: _offered(name, str(text)) for name, text in found.status.allocatable.items()
        },
        features=frozenset(found.status.declared_features),
    )


def _offered(resource: str, text: str) -> int:
    """Read an amount; one beyond 64 bits is less than nothing to kube-scheduler."""
    try:
        return allocatable_amount(resource, text)
    except BadQuantity:
        return 0


# ---- classes of devices

_OF_CLASS = "deviceclass.resource.kubernetes.io/"


def resources_of_class(found: objects.DeviceClass) -> tuple[str, ...]:
    """Name the resources that a pod may ask for to get devices of the class (DRAExtendedResource).

    The gate is on since 1.36; earlier servers drop the name from the class, and their pods get
    nothing for either.
    """
    named = found.spec.extended_resource_name
    return (f"{_OF_CLASS}{found.metadata.name}", *((named,) if named else ()))


# ---- the placement in Gang.status


def placement_to_status(placement: Placement, epoch: int) -> dict[str, Any]:
    """Write a placement down as JSON; `placement_from_status` reads the same one back."""
    by_pod_set: dict[str, list[dict[str, Any]]] = {}
    for each in placement.assignments:
        by_pod_set.setdefault(each.pod_set, []).append(_written(each))
    pod_sets = [{"name": name, "assignments": each} for name, each in by_pod_set.items()]
    return {"epoch": epoch, "podSets": pod_sets}


def shortage_to_status(refusal: PodSetRefusal) -> dict[str, Any]:
    """Write down what a pod set lacks; empty where no node is feasible at all."""
    if not refusal.resource:
        return {}

    def spelled(amount: int) -> str:
        return _quantity(refusal.resource, amount)

    held = refusal.held or Held(0)
    holders = [
        {**{k: v for k, v in share.holder._asdict().items() if v}, "amount": spelled(share.amount)}
        for share in held.shares
    ]
    return {
        "resource": refusal.resource,
        "each": spelled(refusal.each),
        "needed": spelled(refusal.needed),
        "free": spelled(refusal.free),
        "left": spelled(refusal.left),
        "largest": spelled(refusal.largest),
        **({"total": spelled(held.total), "holders": holders} if holders else {}),
    }


def placement_from_status(written: objects.GangPlacement) -> Placement:
    """Read a placement. Amounts and nodes come sorted, because JSON maps have no order.

    Raises InvalidObject where somebody has edited it into nonsense.
    """
    return Placement(
        tuple(
            _read(pod_set.name, each)
            for pod_set in written.pod_sets
            for each in pod_set.assignments
        )
    )


def _written(assignment: Assignment) -> dict[str, Any]:
    return {
        "shape": assignment.shape,
        "replica": assignment.replica,
        "requests": {name: _quantity(name, amount) for name, amount in assignment.requests},
        "nodes": dict(assignment.nodes),
        **({"turn": assignment.turn} if assignment.turn else {}),
    }


def _read(pod_set: str, written: objects.PlacedShape) -> Assignment:
    field = f"status.placement of {pod_set}"
    requests = _amounts(written.requests, f"{field} requests")
    most = min(_MOST_PODS, (2**63 - 1) // max((1, *requests.values())))
    for name, count in written.nodes.items():
        if not 1 <= count <= most:
            allowed = f"a number of pods from 1 to {most}"
            raise InvalidObject(f"{field} nodes[{name}]", count, allowed)
    if not 0 <= written.turn <= _MOST_TURNS:
        raise InvalidObject(f"{field} turn", written.turn, f"a number from 0 to {_MOST_TURNS}")
    return Assignment(
        pod_set=pod_set,
        replica=written.replica,
        shape=written.shape,
        requests=tuple(sorted(requests.items())),
        nodes=tuple(sorted(written.nodes.items())),
        turn=written.turn,
    )


def _quantity(resource: str, amount: int) -> str:
    """Spell an amount of the core as a quantity: CPU counts in milli there."""
    return f"{amount}m" if resource == model.CPU else str(amount)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
